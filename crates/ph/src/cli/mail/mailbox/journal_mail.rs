//! Mail that is in the journal although a script keeps the mail: messages that came over a
//! session's socket, answers to a program, and copies of the script's messages, some of which the
//! script no longer has. The script does not know of it.

use super::Located;
use super::local_copies::{self, Copies};
use super::script_message::ScriptMessage;
use crate::cli::prelude::*;
use posthaste_core::MessageState;
use posthaste_provider::import;
use posthaste_provider::script::Script;
use posthaste_store::Listing;
use posthaste_wire::provider::Message;
use std::collections::BTreeSet;

/// Find a message by any of its ids. For one of our ids, the script is asked whether its own id
/// still means the same message, because it may have given that id to another one since.
pub(super) fn locate<'a>(
    context: &Context,
    script: &'a Script,
    id: &TypedId,
) -> Result<Located<'a>> {
    let found = |id: &str, got, copy| {
        let found = ScriptMessage::new(script, id.to_owned(), got, copy);
        Ok(Located::Script(found))
    };
    let script_id = id.for_script()?;
    let Some((journal, state)) = local_copies::find(context, id)? else {
        return found(script_id, None, None);
    };
    let Some(outside) = import::outside_id(&state) else {
        return Ok(Located::Journal(journal, Box::new(state)));
    };
    match script.get(outside) {
        Ok(message) => {
            let copy = Copies::open(context, script).find(&message);
            if copy.is_some_and(|copy| copy.message.id == state.message.id) {
                found(outside, Some(message), Some(Box::new(state.clone())))
            } else {
                Ok(Located::Journal(journal, Box::new(state)))
            }
        }
        Err(error) if error.is_not_found() => Ok(Located::Journal(journal, Box::new(state))),
        // Without 'get' the script cannot be asked, and the copy is trusted.
        Err(error) if error.is_unknown_op() => found(outside, None, Some(Box::new(state.clone()))),
        Err(error) => Err(error.into()),
    }
}

/// An agent's mail in the journal.
pub(super) struct JournalMail {
    /// Messages that no script has.
    own: Vec<MessageState>,
    /// Copies of the script's messages that wait for their agent.
    waiting: Vec<MessageState>,
}

pub(super) fn read(context: &Context, name: &AgentName, listing: Listing) -> Result<JournalMail> {
    let messages = match context.existing_journal()? {
        Some(mut journal) => journal.inbox(name, listing, context.now)?,
        None => Vec::new(),
    };
    let (mut waiting, own): (Vec<_>, Vec<_>) = messages.into_iter().partition(import::is_copy);
    waiting.retain(|state| state.status.is_unread() && !state.status.is_offered_or_shown());
    Ok(JournalMail { own, waiting })
}

impl JournalMail {
    pub(super) fn has_copies(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Return the messages that the script does not list. A waiting copy that the script no longer
    /// lists is still delivered, so it is shown until then.
    pub(super) fn without(
        mut self,
        copies: &mut Copies<'_>,
        listed: &[Message],
    ) -> Vec<MessageState> {
        if self.has_copies() {
            let listed = listed.iter().filter_map(|message| copies.find(message));
            let listed: BTreeSet<_> = listed.map(|state| state.message.id).collect();
            let waiting = self.waiting.into_iter();
            self.own
                .extend(waiting.filter(|state| !listed.contains(&state.message.id)));
        }
        self.own
    }
}
