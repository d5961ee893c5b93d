//! The journal's copies of a script's messages: imports messages, and finds the copy of one.

use super::MailboxEntry;
use crate::cli::names::long_prefix;
use crate::cli::prelude::*;
use posthaste_client::session::client::Client;
use posthaste_core::{MessageState, Order};
use posthaste_provider::import::{self, ImportState};
use posthaste_provider::recursion_guard;
use posthaste_provider::script::Script;
use posthaste_session::pty::child::kill_with_parent;
use posthaste_store::operation::Post;
use posthaste_store::{Journal, Patience};
use posthaste_wire::provider::{Message, Op};
use std::time::Duration;

/// Time limit for all calls of a script that a hook makes: an agent must never wait for its mail.
const HOOK_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum number of invalid messages that are named.
const MAX_NOTED_MESSAGES: usize = 10;

/// Import an agent's new mail for its hook. Does nothing if a session runs, which imports by
/// itself. If this fails, the hook shows what the journal has.
pub(crate) fn import_new(context: &Context, name: &AgentName) -> Result<()> {
    let Some(settings) = context.config.mail.script()? else {
        return Ok(());
    };
    recursion_guard::refuse(&context.home)?;
    if Client::connect_to(&context.home, name).is_some() {
        return Ok(());
    }
    let timeout = settings.timeout.min(HOOK_TIMEOUT);
    let script = Script::new(settings.path, timeout, kill_with_parent)
        .asked_by(&context.home)
        .within_total(HOOK_TIMEOUT);
    let listed = listed(&script, Op::Check, name)?;
    let patience = Patience::HOOK.0.min(context.config.patience.0);
    import(context, &script, name, &listed, Patience(patience))
}

/// Return the valid messages that a script lists; print a note about the others.
pub(super) fn listed(script: &Script, op: Op, name: &AgentName) -> Result<Vec<Message>> {
    let (listed, invalid) = script.each(op, name.as_str())?;
    let script = script.path().display();
    for why in invalid.iter().take(MAX_NOTED_MESSAGES) {
        note(format!("{script} lists an invalid message: {why}"));
    }
    if let Some(more @ 1..) = invalid.len().checked_sub(MAX_NOTED_MESSAGES) {
        note(format!("{script} lists {more} more invalid messages"));
    }
    Ok(listed)
}

/// Store the messages that the journal does not have, so that each has an id of ours.
pub(super) fn import(
    context: &Context,
    script: &Script,
    name: &AgentName,
    listed: &[Message],
    patience: Patience,
) -> Result<()> {
    if listed.is_empty() {
        return Ok(());
    }
    let mut journal = Journal::open(context.home.clone(), patience)?;
    let plan = import::plan(script.path(), name, listed, |id| journal.state(id))?;
    for draft in plan.new {
        let id = draft.id.id8();
        let post = Post {
            now: context.now,
            drafts: vec![draft],
        };
        if let Err(refused) = journal.commit(post)? {
            note(format!("message {id} was not imported: {refused}"));
        }
    }
    let script = script.path().display();
    for why in plan.rejected.into_iter().chain(plan.notes) {
        note(format!("{script} lists {why}"));
    }
    mail::leave(journal);
    Ok(())
}

/// Find what the journal has under one of our ids.
pub(super) fn find(
    context: &Context,
    TypedId(id): &TypedId,
) -> Result<Option<(Journal, MessageState)>> {
    let (Some(prefix), Some(mut journal)) = (long_prefix(id), context.existing_journal()?) else {
        return Ok(None);
    };
    let found = journal.find(&prefix).ok();
    Ok(found.map(|state| (journal, state)))
}

/// Finds copies of a script's messages, with one connection to the journal.
pub(super) struct Copies<'a> {
    script: &'a Script,
    journal: Option<Journal>,
}

impl<'a> Copies<'a> {
    pub(super) fn open(context: &Context, script: &'a Script) -> Self {
        Self {
            script,
            journal: context.existing_journal().ok().flatten(),
        }
    }

    /// Return our copy of a message, if it was imported.
    pub(super) fn find(&mut self, message: &Message) -> Option<MessageState> {
        let to = AgentName::parse(&message.to).ok()?;
        let journal = self.journal.as_mut()?;
        let found = import::find(self.script.path(), &to, message, |id| journal.state(id));
        match found.ok()? {
            ImportState::Known(state) | ImportState::TimeChanged(state) => Some(state),
            ImportState::New(_) | ImportState::IdReused(_) => None,
        }
    }

    pub(super) fn entry(&mut self, message: Message) -> MailboxEntry {
        MailboxEntry::Script {
            copy: self.find(&message).map(Box::new),
            message: Box::new(message),
        }
    }

    pub(super) fn entries(&mut self, messages: Vec<Message>) -> Vec<MailboxEntry> {
        let messages = messages.into_iter();
        messages.map(|message| self.entry(message)).collect()
    }
}

/// Find a copy by the script's id alone, without asking the script, which may have given the id to
/// another message.
pub(super) fn find_by_script_id(
    context: &Context,
    script: &Script,
    id: &str,
) -> Result<Option<MessageState>> {
    let Some(mut journal) = context.existing_journal()? else {
        return Ok(None);
    };
    let agents = journal.agents()?;
    let found = import::copy_of(script.path(), &agents, id, |id| journal.state(id))?;
    Ok(found)
}

/// Apply an order to our copy too, after the script has carried it out. Errors are ignored, because
/// the script's state counts.
pub(super) fn apply_order(context: &Context, state: &MessageState, order: Order) {
    if let (Ok(Some(mut journal)), Ok((me, _))) = (context.existing_journal(), context.me()) {
        let _ = mail::order(&mut journal, context.now, me, order, vec![state.message.id]);
        mail::leave(journal);
    }
}
