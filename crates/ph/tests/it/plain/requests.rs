//! One request, one reply, and the end of the connection.

use crate::common::session::{BOT, Session, Wire, run};
use crate::common::{Ph, wait_for};
use serde_json::{Value, json};

const QUIET: &str = "echo ready; exec cat";

fn plain(session: &Session, request: &Value) -> String {
    Wire::plain(&session.socket, request)
}

fn parsed(session: &Session, request: &Value) -> Value {
    serde_json::from_str(&plain(session, request)).expect("JSON")
}

#[test]
fn every_request_has_its_reply() {
    let ph = Ph::new();
    let call = run(&ph, BOT, &[], &["/bin/sh", "-c", QUIET]).env("TZ", "XST-5");
    let session = Session::begin(ph, call);
    session.ask("pause", json!({}));
    let sent = plain(
        &session,
        &json!({"type": "send", "priority": "idle", "from": "alice", "body": "hi", "raw": false,
            "expects_response": false, "er_trigger_id": "12345678"}),
    );
    assert_eq!(
        session.ph.redact(&sent),
        r#"{"ok":true,"message_id":"[id1]"}"#
    );
    let id = serde_json::from_str::<Value>(&sent).expect("JSON")["message_id"].clone();

    let shown = plain(&session, &json!({"type": "show", "message_id": id}));
    assert_eq!(
        session.ph.redact(&shown),
        "{\"ok\":true,\"message\":{\"id\":\"[id1]\",\"from\":\"alice\",\"priority\":\"idle\",\
         \"status\":\"queued\",\"file_path\":\"[home]/messages/bot/[time]-[id1].md\",\
         \"created_at\":\"[time]\"}}"
    );
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let file = shown["message"]["file_path"].as_str().expect("a path");
    assert_eq!(std::fs::read_to_string(file).expect("its file"), "hi");
    // The time is local to this session.
    let message = session.ask("show", json!({"id": id}));
    let at: jiff::Timestamp =
        serde_json::from_value(message["created_at"].clone()).expect("a time");
    let zone = jiff::tz::TimeZone::fixed(jiff::tz::Offset::constant(5));
    let local = zone
        .to_datetime(at)
        .strftime("%Y-%m-%d %H:%M:%S")
        .to_string();
    assert_eq!(shown["message"]["created_at"], local);

    wait_for("its place in the queue", || {
        (session.ask("session", json!({}))["queued"] == 1).then_some(())
    });
    let status = plain(&session, &json!({"type": "status"}));
    let agent = &serde_json::from_str::<Value>(&status).expect("JSON")["agent"];
    let mut fixed = status.clone();
    for field in ["uptime", "state_duration"] {
        let text = agent[field].as_str().expect("a length");
        let digits = text.strip_suffix(['s', 'm', 'h']).expect("a unit");
        assert!(digits.parse::<u32>().is_ok(), "{text}");
        fixed = fixed.replace(
            &format!("\"{field}\":\"{text}\""),
            &format!("\"{field}\":\"[length]\""),
        );
    }
    let fixed = fixed
        .replace("\"idle\"", "\"initialized\"")
        .replace("\"Idle\"", "\"Initialized\"");
    assert_eq!(
        session.ph.redact(&fixed),
        "{\"ok\":true,\"agent\":{\"name\":\"bot\",\"command\":\"/bin/sh -c echo ready; exec cat\",\
         \"cwd\":\"[dir]/user\",\"uptime\":\"[length]\",\"state\":\"initialized\",\
         \"state_display_text\":\"Initialized\",\"state_duration\":\"[length]\",\"queued_count\":1}}"
    );

    for payload in [
        json!({"session_id": "x"}),
        json!(null),
        json!([1]),
        json!("text"),
    ] {
        let hook = json!({"type": "hook_event", "event_name": "PreToolUse", "payload": payload});
        assert_eq!(plain(&session, &hook), r#"{"ok":true}"#);
    }
    assert_eq!(
        plain(&session, &json!({"type": "hook_event"})),
        r#"{"ok":true}"#
    );
    assert_eq!(plain(&session, &json!({"type": "stop"})), r#"{"ok":true}"#);
    session.wait_gone();
}

#[test]
fn an_impossible_request_gets_the_originals_error() {
    let session = Session::sh(QUIET);
    for (request, want) in [
        (json!({"type": "bogus"}), "unknown request type: bogus"),
        (json!({"type": ""}), "unknown request type: "),
        (json!({"type": null}), "unknown request type: "),
        (json!({"type": "Send"}), "unknown request type: Send"),
        (
            json!({"type": "relaunch"}),
            "unknown request type: relaunch",
        ),
        (
            json!({"type": "trigger_add"}),
            "unknown request type: trigger_add",
        ),
        (
            json!({"type": "send", "priority": "bogus", "body": "x"}),
            "invalid priority: bogus",
        ),
        (json!({"type": "show"}), "message not found: "),
        (
            json!({"type": "show", "message_id": "nope"}),
            "message not found: nope",
        ),
        (
            json!({"type": "show", "message_id": "00000000-0000-4000-8000-000000000000"}),
            "message not found: 00000000-0000-4000-8000-000000000000",
        ),
    ] {
        let error = serde_json::to_string(want).expect("a text");
        let want = format!(r#"{{"ok":false,"error":{error}}}"#);
        assert_eq!(plain(&session, &request), want, "{request}");
    }
    for (request, says) in [
        (json!({"type": 5}), "invalid request"),
        (
            json!({"type": "send", "body": 5}),
            "invalid request: 'body'",
        ),
        (
            json!({"type": "send", "raw": "yes"}),
            "invalid request: 'raw'",
        ),
        (
            json!({"type": "send", "from": "No Name", "body": "x"}),
            "invalid from",
        ),
        (
            json!({"type": "send", "from": "../../x", "body": "x"}),
            "invalid from",
        ),
        (
            json!({"type": "attach", "cols": "wide"}),
            "invalid request: 'cols'",
        ),
    ] {
        let reply = parsed(&session, &request);
        assert_eq!(reply["ok"], false, "{request}");
        let error = reply["error"].as_str().expect("a text");
        assert!(error.contains(says), "{request}: {error}");
    }
    // None of the refused messages is stored.
    assert_eq!(session.ask("inbox", json!({"all": true})), json!([]));
}

#[test]
fn a_connection_has_one_request() {
    let session = Session::sh(QUIET);
    let ok = |line: &str| line.starts_with(r#"{"ok":true,"agent""#);
    let mut wire = session.wire();
    // Blank lines before the request are skipped, and everything after it is ignored.
    wire.send_bytes("\n \n{\"type\":\"status\"}\n{\"type\":\"stop\"}\nrubbish\n");
    assert!(ok(&wire.line()));
    assert_eq!(wire.next_line(), None);
    // The line end may be missing at the end of the input.
    let mut wire = session.wire();
    wire.send_bytes(r#"{"type":"status","unknown":{"a":[1]}}"#);
    wire.close_write();
    assert!(ok(&wire.line()));
    assert_eq!(wire.next_line(), None);
    // A line with both words belongs to the other dialect, and so does the rest of the connection.
    let mut wire = session.wire();
    wire.send_line(r#"{"jsonrpc":"2.0","id":1,"type":"stop","method":"unsubscribe"}"#);
    assert_eq!(wire.json()["result"], json!({"subscribed": []}));
    wire.send_line(r#"{"type":"stop"}"#);
    assert_eq!(wire.json()["error"]["message"], "Invalid JSON-RPC version");
    assert_eq!(wire.result("get_status", json!({}))["status"], "running");
}

#[test]
fn a_message_is_queued_and_then_delivered() {
    let (session, tty) = Session::tty(false);
    let send = |priority: &str, body: &str| {
        let request = json!({"type": "send", "priority": priority, "from": "a", "body": body});
        let reply = parsed(&session, &request);
        reply["message_id"].as_str().expect("an id").to_owned()
    };
    let id = send("", "hi");
    let show = || parsed(&session, &json!({"type": "show", "message_id": id}))["message"].clone();
    let before = show();
    assert_eq!(
        (&before["status"], &before["priority"]),
        (&json!("queued"), &json!("normal"))
    );
    assert_eq!(before.get("delivered_at"), None);
    let want = format!("[ph message from: a id: {}] hi\r", &id[..8]);
    wait_for("the message", || (tty.typed() == want).then_some(()));
    let after = wait_for("the receipt", || {
        Some(show()).filter(|message| message["status"] == "delivered")
    });
    let delivered = after["delivered_at"].as_str().expect("a time");
    assert!(
        delivered >= after["created_at"].as_str().expect("a time"),
        "{after}"
    );
    assert_eq!(delivered.len(), "2026-01-23 10:30:00".len());
    // A prefix of an id is enough.
    let short = parsed(&session, &json!({"type": "show", "message_id": &id[..8]}));
    assert_eq!(short["message"], after);
}
