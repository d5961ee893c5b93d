//! The mail verbs, end to end: what each prints for people and for programs, and how it exits.

mod common;

use common::{Done, Ph};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};

#[test]
fn sending_prints_ids_alone() {
    let ph = Ph::new();
    insta::assert_snapshot!(ph.transcript(&[
        "send bob hello",
        "send alice,bob 'to both'",
        "send bob,bob twice",
        "send bob -m '-x'",
        "send bob -- '- a list'",
        "send bob hi --json",
        "send alice,bob hi --json",
    ]), @r#"
    $ ph send bob hello
    [id1]
    $ ph send alice,bob to both
    [id2]
    [id3]
    $ ph send bob,bob twice
    [id4]
    $ ph send bob -m -x
    [id5]
    $ ph send bob -- - a list
    [id6]
    $ ph send bob hi --json
    {"id":"[id7]","from":"human","from_evidence":"default","to":"bob","subject":null,"body":"hi","created_at":"[time]","read":false,"thread_id":"[id7]","reply_to":null,"priority":"normal","receipt":"stored","reason":"no session of bob has offered it; it waits in the inbox","receipts":[{"state":"stored","at":"[time]","route":null,"evidence":null}]}
    $ ph send alice,bob hi --json
    [{"id":"[id8]","from":"human","from_evidence":"default","to":"alice","subject":null,"body":"hi","created_at":"[time]","read":false,"thread_id":"[id8]","reply_to":null,"priority":"normal","receipt":"stored","reason":"no session of alice has offered it; it waits in the inbox","receipts":[{"state":"stored","at":"[time]","route":null,"evidence":null}]},{"id":"[id9]","from":"human","from_evidence":"default","to":"bob","subject":null,"body":"hi","created_at":"[time]","read":false,"thread_id":"[id9]","reply_to":null,"priority":"normal","receipt":"stored","reason":"no session of bob has offered it; it waits in the inbox","receipts":[{"state":"stored","at":"[time]","route":null,"evidence":null}]}]
    "#);
    let sent = ph.send("bob whole");
    assert_eq!(sent.len(), 36, "the whole id, so that it can be piped");
}

#[test]
fn a_body_comes_from_an_argument_a_file_or_standard_input() {
    let ph = Ph::new();
    let file = common::path_text(&ph.file("note.md", "from a file\n"));
    ph.send(&format!("bob --file {file}"));
    let piped = ph
        .call(&["send", "bob", "--file", "-"])
        .stdin("from a pipe")
        .run();
    ph.redact(&piped.ok());
    assert_eq!(ph.run("read {1} --body").ok(), "from a file\n");
    assert_eq!(ph.run("read {2} --body").ok(), "from a pipe");
}

#[test]
fn the_message_verb_of_the_loop() {
    let ph = Ph::new();
    insta::assert_snapshot!(ph.transcript(&[
        "message --name my-feature 'Please prioritize the login feature'",
        "message -n my-feature second",
        "message hello",
        "message",
        "message --name '' hello",
        "message --name my-feature",
        "message --name 'My Feature' hello",
        "message -n my-feature third --json",
        "inbox my-feature",
    ]), @r#"
    $ ph message --name my-feature Please prioritize the login feature
    Message sent: [id1]
    $ ph message -n my-feature second
    Message sent: [id2]
    $ ph message hello
    ! error: --name flag required
    ! hint: for example: ph message --name my-feature 'text'
    [exit 2]
    $ ph message
    ! error: --name flag required
    ! hint: for example: ph message --name my-feature 'text'
    [exit 2]
    $ ph message --name  hello
    ! error: --name flag required
    ! hint: for example: ph message --name my-feature 'text'
    [exit 2]
    $ ph message --name my-feature
    ! error: there is no text to send
    ! hint: for example: ph message --name my-feature 'text'
    [exit 2]
    $ ph message --name My Feature hello
    ! error: an agent's name starts with a-z or 0-9, not with 'M'
    ! hint: 'my-feature' would do
    [exit 2]
    $ ph message -n my-feature third --json
    {"id":"[id3]","from":"human","from_evidence":"default","to":"my-feature","subject":null,"body":"third","created_at":"[time]","read":false,"thread_id":"[id3]","reply_to":null,"priority":"normal","receipt":"stored","reason":"no session of my-feature has offered it; it waits in the inbox","receipts":[{"state":"stored","at":"[time]","route":null,"evidence":null}]}
    $ ph inbox my-feature
    [id1]  human → my-feature  [time]  stored  Please prioritize the login feature
    [id2]  human → my-feature  [time]  stored  second
    [id3]  human → my-feature  [time]  stored  third
    "#);
}

#[test]
fn an_inbox_from_first_to_last() {
    let ph = Ph::new();
    insta::assert_snapshot!(ph.transcript(&[
        "inbox bob",
        "send bob 'one thing' --subject first",
        "send bob 'Stop: main is broken' --priority interrupt --from alice",
        "inbox bob",
        "bob$ inbox",
        "bob$ read {1}",
        "bob$ inbox",
        "bob$ inbox --all",
        "bob$ count",
        "bob$ mark-unread {1}",
        "bob$ mark-unread {1}",
        "bob$ mark-read {1} {2}",
        "bob$ mark-read {1}",
        "bob$ inbox",
        "bob$ archive {1}",
        "bob$ archive {1} {2}",
        "bob$ mark-read {1}",
        "bob$ inbox --all",
        "inbox",
        "inbox --all",
    ]), @"
    $ ph inbox bob
    no unread mail for bob
    ! note: nothing has been stored in [home] yet
    $ ph send bob one thing --subject first
    [id1]
    $ ph send bob Stop: main is broken --priority interrupt --from alice
    [id2]
    $ ph inbox bob
    [id1]  human → bob  [time]  stored              [first] one thing
    [id2]  alice → bob  [time]  stored (interrupt)  Stop: main is broken
    bob$ ph inbox
    [id1]  human → bob  [time]  stored              [first] one thing
    [id2]  alice → bob  [time]  stored (interrupt)  Stop: main is broken
    bob$ ph read [id1]
    message    [id1]
    from       human (default)
    to         bob
    sent       [time]
    subject    first

    one thing
    bob$ ph inbox
    [id2]  alice → bob  [time]  stored (interrupt)  Stop: main is broken
    bob$ ph inbox --all
    [id1]  human → bob  [time]  read                [first] one thing
    [id2]  alice → bob  [time]  stored (interrupt)  Stop: main is broken
    bob$ ph count
    2 in all, 1 unread
    bob$ ph mark-unread [id1]
    [id1] marked as unread
    bob$ ph mark-unread [id1]
    [id1] already unread
    bob$ ph mark-read [id1] [id2]
    [id1] marked as read
    [id2] marked as read
    bob$ ph mark-read [id1]
    [id1] already read
    bob$ ph inbox
    no unread mail for bob
    bob$ ph archive [id1]
    [id1] archived
    bob$ ph archive [id1] [id2]
    [id1] already archived
    [id2] archived
    bob$ ph mark-read [id1]
    ! error: message [id1]: it has ended already: archived
    ! hint: 'ph show [id1]' tells its whole journey
    [exit 4]
    bob$ ph inbox --all
    no mail for bob
    $ ph inbox
    no unread mail for human
    $ ph inbox --all
    no mail for human
    ");
}

#[test]
fn reading_and_showing() {
    let ph = Ph::new();
    ph.send("bob 'first line' --subject tests --priority idle-first --key k1 --ttl 1h");
    insta::assert_snapshot!(ph.transcript(&["show {1}", "read {1}", "show {1}", "read {1} --body"]), @"
    $ ph show [id1]
    message    [id1]
    from       human (default)
    to         bob
    sent       [time]
    subject    tests
    priority   idle-first
    thread     [id1]
    file       [home]/messages/bob/[time]-[id1].md
    key        k1
    expires    [time]
    receipt    stored
    because    no session of bob has offered it; it waits in the inbox

      [time]  stored

    first line
    $ ph read [id1]
    message    [id1]
    from       human (default)
    to         bob
    sent       [time]
    subject    tests
    priority   idle-first

    first line
    $ ph show [id1]
    message    [id1]
    from       human (default)
    to         bob
    sent       [time]
    subject    tests
    priority   idle-first
    thread     [id1]
    file       [home]/messages/bob/[time]-[id1].md
    key        k1
    expires    [time]
    receipt    read

      [time]  stored
      [time]  read       by human

    first line
    $ ph read [id1] --body
    first line
    ");
    let before = ph.facts();
    ph.run("show {1}");
    ph.run("show {1} --json");
    assert_eq!(ph.facts(), before, "showing marks nothing");
    assert!(
        ph.run("read {1}").code == 0 && ph.facts() == before,
        "read again is read once"
    );
}

#[test]
fn an_answer_and_its_thread() {
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
fn what_is_deleted_is_not_found_but_stays_in_the_log() {
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
fn counting_and_checking() {
    let ph = Ph::new();
    insta::assert_snapshot!(ph.transcript(&[
        "check bob",
        "check bob --json",
        "count bob",
        "send bob hi",
        "send bob hi again",
        "send bob 'hi again'",
        "check bob",
        "bob$ check",
        "check bob --json",
        "count bob --json",
        "bob$ count",
        "read {1} --body",
        "check bob",
        "check",
    ]), @r#"
    $ ph check bob
    ! note: nothing has been stored in [home] yet
    [exit 1]
    $ ph check bob --json
    {"total":0,"unread":0}
    ! note: nothing has been stored in [home] yet
    [exit 1]
    $ ph count bob
    0 in all, 0 unread
    ! note: nothing has been stored in [home] yet
    $ ph send bob hi
    [id1]
    $ ph send bob hi again
    ! error: unexpected argument 'again'
    ! hint: a text of several words goes in quotes
    [exit 2]
    $ ph send bob hi again
    [id2]
    $ ph check bob
    2 unread message(s) for bob
    bob$ ph check
    2 unread message(s) for bob
    $ ph check bob --json
    {"total":2,"unread":2}
    $ ph count bob --json
    {"total":2,"unread":2}
    bob$ ph count
    2 in all, 2 unread
    $ ph read [id1] --body
    hi$ ph check bob
    1 unread message(s) for bob
    $ ph check
    [exit 1]
    "#);
    let before = ph.facts();
    ph.run("check bob");
    assert_eq!(ph.facts(), before, "check changes nothing");
}

#[test]
fn searching() {
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
    ! error: there is no word to look for
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

#[test]
fn why_a_message_waits() {
    let ph = Ph::new();
    ph.send("bob hi");
    ph.send("human hi --from bob");
    ph.send("bob later --at 2999-01-01T00:00:00Z");
    insta::assert_snapshot!(ph.transcript(&["why {1}", "why {2}", "why {1} --json", "read {1} --body", "why {1}"]), @r#"
    $ ph why [id1]
    held       no session of bob has offered it; it waits in the inbox
    rule       no-session
    since      [time]
    evidence   the journal has no offer for it
    release    a session of bob is started ('ph run --name bob COMMAND', or 'ph restart bob' where it has run), or bob asks for its mail ('ph inbox', 'ph read', 'ph check --inject')
    $ ph why [id2]
    held       it lies in the person's inbox and has not been read
    rule       unread
    since      [time]
    evidence   the journal has no 'read' for it
    release    'ph read [id2]'
    $ ph why [id1] --json
    {"id":"[id1]","receipt":"stored","held":true,"rule":"no-session","reason":"no session of bob has offered it; it waits in the inbox","since":"[time]","evidence":"the journal has no offer for it","release":"a session of bob is started ('ph run --name bob COMMAND', or 'ph restart bob' where it has run), or bob asks for its mail ('ph inbox', 'ph read', 'ph check --inject')","reply":null}
    $ ph read [id1] --body
    hi$ ph why [id1]
    not held   it is read
    since      [time]
    "#);
    let why = ph.run("why {3} --json").json();
    assert_eq!(
        (why["rule"].as_str(), why["held"].as_bool()),
        (Some("not-before"), Some(true))
    );
}

/// The keys of the outermost object, or of the first in a list, in the order in which they stand.
fn keys(json: &str) -> Vec<String> {
    struct Keys(Vec<String>);
    impl<'de> serde::Deserialize<'de> for Keys {
        fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
            struct Reader;
            impl<'de> serde::de::Visitor<'de> for Reader {
                type Value = Keys;
                fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                    f.write_str("an object")
                }
                fn visit_map<M: serde::de::MapAccess<'de>>(
                    self,
                    mut map: M,
                ) -> Result<Keys, M::Error> {
                    let mut keys = Vec::new();
                    while let Some((key, _)) = map.next_entry::<String, serde::de::IgnoredAny>()? {
                        keys.push(key);
                    }
                    Ok(Keys(keys))
                }
            }
            from.deserialize_map(Reader)
        }
    }
    if json.starts_with('[') {
        let all: Vec<Keys> = serde_json::from_str(json).expect("a list of objects");
        return all.into_iter().next().expect("one at least").0;
    }
    serde_json::from_str::<Keys>(json).expect("an object").0
}

#[test]
fn a_message_has_the_shape_that_is_written_down() {
    const MESSAGE: [&str; 14] = [
        "id",
        "from",
        "from_evidence",
        "to",
        "subject",
        "body",
        "created_at",
        "read",
        "thread_id",
        "reply_to",
        "priority",
        "receipt",
        "reason",
        "receipts",
    ];
    let ph = Ph::new();
    let check = |line: &str, want: &[&str]| {
        let json = ph.run(line).ok();
        assert_eq!(json.matches('\n').count(), 1, "one line: {json}");
        assert_eq!(keys(&json), want, "{line}");
    };
    ph.send("bob hi");
    check("send bob hi --json", &MESSAGE);
    check("send alice,bob hi --json", &MESSAGE);
    check("message -n bob hi --json", &MESSAGE);
    check("reply {1} hi --json", &MESSAGE);
    check("inbox bob --json", &MESSAGE);
    check("inbox bob --all --json", &MESSAGE);
    check("thread {1} --json", &MESSAGE);
    check("search hi --json", &MESSAGE);
    check("read {1} --json", &MESSAGE);
    let more = [
        "key",
        "not_before",
        "expires_at",
        "deadline",
        "hops",
        "cause",
        "expects_reply",
        "reply",
        "closes",
        "file",
    ];
    check("show {1} --json", &[&MESSAGE[..], &more[..]].concat());
    check("count bob --json", &["total", "unread"]);
    check("check bob --json", &["total", "unread"]);
    check(
        "why {1} --json",
        &[
            "id", "receipt", "held", "rule", "reason", "since", "evidence", "release", "reply",
        ],
    );
    check("archive {1} --json", &["id", "outcome", "changed"]);
    for line in ["inbox nobody --json", "inbox nobody --all --json"] {
        assert_eq!(ph.run(line).ok(), "[]\n");
    }
    let shown = ph.run("show {1} --json").json();
    let receipts = shown["receipts"].as_array().unwrap();
    let states: Vec<_> = receipts
        .iter()
        .map(|r| r["state"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["stored", "read", "archived"]);
    assert_eq!(
        keys(&receipts[1].to_string()),
        ["at", "evidence", "route", "state"]
    );
    let raw = ph.run("show {1} --json").ok();
    assert!(
        raw.contains(r#""receipts":[{"state":"stored","at":"#),
        "{raw}"
    );
    for absent in [
        "subject",
        "reply_to",
        "reason",
        "key",
        "not_before",
        "expires_at",
    ] {
        assert_eq!(shown[absent], Value::Null, "{absent}");
    }
    assert_eq!(shown["thread_id"], shown["id"]);
}

#[test]
fn the_log() {
    let ph = Ph::new();
    ph.send("bob hi");
    ph.send("alice 'two\nlines' --subject s");
    ph.run("read {1} --body").ok();
    ph.run("archive {2}").ok();
    insta::assert_snapshot!(ph.transcript(&["log", "log --after 2", "log --agent alice", "log --after 9", "log --agent nobody"]), @"
    $ ph log
         1  [time]  bob           message    [id1]  from human: hi
         2  [time]  alice         message    [id2]  from human: two lines
         3  [time]  bob           read       [id1]  by human
         4  [time]  alice         archived   [id2]  by human
    $ ph log --after 2
         3  [time]  bob           read       [id1]  by human
         4  [time]  alice         archived   [id2]  by human
    $ ph log --agent alice
         2  [time]  alice         message    [id2]  from human: two lines
         4  [time]  alice         archived   [id2]  by human
    $ ph log --after 9
    ! error: there is no fact 9: the last is 4
    ! hint: 'ph log' shows their numbers; without --after it begins with the first
    [exit 2]
    $ ph log --agent nobody
    ");
    let facts = ph.facts();
    let facts: Vec<Value> = facts
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    let seqs: Vec<_> = facts
        .iter()
        .map(|fact| fact["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    assert_eq!(
        keys(ph.facts().lines().next().unwrap()),
        ["seq", "origin", "id", "at", "agent", "kind", "data"]
    );
    assert_eq!(facts[1]["data"]["body"], "two\nlines");
    assert_eq!(ph.run("log --after 3 --json").ok().lines().count(), 1);
}

/// A run that goes on, line by line; ended when it is dropped.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn new(mut child: Child) -> Self {
        let stdout = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(common::PATIENCE).expect("a line")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn following_tells_history_then_a_mark_then_what_comes() {
    let ph = Ph::new();
    ph.send("bob one");
    ph.send("alice two");
    let all = Running::new(ph.call(&["log", "--follow"]).spawn());
    let json = Running::new(
        ph.call(&["log", "--follow", "--json", "--after", "1"])
            .spawn(),
    );
    let bob = Running::new(ph.call(&["log", "-f", "--agent", "bob"]).spawn());
    let mut seen = String::new();
    for _ in 0..3 {
        seen.push_str(&all.line());
        seen.push('\n');
    }
    assert!(json.line().contains(r#""seq":2"#));
    assert_eq!(json.line(), r#"{"mark":{"seq":2}}"#);
    bob.line();
    assert_eq!(bob.line(), "-- live after 2 --");
    ph.send("alice three");
    ph.run("read {1} --body").ok();
    for _ in 0..2 {
        seen.push_str(&all.line());
        seen.push('\n');
    }
    let live: Value = serde_json::from_str(&json.line()).unwrap();
    assert_eq!(
        (live["seq"].as_u64(), live["data"]["body"].as_str()),
        (Some(3), Some("three"))
    );
    assert!(
        bob.line().contains("bob           read"),
        "another's mail is passed over"
    );
    insta::assert_snapshot!(ph.redact(&seen), @"
         1  [time]  bob           message    [id1]  from human: one
         2  [time]  alice         message    [id2]  from human: two
    -- live after 2 --
         3  [time]  alice         message    [id3]  from human: three
         4  [time]  bob           read       [id1]  by human
    ");
}

#[test]
fn following_an_empty_home_waits_for_the_first_fact() {
    let ph = Ph::new();
    let follow = Running::new(ph.call(&["log", "--follow"]).spawn());
    assert_eq!(follow.line(), "-- live after 0 --");
    ph.send("bob first");
    assert!(follow.line().ends_with("from human: first"));
}

#[test]
fn an_export_comes_back_byte_for_byte() {
    let ph = Ph::new();
    let other = Ph::new();
    let control: String = (1..0xa0).filter_map(char::from_u32).collect();
    ph.send("bob one --subject s --key k --ttl 1h");
    let large = "é\u{7f}\n".repeat(400_000);
    for body in [control.as_str(), large.as_str()] {
        ph.call(&["send", "bob", "--file", "-"])
            .stdin(body)
            .run()
            .ok();
    }
    ph.run("archive {1}").ok();
    let exported = ph.run("export");
    assert!(exported.code == 0, "{}", exported.err());
    let file = common::path_text(&other.file("backup.ndjson", &exported.stdout));
    let imported = other.run(&format!("import {file}")).ok();
    assert_eq!(imported, "4 facts added, 0 known already\n");
    assert_eq!(other.run("export").stdout, exported.stdout);
    assert_eq!(other.facts(), ph.facts());
    assert_eq!(
        other.run(&format!("import {file} --json")).ok(),
        "{\"added\":0,\"conflicts\":[],\"known\":4}\n"
    );
    let large8 = &ph.run("search é --json").json()[0]["id"];
    let read = other.run(&format!("read {} --body", large8.as_str().unwrap()));
    assert!(read.stdout == large.as_bytes(), "a body of its own file");
}

#[test]
fn an_export_to_a_file_is_private_and_overwrites_nothing() {
    use std::os::unix::fs::PermissionsExt;
    let ph = Ph::new();
    ph.send("bob one");
    let path = ph.dir().join("backup.ndjson");
    let line = format!("export {}", common::path_text(&path));
    let first = ph.run(&line);
    assert_eq!(
        (first.code, first.out().as_str(), first.err().as_str()),
        (0, "", "note: 1 fact exported\n")
    );
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let content = std::fs::read(&path).unwrap();
    assert_eq!(content, ph.run("export").stdout);
    ph.send("bob two");
    ph.run(&line).fails(4, "an export overwrites nothing");
    assert_eq!(std::fs::read(&path).unwrap(), content);
}

#[test]
fn what_cannot_be_imported_is_named() {
    let ph = Ph::new();
    ph.send("bob one");
    let before = ph.facts();
    let check = |input: &[u8], says: &str| {
        let done = ph.call(&["import", "-"]).stdin(input).run();
        done.fails(2, says);
        assert_eq!(ph.facts(), before, "{says}");
    };
    check(b"nonsense\n", "line 1:");
    check(b"{\"seq\":1}\n", "line 1: missing field");
    check(b"\xff\n", "line 1: not UTF-8");
    let good = before.replace(
        &ph.run("inbox bob --json").json()[0]["id"].as_str().unwrap()[..8],
        "01234567",
    );
    ph.run("import /nonexistent")
        .fails(2, "cannot read /nonexistent");
    // The same id with other content is a conflict, not a guess.
    let other = before.replace("\"one\"", "\"two\"");
    let done = ph.call(&["import", "-"]).stdin(other).run();
    assert_eq!(done.code, 4);
    assert!(
        done.err()
            .contains("stands in the journal with other content"),
        "{}",
        done.err()
    );
    assert_eq!(ph.facts(), before);
    // What came whole before a bad line is taken; the line says where to go on.
    let done = ph.call(&["import", "-"]).stdin(format!("{good}x\n")).run();
    done.fails(2, "line 2:");
    assert_eq!(ph.facts().lines().count(), 2);
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let ph = Ph::new();
    let large = "x".repeat(3 << 20);
    ph.call(&["send", "bob", "--file", "-"])
        .stdin(large)
        .run()
        .ok();
    let id = ph.run("inbox bob --json").json()[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for args in [
        &["export"][..],
        &["inbox", "bob", "--json"],
        &["inbox", "bob", "--prompt"],
        &["read", &id, "--body"],
        &["thread", &id],
    ] {
        let mut child = ph.call(args).spawn();
        drop(child.stdout.take());
        let done = Done::of(child);
        assert_eq!((done.code, done.err().as_str()), (0, ""), "{args:?}");
    }
}
