//! The mail that a verb works on: the journal, or a script that keeps the mail.
//!
//! A script's message that a session or a hook has imported has two ids: the script's, and the one
//! of our copy, which its agent was shown. Verbs accept both. Whatever the script's protocol does
//! not offer is refused before the script is called.

mod entry;
mod journal_mail;
mod local_copies;
mod order;
mod script_message;
mod send;
mod why;

pub(crate) use entry::{MailboxEntry, MailboxEntryJson, print_list, print_prompt, print_thread};
pub(crate) use local_copies::import_new;
pub(crate) use send::{print_script_messages, print_sent, through_script};
pub(crate) use why::explain;

use crate::cli::prelude::*;
use local_copies::Copies;
use posthaste_core::MessageState;
use posthaste_provider::script::Script;
use posthaste_provider::{import, recursion_guard};
use posthaste_session::pty::child::kill_with_parent;
use posthaste_store::{Journal, Listing};
use posthaste_wire::Count;
use posthaste_wire::provider::Op;
use script_message::ScriptMessage;

#[derive(Debug)]
pub(crate) enum Mailbox {
    Journal,
    Script(Script),
}

/// The part of an inbox that a verb asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InboxPart {
    Unread,
    /// The unread messages that a script reports to `check`.
    New,
    All,
    /// The unread messages, imported, so that each has an id of ours.
    Imported,
    /// The messages that the agent has sent and that still await a reply.
    Awaiting,
}

/// A message, and where it is.
pub(crate) enum Located<'a> {
    /// In the journal alone: its own, or the copy of a message that the script no longer has.
    Journal(Journal, Box<MessageState>),
    Script(ScriptMessage<'a>),
}

/// Whether a message is to be marked as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Marking {
    /// As soon as all of it is printed.
    Due,
    Done,
    /// Only the recipient and the person mark a message.
    NotMine,
}

impl Mailbox {
    pub(crate) fn open(context: &Context) -> Result<Self> {
        let Some(settings) = context.config.mail.script()? else {
            return Ok(Self::Journal);
        };
        recursion_guard::refuse(&context.home)?;
        let script = Script::new(settings.path, settings.timeout, kill_with_parent);
        Ok(Self::Script(script.asked_by(&context.home)))
    }

    /// Refuse `action` if a script keeps the mail: its protocol does not offer it.
    pub(crate) fn require_journal(&self, action: &str) -> Result<()> {
        match self {
            Self::Journal => Ok(()),
            Self::Script(script) => Err(cannot(script, action)),
        }
    }

    /// Refuse to send with an option that is set, if a script keeps the mail.
    pub(crate) fn refuse_options(&self, options: &[(&str, bool)]) -> Result<()> {
        match options.iter().find(|(_, is_set)| *is_set) {
            Some((option, _)) => self.require_journal(&format!("send with {option}")),
            None => Ok(()),
        }
    }

    /// Find a message by any of its ids, or by a prefix of our id.
    pub(crate) fn find(&self, context: &Context, id: &TypedId) -> Result<Located<'_>> {
        match self {
            Self::Script(script) => journal_mail::locate(context, script, id),
            Self::Journal => {
                let prefix = id.prefix()?;
                let mut journal = context.reader()?;
                let state = context.find(journal.as_mut(), &prefix)?;
                let not_found = || Report::from(posthaste_store::Error::NotFound(prefix));
                let journal = journal.ok_or_else(not_found)?;
                Ok(Located::Journal(journal, Box::new(state)))
            }
        }
    }

    /// Find the message that a reply is to.
    pub(crate) fn find_parent(&self, context: &Context, id: &TypedId) -> Result<Located<'_>> {
        match (self, self.find(context, id)?) {
            // A reply in the journal would not reach the sender, and the script would take a reply
            // for one to another message.
            (Self::Script(script), Located::Journal(_, state)) if import::is_copy(&state) => {
                let (id, from) = (state.message.id.id8(), &state.message.envelope.from);
                let script = script.path().display();
                Err(
                    Report::refused(format!("{script} no longer has the message {id}")).hint(
                        format!("'ph send {from}' sends a new message to its sender"),
                    ),
                )
            }
            (Self::Journal | Self::Script(_), found) => Ok(found),
        }
    }

    /// Return all messages of a thread, by its id or the id of a message in it.
    pub(crate) fn thread(&self, context: &Context, id: &TypedId) -> Result<Vec<MailboxEntry>> {
        if let Self::Script(script) = self
            && let Located::Script(found) = journal_mail::locate(context, script, id)?
        {
            return found.thread(context);
        }
        let prefix = id.prefix()?;
        let Some(mut journal) = context.reader()? else {
            return Err(posthaste_store::Error::NotFound(prefix).into());
        };
        let thread = journal.find_thread(&prefix)?;
        Ok(MailboxEntry::all(journal.thread(thread)?))
    }

    pub(crate) fn list(
        &self,
        context: &Context,
        name: &AgentName,
        part: InboxPart,
    ) -> Result<Vec<MailboxEntry>> {
        let (op, listing) = match part {
            InboxPart::Unread | InboxPart::Imported => (Op::Inbox, Listing::Unread),
            InboxPart::New => (Op::Check, Listing::Unread),
            InboxPart::All => (Op::All, Listing::All),
            InboxPart::Awaiting => {
                self.require_journal("list awaited replies")?;
                let awaited = context.query(|journal| journal.awaited(name, context.now))?;
                return Ok(MailboxEntry::all(awaited));
            }
        };
        let Self::Script(script) = self else {
            let listed = context.query(|journal| journal.inbox(name, listing, context.now))?;
            return Ok(MailboxEntry::all(listed));
        };
        let messages = local_copies::listed(script, op, name)?;
        if part == InboxPart::Imported {
            local_copies::import(context, script, name, &messages, context.config.patience)?;
        }
        let mut copies = Copies::open(context, script);
        let own = journal_mail::read(context, name, listing)?.without(&mut copies, &messages);
        let mut entries = copies.entries(messages);
        entries.extend(MailboxEntry::all(own));
        Ok(entries)
    }

    pub(crate) fn count(&self, context: &Context, name: &AgentName) -> Result<Count> {
        let Self::Script(script) = self else {
            let count = context.query(|journal| journal.count(name, context.now).map(Some))?;
            let (total, unread) = count.map_or((0, 0), |count| (count.total, count.unread));
            return Ok(Count { total, unread });
        };
        let counted = script.count(name.as_str())?;
        let all = journal_mail::read(context, name, Listing::All)?;
        // The count does not tell which messages the script has counted.
        let listed = match all.has_copies() {
            true => local_copies::listed(script, Op::Inbox, name)?,
            false => Vec::new(),
        };
        let mut copies = Copies::open(context, script);
        let mut own = |mail: journal_mail::JournalMail| mail.without(&mut copies, &listed).len();
        let unread = journal_mail::read(context, name, Listing::Unread)?;
        Ok(Count {
            total: counted.total.saturating_add(own(all) as u64),
            unread: counted.unread.saturating_add(own(unread) as u64),
        })
    }

    /// Count unread messages; the total counts only for `--json`.
    pub(crate) fn check(&self, context: &Context, name: &AgentName) -> Result<Count> {
        match self {
            Self::Script(_) if !context.json => {
                let unread = self.list(context, name, InboxPart::New)?.len() as u64;
                Ok(Count {
                    total: unread,
                    unread,
                })
            }
            Self::Journal | Self::Script(_) => self.count(context, name),
        }
    }
}

fn cannot(script: &Script, action: &str) -> Report {
    let script = script.path().display();
    Report::refused(format!("{script} keeps the mail and cannot {action}"))
        .hint("the setting mail.provider names the script")
}
