//! Mail that is in the journal although a script keeps the mail: what came over a session's socket,
//! answers to a program, and copies of what the script lists or has no more. It is shown and ordered
//! here; the script knows nothing of it.

use super::local_copies::{self, Copies};
use super::script;
use crate::cli::names::SaidId;
use crate::context::Context;
use posthaste_core::{AgentName, MessageState};
use posthaste_provider::error::Trouble;
use posthaste_provider::import;
use posthaste_provider::script::Script;
use posthaste_store::report::{Report, Result};
use posthaste_store::{Journal, Listing};
use posthaste_wire::provider::Message;
use std::collections::BTreeSet;

/// A message that a script keeps.
pub(crate) struct Kept {
    pub(super) script: Script,
    /// What the script says of it, where it was asked already.
    got: Option<Message>,
}

impl Kept {
    pub(crate) fn script(&self) -> &Script {
        &self.script
    }

    pub(super) fn get(&mut self, id: &str) -> std::result::Result<Message, Trouble> {
        match self.got.take() {
            Some(message) => Ok(message),
            None => self.script.get(id),
        }
    }
}

/// Who has a message.
enum Where {
    /// The journal alone: it is its own, or a copy of what the script has no more.
    Here(MessageState),
    /// The script, and what it says of it where it was asked.
    There(Option<Message>),
}

/// A message that the script keeps; none where the journal does.
pub(crate) fn kept(context: &Context, id: &SaidId) -> Result<Option<Kept>> {
    let Some(script) = script(context)? else {
        return Ok(None);
    };
    match look(context, &script, id)? {
        Where::Here(_) => Ok(None),
        Where::There(got) => Ok(Some(Kept { script, got })),
    }
}

/// Whether the journal alone has a message.
pub(crate) fn is_here(context: &Context, script: &Script, id: &SaidId) -> Result<bool> {
    look(context, script, id).map(|found| matches!(found, Where::Here(_)))
}

/// The message that an answer is to, where the script takes it; none where that goes to the journal.
pub(crate) fn answered_by(context: &Context, id: &SaidId) -> Result<Option<Kept>> {
    let Some(script) = script(context)? else {
        return Ok(None);
    };
    match look(context, &script, id)? {
        Where::There(got) => Ok(Some(Kept { script, got })),
        Where::Here(state) if !import::is_copy(&state) => Ok(None),
        // An answer in the journal would not reach who wrote it, and one there would be to another.
        Where::Here(state) => {
            let (id, from) = (state.message.id.id8(), &state.message.envelope.from);
            let script = script.path().display();
            Err(Report::refused(format!(
                "{script} has no message any more that {id} stands for"
            ))
            .hint(format!("'ph send {from}' writes to its sender anew")))
        }
    }
}

/// Looks for a message by any of its ids. By ours, the script is asked whether it still means the
/// same by its own: it may have given that to another since, which must not be taken for it.
fn look(context: &Context, script: &Script, id: &SaidId) -> Result<Where> {
    let Some(state) = local_copies::state(context, id)? else {
        return Ok(Where::There(None));
    };
    let Some(outside) = import::outside_id(&state) else {
        return Ok(Where::Here(state));
    };
    match script.get(outside) {
        Ok(message) => {
            let copy = local_copies::copy(context, script, &message);
            let is_same = copy.is_some_and(|copy| copy.message.id == state.message.id);
            Ok(if is_same {
                Where::There(Some(message))
            } else {
                Where::Here(state)
            })
        }
        Err(trouble) if trouble.is_not_found() => Ok(Where::Here(state)),
        // One without 'get' is believed.
        Err(trouble) if trouble.is_unknown_op() => Ok(Where::There(None)),
        Err(trouble) => Err(trouble.into()),
    }
}

/// The mail of an agent that the journal has and the script does not list.
pub(super) struct Mail {
    /// The journal's own.
    pub(super) own: Vec<MessageState>,
    /// Copies of a script's that wait for their agent. Those that the script lists are its own.
    waiting: Vec<MessageState>,
}

pub(super) fn mail(context: &Context, name: &AgentName, listing: Listing) -> Result<Mail> {
    let home = context.home.clone();
    let messages = match Journal::open_existing(home, context.config.patience)? {
        Some(mut journal) => journal.inbox(name, listing, context.now)?,
        None => Vec::new(),
    };
    let (mut waiting, own): (Vec<_>, Vec<_>) = messages.into_iter().partition(import::is_copy);
    waiting.retain(|state| state.status.is_unread() && !state.status.is_offered_or_shown());
    Ok(Mail { own, waiting })
}

impl Mail {
    /// Whether it takes the script's list to tell what there is.
    pub(super) fn has_copies(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// All of it, where the script lists this. What waits here and is not listed there is
    /// delivered all the same, so that it must be seen until then.
    pub(super) fn beside(
        mut self,
        copies: &mut Copies<'_>,
        listed: &[Message],
    ) -> Vec<MessageState> {
        if self.has_copies() {
            let there = listed.iter().filter_map(|message| copies.find(message));
            let there: BTreeSet<_> = there.map(|state| state.message.id).collect();
            let waiting = self.waiting.into_iter();
            self.own
                .extend(waiting.filter(|state| !there.contains(&state.message.id)));
        }
        self.own
    }
}
