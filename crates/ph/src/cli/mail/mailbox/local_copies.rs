//! Our copies of a script's messages: those that a session or a hook has taken in.

use crate::cli::names::SaidId;
use crate::context::Context;
use crate::output::note;
use posthaste_client::mail;
use posthaste_client::session::client::Client;
use posthaste_core::{AgentName, IdPrefix, MessageState, Order};
use posthaste_provider::import::{self, Found};
use posthaste_provider::recursion_guard;
use posthaste_provider::script::Script;
use posthaste_session::pty::child::kill_with_parent;
use posthaste_store::operation::Post;
use posthaste_store::report::{Report, Result};
use posthaste_store::{Journal, Patience};
use posthaste_wire::provider::{Message, Op};
use std::time::Duration;

/// How long a hook waits for a script: an agent must never wait for its mail.
const HOOK: Duration = Duration::from_secs(2);
/// How many messages that cannot be taken are named.
const NOTED: usize = 10;
/// How short our own ids may be cut: a script's may be as short as it likes.
const DIGITS: usize = 8;

/// Takes in what a script has for an agent, for its hook. A live session does that by itself, and
/// a script that is slow is not waited for: what is in the journal is shown all the same.
pub(crate) fn take_in(context: &Context, name: &AgentName) -> Result<()> {
    let Some(settings) = context.config.mail.script()? else {
        return Ok(());
    };
    recursion_guard::refuse(&context.home)?;
    if Client::of(&context.home, name).is_some() {
        return Ok(());
    }
    let script = Script::new(settings.path, settings.timeout.min(HOOK), kill_with_parent)
        .asked_by(&context.home)
        .in_all(HOOK);
    let listed = listed(&script, Op::Check, name)?;
    let patience = Patience::HOOK.0.min(context.config.patience.0);
    keep(context, &script, name, &listed, Patience(patience))
}

/// The mail that a script lists, as far as it is any; the rest is noted.
pub(super) fn listed(script: &Script, op: Op, name: &AgentName) -> Result<Vec<Message>> {
    let (listed, odd) = script.each(op, name.as_str())?;
    let script = script.path().display();
    for odd in odd.iter().take(NOTED) {
        note(format!("{script} lists what cannot be taken: {odd}"));
    }
    if let Some(more @ 1..) = odd.len().checked_sub(NOTED) {
        note(format!("{script} lists {more} more that cannot be taken"));
    }
    Ok(listed)
}

/// Keeps what is not kept yet, so that it is known by our ids.
pub(super) fn keep(
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
    let sorted = import::sort(script.path(), name, listed, |id| journal.state(id))?;
    for draft in sorted.new {
        let id = draft.id.id8();
        let post = Post {
            now: context.now,
            drafts: vec![draft],
        };
        if let Err(denied) = journal.commit(post)? {
            note(format!("message {id} is not taken in: {denied}"));
        }
    }
    let script = script.path().display();
    for odd in sorted.odd.into_iter().chain(sorted.noted) {
        note(format!("{script} lists {odd}"));
    }
    mail::leave(journal);
    Ok(())
}

/// The script's id of a message, and our copy of it where ours was said.
pub(super) fn meant(context: &Context, said: &SaidId) -> Result<(String, Option<MessageState>)> {
    let SaidId(id) = said;
    if id.is_empty() || id.contains('\0') {
        return Err(Report::usage("an id cannot be empty"));
    }
    if let Some(state) = state(context, said)?
        && let Some(outside) = import::outside_id(&state)
    {
        return Ok((outside.to_owned(), Some(state)));
    }
    Ok((id.clone(), None))
}

/// What the journal has under one of our own ids, copy or not.
pub(super) fn state(context: &Context, SaidId(id): &SaidId) -> Result<Option<MessageState>> {
    let digits = |prefix: &IdPrefix| prefix.as_str().chars().filter(|c| *c != '-').count();
    let prefix = IdPrefix::parse(id).ok().filter(|id| digits(id) >= DIGITS);
    let (Some(prefix), Some(mut journal)) = (prefix, journal(context)?) else {
        return Ok(None);
    };
    Ok(journal.find(&prefix).ok())
}

fn journal(context: &Context) -> Result<Option<Journal>> {
    let home = context.home.clone();
    Ok(Journal::open_existing(home, context.config.patience)?)
}

/// The copies of a script's messages: one journal for all that are looked for.
pub(super) struct Copies<'a> {
    script: &'a Script,
    journal: Option<Journal>,
}

impl<'a> Copies<'a> {
    pub(super) fn open(context: &Context, script: &'a Script) -> Self {
        Self {
            script,
            journal: journal(context).ok().flatten(),
        }
    }

    /// Our copy of a message, if a session has taken it in.
    pub(super) fn find(&mut self, message: &Message) -> Option<MessageState> {
        let to = AgentName::parse(&message.to).ok()?;
        let journal = self.journal.as_mut()?;
        let found = import::find(self.script.path(), &to, message, |id| journal.state(id));
        match found.ok()? {
            Found::Known(state) | Found::Retimed(state) => Some(state),
            Found::New(_) | Found::Again(_) => None,
        }
    }
}

/// Our copy of what a script calls so, without the script's word: it may mean another by it today.
pub(super) fn copy_by_id(
    context: &Context,
    script: &Script,
    id: &str,
) -> Result<Option<MessageState>> {
    let Some(mut journal) = journal(context)? else {
        return Ok(None);
    };
    let agents = journal.agents()?;
    let found = import::copy_of(script.path(), &agents, id, |id| journal.state(id))?;
    Ok(found)
}

/// The same of one message.
pub(super) fn copy(context: &Context, script: &Script, message: &Message) -> Option<MessageState> {
    Copies::open(context, script).find(message)
}

/// Does the same with our copy, so that both agree. The script's word was what counts.
pub(super) fn follow(context: &Context, state: &MessageState, order: Order) {
    if let (Ok(Some(mut journal)), Ok((me, _))) = (journal(context), context.me()) {
        let _ = mail::order(&mut journal, context.now, me, order, vec![state.message.id]);
        mail::leave(journal);
    }
}
