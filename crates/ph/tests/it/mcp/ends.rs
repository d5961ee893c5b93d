//! How it ends: with its input, or by a signal; at once, with nothing left.

use super::client::Mcp;
use crate::common::{Ph, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

/// A server that waits for mail, for longer than any test, and the number of that call.
fn waiting(ph: &Ph) -> (Mcp, u64) {
    let mut mcp = Mcp::of(ph);
    let wait = mcp.begin_tool("wait_for_message", &json!({"timeout_seconds": 3_600}));
    // Answered after the other was begun.
    mcp.ok("task_list", &json!({}));
    (mcp, wait)
}

#[test]
fn the_server_ends_with_its_input() {
    let ph = Ph::new();
    let done = ph.call(&["mcp"]).stdin("").run();
    assert_eq!((done.code, done.out().as_str()), (0, ""));
    assert!(!ph.home().exists());
    assert_eq!(Mcp::of(&ph).end(), Some(0));
    let (mut mcp, wait) = waiting(&ph);
    mcp.hang_up();
    // Let go at once, not when its time is up.
    mcp.answer(wait).fails("the client has disconnected");
    assert_eq!(mcp.end(), Some(0));
}

#[test]
fn an_incomplete_line_is_ignored() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    mcp.ok("task_add", &json!({"content": "first"}));
    let facts = ph.facts();
    let call = json!({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {
        "name": "task_add", "arguments": {"content": "second"}}});
    let call = call.to_string();
    for length in [1, call.len() / 2, call.len()] {
        let mut mcp = Mcp::of(&ph);
        mcp.write(&call.as_bytes()[..length]);
        assert_eq!(mcp.end(), Some(0));
    }
    assert_eq!(ph.facts(), facts);
}

#[test]
fn requests_before_the_end_are_answered() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    let ids: Vec<_> = (0..5)
        .map(|n| mcp.begin_tool("task_add", &json!({"content": format!("t{n}")})))
        .collect();
    mcp.hang_up();
    for id in ids {
        mcp.answer(id).ok();
    }
    assert_eq!(mcp.end(), Some(0));
    assert_eq!(ph.run("task ls --agent coder").ok().lines().count(), 5);
}

#[test]
fn a_signal_ends_the_server() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let ph = Ph::new();
        let (mut mcp, _) = waiting(&ph);
        kill_process(Pid::from_child(&mcp.child), signal).unwrap();
        let ended = wait_for("its end", || mcp.child.try_wait().unwrap());
        assert_eq!(ended.code(), Some(0), "{signal:?}");
    }
}
