//! The log of the model server: conversations, refused requests, and closed connections.

use super::{
    CHAT, GENERATE, MESSAGES, RESPONSES, STREAM, Stage, claude, codex, conversation, gemini,
    opencode,
};
use insta::assert_snapshot;
use posthaste_lab::model::LogEntry;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

#[track_caller]
fn noted(path: &str, body: &Value) -> String {
    let stage = Stage::new();
    let answer = stage.post(path, body);
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    conversation(stage.only())
}

#[test]
fn a_conversation_is_logged_completely() {
    let mut body = claude("one", true);
    let pieces = [
        json!({"role": "assistant", "content": [{"type": "tool_use", "id": "t", "name": "Bash", "input": {}}]}),
        json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "out"}]},
            {"type": "tool_result", "tool_use_id": "u", "content": "plain"},
        ]}),
        json!({"role": "system", "content": "a remark"}),
        json!({"role": "user", "content": "two"}),
    ];
    body["messages"].as_array_mut().unwrap().extend(pieces);
    assert_snapshot!(noted(MESSAGES, &body), @r#"
    Claude claude-lab ["Bash"]
    System: be good
    User: <system-reminder>today</system-reminder>
    User: one
    Model: 
    Tool: out
    Tool: plain
    System: a remark
    User: two
    "#);

    let mut body = codex("one");
    let pieces = [
        json!({"type": "function_call", "name": "exec_command", "call_id": "c", "arguments": "{}"}),
        json!({"type": "function_call_output", "call_id": "c", "output": "out"}),
        json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "two"}]}),
    ];
    body["input"].as_array_mut().unwrap().extend(pieces);
    assert_snapshot!(noted(RESPONSES, &body), @r#"
    Codex gpt-lab ["exec_command", "mcp__ph::send", "web_search"]
    System: be good
    System: rules
    User: one
    Model: 
    Tool: out
    User: two
    "#);

    let mut body = opencode("one", true);
    let pieces = [
        json!({"role": "assistant", "content": null, "tool_calls": []}),
        json!({"role": "tool", "tool_call_id": "c", "content": "out"}),
    ];
    body["messages"].as_array_mut().unwrap().extend(pieces);
    assert_snapshot!(noted(CHAT, &body), @r#"
    OpenCode lab ["bash"]
    System: be good
    User: one
    Model: 
    Tool: out
    "#);

    let mut body = gemini("one");
    let pieces = [
        json!({"role": "model", "parts": [{"functionCall": {"name": "x", "args": {}}}]}),
        json!({"role": "user", "parts": [{"functionResponse": {"name": "x", "response": {"output": "out"}}}]}),
    ];
    body["contents"].as_array_mut().unwrap().extend(pieces);
    assert_snapshot!(noted(STREAM, &body), @r#"
    Gemini gemini-lab ["run_shell_command"]
    System: be good
    User: context
    User: one
    Model: 
    Tool: {"output":"out"}
    "#);
}

/// Codex offers its tools when it asks for a title, too.
#[test]
fn a_title_is_not_a_turn() {
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    let stage = Stage::new();
    let mut body = codex("hang=60");
    body["text"] = json!({"format": {"type": "json_schema", "schema": schema}});
    let answer = stage.post(RESPONSES, &body);
    assert!(answer.contains(r#"{\"title\":\"Lab title "#), "{answer}");
    let mut body = claude("hang=60", true);
    body["output_config"] = json!({"format": {"type": "json_schema", "schema": schema}});
    let answer = stage.post(MESSAGES, &body);
    assert!(answer.contains(r#"{\"title\":\"Lab title "#), "{answer}");
    assert_eq!(stage.log().records().len(), 2);
    assert_eq!(stage.log().seen("hang=60"), 0);
}

#[track_caller]
fn refused(path: &str, body: &str, reason: &str) {
    let stage = Stage::new();
    let answer = stage.ask("POST", path, body);
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let record = stage.only();
    let LogEntry::Malformed { reason: noted, .. } = &record else {
        panic!("it was taken: {record:?}");
    };
    assert!(noted.contains(reason), "{noted}");
}

#[test]
fn an_invalid_request_is_refused_and_logged() {
    refused(MESSAGES, "{", "no JSON");
    refused(MESSAGES, "", "no JSON");
    refused(MESSAGES, "{}", r#"no text "model""#);
    refused(
        MESSAGES,
        r#"{"model":"m","messages":3}"#,
        r#""messages" is not a list"#,
    );
    refused(
        MESSAGES,
        r#"{"model":"m","messages":[{"role":"king"}]}"#,
        r#"unknown role "king""#,
    );
    refused(
        MESSAGES,
        r#"{"model":"m","messages":[{"role":"user","content":3}]}"#,
        "no content: 3",
    );
    refused(
        MESSAGES,
        r#"{"model":"m","tools":[{}]}"#,
        r#"no text "name""#,
    );
    refused(RESPONSES, "[]", r#"no text "model""#);
    refused(
        RESPONSES,
        r#"{"model":"m","input":"x"}"#,
        r#""input" is not a list"#,
    );
    refused(
        RESPONSES,
        r#"{"model":"m","input":[{}]}"#,
        r#"no text "type""#,
    );
    refused(
        CHAT,
        r#"{"model":"m","messages":[{"role":"king"}]}"#,
        "king",
    );
    refused(
        CHAT,
        r#"{"model":"m","tools":[{"name":"x"}]}"#,
        r#"no text "name""#,
    );
    refused(STREAM, r#"{"contents":[{"role":"king"}]}"#, "king");
    refused(
        GENERATE,
        r#"{"contents":{}}"#,
        r#""contents" is not a list"#,
    );
}

#[test]
fn requests_beside_turns_are_answered_and_logged() {
    let stage = Stage::new();
    assert_snapshot!(stage.ask("GET", "/v1/models", ""), @r#"
    HTTP/1.1 200 OK

    {"data":[{"created":0,"id":"lab","object":"model","owned_by":"lab"}],"models":[],"object":"list"}
    "#);
    assert_snapshot!(stage.post("/v1/messages/count_tokens?beta=true", &json!({})), @r#"
    HTTP/1.1 200 OK

    {"input_tokens":10}
    "#);
    assert_snapshot!(stage.post("/v1beta/models/gemini-lab:countTokens", &json!({})), @r#"
    HTTP/1.1 200 OK

    {"totalTokens":10}
    "#);
    assert_snapshot!(stage.post("/v1/telemetry", &json!({})), @r#"
    HTTP/1.1 404 Not Found

    {"error":{"message":"not in the lab"}}
    "#);
    let noted = stage
        .log()
        .records()
        .into_iter()
        .map(|record| match record {
            LogEntry::Other {
                request, status, ..
            } => format!("{status} {request}\n"),
            other => panic!("{other:?}"),
        });
    assert_snapshot!(noted.collect::<String>(), @"
    200 GET /v1/models
    200 POST /v1/messages/count_tokens?beta=true
    200 POST /v1beta/models/gemini-lab:countTokens
    404 POST /v1/telemetry
    ");
}

#[test]
fn a_closed_connection_is_logged() {
    for wait in ["hang=60", "slow=60"] {
        let stage = Stage::new();
        let stream = stage.send("POST", MESSAGES, &claude(wait, true).to_string());
        wait_for("the request", || !stage.log().turns().is_empty());
        assert_eq!(stage.log().cuts(), 0);
        drop(stream);
        wait_for("the cut", || stage.log().cuts() == 1);
    }
    let stage = Stage::new();
    stage.post(MESSAGES, &claude("slow=0.3", true));
    assert_eq!(stage.log().prompts(), ["slow=0.3"]);
    assert_eq!(stage.log().cuts(), 0);
}

/// Wait until the log, which another thread writes, satisfies a condition.
#[track_caller]
fn wait_for(what: &str, holds: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::yield_now();
    }
}
