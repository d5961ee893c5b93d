//! `ph provider OP [ARG]`: the protocol from the side of who plugs `ph` in.

use super::ourselves;
use crate::common::{Done, Ph};
use serde_json::{Value, json};
use std::process::Command;

fn ask(ph: &Ph, words: &[&str]) -> Done {
    ph.call(&[&["provider"], words].concat()).run()
}

fn tell(ph: &Ph, words: &[&str], text: &Value) -> Done {
    ph.call(&[&["provider"], words].concat())
        .stdin(text.to_string())
        .run()
}

#[test]
fn a_message_has_the_protocols_fields() {
    let ph = Ph::new();
    let text = json!({"from": "alice", "subject": "hello", "body": "<b> & more"});
    let sent = tell(&ph, &["send", "bob"], &text).json();
    let keys: Vec<_> = sent.as_object().unwrap().keys().cloned().collect();
    assert_eq!(
        keys,
        [
            "body",
            "created_at",
            "from",
            "id",
            "read",
            "subject",
            "thread_id",
            "to"
        ]
    );
    let id = sent["id"].as_str().unwrap();
    let reply = tell(&ph, &["reply", id], &json!({"from": "bob", "body": "hi"})).json();
    assert_eq!(
        (&reply["to"], &reply["thread_id"], &reply["reply_to"]),
        (&json!("alice"), &sent["thread_id"], &sent["id"])
    );
    // It is mail like any other, and its thread is found by any of its ids.
    assert_eq!(ph.run("inbox bob --json").json()[0]["id"], sent["id"]);
    for thread in [&sent["thread_id"], &reply["id"]] {
        let thread = ask(&ph, &["thread", thread.as_str().unwrap()]).json();
        assert_eq!(thread.as_array().unwrap().len(), 2);
    }
    assert_eq!(
        ask(&ph, &["count", "bob"]).ok(),
        "{\"total\":1,\"unread\":1}\n"
    );
}

#[test]
fn exit_codes_follow_the_protocol() {
    let ph = Ph::new();
    let check = |words: &[&str], code: i32, says: &str| {
        let done = ask(&ph, words);
        assert_eq!(
            (done.code, done.out().as_str()),
            (code, ""),
            "{words:?}: {}",
            done.err()
        );
        assert!(done.err().contains(says), "{words:?}: {}", done.err());
    };
    check(&["ensure-running"], 0, "");
    check(&["inbox", "bob"], 0, "");
    check(&["thread", "nonexistent"], 0, "");
    check(&["thread", ""], 0, "");
    check(&["thread", "--help"], 0, "");
    check(&["dance", "bob"], 2, "unknown operation 'dance'");
    check(&["inbox"], 1, "'inbox' takes an argument");
    check(&["inbox", "a", "b"], 1, "'inbox' takes one argument");
    check(&["inbox", ""], 1, "cannot be empty");
    check(&["inbox", "--json"], 1, "starts with a-z or 0-9");
    check(&["send", "--help"], 1, "starts with a-z or 0-9");
    check(&["send", "bob"], 1, "standard input is not the JSON");
    for op in [
        "get",
        "read",
        "mark-read",
        "mark-unread",
        "archive",
        "delete",
        "reply",
    ] {
        for id in ["", "-", "--help", "-h", "xyz", "abc", "../../etc"] {
            check(&[op, id], 1, "gc-mail-error:not-found");
        }
    }
    let long = "dance".repeat(100);
    check(&[&long, "\u{1b}[2J"], 2, "unknown operation");
    assert!(!ph.home().exists(), "nothing was made");
}

#[test]
fn archiving_twice_differs_from_other_failures() {
    let ph = Ph::new();
    let id = ph.send("bob hi");
    ask(&ph, &["archive", &id]).ok();
    let again = ask(&ph, &["archive", &id]);
    assert_eq!(again.code, 1);
    assert!(again.err().contains("already archived"), "{}", again.err());
    ask(&ph, &["delete", &id]).ok();
    assert_eq!(ask(&ph, &["get", &id]).code, 1);
}

#[test]
fn a_failed_mark_is_not_reported_as_read() {
    let ph = Ph::new();
    let id = ph.send("bob hi");
    ask(&ph, &["archive", &id]).ok();
    ask(&ph, &["read", &id]).fails(1, "archived");
    assert_eq!(ask(&ph, &["get", &id]).json()["read"], false);
}

#[test]
fn limits_between_agents_apply() {
    let ph = Ph::new();
    ph.file("home/config.toml", "mail.max_rate = 2\n");
    let text = json!({"from": "alice", "body": "again"});
    for _ in 0..2 {
        tell(&ph, &["send", "bob"], &text).ok();
    }
    let cut = tell(&ph, &["send", "bob"], &text);
    cut.fails(
        1,
        "was stored but will not be delivered: storm between agents: ",
    );
    assert_eq!(cut.out(), "");
    assert_eq!(ph.run("count bob --json").json()["unread"], 2);
    // A message to the person never is.
    for _ in 0..3 {
        tell(&ph, &["send", "human"], &text).ok();
    }
}

#[test]
fn a_missing_operation_is_not_an_unknown_one() {
    let ph = Ph::new();
    assert_eq!(ask(&ph, &[]).code, 1);
    assert_eq!(ask(&ph, &["--bogus"]).code, 1);
    assert_eq!(ask(&ph, &["bogus"]).code, 2);
}

#[test]
fn options_precede_the_operation() {
    let ph = Ph::new();
    ph.send("bob hi");
    let other = ph.dir().join("other");
    let done = ph
        .call(&["provider", "--home"])
        .args(&[&other])
        .args(&["inbox", "bob"])
        .run();
    assert_eq!(done.ok(), "");
    assert!(ask(&ph, &["inbox", "bob"]).ok().contains("\"hi\""));
}

#[test]
fn standard_input_takes_ten_megabytes() {
    let ph = Ph::new();
    let body = "0123456789abcde\n".repeat(10 << 16);
    let sent = tell(
        &ph,
        &["send", "bob"],
        &json!({"from": "alice", "body": body}),
    )
    .json();
    let got = ask(&ph, &["get", sent["id"].as_str().unwrap()]).json();
    assert!(got["body"] == body);
    let bad = ph
        .call(&["provider", "send", "bob"])
        .stdin(b"{\"from\":\"alice\",\"body\":\"\xff\"}".to_vec())
        .run();
    bad.fails(1, "standard input is not the JSON");
}

#[test]
fn an_agent_sends_only_as_itself() {
    let ph = Ph::new();
    let id = ph.send("bob hi");
    let text = json!({"from": "alice", "body": "hi"}).to_string();
    let call = |words: &[&str]| ph.call(&[&["provider"], words].concat()).agent("carol");
    call(&["send", "bob"])
        .stdin(text)
        .run()
        .fails(1, "this is carol; it cannot send as alice");
    call(&["mark-read", &id])
        .run()
        .fails(1, "carol cannot mark a message that belongs to bob");
    call(&["read", &id]).run().fails(1, "belongs to bob");
    assert_eq!(ph.run("count bob --json").json()["unread"], 1);
}

#[test]
fn ph_mail_provider_runs_operations() {
    let ph = Ph::new();
    let me = ourselves(ph.dir());
    let run = |words: &[&str]| {
        Command::new(&me)
            .args(words)
            .env_clear()
            .env("PH_HOME", ph.home())
            .output()
            .unwrap()
    };
    ph.send("bob hi");
    assert!(run(&["inbox", "bob"]).stdout.starts_with(b"[{\"id\":"));
    assert_eq!(run(&["--help"]).status.code(), Some(2));
    assert_eq!(run(&["--version", "x"]).status.code(), Some(2));
    assert_eq!(run(&[]).status.code(), Some(1));
    assert_eq!(run(&["get", "--version"]).status.code(), Some(1));
}
