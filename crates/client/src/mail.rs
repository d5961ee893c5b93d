//! Mail operations on the journal, and the reason why a message waits.

use crate::session::client::{CallError, Client, TYPING_TIMEOUT};
use crate::session::sessions;
use posthaste_core::{AgentName, MessageId, MessageState, Order, Timestamp, why};
use posthaste_store::operation::{ApplyOrder, Ordered, Post, Posted};
use posthaste_store::report::Result;
use posthaste_store::{Home, Journal, Patience};
use posthaste_wire::{self as wire, method};

pub fn post(journal: &mut Journal, post: Post) -> Result<Vec<Posted>> {
    Ok(journal.commit(post)??)
}

/// Apply one order to all of the messages, or to none.
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

/// Explain where a message is and what it waits for. Ask the session of its recipient if it runs.
pub fn why(home: &Home, patience: Patience, now: Timestamp, state: &MessageState) -> wire::Why {
    let request = method::Why {
        id: state.message.id.into(),
    };
    let to = &state.message.to;
    let session = Client::connect_responsive(home, to);
    let answer = session.map(|mut session| session.call(&request, TYPING_TIMEOUT));
    match answer {
        Some(Ok(why)) => why,
        Some(Err(CallError::Refused(_))) => wire::Why::new(state, now),
        Some(Err(CallError::NoReply)) | None => {
            match sessions::is_silent(home, patience, to, now) {
                Ok(true) => wire::Why::live(state, now, Some(why::silent(state, now))),
                Ok(false) | Err(_) => wire::Why::new(state, now),
            }
        }
    }
}

/// Tidy and close the journal, after the result was printed. Errors are ignored: the operation has
/// succeeded, and the next writer tidies.
pub fn leave(journal: Journal) {
    let _ = journal.leave();
}
