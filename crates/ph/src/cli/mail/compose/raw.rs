//! Raw messages, which are typed unchanged: they go to the recipient's session, or nowhere.

use crate::cli::prelude::*;
use crate::cli::session::is_silent;
use posthaste_client::session::client::{CallError, Client, TYPING_TIMEOUT};
use posthaste_core::MessageId;
use posthaste_wire::method::{self, TYPING_REQUEST_VALIDITY};

/// Send a raw message to the recipient's session. There is no fallback through the journal: an answer
/// that is typed later could answer another question.
pub(crate) fn hand_over(
    context: &Context,
    name: &AgentName,
    send: &method::Send,
) -> Result<method::Sent> {
    let Some(mut client) = Client::connect_responsive(&context.home, name) else {
        return Err(unreachable(context, name));
    };
    // This timeout is longer than the time within which the session may start to type the answer.
    client.call(send, TYPING_TIMEOUT).map_err(|error| match error {
        CallError::Refused(failure) => Report::refused(failure.message).hint(format!(
            "'ph peek {name}' shows its screen; 'ph send {name}' leaves a message"
        )),
        CallError::NoReply => Report::storage(format!("the session of {name} does not answer"))
            .hint(format!(
                "'ph show {}' shows whether it was stored; it is not typed later than {} s after sending",
                send.id.map(MessageId::id8).unwrap_or_default(),
                TYPING_REQUEST_VALIDITY.as_secs()
            )),
    })
}

/// Return the error for an agent whose session cannot be reached.
fn unreachable(context: &Context, name: &AgentName) -> Report {
    match is_silent(context, name) {
        true => Report::storage(format!("the session of {name} does not answer")).hint(format!(
            "nothing was stored; 'ph status {name}' shows more, 'ph stop {name}' ends it"
        )),
        false => Report::refused(format!(
            "no session of {name} is running: there is no question to answer"
        ))
        .hint(format!("'ph send {name}' leaves a message")),
    }
}
