//! Mail in the journal: posted, given orders, and asked for its reasons.

use crate::session::client::{Client, NoAnswer, UNHURRIED};
use crate::session::roll;
use posthaste_core::{AgentName, Letter, MessageId, Order, Timestamp, why};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Done, Home, Job, Journal, Ordered, Patience, Posted};
use posthaste_wire::{self as wire, method};

pub fn post(journal: &mut Journal, job: Job) -> Result<Vec<Posted>> {
    let Done::Posted(posted) = journal.commit(job)?? else {
        return Err(Report::storage("the journal answered another question"));
    };
    Ok(posted)
}

/// Carries one order out on several messages, all or none of them.
pub fn order(
    journal: &mut Journal,
    now: Timestamp,
    who: AgentName,
    order: Order,
    ids: Vec<MessageId>,
) -> Result<Vec<Ordered>> {
    let job = Job::Order {
        now,
        who,
        order,
        ids,
    };
    let Done::Ordered(ordered) = journal.commit(job)?? else {
        return Err(Report::storage("the journal answered another question"));
    };
    Ok(ordered)
}

/// Why a letter is where it is. The session of its recipient knows best, where it runs.
pub fn why(home: &Home, patience: Patience, now: Timestamp, letter: &Letter) -> wire::Why {
    let question = method::Why {
        id: letter.message.id.into(),
    };
    let to = &letter.message.to;
    let session = Client::awake(home, to);
    let answer = session.map(|mut session| session.call(&question, UNHURRIED));
    match answer {
        Some(Ok(why)) => why,
        Some(Err(NoAnswer::Refused(_))) => wire::Why::new(letter, now),
        Some(Err(NoAnswer::Silence)) | None => match roll::is_silent(home, patience, to, now) {
            Ok(true) => wire::Why::live(letter, now, Some(why::silent(letter, now))),
            Ok(false) | Err(_) => wire::Why::new(letter, now),
        },
    }
}

/// Tidies up and goes, after the answer. What fails here was done all the same: to say otherwise
/// would have it done twice, and who writes next will see to the rest.
pub fn leave(journal: Journal) {
    let _ = journal.leave();
}
