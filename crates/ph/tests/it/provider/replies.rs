//! A script's word: what counts as an answer, what is claimed without one, and the mail that is
//! here although a script keeps the mail.

use super::{Provider, keep_by, script, stage};
use crate::common::Ph;
use crate::common::stage::{until, until_so};
use serde_json::json;

/// One home whose mail is kept by a script that answers an operation so, and nothing else.
fn answering(op: &str, answer: &str) -> Ph {
    let ph = Ph::new();
    let text = format!("#!/bin/sh\n[ $1 = {op} ] || exit 2\ncat <<'END'\n{answer}\nEND\n");
    script(ph.dir(), "odd", &text);
    keep_by(&ph, "../odd", "");
    ph
}

fn message(id: &str, to: &str) -> String {
    format!(
        r#"{{"id":"{id}","from":"a","to":"{to}","body":"b","created_at":"2026-11-15T12:00:00Z"}}"#
    )
}

#[test]
fn a_reply_of_another_shape_is_invalid() {
    let array = r#"["1","a","bob","s","b","2026-11-15T12:00:00Z",false,"",""]"#;
    let check = |op: &str, answer: &str, line: &str, says: &str| {
        let ph = answering(op, answer);
        ph.run(line).fails(5, says);
        ph.run(line).fails(5, "invalid reply of");
    };
    check("send", array, "send bob hi", "not a JSON object");
    check("get", array, "show 1", "not a JSON object");
    check("count", "[1,0]", "count bob", "not a JSON object");
    check(
        "inbox",
        &format!("[{array}]"),
        "inbox bob",
        "not a JSON object",
    );
    check(
        "send",
        &message("", "bob"),
        "send bob hi",
        "its id is empty",
    );
    let empty = format!("[{}]", message("", "bob"));
    check("inbox", &empty, "inbox bob", "its id is empty");
    check("all", &empty, "inbox bob --all", "its id is empty");
}

#[test]
fn a_reply_to_another_request_is_invalid() {
    let check = |op: &str, answer: &str, line: &str, says: &str| {
        answering(op, answer).run(line).fails(5, says);
    };
    let other = message("7", "carol");
    check("send", &other, "send bob hi", "whose recipient is 'carol'");
    check("get", &other, "show 1", "whose id is '7'");
    check("read", &other, "read 1", "whose id is '7'");
    let listed = format!("[{other}]");
    check(
        "inbox",
        &listed,
        "inbox bob",
        "'7' is a message to 'carol', not to bob",
    );
    check("check", &listed, "check bob", "not to bob");
    // The beginning of a UUID is asked for, too; what merely begins so is another.
    let whole = message("3fa8c1d2-0b1e-4c0a-9d53-6f1f8a2b7c11", "bob");
    assert_eq!(answering("get", &whole).run("show 3fa8c1d2").code, 0);
    let longer = message("message-10", "bob");
    for (op, verb) in [("get", "show"), ("read", "read")] {
        let says = "whose id is 'message-10'";
        check(op, &longer, &format!("{verb} message-1"), says);
    }
    let longer = message("12345678901", "bob");
    check("get", &longer, "show 12345678", "whose id is '12345678901'");
}

#[test]
fn the_sent_message_must_match_the_request() {
    let sent = |from: &str, subject: &str, body: &str| {
        format!(
            r#"{{"id":"1","from":"{from}","to":"bob","subject":"{subject}","body":"{body}","created_at":"2026-11-15T12:00:00Z"}}"#
        )
    };
    let send = ["send", "bob", "--subject", "s", "one\ntwo"];
    let check = |answer: &str, says: &str| {
        let done = answering("send", answer).call(&send).run();
        done.fails(5, "it is not known whether it was sent to bob:");
        done.fails(5, says);
    };
    check(&sent("carol", "s", "one\\ntwo"), "whose sender is 'carol'");
    check(&sent("human", "t", "one\\ntwo"), "whose subject is 't'");
    check(&sent("human", "s", "one"), "whose body is 'one'");
    // Lines may end as they do there.
    let right = sent("human", "s", "one\\r\\ntwo\\n");
    assert_eq!(answering("send", &right).call(&send).run().code, 0);
}

#[test]
fn a_reply_must_go_to_the_sender() {
    let check = |from: &str, to: &str, reply_to: &str| {
        let ph = Ph::new();
        let asked = message("m1", "human").replace(r#""from":"a""#, &format!(r#""from":"{from}""#));
        let reply = format!(
            r#"{{"id":"m2","from":"human","to":"{to}","body":"hi","reply_to":"{reply_to}","created_at":"2026-11-15T12:00:00Z"}}"#
        );
        let text = format!(
            "#!/bin/sh\ncase $1 in\nget) echo '{asked}';;\nreply) echo '{reply}';;\n\
             *) exit 2;;\nesac\n"
        );
        script(ph.dir(), "answers", &text);
        keep_by(&ph, "../answers", "");
        ph.run("reply m1 hi")
    };
    let unknown = "it is not known whether it was sent:";
    check("alice", "carol", "m1").fails(5, "whose recipient is 'carol'");
    check("alice", "carol", "m1").fails(5, unknown);
    check("alice", "alice", "").fails(5, "whose reply_to is ''");
    check("alice", "alice", "m10").fails(5, "whose reply_to is 'm10'");
    assert_eq!(check("alice", "alice", "m1").ok(), "m2\n");
    assert_eq!(check("Al <al@example.org>", "al", "m1").ok(), "m2\n");
}

#[test]
fn standard_input_must_be_an_object_with_a_body() {
    let ph = Ph::new();
    for text in [
        "[]",
        r#"["alice","s","b"]"#,
        "{}",
        r#"{"from":"alice"}"#,
        r#"{"from":"alice","body":null}"#,
        "null",
    ] {
        let done = ph.call(&["provider", "send", "bob"]).stdin(text).run();
        done.fails(1, "standard input is not the JSON of a message");
    }
    assert_eq!(
        ph.run("provider count bob").ok(),
        "{\"total\":0,\"unread\":0}\n"
    );
}

#[test]
fn an_interrupted_send_is_uncertain() {
    let check = |text: &str, says: &str| {
        let ph = Ph::new();
        let text = format!("#!/bin/sh\n[ $1 = send ] || exit 2\n{text}\n");
        script(ph.dir(), "bad", &text);
        keep_by(&ph, "../bad", "mail.timeout = '300ms'");
        ph.run("send bob hi").fails(5, says);
        ph.run("send bob,carol hi").fails(5, says);
    };
    let unknown = "it is not known whether it was sent to bob:";
    check("sleep 1000", unknown);
    check("echo '{\"id\":\"1\",'", unknown);
    check("kill -9 $$", unknown);
    check("exec cat /dev/zero", unknown);
    check("exit 1", "nothing was sent to bob:");
}

#[test]
fn errors_quote_the_end_of_standard_error() {
    let ph = Ph::new();
    let text = "#!/bin/sh\n\
        i=0; while [ $i -lt 2000 ]; do echo \"  at frame $i\" >&2; i=$((i+1)); done\n\
        echo 'the password is wrong' >&2\nexit ${CODE:-1}\n";
    script(ph.dir(), "long", text);
    keep_by(&ph, "../long", "");
    let done = ph.run("inbox bob");
    done.fails(5, "the password is wrong");
    assert!(!done.err().contains("frame 0 "), "{}", done.err());
    // One that knows no operation has its reasons, too.
    let done = ph.call(&["inbox", "bob"]).env("CODE", "2").run();
    done.fails(4, "the password is wrong");
}

#[test]
fn a_missing_command_is_not_a_missing_message() {
    let check = |exit: &str, line: &str, code: i32, says: &str| {
        let ph = Ph::new();
        let text = format!("#!/bin/sh\necho 'sh: jq: not found' >&2\nexit {exit}\n");
        script(ph.dir(), "odd", &text);
        keep_by(&ph, "../odd", "");
        ph.run(line).fails(code, says);
        ph.run(line)
            .fails(code, "standard error: sh: jq: not found");
    };
    check("1", "send bob hi", 5, "failed at 'send' (exit 1)");
    check("1", "inbox bob", 5, "failed at 'inbox' (exit 1)");
    check("127", "show 1", 5, "failed at 'get' (exit 127)");
    check("1", "show 1", 3, "did not find the message");
}

#[test]
fn orders_by_the_scripts_id_change_our_copy() {
    for (verb, fact) in [
        ("mark-read", "read"),
        ("archive", "archived"),
        ("delete", "deleted"),
    ] {
        let ph = Ph::new();
        Provider::behind(&ph, "");
        ph.run("send bob --from alice 'fix it'").ok();
        ph.run("inbox bob --prompt").ok();
        ph.run(&format!("{verb} m1")).ok();
        assert!(
            ph.facts().contains(&format!("\"kind\":\"{fact}\"")),
            "{verb}"
        );
        // So nobody is shown it any more.
        assert_eq!(ph.run_as("bob", "check --inject").ok(), "", "{verb}");
    }
}

#[test]
fn mail_in_the_journal_is_listed() {
    let stage = stage();
    Provider::behind(&stage, "mail.tick = '1h'");
    stage.agent("bot", "");
    let sent = stage.rpc(
        "bot",
        "send",
        &json!({"from": "alice", "body": "by the socket"}),
    );
    let id = sent["message"]["id"].as_str().or(sent["id"].as_str());
    let id8 = id.expect("an id")[..8].to_owned();
    stage.run("send bot --from alice 'by the script'").ok();
    let inbox = stage.run("inbox bot --json").json();
    let bodies: Vec<_> = inbox
        .as_array()
        .unwrap()
        .iter()
        .map(|m| &m["body"])
        .collect();
    assert_eq!(bodies, ["by the script", "by the socket"]);
    assert!(stage.run("inbox bot").ok().contains(&id8));
    assert!(
        stage
            .run("inbox bot --prompt")
            .ok()
            .contains("by the socket")
    );
    assert_eq!(stage.run("count bot --json").json()["unread"], 2);
    assert_eq!(stage.run("check bot").ok(), "2 unread message(s) for bot\n");
    assert_eq!(stage.show(&id8)["body"], "by the socket");
    assert_eq!(stage.run(&format!("why {id8}")).code, 0);
    assert_eq!(
        stage.run(&format!("thread {id8} --json")).json()[0]["body"],
        "by the socket"
    );
    stage
        .run(&format!("archive m1 {id8}"))
        .fails(2, "are in the journal");
    let read = stage.run_as("bot", &format!("read {id8} --body"));
    assert_eq!(read.ok(), "by the socket");
    stage.run(&format!("delete {id8}")).ok();
    assert_eq!(stage.run("count bot --json").json()["unread"], 1);
    stage
        .run("inbox bot --awaiting")
        .fails(4, "keeps the mail and cannot list awaited replies");
    stage
        .run("reply m1 hi --expects-reply")
        .fails(4, "keeps the mail and cannot");
}

#[test]
fn a_scripts_mail_does_not_count_towards_limits() {
    let ph = Ph::new();
    Provider::behind(&ph, "mail.max_rate = 2");
    for text in ["one", "two", "three"] {
        ph.run(&format!("send bob --from alice {text}")).ok();
    }
    ph.run("inbox bob --prompt").ok();
    assert_eq!(ph.facts().matches("\"kind\":\"message\"").count(), 3);
    ph.file("home/config.toml", "mail.max_rate = 2\n");
    ph.run("send bob --from alice four").ok();
    ph.run("send bob --from alice five").ok();
    assert_eq!(ph.run("send bob --from alice six").code, 4);
}

#[test]
fn the_receipt_is_the_last_of_the_receipts() {
    let stage = stage();
    Provider::behind(&stage, "mail.tick = '50ms'");
    let agent = stage.agent("bot", "");
    stage.run("send bot --from alice hello").ok();
    agent.until_heard("hello");
    stage.until_receipt("m1", "offered");
    assert_eq!(
        stage.run("inbox bot --json").json()[0]["receipt"],
        "offered"
    );
    assert!(stage.run("inbox bot").ok().contains("offered"));
    let shown = stage.show("m1");
    let last = shown["receipts"].as_array().unwrap().last().unwrap();
    assert_eq!(last["state"], shown["receipt"]);
}

#[test]
fn a_raw_message_bypasses_the_script() {
    let stage = stage();
    Provider::behind(&stage, "");
    let agent = stage.agent("bot", "");
    stage.until_activity("bot", "idle");
    stage.run("send bot --raw yes").ok();
    agent.until_heard("yes");
}

#[test]
fn a_hook_imports_valid_messages_among_invalid_ones() {
    let ph = Ph::new();
    let text = format!(
        "#!/bin/sh\nprintf '%s' '[{{\"id\":7}},{}]'\n",
        message("2", "bob")
    );
    script(ph.dir(), "mixed", &text);
    keep_by(&ph, "../mixed", "");
    let done = ph.run_as("bob", "check --inject");
    assert!(
        done.out().contains("from a"),
        "{}{}",
        done.out(),
        done.err()
    );
    assert!(
        done.err().contains("lists an invalid message"),
        "{}",
        done.err()
    );
}

#[test]
fn a_hanging_mark_does_not_delay_new_mail() {
    let stage = stage();
    let calls = stage.dir().join("calls");
    let text = format!(
        "#!/bin/sh\necho \"$1 $2\" >> '{}'\ncase $1 in\ncheck) printf '%s' '[{}]';;\n\
         mark-read) exec sleep 1000;;\nesac\n",
        calls.display(),
        message("1", "bot"),
    );
    script(stage.dir(), "stuck", &text);
    keep_by(
        &stage,
        "../stuck",
        "mail.tick = '50ms'\nmail.timeout = '100ms'",
    );
    stage.agent("bot", "");
    let id = until("the message", || {
        let log = stage.run("log --json").out();
        let fact = log
            .lines()
            .find(|line| line.contains("\"kind\":\"message\""))?;
        let fact: serde_json::Value = serde_json::from_str(fact).ok()?;
        Some(fact["id"].clone())
    });
    stage.rpc("bot", "mark_read", &json!({"ids": [id]}));
    let count = |call: &str| {
        let calls = std::fs::read_to_string(&calls).unwrap_or_default();
        calls.lines().filter(|line| *line == call).count()
    };
    until_so("the last try", || count("mark-read 1") == 5);
    let seen = count("check bot");
    until_so("more looks", || count("check bot") > seen + 5);
    assert_eq!(count("mark-read 1"), 5);
}
