//! Short constructors for names, times and drafts, and journal calls that must succeed.

use jiff::{SignedDuration, Timestamp};
use posthaste_core::{AgentName, Draft, MessageId, Order, Started};
use posthaste_store::operation::{ApplyOrder, OrderEffect, Post, Posted};
use posthaste_store::{Decided, Denied, Error, Journal, Operation, Writer};
use std::sync::mpsc;
use uuid::Uuid;

pub fn name(text: &str) -> AgentName {
    AgentName::parse(text).expect("a test gives valid names")
}

/// Return the time `seconds` into 2026.
pub fn at(seconds: i64) -> Timestamp {
    let new_year = Timestamp::constant(1_767_225_600, 0);
    new_year + SignedDuration::from_secs(seconds)
}

/// Return the `n`th id chosen by a test. All have different first eight digits.
pub fn id(n: u32) -> MessageId {
    MessageId(Uuid::from_u128(
        (u128::from(n) << 96) | 0x4000_8000_0000_0000_0000,
    ))
}

/// Return a draft with a unique id.
pub fn draft(from: &str, to: &str, body: impl Into<String>) -> Draft {
    Draft::new(MessageId(Uuid::new_v4()), name(from), name(to), body)
}

/// Return a run of a program that does not exist.
pub fn started(run: Uuid) -> Started {
    Started {
        run,
        pid: 1,
        pid_started: 2,
        child_pid: 3,
        child_started: 4,
        command: vec!["cat".to_owned()],
        cwd: "/".to_owned(),
        harness: "generic".to_owned(),
        boot: "boot".to_owned(),
    }
}

/// Store one message, which may be stored already.
pub fn post(journal: &mut Journal, now: Timestamp, draft: &Draft) -> Posted {
    let drafts = vec![draft.clone()];
    match journal.commit(Post { now, drafts }) {
        Ok(Ok(mut posted)) if posted.len() == 1 => posted.remove(0),
        other => panic!("one message should have been posted: {other:?}"),
    }
}

/// Submit an operation, and wait until it is committed, synced and filed.
pub fn stored<O: Operation>(writer: &Writer, operation: O) -> Result<Decided<O::Output>, Error> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let then = move |committed| drop(sender.send(committed));
    let mut prewrite = writer.submit(operation, then)?;
    prewrite.begin();
    receiver.recv().map_or(Err(Error::WriterGone), |committed| {
        committed.settle(&prewrite)
    })
}

/// Apply an order that must not be denied.
pub fn order(
    journal: &mut Journal,
    now: Timestamp,
    who: &str,
    order: Order,
    ids: &[MessageId],
) -> Vec<OrderEffect> {
    let operation = ApplyOrder {
        now,
        who: name(who),
        order,
        ids: ids.to_vec(),
    };
    match journal.commit(operation) {
        Ok(Ok(ordered)) => ordered.iter().map(|o| o.outcome).collect(),
        other => panic!("{order:?} should have been applied: {other:?}"),
    }
}

/// Return why an operation that must be denied is denied.
pub fn denied<O: Operation>(journal: &mut Journal, operation: O) -> Denied {
    match journal.commit(operation) {
        Ok(Err(denied)) => denied,
        other => panic!("it should have been denied: {other:?}"),
    }
}

/// Return the text that `lab-append` writes into the message with this id: one line to some 2 KiB,
/// derived from the id.
pub fn text_of(id: MessageId) -> String {
    let lines = 1 + usize::from(id.0.as_bytes()[15] % 50);
    format!("message {id}, é\n").repeat(lines)
}
