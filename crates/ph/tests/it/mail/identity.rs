//! Senders and recipients: the evidence for a sender, and who may change which mail.

use crate::common::Ph;

#[test]
fn a_message_carries_the_evidence_for_its_sender() {
    let ph = Ph::new();
    let check = |agent: &str, line: &str, from: &str, evidence: &str| {
        let sent = ph
            .call(&line.split(' ').collect::<Vec<_>>())
            .agent(agent)
            .run();
        assert_eq!(sent.code, 0, "{}", sent.err());
        let sent = sent.json();
        assert_eq!(
            (sent["from"].as_str(), sent["from_evidence"].as_str()),
            (Some(from), Some(evidence)),
            "PH_AGENT={agent} ph {line}"
        );
    };
    check("", "send bob hi --json", "human", "default");
    check("", "send bob hi --json --from human", "human", "default");
    check("", "send bob hi --json --from alice", "alice", "flag");
    check("alice", "send bob hi --json", "alice", "env");
    check("alice", "send bob hi --json --from alice", "alice", "env");
    check("alice", "message -n bob hi --json", "alice", "env");
}

#[test]
fn an_agent_can_only_be_itself() {
    let ph = Ph::new();
    let id = ph.send("bob hi");
    let before = ph.facts();
    insta::assert_snapshot!(ph.transcript(&[
        "alice$ send bob hi --from carol",
        "alice$ send bob hi --from human",
        "alice$ reply {1} hi --from bob",
    ]), @"
    alice$ ph send bob hi --from carol
    ! error: this is alice; it cannot send as carol
    ! hint: omit --from, or unset PH_AGENT if you are not that agent
    [exit 4]
    alice$ ph send bob hi --from human
    ! error: this is alice; it cannot send as human
    ! hint: omit --from, or unset PH_AGENT if you are not that agent
    [exit 4]
    alice$ ph reply [id1] hi --from bob
    ! error: this is alice; it cannot send as bob
    ! hint: omit --from, or unset PH_AGENT if you are not that agent
    [exit 4]
    ");
    ph.call(&["reply", &id, "hi"])
        .agent("No Name")
        .run()
        .fails(2, "PH_AGENT names the agent that runs ph");
    assert_eq!(ph.facts(), before);
}

#[test]
fn a_message_to_oneself_needs_allow_self() {
    let ph = Ph::new();
    ph.send("bob hi");
    let before = ph.facts();
    insta::assert_snapshot!(ph.transcript(&[
        "send human note",
        "bob$ send bob note",
        "send bob note --from bob",
        "bob$ send alice,bob note",
        "bob$ message -n bob note",
    ]), @"
    $ ph send human note
    ! error: human cannot send to itself
    ! hint: 'ph send --allow-self' sends a message to yourself
    [exit 4]
    bob$ ph send bob note
    ! error: bob cannot send to itself
    ! hint: 'ph send --allow-self' sends a message to yourself
    [exit 4]
    $ ph send bob note --from bob
    ! error: bob cannot send to itself
    ! hint: 'ph send --allow-self' sends a message to yourself
    [exit 4]
    bob$ ph send alice,bob note
    ! error: bob cannot send to itself
    ! hint: 'ph send --allow-self' sends a message to yourself
    [exit 4]
    bob$ ph message -n bob note
    ! error: bob cannot send to itself
    ! hint: 'ph send --allow-self' sends a message to yourself
    [exit 4]
    ");
    assert_eq!(ph.facts(), before, "one of several refused is none sent");
    assert_eq!(ph.run("send human note --allow-self").code, 0);
    assert_eq!(ph.run_as("bob", "send bob note --allow-self").code, 0);
}

#[test]
fn only_the_recipient_changes_a_message() {
    let ph = Ph::new();
    ph.send("bob hi");
    ph.send("carol hi --from bob");
    let before = ph.facts();
    insta::assert_snapshot!(ph.transcript(&[
        "alice$ archive {1}",
        "alice$ delete {1}",
        "alice$ mark-read {1}",
        "alice$ mark-unread {1}",
        "alice$ cancel {1}",
        "bob$ cancel {1}",
        "bob$ delete {2}",
        "alice$ archive {1} {2}",
    ]), @"
    alice$ ph archive [id1]
    ! error: message [id1]: alice cannot archive a message that belongs to bob
    [exit 4]
    alice$ ph delete [id1]
    ! error: message [id1]: alice cannot delete a message that belongs to bob
    [exit 4]
    alice$ ph mark-read [id1]
    ! error: message [id1]: alice cannot mark a message that belongs to bob
    [exit 4]
    alice$ ph mark-unread [id1]
    ! error: message [id1]: alice cannot mark a message that belongs to bob
    [exit 4]
    alice$ ph cancel [id1]
    ! error: message [id1]: alice cannot cancel a message that human sent
    [exit 4]
    bob$ ph cancel [id1]
    ! error: message [id1]: bob cannot cancel a message that human sent
    [exit 4]
    bob$ ph delete [id2]
    ! error: message [id2]: bob cannot delete a message that belongs to carol
    [exit 4]
    alice$ ph archive [id1] [id2]
    ! error: message [id1]: alice cannot archive a message that belongs to bob
    [exit 4]
    ");
    assert_eq!(ph.facts(), before);
}

#[test]
fn reading_another_agents_mail_does_not_mark_it() {
    let ph = Ph::new();
    ph.send("bob 'for bob alone'");
    let before = ph.facts();
    insta::assert_snapshot!(ph.transcript(&["alice$ read {1}", "alice$ check --inject bob"]), @"
    alice$ ph read [id1]
    message    [id1]
    from       human (default)
    to         bob
    sent       [time]

    for bob alone
    ! note: not marked as read: the message is for bob, not for alice
    alice$ ph check --inject bob
    ! note: no mail was shown: alice cannot view the mail of bob
    ");
    let read = ph.run_as("alice", "read {1} --json");
    assert_eq!(read.json()["read"], false);
    assert_eq!(ph.facts(), before);
    let read = ph.run_as("bob", "read {1} --json");
    assert_eq!(
        (read.json()["read"].clone(), read.err()),
        (true.into(), String::new())
    );
}

#[test]
fn a_message_that_the_person_reads_is_marked() {
    let ph = Ph::new();
    ph.send("bob hi");
    let read = ph.run("read {1} --json").json();
    assert_eq!(read["read"], true);
    assert_eq!(read["receipts"][1]["evidence"], "by human");
    assert_eq!(ph.run("count bob").ok(), "1 in total, 0 unread\n");
}

#[test]
fn a_sender_cancels_an_unseen_message() {
    let ph = Ph::new();
    ph.send("bob first --from alice");
    ph.send("bob second --from alice");
    insta::assert_snapshot!(ph.transcript(&[
        "alice$ cancel {1}",
        "alice$ cancel {1}",
        "bob$ read {2} --body",
        "alice$ cancel {2}",
        "bob$ inbox",
        "why {1}",
    ]), @"
    alice$ ph cancel [id1]
    [id1] cancelled
    alice$ ph cancel [id1]
    [id1] already cancelled
    bob$ ph read [id2] --body
    secondalice$ ph cancel [id2]
    ! error: message [id2]: it can no longer be cancelled: read
    ! hint: 'ph show [id2]' shows its receipts
    [exit 4]
    bob$ ph inbox
    no unread mail for bob
    $ ph why [id1]
    not held   it is cancelled
    since      [time]
    ");
}
