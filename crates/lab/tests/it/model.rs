//! The model server from outside: the bytes of each dialect, and refusals.

use insta::assert_snapshot;
use posthaste_lab::model::{Author, Log, Model, Record};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Stage {
    model: Model,
    _dir: TempDir,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let model = Model::start(&dir.path().join("log"));
        Self { model, _dir: dir }
    }

    fn log(&self) -> &Log {
        self.model.log()
    }

    fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        send(self.model.port(), method, path, body)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        answered(self.send(method, path, body))
    }

    fn post(&self, path: &str, body: &Value) -> String {
        self.ask("POST", path, &body.to_string())
    }

    /// Return the only request so far.
    #[track_caller]
    fn only(&self) -> Record {
        let mut records = self.log().records();
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }
}

/// Send a request without reading the response.
fn send(port: u16, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: lab\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

/// Return the status line, an empty line, and the body.
fn answered(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let chunked = head.contains("transfer-encoding: chunked");
    let body = if chunked {
        whole(body)
    } else {
        body.to_owned()
    };
    format!("{}\n\n{}", head.lines().next().unwrap(), body.trim_end())
}

fn post_to(port: u16, path: &str, body: &Value) -> String {
    answered(send(port, "POST", path, &body.to_string()))
}

/// Join the chunks of a body.
fn whole(mut chunks: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&rest[..length]);
        chunks = &rest[length + 2..];
    }
    whole
}

fn claude(prompt: &str, stream: bool) -> Value {
    json!({
        "model": "claude-lab", "stream": stream,
        "system": [{"type": "text", "text": "be good"}],
        "tools": [{"name": "Bash"}],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "<system-reminder>today</system-reminder>"},
            {"type": "text", "text": prompt},
        ]}],
    })
}

fn codex(prompt: &str) -> Value {
    json!({
        "model": "gpt-lab", "stream": true, "instructions": "be good",
        "tools": [
            {"type": "function", "name": "exec_command"},
            {"type": "namespace", "name": "mcp__ph", "tools": [{"name": "send"}]},
            {"type": "web_search"},
        ],
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]},
        ],
    })
}

fn opencode(prompt: &str, stream: bool) -> Value {
    json!({
        "model": "lab", "stream": stream,
        "tools": [{"type": "function", "function": {"name": "bash"}}],
        "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": prompt}]},
        ],
    })
}

fn gemini(prompt: &str) -> Value {
    json!({
        "tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}],
        "systemInstruction": {"role": "user", "parts": [{"text": "be good"}]},
        "contents": [{"role": "user", "parts": [{"text": "context"}, {"text": prompt}]}],
    })
}

const MESSAGES: &str = "/v1/messages?beta=true";
const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const STREAM: &str = "/v1beta/models/gemini-lab:streamGenerateContent?alt=sse";
const GENERATE: &str = "/v1beta/models/gemini-lab:generateContent";

#[test]
fn claude_gets_a_stream() {
    assert_snapshot!(Stage::new().post(MESSAGES, &claude("reply=hi", true)), @r#"
    HTTP/1.1 200 OK

    event: message_start
    data: {"message":{"content":[],"id":"msg_lab1","model":"claude-lab","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":{"input_tokens":5,"output_tokens":1}},"type":"message_start"}

    event: content_block_start
    data: {"content_block":{"text":"","type":"text"},"index":0,"type":"content_block_start"}

    event: content_block_delta
    data: {"delta":{"text":"hi","type":"text_delta"},"index":0,"type":"content_block_delta"}

    event: content_block_stop
    data: {"index":0,"type":"content_block_stop"}

    event: message_delta
    data: {"delta":{"stop_reason":"end_turn","stop_sequence":null},"type":"message_delta","usage":{"output_tokens":9}}

    event: message_stop
    data: {"type":"message_stop"}
    "#);
    assert_snapshot!(Stage::new().post(MESSAGES, &claude("reply=hi\nbash=ls", true)), @r#"
    HTTP/1.1 200 OK

    event: message_start
    data: {"message":{"content":[],"id":"msg_lab1","model":"claude-lab","role":"assistant","stop_reason":null,"stop_sequence":null,"type":"message","usage":{"input_tokens":5,"output_tokens":1}},"type":"message_start"}

    event: content_block_start
    data: {"content_block":{"text":"","type":"text"},"index":0,"type":"content_block_start"}

    event: content_block_delta
    data: {"delta":{"text":"hi","type":"text_delta"},"index":0,"type":"content_block_delta"}

    event: content_block_stop
    data: {"index":0,"type":"content_block_stop"}

    event: content_block_start
    data: {"content_block":{"id":"toolu_lab1","input":{},"name":"Bash","type":"tool_use"},"index":1,"type":"content_block_start"}

    event: content_block_delta
    data: {"delta":{"partial_json":"{\"command\":\"ls\",\"description\":\"lab command\"}","type":"input_json_delta"},"index":1,"type":"content_block_delta"}

    event: content_block_stop
    data: {"index":1,"type":"content_block_stop"}

    event: message_delta
    data: {"delta":{"stop_reason":"tool_use","stop_sequence":null},"type":"message_delta","usage":{"output_tokens":9}}

    event: message_stop
    data: {"type":"message_stop"}
    "#);
}

#[test]
fn claude_gets_a_whole_reply() {
    assert_snapshot!(Stage::new().post(MESSAGES, &claude("reply=hi\nbash=ls", false)), @r#"
    HTTP/1.1 200 OK

    {"content":[{"text":"hi","type":"text"},{"id":"toolu_lab1","input":{"command":"ls","description":"lab command"},"name":"Bash","type":"tool_use"}],"id":"msg_lab1","model":"claude-lab","role":"assistant","stop_reason":"tool_use","stop_sequence":null,"type":"message","usage":{"input_tokens":5,"output_tokens":1}}
    "#);
}

#[test]
fn codex_gets_a_stream() {
    assert_snapshot!(Stage::new().post(RESPONSES, &codex("reply=hi")), @r#"
    HTTP/1.1 200 OK

    event: response.created
    data: {"response":{"id":"resp_lab1"},"type":"response.created"}

    event: response.output_item.added
    data: {"item":{"content":[],"id":"msg_lab1","role":"assistant","type":"message"},"output_index":0,"type":"response.output_item.added"}

    event: response.output_text.delta
    data: {"content_index":0,"delta":"hi","item_id":"msg_lab1","output_index":0,"type":"response.output_text.delta"}

    event: response.output_item.done
    data: {"item":{"content":[{"text":"hi","type":"output_text"}],"id":"msg_lab1","role":"assistant","type":"message"},"output_index":0,"type":"response.output_item.done"}

    event: response.completed
    data: {"response":{"id":"resp_lab1","usage":{"input_tokens":5,"input_tokens_details":null,"output_tokens":5,"output_tokens_details":null,"total_tokens":10}},"type":"response.completed"}
    "#);
    let call = r#"reply=hi
tool=mcp__ph::send:{"to":"a"}"#;
    assert_snapshot!(Stage::new().post(RESPONSES, &codex(call)), @r#"
    HTTP/1.1 200 OK

    event: response.created
    data: {"response":{"id":"resp_lab1"},"type":"response.created"}

    event: response.output_item.added
    data: {"item":{"content":[],"id":"msg_lab1","role":"assistant","type":"message"},"output_index":0,"type":"response.output_item.added"}

    event: response.output_text.delta
    data: {"content_index":0,"delta":"hi","item_id":"msg_lab1","output_index":0,"type":"response.output_text.delta"}

    event: response.output_item.done
    data: {"item":{"content":[{"text":"hi","type":"output_text"}],"id":"msg_lab1","role":"assistant","type":"message"},"output_index":0,"type":"response.output_item.done"}

    event: response.output_item.done
    data: {"item":{"arguments":"{\"to\":\"a\"}","call_id":"call_lab1","id":"fc_lab1","name":"send","namespace":"mcp__ph","type":"function_call"},"output_index":1,"type":"response.output_item.done"}

    event: response.completed
    data: {"response":{"id":"resp_lab1","usage":{"input_tokens":5,"input_tokens_details":null,"output_tokens":5,"output_tokens_details":null,"total_tokens":10}},"type":"response.completed"}
    "#);
}

#[test]
fn codex_gets_code_if_it_wants_code() {
    let stage = Stage::new();
    let mut body = codex("reply=hi\nbash=ls");
    body["tools"] = Value::Null;
    let functions = json!({"type": "namespace", "name": "functions", "tools": [
        {"type": "custom", "name": "exec"},
    ]});
    let clock = json!({"type": "namespace", "name": "clock", "tools": [{"name": "sleep"}]});
    let tools =
        json!({"type": "additional_tools", "role": "developer", "tools": [functions, clock]});
    body["input"].as_array_mut().unwrap().insert(0, tools);
    let answer = stage.post(RESPONSES, &body);
    let call = answer
        .lines()
        .find(|line| line.contains("custom_tool_call"));
    assert_snapshot!(call.unwrap(), @r#"data: {"item":{"call_id":"call_lab1","id":"ctc_lab1","input":"text(await tools.exec_command({\"cmd\":\"ls\"}))","name":"exec","namespace":"functions","type":"custom_tool_call"},"output_index":1,"type":"response.output_item.done"}"#);
    assert_snapshot!(conversation(stage.only()), @r#"
    Codex gpt-lab ["exec", "clock::sleep"]
    System: be good
    System: rules
    User: reply=hi
    bash=ls
    "#);
}

#[test]
fn opencode_gets_a_stream() {
    assert_snapshot!(Stage::new().post(CHAT, &opencode("reply=hi", true)), @r#"
    HTTP/1.1 200 OK

    data: {"choices":[{"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"content":"hi"},"finish_reason":null,"index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{},"finish_reason":"stop","index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk","usage":{"completion_tokens":5,"prompt_tokens":5,"total_tokens":10}}

    data: [DONE]
    "#);
    assert_snapshot!(Stage::new().post(CHAT, &opencode("reply=hi\nbash=ls", true)), @r#"
    HTTP/1.1 200 OK

    data: {"choices":[{"delta":{"content":"","role":"assistant"},"finish_reason":null,"index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"content":"hi"},"finish_reason":null,"index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{"tool_calls":[{"function":{"arguments":"{\"command\":\"ls\",\"description\":\"lab command\"}","name":"bash"},"id":"call_lab1","index":0,"type":"function"}]},"finish_reason":null,"index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[{"delta":{},"finish_reason":"tool_calls","index":0}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk"}

    data: {"choices":[],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion.chunk","usage":{"completion_tokens":5,"prompt_tokens":5,"total_tokens":10}}

    data: [DONE]
    "#);
}

#[test]
fn opencode_gets_a_whole_reply() {
    assert_snapshot!(Stage::new().post(CHAT, &opencode("reply=hi\nbash=ls", false)), @r#"
    HTTP/1.1 200 OK

    {"choices":[{"finish_reason":"tool_calls","index":0,"message":{"content":"hi","role":"assistant","tool_calls":[{"function":{"arguments":"{\"command\":\"ls\",\"description\":\"lab command\"}","name":"bash"},"id":"call_lab1","index":0,"type":"function"}]}}],"created":0,"id":"chatcmpl-lab1","model":"lab","object":"chat.completion","usage":{"completion_tokens":5,"prompt_tokens":5,"total_tokens":10}}
    "#);
}

#[test]
fn gemini_gets_a_stream() {
    assert_snapshot!(Stage::new().post(STREAM, &gemini("reply=hi")), @r#"
    HTTP/1.1 200 OK

    data: {"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"gemini-lab","usageMetadata":{"candidatesTokenCount":5,"promptTokenCount":5,"totalTokenCount":10}}
    "#);
    assert_snapshot!(Stage::new().post(STREAM, &gemini("reply=hi\nbash=ls")), @r#"
    HTTP/1.1 200 OK

    data: {"candidates":[{"content":{"parts":[{"text":"hi"}],"role":"model"},"index":0}],"modelVersion":"gemini-lab","usageMetadata":{"candidatesTokenCount":5,"promptTokenCount":5,"totalTokenCount":10}}

    data: {"candidates":[{"content":{"parts":[{"functionCall":{"args":{"command":"ls","description":"lab command"},"id":"lab1","name":"run_shell_command"}}],"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"gemini-lab","usageMetadata":{"candidatesTokenCount":5,"promptTokenCount":5,"totalTokenCount":10}}
    "#);
}

#[test]
fn gemini_gets_a_whole_reply() {
    assert_snapshot!(Stage::new().post(GENERATE, &gemini("reply=hi\nbash=ls")), @r#"
    HTTP/1.1 200 OK

    {"candidates":[{"content":{"parts":[{"text":"hi"},{"functionCall":{"args":{"command":"ls","description":"lab command"},"id":"lab1","name":"run_shell_command"}}],"role":"model"},"finishReason":"STOP","index":0}],"modelVersion":"gemini-lab","usageMetadata":{"candidatesTokenCount":5,"promptTokenCount":5,"totalTokenCount":10}}
    "#);
}

#[test]
fn errors_have_each_vendors_format() {
    let stage = Stage::new();
    assert_snapshot!(stage.post(MESSAGES, &claude("http=529", true)), @r#"
    HTTP/1.1 529 <none>

    {"error":{"message":"lab error 529","type":"lab_error"},"type":"error"}
    "#);
    assert_snapshot!(stage.post(RESPONSES, &codex("http=429")), @r#"
    HTTP/1.1 429 Too Many Requests

    {"error":{"code":null,"message":"lab error 429","param":null,"type":"lab_error"}}
    "#);
    assert_snapshot!(stage.post(CHAT, &opencode("http=500", true)), @r#"
    HTTP/1.1 500 Internal Server Error

    {"error":{"code":null,"message":"lab error 500","param":null,"type":"lab_error"}}
    "#);
    assert_snapshot!(stage.post(STREAM, &gemini("http=503")), @r#"
    HTTP/1.1 503 Service Unavailable

    {"error":{"code":503,"message":"lab error 503","status":"LAB_ERROR"}}
    "#);
}

/// Return the parsed conversation of a request.
fn conversation(record: Record) -> String {
    let Record::Asked { asked, .. } = record else {
        panic!("no request: {record:?}");
    };
    let piece = |voice: Author, text: &str| format!("{voice:?}: {text}\n");
    let pieces: String = asked
        .pieces
        .iter()
        .map(|p| piece(p.voice, &p.text))
        .collect();
    format!(
        "{:?} {} {:?}\n{pieces}",
        asked.dialect, asked.model, asked.tools
    )
}

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

#[test]
fn a_reply_with_a_schema_is_json() {
    let mut body = gemini("hang=60");
    let properties = json!({"reasoning": {}, "next_speaker": {}});
    body["generationConfig"] = json!({"responseJsonSchema": {"properties": properties}});
    let answer = Stage::new().post(GENERATE, &body);
    assert!(
        answer.contains(r#"{\"next_speaker\":\"user\",\"reasoning\":\"x\"}"#),
        "{answer}"
    );
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
    let Record::Malformed { reason: noted, .. } = &record else {
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
            Record::Other {
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

/// A process that is killed when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn the_server_runs_as_a_program() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab-model"));
    command.arg("0").arg(&log).stdout(Stdio::piped());
    let mut server = Server(command.spawn().unwrap());
    let mut port = String::new();
    let mut output = BufReader::new(server.0.stdout.take().unwrap());
    output.read_line(&mut port).unwrap();
    let body = claude("reply=hi", false);
    let answer = post_to(port.trim().parse().unwrap(), MESSAGES, &body);
    assert!(answer.contains(r#""text":"hi""#), "{answer}");
    assert_eq!(Log::at(log).prompts(), ["reply=hi"]);
}

#[track_caller]
fn not_started(args: &[&str], reason: &str) {
    let done = Command::new(env!("CARGO_BIN_EXE_lab-model"))
        .args(args)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        !done.status.success() && errors.contains(reason),
        "{errors}"
    );
}

#[test]
fn the_program_prints_its_usage() {
    not_started(&[], "usage: lab-model PORT LOGFILE");
    not_started(&["70000", "log"], "is not a port");
    not_started(&["0", "/nowhere/log"], "No such file or directory");
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
