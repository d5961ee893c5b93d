//! Operations of a session: offers and their outcome, expiry, and its own start and end.

use jiff::{SignedDuration, Timestamp};
use posthaste_core::offer::{OfferReport, StepRefusal};
use posthaste_core::{
    Conversation, Draft, Ended, Ending, MessageId, Order, Priority, ReceiptState,
};
use posthaste_lab::{TempHome, assert_views_agree, at, draft, id, name, order, post, started};
use posthaste_store::bell::BellListener;
use posthaste_store::operation::{
    ApplyOrder, EndRun, Expire, Inject, MarkUncertain, OpenOffers, RecordConversation,
    RecordDelivery, StartRun,
};
use posthaste_store::{Journal, Operation};
use std::time::{Duration, Instant};
use uuid::Uuid;

fn numbered(n: u32, priority: Priority) -> Draft {
    Draft {
        id: id(n),
        priority,
        ..draft("alice", "bob", n.to_string())
    }
}

fn commit<O: Operation>(journal: &mut Journal, operation: O) -> O::Output {
    journal.commit(operation).unwrap().unwrap()
}

fn offer(now: Timestamp, ids: &[MessageId]) -> RecordDelivery {
    let (route, repeats) = ("terminal".to_owned(), ids.to_vec());
    record(now, ids, OfferReport::Offering { route, repeats })
}

fn record(now: Timestamp, ids: &[MessageId], report: OfferReport) -> RecordDelivery {
    RecordDelivery {
        now,
        agent: name("bob"),
        ids: ids.to_vec(),
        report,
    }
}

fn offered(now: Timestamp, ids: &[MessageId]) -> RecordDelivery {
    let (route, evidence) = ("terminal".to_owned(), "written whole".to_owned());
    record(
        now,
        ids,
        OfferReport::Offered {
            route,
            evidence,
            proof_awaited: false,
        },
    )
}

fn cut_off(now: Timestamp, offers: OpenOffers) -> MarkUncertain {
    MarkUncertain {
        now,
        agent: name("bob"),
        offers,
        reason: "the session crashed".to_owned(),
    }
}

fn withdraw(now: Timestamp, ids: &[MessageId]) -> RecordDelivery {
    let reason = "nothing was written: draft".to_owned();
    record(now, ids, OfferReport::Withdrawn { reason })
}

fn due(journal: &mut Journal, now: Timestamp) -> Vec<MessageId> {
    let pending = journal.pending(&name("bob"), now).unwrap();
    assert_eq!(pending.queued, pending.due.len() as u64);
    pending.due.iter().map(|l| l.message.id).collect()
}

#[test]
fn pending_messages_are_in_delivery_order_until_they_are_offered() {
    use Priority::{Idle, IdleFirst, Interrupt, Normal};
    let home = TempHome::new();
    let mut journal = home.journal();
    let lanes = [Idle, IdleFirst, Normal, IdleFirst, Interrupt, Idle, Normal];
    for (n, lane) in (1..).zip(lanes) {
        post(&mut journal, at(0), &numbered(n, lane));
    }
    let want: Vec<_> = [5, 3, 7, 4, 2, 1, 6].map(id).to_vec();
    assert_eq!(due(&mut journal, at(0)), want);

    let done = commit(&mut journal, offer(at(1), &want[..3]));
    assert_eq!((done.moved, done.kept), (want[..3].to_vec(), vec![]));
    assert_eq!(due(&mut journal, at(1)), want[3..]);
    // An open offer is not injected.
    let inject = Inject {
        now: at(1),
        agent: name("bob"),
    };
    let injection = commit(&mut journal, inject);
    let shown: Vec<_> = injection.messages.iter().map(|l| l.message.id).collect();
    assert_eq!((shown, injection.unread), (want[3..6].to_vec(), 7));
    let again = commit(&mut journal, offer(at(2), &want));
    assert_eq!(again.moved, want[6..]);
    let why: Vec<_> = again.kept.into_iter().map(|(_, why)| why).collect();
    assert_eq!(why, vec![StepRefusal::Already(ReceiptState::Offering); 6]);
}

#[test]
fn an_offer_is_offered_or_repeated() {
    let home = TempHome::new();
    let mut journal = home.journal();
    for n in 1..=4 {
        post(&mut journal, at(0), &numbered(n, Priority::Normal));
    }
    commit(&mut journal, offer(at(1), &[id(1), id(2), id(3)]));
    let done = commit(&mut journal, offered(at(2), &[id(1), id(4), id(9)]));
    assert_eq!(done.moved, [id(1)]);
    let not_offering = StepRefusal::NotOffering(ReceiptState::Stored);
    let kept = [(id(4), not_offering), (id(9), StepRefusal::NotFound)];
    assert_eq!(done.kept, kept);
    // The sender cannot cancel a message that may be on the screen.
    let cancel = ApplyOrder {
        now: at(2),
        who: name("alice"),
        order: Order::Cancel,
        ids: vec![id(2)],
    };
    assert!(journal.commit(cancel).unwrap().is_err());

    let one = commit(&mut journal, cut_off(at(3), OpenOffers::These(vec![id(2)])));
    assert_eq!(one.moved, [id(2)]);
    let rest = commit(&mut journal, cut_off(at(3), OpenOffers::All));
    assert_eq!(rest.moved, [id(3)]);
    assert_eq!(
        commit(&mut journal, cut_off(at(3), OpenOffers::All)).moved,
        []
    );
    let pending = journal.pending(&name("bob"), at(3)).unwrap().due;
    let repeats: Vec<_> = pending
        .iter()
        .map(|l| (l.message.id, l.is_repeat()))
        .collect();
    assert_eq!(repeats, [(id(2), true), (id(3), true), (id(4), false)]);

    commit(&mut journal, offer(at(4), &[id(2)]));
    commit(&mut journal, offered(at(5), &[id(2)]));
    let (route, evidence) = ("terminal".to_owned(), "its hook".to_owned());
    let accepted = record(
        at(6),
        &[id(2), id(4)],
        OfferReport::Accepted { route, evidence },
    );
    let done = commit(&mut journal, accepted);
    assert_eq!(
        (done.moved, done.kept),
        (vec![id(2)], vec![(id(4), StepRefusal::NotSeen)])
    );
    let message_state = journal.state(id(2)).unwrap().unwrap();
    let journey: Vec<_> = message_state
        .receipts
        .iter()
        .map(|r| r.state.as_str())
        .collect();
    let want = "stored offering uncertain offering offered accepted";
    assert_eq!(journey.join(" "), want);
}

#[test]
fn a_withdrawn_offer_changes_nothing() {
    let home = TempHome::new();
    let mut journal = home.journal();
    for n in 1..=3 {
        let mortal = Draft {
            ttl: Some(SignedDuration::from_secs(60)),
            ..numbered(n, Priority::Normal)
        };
        post(&mut journal, at(0), &mortal);
    }
    let all = [id(1), id(2), id(3)];
    let repeats = |journal: &mut Journal, now| -> Vec<_> {
        let pending = journal.pending(&name("bob"), at(now)).unwrap();
        let due = pending.due.iter();
        due.map(|l| (l.message.id, l.is_repeat())).collect()
    };
    commit(&mut journal, offer(at(1), &all[..2]));
    commit(&mut journal, cut_off(at(1), OpenOffers::These(vec![id(2)])));
    commit(&mut journal, offer(at(2), &all[1..]));
    // A message does not expire while its offer is open.
    let next = journal.pending(&name("bob"), at(2)).unwrap().next;
    assert_eq!(next, None);
    assert_eq!(journal.count(&name("bob"), at(60)).unwrap().unread, 3);
    assert_eq!(commit(&mut journal, withdraw(at(3), &all)).moved, all);
    assert_eq!(
        repeats(&mut journal, 3),
        [(id(1), false), (id(2), true), (id(3), false)]
    );
    let kept = commit(&mut journal, withdraw(at(3), &all)).kept;
    assert_eq!(kept.len(), 3);
    // Unseen messages expire, and can be cancelled.
    let next = journal.pending(&name("bob"), at(3)).unwrap().next;
    assert_eq!(next, Some(at(60)));
    order(&mut journal, at(4), "alice", Order::Cancel, &[id(1)]);
    assert_eq!(repeats(&mut journal, 60), [(id(2), true)]);
    assert_views_agree(&mut journal, &[at(4), at(60)]);
    let message_state = journal.state(id(3)).unwrap().unwrap();
    let journey: Vec<_> = message_state
        .receipts
        .iter()
        .map(|r| r.state.as_str())
        .collect();
    assert_eq!(journey.join(" "), "stored offering withdrawn");
}

#[test]
fn pending_returns_the_next_time_at_which_it_changes() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let ttl = |n, seconds| Draft {
        ttl: Some(SignedDuration::from_secs(seconds)),
        ..numbered(n, Priority::Normal)
    };
    let later = Draft {
        not_before: Some(at(50)),
        ..numbered(3, Priority::Normal)
    };
    for one in [ttl(1, 20), ttl(2, 90), later] {
        post(&mut journal, at(0), &one);
    }
    let mut check = |now: i64, want: &[u32], next: Option<i64>| {
        let pending = journal.pending(&name("bob"), at(now)).unwrap();
        let ids: Vec<_> = pending.due.iter().map(|l| l.message.id).collect();
        let want: Vec<_> = want.iter().map(|n| id(*n)).collect();
        assert_eq!((ids, pending.next), (want, next.map(at)), "at {now}");
    };
    check(0, &[1, 2], Some(20));
    check(20, &[2], Some(50));
    check(50, &[2, 3], Some(90));
    check(90, &[3], None);
    let expire = |now| Expire {
        now: at(now),
        agent: name("bob"),
    };
    for (now, want) in [(19, vec![]), (20, vec![id(1)]), (90, vec![id(2)])] {
        let expired = commit(&mut journal, expire(now));
        assert_eq!((expired.ids, expired.more), (want, false));
    }
    let state = journal.state(id(1)).unwrap().unwrap().status.receipt();
    assert_eq!(state, ReceiptState::Expired);
    let kept = commit(&mut journal, offer(at(95), &[id(1)])).kept;
    assert_eq!(kept, [(id(1), StepRefusal::Ended(ReceiptState::Expired))]);
}

#[test]
fn long_pending_messages_are_returned_a_few_at_a_time() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let long = "x".repeat(200 << 10);
    for _ in 0..5 {
        post(&mut journal, at(0), &draft("alice", "bob", long.clone()));
    }
    let pending = journal.pending(&name("bob"), at(0)).unwrap();
    assert_eq!((pending.due.len(), pending.queued), (2, 5));
}

#[test]
fn read_and_cancelled_messages_are_not_offered() {
    let home = TempHome::new();
    let mut journal = home.journal();
    for n in 1..=3 {
        post(&mut journal, at(0), &numbered(n, Priority::Normal));
    }
    order(&mut journal, at(1), "bob", Order::MarkRead, &[id(1)]);
    order(&mut journal, at(1), "alice", Order::Cancel, &[id(2)]);
    let head = journal.head().unwrap();
    let done = commit(&mut journal, offer(at(2), &[id(1), id(2)]));
    assert_eq!(done.moved, []);
    let ended = StepRefusal::Ended(ReceiptState::Cancelled);
    assert_eq!(done.kept, [(id(1), StepRefusal::Read), (id(2), ended)]);
    assert_eq!(journal.head().unwrap(), head);
}

#[test]
fn a_session_has_a_start_an_end_and_a_bell() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let bob = name("bob");
    let start = |run| StartRun {
        now: at(0),
        agent: name("bob"),
        started: started(Uuid::from_u128(run)),
    };
    let end = |run, how| EndRun {
        now: at(1),
        agent: name("bob"),
        ended: Ended {
            run: Uuid::from_u128(run),
            how,
        },
    };
    assert_eq!(journal.session(&bob).unwrap(), None);
    let listener = BellListener::on(&home.home(), Some(&bob)).unwrap();
    assert_eq!(commit(&mut journal, start(1)), None);
    let before = Instant::now();
    listener.wait(Duration::from_secs(30));
    assert!(before.elapsed() < Duration::from_secs(30), "no bell");
    let run = journal.session(&bob).unwrap().unwrap();
    assert_eq!((run.started, run.end), (started(Uuid::from_u128(1)), None));

    // The next start reports that the run before it has no end.
    let gone = commit(&mut journal, start(2)).unwrap();
    assert_eq!(gone.started, started(Uuid::from_u128(1)));
    let kinds = |journal: &Journal| -> Vec<String> {
        let facts = journal.facts_after(0).unwrap();
        facts.into_iter().map(|record| record.kind).collect()
    };
    let all = ["session_started", "session_ended", "session_started"];
    assert_eq!(kinds(&journal), all);

    assert!(!commit(&mut journal, end(1, Ending::Exit(0))));
    assert!(commit(&mut journal, end(2, Ending::Signal(15))));
    assert!(!commit(&mut journal, end(2, Ending::Crashed)));
    let run = journal.session(&bob).unwrap().unwrap();
    assert_eq!(run.end, Some((at(1), Ending::Signal(15))));
    assert_eq!(commit(&mut journal, start(3)), None);
    let all: Vec<_> = journal.sessions().unwrap();
    assert_eq!(
        all.iter()
            .map(|run| run.started.run.as_u128())
            .collect::<Vec<_>>(),
        [3]
    );
}

fn remind(now: Timestamp, ids: &[MessageId]) -> RecordDelivery {
    let route = "terminal".to_owned();
    record(now, ids, OfferReport::Reminded { route })
}

#[test]
fn a_reply_ends_the_reminders() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let asked = |n| Draft {
        expects_reply: true,
        ..numbered(n, Priority::Normal)
    };
    let ids = [id(1), id(2), id(3)];
    for n in 1..=3 {
        post(&mut journal, at(0), &asked(n));
    }
    // An agent is not reminded of a message that it was not shown.
    assert!(journal.owed(&name("bob"), at(1)).unwrap().is_empty());
    commit(&mut journal, offer(at(1), &ids));
    commit(&mut journal, offered(at(1), &ids));
    let owed = |journal: &mut Journal| {
        let owed = journal.owed(&name("bob"), at(2)).unwrap();
        owed.iter().map(|l| l.message.id).collect::<Vec<_>>()
    };
    assert_eq!(owed(&mut journal), ids);
    // Between the query and the transaction one message is answered, and one is archived.
    let reply = Draft {
        reply_to: Some(id(1)),
        ..draft("bob", "alice", "yes")
    };
    post(&mut journal, at(2), &reply);
    order(&mut journal, at(2), "bob", Order::Archive, &[id(2)]);
    let done = commit(&mut journal, remind(at(2), &ids));
    assert_eq!(done.moved, [id(3)]);
    let kept = [id(1), id(2)].map(|id| (id, StepRefusal::NotOwed));
    assert_eq!(done.kept, kept);
    for n in 2..=10 {
        assert_eq!(commit(&mut journal, remind(at(n), &[id(3)])).moved, [id(3)]);
    }
    assert!(
        commit(&mut journal, remind(at(11), &[id(3)]))
            .moved
            .is_empty(),
        "ten are enough"
    );
    assert!(owed(&mut journal).is_empty());
    let awaited = journal.awaited(&name("alice"), at(12)).unwrap();
    assert_eq!(awaited[0].status.reminded, 10);
    assert_views_agree(&mut journal, &[at(12)]);
}

#[test]
fn a_message_past_its_deadline_goes_before_waiting_ones() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let late = Draft {
        deadline: Some(SignedDuration::from_secs(60)),
        ..numbered(1, Priority::Idle)
    };
    post(&mut journal, at(0), &late);
    // More than one list of pending messages has.
    for n in 2..=100 {
        post(&mut journal, at(1), &numbered(n, Priority::IdleFirst));
    }
    let pending = |journal: &mut Journal, now| journal.pending(&name("bob"), now).unwrap();
    let early = pending(&mut journal, at(59));
    assert!(early.due.iter().all(|l| l.message.id != id(1)));
    assert_eq!(early.next, Some(at(60)));
    let after = pending(&mut journal, at(60));
    assert_eq!((after.due[0].message.id, after.next), (id(1), None));
    post(&mut journal, at(61), &numbered(200, Priority::Normal));
    let with_normal = pending(&mut journal, at(62));
    let first: Vec<_> = with_normal.due[..2].iter().map(|l| l.message.id).collect();
    assert_eq!(first, [id(1), id(200)], "by age among the normal ones");
    assert_views_agree(&mut journal, &[at(59), at(60), at(62)]);
}

#[test]
fn an_unproven_offer_becomes_uncertain_and_others_stay_offered() {
    let home = TempHome::new();
    let mut journal = home.journal();
    for n in 1..=4 {
        post(&mut journal, at(0), &numbered(n, Priority::Normal));
    }
    let all = [1, 2, 3, 4].map(id);
    commit(&mut journal, offer(at(1), &all));
    let offered_awaiting = |proof_awaited| OfferReport::Offered {
        route: "terminal".to_owned(),
        evidence: "written".to_owned(),
        proof_awaited,
    };
    commit(
        &mut journal,
        record(at(2), &all[..3], offered_awaiting(true)),
    );
    commit(
        &mut journal,
        record(at(2), &all[3..], offered_awaiting(false)),
    );
    // The agent's hooks name no transcript, so the proof is not awaited any more.
    commit(
        &mut journal,
        record(at(3), &all[2..3], offered_awaiting(false)),
    );
    let (route, evidence) = ("terminal".to_owned(), "transcript".to_owned());
    commit(
        &mut journal,
        record(at(3), &all[..1], OfferReport::Accepted { route, evidence }),
    );
    let unproven = journal.unproven(&name("bob")).unwrap();
    let unproven: Vec<_> = unproven
        .iter()
        .map(|message_state| message_state.message.id)
        .collect();
    assert_eq!(unproven, [id(2)]);
    let mark = || cut_off(at(4), OpenOffers::Unproven);
    assert_eq!(commit(&mut journal, mark()).moved, [id(2)]);
    assert_eq!(commit(&mut journal, mark()).moved, []);
    assert_eq!(due(&mut journal, at(5)), [id(2)]);
    let receipts = all.map(|id| journal.state(id).unwrap().unwrap().status.receipt());
    use ReceiptState::{Accepted, Offered, Uncertain};
    assert_eq!(receipts, [Accepted, Uncertain, Offered, Offered]);
}

#[test]
fn the_latest_conversation_of_an_agent_is_returned() {
    let home = TempHome::new();
    let mut journal = home.journal();
    assert_eq!(journal.conversation(&name("bob")).unwrap(), None);
    let conversation = |id: &str| Conversation {
        run: Uuid::nil(),
        id: id.to_owned(),
        harness: "claude".to_owned(),
        cwd: "/work".to_owned(),
        transcript: Some("/t.jsonl".to_owned()),
        not_resumed: false,
    };
    for id in ["one", "two", "two"] {
        let record = RecordConversation {
            now: at(0),
            agent: name("bob"),
            conversation: conversation(id),
        };
        commit(&mut journal, record);
    }
    assert_eq!(journal.head().unwrap(), 2, "the second 'two' adds nothing");
    let latest = journal.conversation(&name("bob")).unwrap();
    assert_eq!(latest, Some(conversation("two")));
    assert_eq!(journal.conversation(&name("alice")).unwrap(), None);
}
