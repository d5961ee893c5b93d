//! Posts and orders: a message is stored once, and an operation applies completely or not at all.

use posthaste_core::{Body, Draft, Limits, MessageId, Order, Refusal, Timestamp};
use posthaste_lab::{TempHome, at, denied, draft, id, name, order, post, records};
use posthaste_store::operation::{ApplyOrder, OrderEffect, Post, Posted};
use posthaste_store::{Denied, Journal};

fn post_all(journal: &mut Journal, drafts: Vec<Draft>) -> Vec<Posted> {
    match journal.commit(Post { now: at(0), drafts }) {
        Ok(Ok(posted)) => posted,
        other => panic!("{other:?}"),
    }
}

fn with_key(draft: Draft, key: &str) -> Draft {
    Draft {
        key: Some(key.to_owned()),
        ..draft
    }
}

#[test]
fn a_repeated_key_between_two_agents_stores_one_message() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let first = with_key(draft("alice", "bob", "first"), "k");
    post(&mut journal, at(0), &first);
    let mut check = |state: Draft, is_new: bool| {
        let posted = post(&mut journal, at(1), &state);
        assert_eq!(posted.is_new, is_new, "{state:?}");
        let stands = if is_new { state.id } else { first.id };
        assert_eq!(posted.state.message.id, stands);
    };
    check(with_key(draft("alice", "bob", "second"), "k"), false);
    check(with_key(draft("alice", "bob", "other key"), "K"), true);
    check(
        with_key(draft("alice", "carol", "other recipient"), "k"),
        true,
    );
    check(with_key(draft("carol", "bob", "other sender"), "k"), true);
    check(draft("alice", "bob", "no key"), true);
}

/// Send a message from alice to bob, and return whether the rate limit has cut it off.
fn is_over_rate_limit(journal: &mut Journal, now: Timestamp) -> bool {
    let limited = Draft {
        limits: Limits { hops: 16, rate: 60 },
        ..draft("alice", "bob", "hello")
    };
    post(journal, now, &limited).state.has_failed()
}

#[test]
fn messages_dated_in_the_future_do_not_count_towards_the_rate_limit() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let mut is_cut = |now| is_over_rate_limit(&mut journal, now);
    // The clock was two days ahead, and is set back.
    let ahead = 2 * 24 * 3_600;
    assert!(!(0..60).any(|_| is_cut(at(ahead))));
    assert!(is_cut(at(ahead)));
    assert!(!(0..60).any(|_| is_cut(at(0))));
    assert!(is_cut(at(0)));
}

/// Concurrent senders read the time before they wait for the lock, so the last to write may have
/// the earliest time.
#[test]
fn a_storm_of_concurrent_senders_is_not_hidden_by_their_order() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let mut is_cut = |now| is_over_rate_limit(&mut journal, now);
    assert!(!(0..60).any(|_| is_cut(at(10))));
    assert!(is_cut(at(0)));
    assert!(!is_cut(at(-1)));
}

#[test]
fn a_repeated_id_stores_one_message() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let state = draft("alice", "bob", "hello");
    post(&mut journal, at(0), &state);
    let keyed = with_key(draft("alice", "bob", "keyed"), "k");
    post(&mut journal, at(0), &keyed);
    // Post both drafts again, at a later time.
    assert!(!post(&mut journal, at(1), &state).is_new);
    assert!(!post(&mut journal, at(1), &keyed).is_new);
    let mut check = |other: Draft| {
        let drafts = vec![other];
        let refused = denied(&mut journal, Post { now: at(1), drafts });
        let refusal = Refusal::IdTaken;
        assert_eq!(refused, Denied::Refused { id: None, refusal });
    };
    check(Draft {
        body: Body::Inline("other".to_owned()),
        ..state.clone()
    });
    check(Draft {
        to: name("carol"),
        ..state.clone()
    });
    // A key that was used before does not change that.
    check(Draft {
        body: Body::Inline("other".to_owned()),
        key: Some("k".to_owned()),
        ..state.clone()
    });
    check(Draft {
        subject: Some("new".to_owned()),
        ..state.clone()
    });
    assert_eq!(journal.head().unwrap(), 2);
}

#[test]
fn a_message_cannot_have_the_id_of_another_fact() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let state = draft("alice", "bob", "hello");
    post(&mut journal, at(0), &state);
    order(&mut journal, at(0), "bob", Order::MarkRead, &[state.id]);
    let step: MessageId = records(&journal)[1].id.parse().unwrap();
    let drafts = vec![Draft {
        id: step,
        ..draft("alice", "bob", "hello")
    }];
    let refused = denied(&mut journal, Post { now: at(1), drafts });
    let refusal = Refusal::IdTaken;
    assert_eq!(refused, Denied::Refused { id: None, refusal });
}

#[test]
fn a_draft_can_reply_to_another_of_the_same_operation() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let first = draft("alice", "bob", "question");
    let reply = Draft {
        reply_to: Some(first.id),
        ..draft("bob", "alice", "answer")
    };
    let keyed = with_key(draft("alice", "bob", "once"), "k");
    let same_key = with_key(draft("alice", "bob", "twice"), "k");
    let drafts = vec![first.clone(), reply, keyed.clone(), same_key, first.clone()];
    let posted = post_all(&mut journal, drafts);
    let is_new: Vec<bool> = posted.iter().map(|posted| posted.is_new).collect();
    assert_eq!(is_new, [true, true, true, false, false]);
    let ids: Vec<_> = posted.iter().map(|p| p.state.message.id).collect();
    assert_eq!((ids[3], ids[4]), (keyed.id, first.id));
    assert_eq!(journal.thread(first.id).unwrap().len(), 2);
    assert_eq!(journal.head().unwrap(), 3);
}

#[test]
fn a_post_stores_all_messages_or_none() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let status = draft("alice", "bob", "status");
    post(&mut journal, at(0), &status);
    let before = records(&journal);
    let mut check = |bad: Draft, want: &str| {
        for place in 0..3 {
            let mut drafts = vec![draft("alice", "bob", "one"), draft("alice", "carol", "two")];
            drafts.insert(place, bad.clone());
            let refused = denied(&mut journal, Post { now: at(1), drafts });
            assert!(refused.to_string().contains(want), "{refused}");
        }
    };
    check(draft("bob", "bob", "me"), "cannot send to itself");
    check(
        Draft {
            reply_to: Some(id(7)),
            ..draft("bob", "alice", "re")
        },
        "no message 00000007",
    );
    check(
        Draft {
            body: Body::Inline("other".to_owned()),
            ..status.clone()
        },
        "a different message already has this id",
    );
    assert_eq!(records(&journal), before);
    assert_eq!(journal.count(&name("bob"), at(1)).unwrap().total, 1);
    assert_eq!(journal.count(&name("carol"), at(1)).unwrap().total, 0);
}

#[test]
fn an_order_changes_all_messages_or_none() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let messages: Vec<Draft> = ["bob", "bob", "carol"]
        .map(|to| draft("alice", to, "hi"))
        .to_vec();
    let ids: Vec<MessageId> = messages.iter().map(|state| state.id).collect();
    post_all(&mut journal, messages);
    let before = records(&journal);
    let mut check = |who: &str, order: Order, ids: &[MessageId], want: &str| {
        let job = ApplyOrder {
            now: at(1),
            who: name(who),
            order,
            ids: ids.to_vec(),
        };
        let refused = denied(&mut journal, job);
        assert!(refused.to_string().contains(want), "{refused}");
    };
    check("bob", Order::MarkRead, &ids, "belongs to carol");
    check(
        "bob",
        Order::Archive,
        &[ids[0], id(7)],
        "no message 00000007",
    );
    check("bob", Order::Cancel, &ids[..2], "alice");
    assert_eq!(records(&journal), before);
    for agent in ["bob", "carol"] {
        let count = journal.count(&name(agent), at(1)).unwrap();
        assert_eq!(count.total, count.unread, "{agent}");
    }
}

#[test]
fn an_order_that_names_a_message_twice_applies_once() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let state = draft("alice", "bob", "hi");
    post(&mut journal, at(0), &state);
    let mut check = |requested: Order, want: [OrderEffect; 2]| {
        let twice = [state.id, state.id];
        assert_eq!(order(&mut journal, at(1), "bob", requested, &twice), want);
    };
    check(
        Order::MarkRead,
        [OrderEffect::Changed, OrderEffect::Unchanged],
    );
    check(
        Order::MarkRead,
        [OrderEffect::Unchanged, OrderEffect::Unchanged],
    );
    check(
        Order::Archive,
        [OrderEffect::Changed, OrderEffect::AlreadyArchived],
    );
    check(
        Order::Delete,
        [OrderEffect::Changed, OrderEffect::Unchanged],
    );
    assert_eq!(journal.head().unwrap(), 4);
}
