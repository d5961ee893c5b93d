//! Invalid calls are reported to the agent, and the connection stays open.

use super::client::{Mcp, greeting};
use crate::common::Ph;
use serde_json::{Value, json};

#[test]
fn another_sessions_name_is_refused() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    let tools = mcp.result("tools/list", &json!({}));
    for tool in tools["tools"].as_array().unwrap() {
        let name = tool["name"].as_str().unwrap();
        let mut arguments = json!({});
        for field in tool["inputSchema"]["required"].as_array().unwrap() {
            let field = field.as_str().unwrap();
            let of = &tool["inputSchema"]["properties"][field];
            arguments[field] = match &of["enum"][0] {
                Value::Null => json!("abc"),
                word => word.clone(),
            };
        }
        let mut check = |session: Value, want: &str| {
            arguments["session_name"] = session;
            let answer = mcp.tool(name, &arguments);
            answer.fails(want);
            answer.blocks[0].clone()
        };
        for blank in ["", " ", "\n\t"] {
            let said = check(json!(blank), "session_name required");
            assert_eq!(said, "ERROR: session_name required");
        }
        check(
            json!("other"),
            "this is the session of coder; it cannot act for other",
        );
        check(
            json!("human"),
            "this is the session of coder; it cannot act for human",
        );
        check(json!("../x\u{1b}[2J"), "it cannot act for ../x[2J");
        check(json!(7), "'session_name' must be a string, not 7");
    }
    assert!(!ph.home().exists(), "nothing was stored");
}

#[test]
fn a_person_has_tools_too() {
    let ph = Ph::new();
    let mut mcp = Mcp::begin(ph.call(&["mcp"]));
    mcp.ok(
        "task_add",
        &json!({"content": "x", "session_name": "human"}),
    );
    assert!(ph.run("task ls").ok().ends_with("remaining    x\n"));
    mcp.tool("task_list", &json!({"session_name": "coder"}))
        .fails("it cannot act for coder");
}

#[test]
fn invalid_arguments_are_tool_errors() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    let mut check = |tool: &str, arguments: Value, says: &str| {
        mcp.tool(tool, &arguments).fails(says);
    };
    check(
        "nope",
        json!({}),
        "unknown tool 'nope'\nhint: the tools are: inbox_list",
    );
    check("", json!({}), "unknown tool ''");
    check(
        "task_add",
        json!({}),
        "content required\nhint: 'content': Task description",
    );
    check(
        "task_add",
        json!({"content": ["x"]}),
        "'content' must be a string",
    );
    check("task_add", json!({"content": " "}), "a task needs a text");
    check(
        "task_add",
        json!({"content": "x", "state": "y"}),
        "task_add has no argument 'state'\nhint: its arguments are: session_name, content, status",
    );
    check(
        "task_add",
        json!({"content": "x".repeat(20_000)}),
        "a task has at most 16384 bytes",
    );
    check("note_add", json!({"content": "x"}), "type required");
    check(
        "note_add",
        json!({"content": "x", "type": "hint"}),
        "one of learning, stuck, tip, decision",
    );
    check("send_message", json!({"to": "bob"}), "body required");
    check(
        "read_message",
        json!({"id": "abc", "max_bytes": 0}),
        "a whole number from 1 to 1048576",
    );
    assert!(!ph.home().exists(), "nothing was stored");
    // No arguments at all, or null, is as good as none.
    for params in [
        json!({"name": "task_list"}),
        json!({"name": "task_list", "arguments": null}),
    ] {
        let result = mcp.result("tools/call", &params);
        assert_eq!(result["content"][0]["text"], "No tasks yet");
    }
}

#[test]
fn invalid_requests_do_not_end_the_server() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    mcp.say("not json");
    mcp.say("");
    mcp.say("{\"jsonrpc\":\"2.0\"}");
    mcp.say("[1,2]");
    mcp.write(b"\xff\xfe\n");
    for params in [
        json!({"name": "task_list", "arguments": [1]}),
        json!({"name": 7}),
        json!({}),
    ] {
        let id = mcp.ask("tools/call", &params);
        mcp.answer(id)
            .fails("a call needs the name of a tool, and an object with its arguments");
    }
    let id = mcp.ask("no/such/method", &json!({}));
    assert!(mcp.hear(id)["error"]["code"].is_i64());
    assert_eq!(mcp.ok("task_list", &json!({})), "No tasks yet");
    assert_eq!(mcp.end(), Some(0));
}

#[test]
fn tools_are_described() {
    let ph = Ph::new();
    let mut mcp = Mcp::start(ph.call(&["mcp"]).agent("coder"));
    let hello = mcp.result("initialize", &greeting());
    assert_eq!(
        hello["serverInfo"],
        json!({"name": "posthaste", "version": env!("CARGO_PKG_VERSION")})
    );
    assert_eq!(hello["protocolVersion"], "2025-06-18");
    assert_eq!(hello["capabilities"], json!({"tools": {}}));
    assert!(
        hello["instructions"]
            .as_str()
            .unwrap()
            .contains("inbox_mark_read")
    );
    let tools = mcp.result("tools/list", &json!({}));
    let tools = serde_json::to_string_pretty(&tools["tools"]).unwrap();
    insta::assert_snapshot!("tools", tools);
}

#[test]
fn a_failed_start_prints_only_an_error() {
    let ph = Ph::new();
    let check = |name: &str, value: &str, says: &str| {
        let call = ph.call(&["mcp"]).env(name, value).stdin("");
        call.run().fails(2, says);
    };
    check(
        "PH_AGENT",
        "No Name",
        "PH_AGENT names the agent that runs ph",
    );
    check("PH_ITERATION", "three", "PH_ITERATION is not a number");
    ph.file("user/.config/posthaste/config.toml", "nonsense");
    check("PH_AGENT", "coder", "config.toml");
}
