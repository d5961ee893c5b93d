//! Waiting for mail, and that nothing else waits with it.

use super::client::Mcp;
use crate::common::Ph;
use serde_json::json;

#[test]
fn a_wait_ends_with_the_message_and_blocks_no_other_call() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    let wait = mcp.begin_tool("wait_for_message", &json!({"timeout_seconds": 600}));
    // Answered while the other waits.
    assert_eq!(mcp.ok("task_list", &json!({})), "No tasks yet");
    mcp.ok("send_message", &json!({"to": "bob", "body": "hi"}));
    assert!(!mcp.has_heard(wait));
    let id = ph.send("coder 'wake up'");
    let answer = mcp.answer(wait);
    let mail: Vec<serde_json::Value> = serde_json::from_str(answer.ok()).unwrap();
    assert_eq!((mail.len(), &mail[0]["id"]), (1, &id[..8].into()));
    // A message that is already unread ends the wait at once.
    let again = mcp.list("wait_for_message", &json!({"timeout_seconds": 600}));
    assert_eq!(again, mail);
}

#[test]
fn a_wait_filters_messages() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    assert_eq!(
        mcp.ok("wait_for_message", &json!({"timeout_seconds": 0})),
        "No message within 0 s"
    );
    let sent = mcp.ok(
        "send_message",
        &json!({"to": "lead", "body": "Which branch?"}),
    );
    let question = sent.strip_prefix("Message sent: ").unwrap().to_owned();
    let forever = 3_600;
    let from = json!({"timeout_seconds": forever, "from": "lead"});
    let reply = json!({"timeout_seconds": forever, "reply_to": question});
    let from = mcp.begin_tool("wait_for_message", &from);
    let reply = mcp.begin_tool("wait_for_message", &reply);
    ph.send("coder 'no answer, and not of lead'");
    let now = json!({"timeout_seconds": 0, "from": "lead"});
    assert_eq!(mcp.ok("wait_for_message", &now), "No message within 0 s");
    ph.run_as("lead", "send coder 'something else'").ok();
    let told = mcp.answer(from);
    assert!(told.ok().contains("something else"), "{told:?}");
    assert!(!mcp.has_heard(reply));
    ph.run_as("lead", &format!("reply {question} main")).ok();
    let told = mcp.answer(reply);
    assert!(told.ok().contains("\"content\":\"main\""), "{told:?}");
    assert!(!told.ok().contains("something else"), "{told:?}");

    // Seventeen ids of sixteen first digits: two begin alike.
    let ids: Vec<_> = (0..17).map(|n| ph.send(&format!("bob m{n}"))).collect();
    let alike = |id: &&String| ids.iter().filter(|o| o[..1] == id[..1]).count() > 1;
    let digit = ids.iter().find(alike).unwrap()[..1].to_owned();
    let mut check = |arguments: serde_json::Value, says: &str| {
        mcp.tool("wait_for_message", &arguments).fails(says);
    };
    check(
        json!({"from": "No Name"}),
        "hint: 'no-name' is a valid name",
    );
    check(
        json!({"reply_to": "xyz"}),
        "'reply_to' is not the ID of a message from you",
    );
    check(json!({"reply_to": "00000000"}), "no message 00000000");
    check(json!({"reply_to": digit}), "matches more than one message");
    check(
        json!({"timeout_seconds": 1.5}),
        "a whole number from 0 to 3600",
    );
}

#[test]
fn many_calls_at_once_are_all_answered() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    let calls: Vec<_> = (0..60)
        .map(|n| mcp.begin_tool("task_add", &json!({"content": format!("t{n}")})))
        .collect();
    for call in calls {
        assert!(mcp.answer(call).ok().ends_with("added as remaining"));
    }
    assert_eq!(ph.run("task ls --agent coder").ok().lines().count(), 60);
}

#[test]
fn waits_are_bounded_and_can_be_cancelled() {
    let ph = Ph::new();
    let mut mcp = Mcp::of(&ph);
    let wait = json!({"timeout_seconds": 600});
    let waits: Vec<_> = (0..8)
        .map(|_| mcp.begin_tool("wait_for_message", &wait))
        .collect();
    // They come in order: by now, all have begun.
    let ninth = mcp.tool("wait_for_message", &wait);
    ninth.fails("too many calls are in progress");
    mcp.ok("task_list", &json!({}));
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": waits[0]}});
    mcp.say(&cancel.to_string());
    // Its place is free now; nobody says when.
    let free = json!({"timeout_seconds": 0});
    crate::common::wait_for("a place to wait", || {
        let answer = mcp.tool("wait_for_message", &free);
        (!answer.is_error).then_some(())
    });
    ph.send("coder hi");
    for wait in &waits[1..] {
        assert!(mcp.answer(*wait).ok().contains("\"content\":\"hi\""));
    }
    assert!(
        !mcp.has_heard(waits[0]),
        "who called it off is not answered"
    );
}
