//! Events as lines, and their decoding by a client.

use super::{id, status};
use crate::client::{self, Notice, Reply, SessionLine};
use crate::event::{self, Event, MessageEvent, StateChange};
use crate::method;
use crate::rpc::Failure;
use crate::topic::Topic;
use crate::{Activity, RunStatus};

const STAMP: &str = "2026-01-23T10:15:30.123456";

fn check(event: &Event, topic: Option<Topic>, written: &str) {
    let mut out = b"before\n".to_vec();
    event::append(&mut out, STAMP, event);
    let line = format!(r#"{{"jsonrpc":"2.0","method":"event","params":{{"type":{written}}}}}"#)
        .replace("STAMP", &format!(r#""timestamp":"{STAMP}""#));
    assert_eq!(String::from_utf8(out).unwrap(), format!("before\n{line}\n"));
    assert_eq!(event.topic(), topic);
    assert_eq!(
        client::parse_line(line.as_bytes()),
        Ok(SessionLine::Event(Notice {
            timestamp: STAMP.to_owned(),
            event: event.clone(),
        }))
    );
}

#[test]
fn every_event_is_one_line_that_a_client_reads() {
    let output = |line: &str| Event::Output {
        line: line.to_owned(),
    };
    check(
        &output("Implementing…"),
        Some(Topic::Output),
        r#""output",STAMP,"data":{"line":"Implementing…"}"#,
    );
    check(
        &output("\"\\\t\u{1b}[0m\u{7f}\u{2028}"),
        Some(Topic::Output),
        "\"output\",STAMP,\"data\":{\"line\":\"\\\"\\\\\\t\\u001b[0m\u{7f}\u{2028}\"}",
    );
    check(
        &Event::StateChange(StateChange {
            iteration: Some(4),
            current_story: Some(Some("US-004".to_owned())),
            ..StateChange::default()
        }),
        Some(Topic::StateChange),
        r#""state_change",STAMP,"data":{"iteration":4,"current_story":"US-004"}"#,
    );
    check(
        &Event::StateChange(StateChange {
            iteration: Some(0),
            max_iterations: Some(9),
            current_story: Some(None),
            agent: Some("codex".to_owned()),
            status: Some(RunStatus::Checkpointed),
            interactive_mode: Some(false),
            injected_prompt: Some("p".to_owned()),
            activity: Some(Activity::Blocked),
            blocked_on: Some(None),
            paused: Some(true),
        }),
        Some(Topic::StateChange),
        concat!(
            r#""state_change",STAMP,"data":{"iteration":0,"max_iterations":9,"current_story":null,"#,
            r#""agent":"codex","status":"checkpointed","interactive_mode":false,"#,
            r#""injected_prompt":"p","activity":"blocked","blocked_on":null,"paused":true}"#
        ),
    );
    check(
        &Event::Message(MessageEvent {
            id: id(),
            receipt: "offered".to_owned(),
            reason: None,
            from: "a".to_owned(),
            to: "bob".to_owned(),
        }),
        Some(Topic::Message),
        r#""message",STAMP,"data":{"id":"3fa8c1d2-0b1c-4d2e-8f3a-4b5c6d7e8f90","receipt":"offered","reason":null,"from":"a","to":"bob"}"#,
    );
    check(
        &Event::Lagged { missed: 12 },
        None,
        r#""lagged",STAMP,"data":{"missed":12}"#,
    );
}

#[test]
fn only_changed_fields_are_sent() {
    let old = status();
    assert_eq!(StateChange::between(&old, &old), None);
    let mut new = old.clone();
    new.updated_at = "later".to_owned();
    new.recent_output.push("line 3".to_owned());
    assert_eq!(StateChange::between(&old, &new), None);
    new.iteration = 4;
    new.current_story = None;
    assert_eq!(
        serde_json::to_string(&StateChange::between(&old, &new).unwrap()).unwrap(),
        r#"{"iteration":4,"current_story":null}"#
    );
    new = old.clone();
    new.interactive_mode = true;
    new.status = RunStatus::Stopped;
    new.max_iterations = 1;
    new.agent = "codex".to_owned();
    assert_eq!(
        serde_json::to_string(&StateChange::between(&old, &new).unwrap()).unwrap(),
        r#"{"max_iterations":1,"agent":"codex","status":"stopped","interactive_mode":true}"#
    );
}

#[test]
fn a_client_reads_failures_and_ignores_unknown_lines() {
    let line = br#"{"jsonrpc":"2.0","id":3,"error":{"code":-32601,"message":"Method not found: foo","data":1}}"#;
    let Ok(SessionLine::Reply(reply)) = client::parse_line(line) else {
        panic!("a reply")
    };
    assert!(reply.is_to(3));
    assert_eq!(
        reply.read::<method::Stop>(),
        Err(Failure::unknown_method("foo"))
    );
    let Ok(SessionLine::Reply(Reply { id: None, outcome })) = client::parse_line(
        br#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}"#,
    ) else {
        panic!("a reply without an id")
    };
    assert_eq!(outcome, Err(Failure::parse()));
    for line in [
        r#"{"jsonrpc":"2.0","method":"event","params":{"type":"weather","data":{}}}"#,
        r#"{"jsonrpc":"2.0","method":"other","params":{}}"#,
        "{}",
    ] {
        assert_eq!(
            client::parse_line(line.as_bytes()),
            Ok(SessionLine::Unknown),
            "{line}"
        );
    }
    for line in ["", "[]", "{", r#"{"method":"event","params":5}"#] {
        assert!(client::parse_line(line.as_bytes()).is_err(), "{line}");
    }
}
