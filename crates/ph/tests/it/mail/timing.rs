//! Times that a sender sets: not before, not after, and once only.

use crate::common::{Ph, wait_for};

#[test]
fn a_message_is_not_listed_before_it_is_due() {
    let ph = Ph::new();
    ph.send("bob 'in a while' --in 1h");
    ph.send("bob 'in the far future' --at 2999-01-01T12:00");
    ph.send("bob 'was due long ago' --at 2001-01-01");
    insta::assert_snapshot!(ph.transcript(&["inbox bob", "inbox bob --all", "count bob"]), @"
    $ ph inbox bob
    [id3]  human → bob  [time]  stored  was due long ago
    $ ph inbox bob --all
    [id3]  human → bob  [time]  stored  was due long ago
    $ ph count bob
    1 in total, 1 unread
    ");
    let why = ph.run("why {2}").ok();
    assert!(
        why.contains("its sender scheduled it for 2999-01-01T12:00:00Z"),
        "{why}"
    );
    let shown = ph.run_as("bob", "check --inject").ok();
    assert_eq!(shown.matches("- ").count(), 1);
    ph.run("cancel {1}").ok();
    assert_eq!(ph.run("show {1} --json").json()["receipt"], "cancelled");
}

#[test]
fn times_are_parsed() {
    let ph = Ph::new();
    let check = |zone: &str, at: &str, want: &str| {
        let sent = ph
            .call(&["send", "bob", "hi", "--at", at])
            .env("TZ", zone)
            .run()
            .ok();
        let shown = ph.run(&format!("show {} --json", sent.trim())).json();
        assert_eq!(shown["not_before"], want, "TZ={zone} --at {at}");
    };
    check("UTC", "2999-11-15T14:30:00Z", "2999-11-15T14:30:00Z");
    check("UTC", "2999-11-15T14:30:00+02:00", "2999-11-15T12:30:00Z");
    check("UTC", "2999-11-15T14:30", "2999-11-15T14:30:00Z");
    check("UTC", "2999-11-15 14:30", "2999-11-15T14:30:00Z");
    check("PST8", "2999-11-15 14:30", "2999-11-15T22:30:00Z");
    check("PST8", "2999-11-15", "2999-11-15T08:00:00Z");
    if crate::common::has_time_zones() {
        check(
            "UTC",
            "2999-11-15T14:30[Asia/Tokyo]",
            "2999-11-15T05:30:00Z",
        );
    }
    let sent = ph.send("bob hi --at 14:30");
    let due = ph.run(&format!("show {sent} --json")).json()["not_before"].to_string();
    assert!(due.contains("T14:30:00Z"), "{due}");
}

#[test]
fn an_invalid_time_sends_nothing() {
    let ph = Ph::new();
    ph.send("bob hi");
    let before = ph.facts();
    let check = |flag: &str, value: &str, says: &str| {
        ph.call(&["send", "bob", "hi", flag, value])
            .run()
            .fails(2, says);
        assert_eq!(ph.facts(), before, "{flag} {value}");
    };
    for value in [
        "",
        "yesterday",
        "25:00",
        "2026-13-01",
        "2026-11-15T14:30[Mars/Olympus]",
    ] {
        check("--at", value, "is not a time");
    }
    for flag in ["--in", "--ttl"] {
        check(flag, "soon", "is not a duration such as 90s");
        check(flag, "10", "is not a duration such as 90s");
        check(flag, "0s", "a duration must be more than zero");
        check(flag, "1 month", "months and years have no fixed length");
    }
    check("--in", "7304484d", "the time given by --in is out of range");
    check("--in", "99999999999999999999d", "is not a duration");
    let both = ph.run("send bob hi --in 1h --at 14:30");
    both.fails(2, "cannot be used with");
    assert_eq!(ph.facts(), before);
}

#[test]
fn an_unseen_message_expires() {
    let ph = Ph::new();
    ph.send("bob 'only for a moment' --ttl 1ms");
    wait_for("the message to expire", || {
        let shown = ph.run("show {1} --json").json();
        (shown["receipt"] == "expired").then_some(())
    });
    insta::assert_snapshot!(ph.transcript(&["inbox bob --all", "count bob", "check bob", "cancel {1}", "mark-read {1}"]), @"
    $ ph inbox bob --all
    no mail for bob
    $ ph count bob
    0 in total, 0 unread
    $ ph check bob
    [exit 1]
    $ ph cancel [id1]
    ! error: message [id1]: it has ended already: expired
    ! hint: 'ph show [id1]' shows its receipts
    [exit 4]
    $ ph mark-read [id1]
    ! error: message [id1]: it has ended already: expired
    ! hint: 'ph show [id1]' shows its receipts
    [exit 4]
    ");
    assert_eq!(ph.run("check --inject bob").ok(), "");
    // The next writer records the expiry.
    ph.send("bob next --ttl 1h");
    let log = ph.run("log").ok();
    assert!(log.contains("expired"), "{log}");
}

#[test]
fn a_read_message_does_not_expire() {
    let ph = Ph::new();
    ph.send("bob 'a day is enough' --ttl 1d");
    ph.run("read {1} --body").ok();
    let shown = ph.run("show {1} --json").json();
    assert_eq!(shown["receipt"], "read");
    assert_ne!(shown["expires_at"], serde_json::Value::Null);
}

#[test]
fn a_key_is_sent_once() {
    let ph = Ph::new();
    insta::assert_snapshot!(ph.transcript(&[
        "send bob 'the build failed' --key nightly-42",
        "send bob 'the build failed' --key nightly-42",
        "send bob 'other words' --key nightly-42 --json",
        "send bob 'the build failed' --key nightly-43",
        "send bob,carol 'the build failed' --key nightly-42",
        "send bob 'the build failed' --key nightly-42 --from alice",
        "log",
    ]), @r#"
    $ ph send bob the build failed --key nightly-42
    [id1]
    $ ph send bob the build failed --key nightly-42
    [id1]
    ! note: a message with this key was sent to bob already; nothing new was stored
    $ ph send bob other words --key nightly-42 --json
    {"id":"[id1]","from":"human","from_evidence":"default","to":"bob","subject":null,"body":"the build failed","created_at":"[time]","read":false,"thread_id":"[id1]","reply_to":null,"priority":"normal","receipt":"stored","reason":"no session of bob has offered it; it waits in the inbox","receipts":[{"state":"stored","at":"[time]","route":null,"evidence":null}]}
    ! note: a message with this key was sent to bob already, with a different text; nothing new was stored
    $ ph send bob the build failed --key nightly-43
    [id2]
    $ ph send bob,carol the build failed --key nightly-42
    [id1]
    [id3]
    ! note: a message with this key was sent to bob already; nothing new was stored
    $ ph send bob the build failed --key nightly-42 --from alice
    [id4]
    $ ph log
         1  [time]  bob           message    [id1]  from human: the build failed
         2  [time]  bob           message    [id2]  from human: the build failed
         3  [time]  carol         message    [id3]  from human: the build failed
         4  [time]  bob           message    [id4]  from alice: the build failed
    "#);
}

#[test]
fn senders_at_the_same_time_share_a_key_too() {
    let ph = Ph::new();
    let all: Vec<_> = (0..8)
        .map(|_| ph.call(&["send", "bob", "hi", "--key", "same"]).spawn())
        .collect();
    let mut ids: Vec<_> = all
        .into_iter()
        .map(|child| crate::common::Done::of(child).out())
        .collect();
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(ph.facts().lines().count(), 1);
}

/// The clock may step back; the order is the journal's.
#[test]
fn a_message_from_the_future_is_only_older_mail() {
    let ph = Ph::new();
    ph.send("bob first");
    let other = Ph::new();
    other.send("bob second");
    let at = other.run("inbox bob --json").json()[0]["created_at"]
        .as_str()
        .unwrap()
        .to_owned();
    let line = other.facts().replace(&at, "2999-01-01T00:00:00Z");
    ph.call(&["import", "-"]).stdin(line).run().ok();
    ph.send("bob third");
    let inbox = ph.run("inbox bob --json").json();
    let bodies: Vec<_> = inbox
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["body"].clone())
        .collect();
    assert_eq!(bodies, ["first", "second", "third"]);
    assert_eq!(ph.run("why {1}").code, 0);
}

#[test]
fn a_message_that_may_have_been_seen_neither_expires_nor_is_cancelled() {
    let ph = Ph::new();
    ph.send("bob 'deploy now'");
    ph.run_as("bob", "check --inject").ok();
    ph.run("cancel {1}")
        .fails(4, "no longer be cancelled: offered");
    ph.send("bob --ttl 1h later");
    ph.run_as("bob", "read {2} --body").ok();
    ph.run_as("bob", "mark-unread {2}").ok();
    ph.run("cancel {2}")
        .fails(4, "no longer be cancelled: it was read before");
    assert!(ph.run("inbox bob").ok().contains("later"), "unread again");
}

#[test]
fn a_deleted_message_frees_its_key() {
    let ph = Ph::new();
    ph.send("bob --key k one");
    ph.run("delete {1}").ok();
    let again = ph.run("send bob --key k two");
    assert_eq!(again.err(), "");
    assert!(ph.run("inbox bob").ok().contains("two"));
}
