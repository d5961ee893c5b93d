//! The tools of an agent where a script keeps the mail: the same verbs, so the same script.

use super::Provider;
use crate::common::Ph;
use serde_json::{Value, json};

/// Call a tool on a new server. Return whether it failed, and its text.
fn tool(ph: &Ph, agent: &str, name: &str, arguments: &Value) -> (bool, String) {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "lines", "version": "1"}}});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": name, "arguments": arguments}});
    let call = ph
        .call(&["mcp"])
        .agent(agent)
        .stdin(format!("{hello}\n{call}\n"));
    let done = call.run();
    assert_eq!(done.code, 0, "{}", done.err());
    let out = done.out();
    let answer = out.lines().last().expect("an answer");
    let answer: Value = serde_json::from_str(answer).expect("JSON");
    let result = &answer["result"];
    let text = result["content"][0]["text"].as_str().expect("a text");
    (result["isError"] == true, text.to_owned())
}

#[test]
fn tools_call_the_script() {
    let ph = Ph::new();
    let provider = Provider::behind(&ph, "");
    let ok = |agent: &str, name: &str, arguments: Value| {
        let (is_error, text) = tool(&ph, agent, name, &arguments);
        assert!(!is_error, "{text}");
        text
    };
    assert_eq!(ok("bob", "inbox_list", json!({})), "No unread messages");
    let sent = ok("alice", "send_message", json!({"to": "bob", "body": "hi"}));
    let id = sent.strip_prefix("Message sent: ").expect("its id");
    let mail = ok("bob", "inbox_list", json!({}));
    let mail: Vec<Value> = serde_json::from_str(&mail).expect("a list");
    assert_eq!(
        (&mail[0]["id"], &mail[0]["from"]),
        (&id.into(), &"alice".into())
    );
    assert_eq!(
        ok("bob", "inbox_mark_read", json!({"id": id})),
        format!("Message {id} marked as read")
    );
    assert_eq!(ok("bob", "inbox_list", json!({})), "No unread messages");
    assert_eq!(provider.count("send bob"), 1, "{:?}", provider.calls());

    let fails = |name: &str, arguments: Value, says: &str| {
        let (is_error, text) = tool(&ph, "bob", name, &arguments);
        assert!(is_error && text.contains(says), "{text}");
    };
    fails(
        "search_messages",
        json!({"query": "hi"}),
        "keeps the mail and cannot search",
    );
    let urgent = json!({"to": "alice", "body": "x", "priority": "interrupt"});
    fails(
        "send_message",
        urgent,
        "keeps the mail and cannot send with --priority",
    );
    provider.is_broken(Some("no space"));
    fails("inbox_list", json!({}), "no space");
    // Tasks are not mail.
    let added = ok("bob", "task_add", json!({"content": "x"}));
    assert!(added.ends_with("added as remaining"), "{added}");
}
