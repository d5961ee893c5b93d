//! How it ends: with its input, or by a signal; at once, with nothing left.

use crate::client::Mcp;
use crate::common::Ph;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::time::{Duration, Instant};

/// Far less than what the SDK would give a call that is under way.
const AT_ONCE: Duration = Duration::from_secs(4);

fn ends_at_once(mut mcp: Mcp, how: impl FnOnce(&mut Mcp)) -> Option<i32> {
    let began = Instant::now();
    how(&mut mcp);
    let code = mcp.child.wait().expect("it can be waited for").code();
    let took = began.elapsed();
    assert!(took < AT_ONCE, "it took {took:?}");
    code
}

/// A server that waits for mail, for long.
fn waiting(ph: &Ph) -> Mcp {
    let mut mcp = Mcp::of(ph);
    mcp.begin_tool("wait_for_message", &json!({"timeout_seconds": 600}));
    // Answered after the other was begun.
    mcp.ok("task_list", &json!({}));
    mcp
}

#[test]
fn it_ends_with_its_input() {
    let ph = Ph::new();
    let done = ph.call(&["mcp"]).stdin("").run();
    assert_eq!((done.code, done.out().as_str()), (0, ""));
    assert!(!ph.home().exists());
    assert_eq!(ends_at_once(Mcp::of(&ph), Mcp::hang_up), Some(0));
    assert_eq!(ends_at_once(waiting(&ph), Mcp::hang_up), Some(0));
}

#[test]
fn half_a_line_is_none() {
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
        assert_eq!(ends_at_once(mcp, Mcp::hang_up), Some(0));
    }
    assert_eq!(ph.facts(), facts);
}

#[test]
fn what_was_asked_before_the_end_is_done_and_answered() {
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
fn a_signal_ends_it() {
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let ph = Ph::new();
        let code = ends_at_once(waiting(&ph), |mcp| {
            let pid = Pid::from_child(&mcp.child);
            kill_process(pid, signal).unwrap();
        });
        assert_eq!(code, Some(0), "{signal:?}");
    }
}
