//! Sending: what is printed, and where a text comes from.

use crate::common::{self, Ph};

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
    ! error: the message text is missing
    ! hint: for example: ph message --name my-feature 'text'
    [exit 2]
    $ ph message --name My Feature hello
    ! error: an agent's name starts with a-z or 0-9, not with 'M'
    ! hint: 'my-feature' is a valid name
    [exit 2]
    $ ph message -n my-feature third --json
    {"id":"[id3]","from":"human","from_evidence":"default","to":"my-feature","subject":null,"body":"third","created_at":"[time]","read":false,"thread_id":"[id3]","reply_to":null,"priority":"normal","receipt":"stored","reason":"no session of my-feature has offered it; it waits in the inbox","receipts":[{"state":"stored","at":"[time]","route":null,"evidence":null}]}
    $ ph inbox my-feature
    [id1]  human → my-feature  [time]  stored  Please prioritize the login feature
    [id2]  human → my-feature  [time]  stored  second
    [id3]  human → my-feature  [time]  stored  third
    "#);
}
