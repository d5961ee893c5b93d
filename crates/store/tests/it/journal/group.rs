//! Group commit: concurrent senders of one process, each with its own result.

use posthaste_core::{Draft, MessageId, Order};
use posthaste_lab::{
    TempHome, assert_intact, assert_views_agree, at, draft, id, name, records, stored, text_of,
};
use posthaste_store::operation::{ApplyOrder, OrderEffect, Post};
use posthaste_store::{Committed, Denied, Error, Journal, Patience, Prewrite, Writer, files};
use std::collections::BTreeMap;
use std::sync::{Barrier, mpsc};
use std::time::Duration;

fn posting(draft: Draft) -> Post {
    Post {
        now: at(0),
        drafts: vec![draft],
    }
}

fn start(home: &TempHome) -> (Writer, posthaste_store::group::WriterThread) {
    Writer::start(&home.home(), Patience::DEFAULT).unwrap()
}

/// Run `sender` in threads that all start at the same time.
fn together<T: Send>(threads: usize, sender: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let line = Barrier::new(threads);
    std::thread::scope(|scope| {
        let senders: Vec<_> = (0..threads)
            .map(|n| {
                let (line, sender) = (&line, &sender);
                scope.spawn(move || {
                    line.wait();
                    sender(n)
                })
            })
            .collect();
        senders.into_iter().map(|s| s.join().unwrap()).collect()
    })
}

/// Submit a message, and return a receiver for the result.
fn submit(writer: &Writer, post: Post) -> mpsc::Receiver<Committed<Post>> {
    let (sender, receiver) = mpsc::channel();
    let then = move |committed| drop(sender.send(committed));
    writer.submit(post, then).unwrap();
    receiver
}

fn numbered(n: u32, to: &str) -> Draft {
    Draft {
        id: id(n),
        ..draft("lab", to, text_of(id(n)))
    }
}

#[test]
fn every_message_of_many_threads_is_stored_once_and_filed() {
    let home = TempHome::new();
    let (writer, thread) = start(&home);
    let acknowledged = together(64, |sender| {
        let sent = (0..50).map(|n| {
            let state = numbered((sender * 50 + n) as u32, &format!("agent-{}", sender % 5));
            let id = state.id;
            match stored(&writer, posting(state)) {
                Ok(Ok(posted)) if posted[0].is_new => id,
                other => panic!("{other:?}"),
            }
        });
        sent.collect::<Vec<MessageId>>()
    });
    drop(writer);
    thread.join();

    let mut journal = home.journal();
    assert_intact(&mut journal);
    assert_eq!(journal.head().unwrap(), 64 * 50);
    assert_views_agree(&mut journal, &[at(0)]);
    let seqs: BTreeMap<String, (u64, String)> = records(&journal)
        .into_iter()
        .map(|record| (record.id, (record.seq, record.agent)))
        .collect();
    for sent in acknowledged {
        let mut last = 0;
        for id in sent {
            let (seq, agent) = &seqs[&id.to_string()];
            let file = home.home().messages(&name(agent));
            let file = file.join(format!("20260101-000000-{}.md", id.id8()));
            assert_eq!(std::fs::read_to_string(file).unwrap(), text_of(id));
            // One sender's messages keep their order.
            assert!(*seq > last);
            last = *seq;
        }
    }
}

#[test]
fn a_denied_operation_does_not_affect_the_rest_of_its_group() {
    let home = TempHome::new();
    let (writer, thread) = start(&home);
    let status = numbered(9_999, "bob");
    stored(&writer, posting(status.clone())).unwrap().unwrap();
    together(32, |sender| {
        for n in 0..10 {
            let n = (sender * 10 + n) as u32;
            let good = numbered(n, "bob");
            if n % 6 == 4 {
                let order = ApplyOrder {
                    now: at(0),
                    who: name("carol"),
                    order: Order::MarkRead,
                    ids: vec![status.id],
                };
                stored(&writer, order).unwrap().unwrap_err();
                continue;
            }
            let drafts = match n % 6 {
                0 => vec![draft("bob", "bob", "to itself")],
                1 => vec![Draft {
                    reply_to: Some(id(8_888)),
                    ..draft("lab", "bob", "to nothing")
                }],
                2 => vec![Draft {
                    id: status.id,
                    ..draft("lab", "bob", "under a taken id")
                }],
                3 => vec![good, draft("bob", "bob", "in bad company")],
                _ => vec![good],
            };
            let decided = stored(&writer, Post { now: at(0), drafts }).unwrap();
            assert_eq!(decided.is_ok(), n % 6 == 5, "{n}: {decided:?}");
            if n % 6 == 1 {
                assert!(matches!(decided, Err(Denied::NotFound(_))));
            }
        }
    });
    drop(writer);
    thread.join();
    let mut journal = home.journal();
    assert_intact(&mut journal);
    assert_eq!(journal.head().unwrap(), 1 + 320 / 6);
    assert_views_agree(&mut journal, &[at(0)]);
}

#[test]
fn a_message_sent_by_many_threads_is_stored_once() {
    let home = TempHome::new();
    let (writer, thread) = start(&home);
    let news = together(16, |_| match stored(&writer, posting(numbered(1, "bob"))) {
        Ok(Ok(posted)) => posted[0].is_new,
        other => panic!("{other:?}"),
    });
    assert_eq!(news.iter().filter(|is_new| **is_new).count(), 1);
    let outcomes = together(16, |_| {
        let order = ApplyOrder {
            now: at(1),
            who: name("bob"),
            order: Order::MarkRead,
            ids: vec![id(1)],
        };
        match stored(&writer, order) {
            Ok(Ok(ordered)) => ordered[0].outcome,
            other => panic!("{other:?}"),
        }
    });
    let changed = outcomes.iter().filter(|o| **o == OrderEffect::Changed);
    assert_eq!(changed.count(), 1);
    drop(writer);
    thread.join();
    assert_eq!(home.journal().head().unwrap(), 2);
}

#[test]
fn an_error_reaches_every_sender_and_the_next_commit_is_fine() {
    let home = TempHome::new();
    let patience = Patience(Duration::from_millis(50));
    let (writer, thread) = Writer::start(&home.home(), patience).unwrap();
    let holder = home.journal();
    let held = holder.hold().unwrap();
    let large = |n: usize| draft("lab", "bob", n.to_string().repeat(2 << 20));
    for error in together(4, |n| stored(&writer, posting(large(n))).unwrap_err()) {
        let Error::Shared(inner) = &error else {
            panic!("{error:?}");
        };
        assert!(matches!(**inner, Error::Busy { .. }), "{error}");
        assert!(error.hint().is_some());
    }
    drop(held);
    // A message that was not stored leaves no file.
    let dir = home.home().messages(&name("bob"));
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
    stored(&writer, posting(numbered(1, "bob")))
        .unwrap()
        .unwrap();
    drop(writer);
    thread.join();
    assert_eq!(home.journal().head().unwrap(), 1);
}

#[test]
fn the_thread_ends_when_the_last_writer_is_dropped() {
    let home = TempHome::new();
    let (writer, thread) = start(&home);
    let clone = writer.clone();
    drop(writer);
    let posted = match stored(&clone, posting(numbered(1, "bob"))) {
        Ok(Ok(mut posted)) => posted.remove(0),
        other => panic!("{other:?}"),
    };
    drop(clone);
    thread.join();
    // No file is left open: the home can be moved, and the message read there.
    let moved = home.beside().join("moved");
    std::fs::rename(home.path(), &moved).unwrap();
    let moved = posthaste_store::Home::open(moved, None).unwrap();
    let mut journal = Journal::open(moved, Patience::DEFAULT).unwrap();
    let message = journal.state(id(1)).unwrap().unwrap().message;
    assert_eq!(message, posted.state.message);
    assert_eq!(
        files::body(journal.home(), &message).unwrap(),
        text_of(id(1))
    );
}

#[test]
fn a_submitted_message_gets_its_file_when_it_is_settled() {
    let home = TempHome::new();
    let (writer, thread) = start(&home);
    let answers: Vec<_> = (1..=100)
        .map(|n| submit(&writer, posting(numbered(n, "bob"))))
        .collect();
    let refused = submit(&writer, posting(draft("bob", "bob", "to itself")));
    let large = Draft {
        id: id(101),
        ..draft("lab", "bob", "x".repeat(2 << 20))
    };
    let filed = submit(&writer, posting(large));
    let dir = home.home().messages(&name("bob"));
    for (n, answer) in (1..).zip(answers) {
        let done = answer.recv().unwrap();
        let file = dir.join(format!("20260101-000000-{}.md", id(n).id8()));
        assert!(!file.exists(), "the file was written too early");
        let posted = done.settle(&Prewrite::default()).unwrap().unwrap();
        assert!(posted[0].is_new);
        assert_eq!(std::fs::read_to_string(file).unwrap(), text_of(id(n)));
    }
    assert!(
        refused
            .recv()
            .unwrap()
            .settle(&Prewrite::default())
            .unwrap()
            .is_err()
    );
    filed
        .recv()
        .unwrap()
        .settle(&Prewrite::default())
        .unwrap()
        .unwrap();
    drop(writer);
    thread.join();
    let mut journal = home.journal();
    assert_eq!(journal.head().unwrap(), 101);
    let large = journal.state(id(101)).unwrap().unwrap().message;
    assert_eq!(files::body(journal.home(), &large).unwrap().len(), 2 << 20);
}

#[test]
fn a_query_sees_what_was_submitted_before_it() {
    let home = TempHome::new();
    let (writer, thread) = start(&home);
    let (sender, answers) = mpsc::channel();
    for n in 1..=50 {
        drop(submit(&writer, posting(numbered(n, "bob"))));
        let sender = sender.clone();
        let query = move |journal: &mut Journal| {
            let pending = journal.pending(&name("bob"), at(0)).unwrap();
            sender.send((n, pending.queued)).unwrap();
        };
        writer.ask(query).unwrap();
    }
    drop((writer, sender));
    thread.join();
    let seen: Vec<(u32, u64)> = answers.iter().collect();
    assert_eq!(seen.len(), 50);
    assert!(seen.iter().all(|(n, queued)| *queued >= u64::from(*n)));
}

#[test]
fn a_full_queue_is_reported_without_waiting() {
    let home = TempHome::new();
    let (writer, thread) = start(&home);
    let (open, gate) = mpsc::channel::<()>();
    // The writer is kept busy until the gate opens.
    let wait = move |_: &mut Journal| {
        let _ = gate.recv();
    };
    writer.ask(wait).unwrap();
    let full = (0..2_000).find_map(|_| writer.ask(|_| {}).err());
    assert!(matches!(full, Some(Error::Overloaded)), "{full:?}");
    let refused = writer.submit(posting(numbered(1, "bob")), |_| panic!("it was refused"));
    assert!(matches!(refused, Err(Error::Overloaded)));
    open.send(()).unwrap();
    // The queue has room when the requests in it are done.
    let there = loop {
        match stored(&writer, posting(numbered(2, "bob"))) {
            Err(Error::Overloaded) => std::thread::yield_now(),
            other => break other.unwrap(),
        }
    };
    assert!(there.is_ok(), "{there:?}");
    drop(writer);
    thread.join();
    assert_eq!(home.journal().head().unwrap(), 1);
}

#[test]
fn a_failed_commit_is_reported_to_its_sender() {
    let home = TempHome::new();
    let patience = Patience(Duration::from_millis(50));
    let (writer, thread) = Writer::start(&home.home(), patience).unwrap();
    let holder = home.journal();
    let held = holder.hold().unwrap();
    let large = draft("lab", "bob", "x".repeat(2 << 20));
    let answer = submit(&writer, posting(large))
        .recv()
        .unwrap()
        .settle(&Prewrite::default());
    assert!(matches!(answer, Err(Error::Shared(_))), "{answer:?}");
    let dir = home.home().messages(&name("bob"));
    assert_eq!(std::fs::read_dir(dir).unwrap().count(), 0);
    drop(held);
    drop(writer);
    thread.join();
}
