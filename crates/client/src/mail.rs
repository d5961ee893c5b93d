//! Mail in the journal: posted, given orders, and asked for its reasons.

use crate::session::client::{Client, NoAnswer, UNHURRIED};
use crate::session::sessions;
use posthaste_core::{AgentName, MessageId, MessageState, Order, Timestamp, why};
use posthaste_store::operation::{ApplyOrder, Ordered, Post, Posted};
use posthaste_store::report::Result;
use posthaste_store::{Home, Journal, Patience};
use posthaste_wire::{self as wire, method};

pub fn post(journal: &mut Journal, post: Post) -> Result<Vec<Posted>> {
    Ok(journal.commit(post)??)
}

/// Carries one order out on several messages, all or none of them.
pub fn order(
    journal: &mut Journal,
    now: Timestamp,
    who: AgentName,
    order: Order,
    ids: Vec<MessageId>,
) -> Result<Vec<Ordered>> {
    let apply = ApplyOrder {
        now,
        who,
        order,
        ids,
    };
    Ok(journal.commit(apply)??)
}

/// Why a state is where it is. The session of its recipient knows best, where it runs.
pub fn why(home: &Home, patience: Patience, now: Timestamp, state: &MessageState) -> wire::Why {
    let question = method::Why {
        id: state.message.id.into(),
    };
    let to = &state.message.to;
    let session = Client::awake(home, to);
    let answer = session.map(|mut session| session.call(&question, UNHURRIED));
    match answer {
        Some(Ok(why)) => why,
        Some(Err(NoAnswer::Refused(_))) => wire::Why::new(state, now),
        Some(Err(NoAnswer::Silence)) | None => match sessions::is_silent(home, patience, to, now) {
            Ok(true) => wire::Why::live(state, now, Some(why::silent(state, now))),
            Ok(false) | Err(_) => wire::Why::new(state, now),
        },
    }
}

/// Tidies up and goes, after the answer. What fails here was done all the same: to say otherwise
/// would have it done twice, and who writes next will see to the rest.
pub fn leave(journal: Journal) {
    let _ = journal.leave();
}
