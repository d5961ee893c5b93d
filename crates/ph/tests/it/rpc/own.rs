//! Methods that the original does not have, in the same style.

use crate::common::session::Session;
use crate::common::wait_for;
use serde_json::{Value, json};

const QUIET: &str = "echo ready; exec cat";

fn id_of(message: &Value) -> String {
    message["id"].as_str().expect("an id").to_owned()
}

#[test]
fn mail_is_sent_shown_listed_and_marked() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    wire.result("pause", json!({}));
    let sent = wire.result(
        "send",
        json!({"from": "alice", "subject": "about", "body": "hello\nbot", "priority": "idle"}),
    );
    let id = id_of(&sent);
    for (field, want) in [
        ("from", json!("alice")),
        ("from_evidence", json!("flag")),
        ("to", json!("bot")),
        ("subject", json!("about")),
        ("body", json!("hello\nbot")),
        ("read", json!(false)),
        ("priority", json!("idle")),
        ("receipt", json!("stored")),
        ("is_new", json!(true)),
    ] {
        assert_eq!(sent[field], want, "{field}: {sent}");
    }
    // The message is on disk before the reply, so other processes see it.
    let seen = session.ph.run(&format!("show {id} --json")).json();
    let shown = wire.result("show", json!({"id": &id[..8]}));
    let without_reason = |mut message: Value| {
        message.as_object_mut().expect("an object").remove("reason");
        message
    };
    assert_eq!(without_reason(shown.clone()), without_reason(seen));
    let file = shown["file"].as_str().expect("a path");
    assert_eq!(
        std::fs::read_to_string(file).expect("its file"),
        "hello\nbot"
    );

    // Without a sender name, the message is the person's. A repeated id is the same message.
    let again = json!({"id": id_of(&wire.result("send", json!({"body": "x"}))), "body": "x"});
    let repeated = wire.result("send", again);
    assert_eq!(
        (&repeated["is_new"], &repeated["from"]),
        (&json!(false), &json!("human"))
    );
    let reply = wire.result(
        "send",
        json!({"body": "re", "reply_to": &id[..8], "key": "k"}),
    );
    assert_eq!(
        (&reply["reply_to"], &reply["thread_id"]),
        (&json!(id), &json!(id))
    );
    let other = wire.result("send", json!({"to": "carol", "body": "to another"}));
    assert_eq!(other["to"], "carol");

    let inbox = |wire: &mut crate::common::session::Wire, params: Value| -> Vec<String> {
        let list = wire.result("inbox", params);
        list.as_array().expect("a list").iter().map(id_of).collect()
    };
    let all = inbox(&mut wire, json!({}));
    assert_eq!(all.len(), 3);
    let marked = wire.result("mark_read", json!({"ids": [&id[..8]]}));
    assert_eq!(marked, json!({"marked": [id]}));
    assert_eq!(inbox(&mut wire, json!({})).len(), 2);
    assert_eq!(inbox(&mut wire, json!({"all": true})), all);
    assert_eq!(wire.result("show", json!({"id": id}))["receipt"], "read");
}

#[test]
fn an_impossible_request_gets_an_error() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let unknown = "00000000-0000-4000-8000-000000000000";
    let other = id_of(&wire.result("send", json!({"to": "carol", "body": "x"})));
    for (method, params, says) in [
        ("show", json!({"id": unknown}), "no message"),
        ("why", json!({"id": unknown}), "no message"),
        ("mark_read", json!({"ids": [unknown]}), "no message"),
        ("mark_read", json!({"ids": [other]}), "carol"),
        ("show", json!({"id": "xyz!"}), "Invalid 'id' parameter"),
        ("send", json!({"body": 5}), "Invalid 'body' parameter"),
        (
            "send",
            json!({"body": "x", "to": "No Name"}),
            "Invalid 'to' parameter",
        ),
        (
            "send",
            json!({"body": "x", "from": "../x"}),
            "Invalid 'from' parameter",
        ),
        ("send", json!({"body": "x", "priority": "bogus"}), "bogus"),
        (
            "send",
            json!({"body": "x", "reply_to": unknown}),
            "no message",
        ),
        ("peek", json!({"lines": -1}), "Invalid 'lines' parameter"),
    ] {
        let (code, text) = wire.error(method, params.clone());
        assert_eq!(code, -32602, "{method} {params}: {text}");
        assert!(text.contains(says), "{method} {params}: {text}");
    }
}

#[test]
fn a_pause_holds_mail_and_says_why_until_it_is_resumed() {
    let (session, tty) = Session::tty(false);
    let mut wire = session.wire();
    wire.subscribe(&["message", "state_change"]);
    assert_eq!(wire.result("pause", json!({})), json!({"paused": true}));
    assert_eq!(
        wire.wait_for_event("state_change", "paused"),
        json!({"paused": true})
    );
    assert_eq!(wire.result("pause", json!({})), json!({"paused": true}));
    session.wait_for_activity("idle");
    let id = id_of(&wire.result("send", json!({"from": "alice", "body": "hi"})));
    let why = wire.result("why", json!({"id": id}));
    for (field, want) in [
        ("held", json!(true)),
        ("rule", json!("paused")),
        ("reason", json!("delivery is paused")),
        ("evidence", json!("a client asked for a pause")),
        ("receipt", json!("stored")),
    ] {
        assert_eq!(why[field], want, "{field}: {why}");
    }
    // Subscribers receive the same reason.
    let told = wire.wait_for_event("message", "receipt");
    assert_eq!(
        (&told["receipt"], &told["reason"]),
        (&json!("stored"), &json!("delivery is paused"))
    );
    assert_eq!(wire.result("resume", json!({})), json!({"paused": false}));
    let want = format!("[ph message from: alice id: {}] hi\r", &id[..8]);
    wait_for("the message", || (tty.typed() == want).then_some(()));
    let mut receipts = vec!["stored".to_owned()];
    while receipts.last().map(String::as_str) != Some("offered") {
        let told = wire.wait_for_event("message", "receipt");
        assert_eq!(
            (&told["id"], &told["from"], &told["to"]),
            (&json!(id), &json!("alice"), &json!("bot"))
        );
        receipts.push(told["receipt"].as_str().expect("a word").to_owned());
    }
    assert_eq!(receipts, ["stored", "offering", "offered"]);
    let why = wire.result("why", json!({"id": id}));
    assert_eq!(
        (&why["held"], &why["receipt"]),
        (&json!(false), &json!("offered"))
    );
    wait_for("an empty queue", || {
        (wire.result("session", json!({}))["queued"] == 0).then_some(())
    });
}

#[test]
fn a_nudge_is_typed_and_not_kept() {
    let (session, tty) = Session::tty(false);
    let mut wire = session.wire();
    assert_eq!(
        wire.result("nudge", json!({"text": "too early"})),
        json!({"status": "held", "reason": "the program is starting"})
    );
    session.wait_for_activity("idle");
    wire.result("pause", json!({}));
    assert_eq!(
        wire.result("nudge", json!({"text": "paused"})),
        json!({"status": "held", "reason": "delivery is paused"})
    );
    wire.result("resume", json!({}));
    session.type_keys("draft");
    let held =
        json!({"status": "held", "reason": "a person has typed something and not submitted it"});
    wait_for("the draft", || {
        (wire.result("nudge", json!({"text": "on a draft"})) == held).then_some(())
    });
    session.type_keys("\r");
    wait_for("an empty line", || {
        tty.typed().ends_with('\r').then_some(())
    });
    let nudged = json!({"status": "nudged"});
    wait_for("the nudge", || {
        (wire.result("nudge", json!({"text": "go\u{1b}[2J on\r"})) == nudged).then_some(())
    });
    wait_for("what was typed", || {
        (tty.typed() == "draft\rgo[2J on\r").then_some(())
    });
    assert_eq!(wire.result("inbox", json!({"all": true})), json!([]));
}

#[test]
fn a_session_says_what_it_is_and_what_it_shows() {
    let session = Session::sh("printf '\\033]2;a title\\007\\033[31mred\\033[m plain'; exec cat");
    session.wait_for_text("red plain");
    let mut wire = session.wire();
    let known = wire.result("session", json!({}));
    assert_eq!(known, session.ph.run("status bot --json").json());
    let keys: Vec<&String> = known.as_object().expect("an object").keys().collect();
    assert_eq!(keys.len(), 17, "{keys:?}");
    for (field, want) in [
        ("name", json!("bot")),
        ("pid", json!(session.pid)),
        ("child_pid", json!(session.child)),
        ("socket", json!(session.socket)),
        ("harness", json!("generic")),
        ("blocked_on", Value::Null),
        ("exit", Value::Null),
    ] {
        assert_eq!(known[field], want, "{field}");
    }
    let screen = wire.result("peek", json!({}));
    assert_eq!((&screen["cols"], &screen["rows"]), (&json!(80), &json!(24)));
    assert_eq!(screen["title"], "a title");
    assert_eq!(
        wire.result("peek", json!({"lines": 1}))["lines"],
        json!(["red plain"])
    );
    let ansi = wire.result("peek", json!({"lines": 1, "ansi": true}));
    let line = ansi["lines"][0].as_str().expect("a line");
    assert!(line.contains("\u{1b}[") && line.contains("red"), "{line:?}");
    let hook = json!({"event_name": "Stop", "payload": {"any": ["thing"]}});
    assert_eq!(wire.result("hook_event", hook), json!({"status": "noted"}));
}

/// The agent is identified by its ancestry, and cannot send under another name.
#[test]
fn the_agents_own_mail_is_known_as_its_own() {
    let session = Session::sh("echo ready; read x; eval \"$x\"; exec cat");
    session.wait_for_text("ready");
    let ph = env!("CARGO_BIN_EXE_ph");
    session.type_keys(&format!(
        "'{ph}' send carol hello; '{ph}' send carol --from alice lie\r"
    ));
    let sent = wait_for("its mail", || {
        let list = session.ph.run("inbox carol --json").json();
        list.as_array().and_then(|l| l.first().cloned())
    });
    assert_eq!(
        (&sent["from"], &sent["from_evidence"]),
        (&json!("bot"), &json!("ancestry"))
    );
    session.wait_for_text("cannot send as");
    let all = session.ph.run("inbox carol --json").json();
    assert_eq!(all.as_array().map(Vec::len), Some(1));
}
