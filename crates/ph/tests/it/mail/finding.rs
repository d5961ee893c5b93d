//! Threads, searches, and what is not found any more.

use crate::common::Ph;
use serde_json::Value;

#[test]
fn a_reply_joins_the_thread() {
    let ph = Ph::new();
    insta::assert_snapshot!(ph.transcript(&[
        "send bob 'Please review' --subject review",
        "bob$ reply {1} 'Done, see commit 1a2b3c'",
        "reply {1} 'And the docs?'",
        "bob$ reply {3} 'Those too' --subject docs --priority idle",
        "archive {1}",
        "thread {4}",
        "delete {2}",
        "thread {1}",
        "reply {2} 'too late'",
        "send bob 'more' --reply-to {1}",
    ]), @"
    $ ph send bob Please review --subject review
    [id1]
    bob$ ph reply [id1] Done, see commit 1a2b3c
    [id2]
    $ ph reply [id1] And the docs?
    [id3]
    bob$ ph reply [id3] Those too --subject docs --priority idle
    [id4]
    $ ph archive [id1]
    [id1] archived
    $ ph thread [id4]
    message    [id1]
    from       human (default)
    to         bob
    sent       [time]
    subject    review

        Please review

    message    [id2]
    from       bob (env)
    to         human
    sent       [time]
    subject    Re: review
    reply to   [id1]

        Done, see commit 1a2b3c

    message    [id3]
    from       human (default)
    to         bob
    sent       [time]
    subject    Re: review
    reply to   [id1]

        And the docs?

    message    [id4]
    from       bob (env)
    to         human
    sent       [time]
    subject    docs
    priority   idle
    reply to   [id3]

        Those too
    $ ph delete [id2]
    [id2] deleted
    $ ph thread [id1]
    message    [id1]
    from       human (default)
    to         bob
    sent       [time]
    subject    review

        Please review

    message    [id3]
    from       human (default)
    to         bob
    sent       [time]
    subject    Re: review
    reply to   [id1]

        And the docs?

    message    [id4]
    from       bob (env)
    to         human
    sent       [time]
    subject    docs
    priority   idle
    reply to   [id3]

        Those too
    $ ph reply [id2] too late
    ! error: no message [id2]
    ! hint: 'ph inbox --all' lists ids; 'ph search' finds text
    [exit 3]
    $ ph send bob more --reply-to [id1]
    [id5]
    ");
    a_thread_is_printed_in_order(&ph);
}

fn a_thread_is_printed_in_order(ph: &Ph) {
    let thread = ph.run("thread {1} --json").json();
    let of = |index: usize, key: &str| thread[index][key].clone();
    assert_eq!(thread.as_array().map(Vec::len), Some(4));
    for index in 0..4 {
        assert_eq!(of(index, "thread_id"), of(0, "id"));
    }
    assert_eq!(of(0, "reply_to"), Value::Null);
    assert_eq!(of(2, "reply_to"), of(1, "id"));
}

#[test]
fn a_deleted_message_is_only_in_the_log() {
    let ph = Ph::new();
    ph.send("bob 'a secret plan'");
    ph.send("bob 'another thing'");
    insta::assert_snapshot!(ph.transcript(&[
        "delete {1}",
        "delete {1}",
        "show {1}",
        "read {1}",
        "why {1}",
        "thread {1}",
        "archive {1} {2}",
        "search secret",
        "inbox bob --all",
        "log",
    ]), @"
    $ ph delete [id1]
    [id1] deleted
    $ ph delete [id1]
    ! error: no message [id1]
    ! hint: 'ph inbox --all' lists ids; 'ph search' finds text
    [exit 3]
    $ ph show [id1]
    ! error: no message [id1]
    ! hint: 'ph inbox --all' lists ids; 'ph search' finds text
    [exit 3]
    $ ph read [id1]
    ! error: no message [id1]
    ! hint: 'ph inbox --all' lists ids; 'ph search' finds text
    [exit 3]
    $ ph why [id1]
    ! error: no message [id1]
    ! hint: 'ph inbox --all' lists ids; 'ph search' finds text
    [exit 3]
    $ ph thread [id1]
    ! error: no message [id1]
    ! hint: 'ph inbox --all' lists ids; 'ph search' finds text
    [exit 3]
    $ ph archive [id1] [id2]
    ! error: no message [id1]
    ! hint: 'ph inbox --all' lists ids; 'ph search' finds text
    [exit 3]
    $ ph search secret
    [exit 1]
    $ ph inbox bob --all
    [id2]  human → bob  [time]  stored  another thing
    $ ph log
         1  [time]  bob           message    [id1]  from human: a secret plan
         2  [time]  bob           message    [id2]  from human: another thing
         3  [time]  bob           deleted    [id1]  by human
    ");
    assert_eq!(ph.files().len(), 1, "its file is gone");
}

#[test]
fn search_finds_words_and_phrases() {
    let ph = Ph::new();
    ph.send("bob 'the login page is broken' --from alice");
    ph.send("carol 'a page about login' --subject 'Übersicht'");
    ph.send("carol 'nothing of the kind'");
    insta::assert_snapshot!(ph.transcript(&[
        "search login",
        "search login page --from alice",
        "search '\"login page\"'",
        "search page --to carol",
        "search logi",
        "search 'logi*' --limit 1",
        "search übersicht",
        "search absent",
        "search absent --json",
        "search '\"'",
        "search 'a OR b'",
    ]), @r#"
    $ ph search login
    [id2]  human → carol  [time]  stored  [Übersicht] a page about login
    [id1]  alice → bob    [time]  stored  the login page is broken
    $ ph search login page --from alice
    [id1]  alice → bob  [time]  stored  the login page is broken
    $ ph search "login page"
    [id1]  alice → bob  [time]  stored  the login page is broken
    $ ph search page --to carol
    [id2]  human → carol  [time]  stored  [Übersicht] a page about login
    $ ph search logi
    [exit 1]
    $ ph search logi* --limit 1
    [id2]  human → carol  [time]  stored  [Übersicht] a page about login
    $ ph search übersicht
    [id2]  human → carol  [time]  stored  [Übersicht] a page about login
    $ ph search absent
    [exit 1]
    $ ph search absent --json
    []
    [exit 1]
    $ ph search "
    ! error: the query has no words
    [exit 2]
    $ ph search a OR b
    [exit 1]
    "#);
    let found = ph.run("search login --json").json();
    let bodies: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["body"].clone())
        .collect();
    assert_eq!(
        bodies,
        ["a page about login", "the login page is broken"],
        "newest first"
    );
    ph.send("bob 'a login that came later'");
    assert_eq!(
        ph.run("search later").code,
        0,
        "the search catches up by itself"
    );
    ph.run("archive {1}");
    assert_eq!(
        ph.run("search login --from alice").code,
        0,
        "archived mail is found"
    );
}
