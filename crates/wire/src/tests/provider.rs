//! The protocol of mail providers: operations, and messages of both sides.

use crate::provider::{Message, Op, Text};

fn read(json: &str) -> Message {
    serde_json::from_str(json).unwrap()
}

const LEAST: &str = r#"{"id":"1","from":"a","to":"bob","created_at":"2026-01-23T10:00:00Z"}"#;

#[test]
fn our_messages_have_all_fields() {
    let first = concat!(
        r#"{"id":"1","from":"a","to":"bob","subject":"","body":"","#,
        r#""created_at":"2026-01-23T10:00:00Z","read":false}"#
    );
    let mut message = read(LEAST);
    assert_eq!(serde_json::to_string(&message).unwrap(), first);
    message.thread_id = "t".to_owned();
    message.reply_to = "0".to_owned();
    let last = first.replace('}', r#","thread_id":"t","reply_to":"0"}"#);
    assert_eq!(serde_json::to_string(&message).unwrap(), last);
}

#[test]
fn messages_of_others_may_omit_fields() {
    let check = |json: &str| assert_eq!(read(json), read(LEAST), "{json}");
    // Empty fields may be missing or null, unknown fields are ignored, and times have zones.
    check(concat!(
        r#"{"id":"1","from":"a","to":"bob","subject":null,"body":"","thread_id":null,"#,
        r#""created_at":"2026-01-23T11:00:00+01:00","read":false,"priority":2,"cc":["x"],"rig":""}"#
    ));
    let escaped =
        r#"{"id":"1","from":"\u0061","to":"bob","created_at":"2026-01-23T10:00:00.000Z"}"#;
    check(escaped);
    for bad in [
        "{}",
        "null",
        r#"{"id":1,"from":"a","to":"bob","created_at":"2026-01-23T10:00:00Z"}"#,
        r#"{"id":"1","from":"a","to":"bob","created_at":"yesterday"}"#,
        r#"{"id":"1","from":"a","to":"bob"}"#,
    ] {
        assert!(serde_json::from_str::<Message>(bad).is_err(), "{bad}");
    }
}

#[test]
fn a_text_requires_only_its_body() {
    let text: Text = serde_json::from_str(r#"{"x":1,"body":""}"#).unwrap();
    let written = serde_json::to_string(&text).unwrap();
    assert_eq!(written, r#"{"from":"","subject":"","body":""}"#);
    for bad in [r#"{"x":1}"#, r#"{"body":null}"#] {
        assert!(serde_json::from_str::<Text>(bad).is_err(), "{bad}");
    }
}

#[test]
fn every_operation_has_a_name() {
    for op in Op::ALL {
        assert_eq!(Op::from_word(op.as_str()), Some(op));
    }
    assert_eq!(Op::from_word("Send"), None);
    assert_eq!(Op::from_word(""), None);
}
