//! The protocol of mail providers: its words, and a message as either side writes it.

use crate::provider::{Message, Op, Text};

fn read(json: &str) -> Message {
    serde_json::from_str(json).unwrap()
}

const LEAST: &str = r#"{"id":"1","from":"a","to":"bob","created_at":"2026-01-23T10:00:00Z"}"#;

#[test]
fn a_message_as_we_write_it() {
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
fn a_message_as_others_write_it() {
    let check = |json: &str| assert_eq!(read(json), read(LEAST), "{json}");
    // What is empty may be left out or null, what is unknown is passed over, a zone is a zone.
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
fn a_text_may_leave_everything_out_but_its_body() {
    let text: Text = serde_json::from_str(r#"{"x":1,"body":""}"#).unwrap();
    let written = serde_json::to_string(&text).unwrap();
    assert_eq!(written, r#"{"from":"","subject":"","body":""}"#);
    for bad in [r#"{"x":1}"#, r#"{"body":null}"#] {
        assert!(serde_json::from_str::<Text>(bad).is_err(), "{bad}");
    }
}

#[test]
fn every_operation_has_its_word() {
    for op in Op::ALL {
        assert_eq!(Op::from_word(op.as_str()), Some(op));
    }
    assert_eq!(Op::from_word("Send"), None);
    assert_eq!(Op::from_word(""), None);
}
