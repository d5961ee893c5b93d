//! Short constructors for names, times and drafts, and journal calls that must succeed.

use jiff::{SignedDuration, Timestamp};
use posthaste_core::{AgentName, Draft, MessageId, Order, Started};
use posthaste_store::{Answer, Denied, Done, Error, Job, Journal, Outcome, Posted, Writer};
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

/// Stores one message, or says as what it stands already.
pub fn post(journal: &mut Journal, now: Timestamp, draft: &Draft) -> Posted {
    let drafts = vec![draft.clone()];
    match journal.commit(Job::Post { now, drafts }) {
        Ok(Ok(Done::Posted(mut posted))) if posted.len() == 1 => posted.remove(0),
        other => panic!("one message should have been posted: {other:?}"),
    }
}

/// Has a writer do one piece of work, and waits until it is committed, synced and filed.
pub fn stored(writer: &Writer, job: Job) -> Result<Answer, Error> {
    let (tell, told) = mpsc::sync_channel(1);
    let mut ahead = writer.submit(job, move |done| drop(tell.send(done)))?;
    ahead.begin();
    told.recv()
        .map_or(Err(Error::WriterGone), |done| done.settle(&ahead))
}

/// Carries out an order that must not be refused.
pub fn order(
    journal: &mut Journal,
    now: Timestamp,
    who: &str,
    order: Order,
    ids: &[MessageId],
) -> Vec<Outcome> {
    let job = Job::Order {
        now,
        who: name(who),
        order,
        ids: ids.to_vec(),
    };
    match journal.commit(job) {
        Ok(Ok(Done::Ordered(ordered))) => ordered.iter().map(|o| o.outcome).collect(),
        other => panic!("{order:?} should have been carried out: {other:?}"),
    }
}

/// Why a job that must be refused is refused.
pub fn denied(journal: &mut Journal, job: Job) -> Denied {
    match journal.commit(job) {
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
