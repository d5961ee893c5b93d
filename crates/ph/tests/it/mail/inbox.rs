//! An inbox: listed, read, counted, and why something waits in it.

use crate::common::Ph;

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
    2 in total, 1 unread
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
    ! hint: 'ph show [id1]' shows its receipts
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
    0 in total, 0 unread
    ! note: nothing has been stored in [home] yet
    $ ph send bob hi
    [id1]
    $ ph send bob hi again
    ! error: unexpected argument 'again'
    ! hint: put text of several words in quotes
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
    2 in total, 2 unread
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
    held       it is in the person's inbox and has not been read
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
