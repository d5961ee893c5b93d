//! The mail verbs where a script keeps the mail: each asks it, and answers as it would from the
//! journal. What was said with a verb that the script's protocol has no word for is refused before
//! anything is asked.
//!
//! A message that a session has taken in is known under two ids: the script's, and ours, which is
//! what its agent was shown. Either will do.

mod journal_mail;
mod local_copies;
mod orders;
mod send;
mod why;

pub(crate) use journal_mail::{Kept, answered_by, is_here, kept};
pub(crate) use local_copies::take_in;
pub(crate) use orders::order;
pub(crate) use send::{Sending, reply, send};
pub(crate) use why::why;

use crate::cli::names::SaidId;
use crate::context::Context;
use crate::output::message_text::{self, Row, field};
use crate::output::note;
use local_copies::{Copies, copy, follow, keep, listed, meant};
use posthaste_core::{AgentName, Body, MessageState, Order, Timestamp, prompt, text};
use posthaste_provider::script::Script;
use posthaste_provider::{import, recursion_guard};
use posthaste_session::pty::child::kill_with_parent;
use posthaste_store::Listing;
use posthaste_store::report::{Code, Report, Result};
use posthaste_wire::provider::{Message, Op};
use posthaste_wire::{Count, Receipt};
use serde_json::json;

/// The script that keeps the mail, where one does.
pub(crate) fn script(context: &Context) -> Result<Option<Script>> {
    let Some(settings) = context.config.mail.script()? else {
        return Ok(None);
    };
    recursion_guard::refuse(&context.home)?;
    let script =
        Script::new(settings.path, settings.timeout, kill_with_parent).asked_by(&context.home);
    Ok(Some(script))
}

/// Refuses what the protocol of scripts has no word for.
pub(crate) fn cannot(script: &Script, what: &str) -> Report {
    Report::refused(format!(
        "the mail is kept by {}, which has no way to {what}",
        script.path().display()
    ))
    .hint("'ph config show' says so under mail.provider")
}

/// Which part of the mail, and how it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inbox {
    Unread,
    All,
    Prompt,
}

pub(crate) fn inbox(
    context: &mut Context,
    script: &Script,
    name: &AgentName,
    which: Inbox,
) -> Result<Code> {
    let (op, listing) = match which {
        Inbox::Unread | Inbox::Prompt => (Op::Inbox, Listing::Unread),
        Inbox::All => (Op::All, Listing::All),
    };
    let messages = listed(script, op, name)?;
    let mut copies = Copies::open(context, script);
    let own = journal_mail::mail(context, name, listing)?.beside(&mut copies, &messages);
    let is_empty = messages.is_empty() && own.is_empty();
    match which {
        Inbox::Prompt => print_prompt(context, script, name, &messages, &own)?,
        Inbox::Unread | Inbox::All if context.json => {
            let mut all = Vec::new();
            for message in &messages {
                all.push(json!(shown(&mut copies, context.now, message)));
            }
            let own = message_text::all_as_json(&context.home, &own, context.now)?;
            all.extend(own.iter().map(|message| json!(message)));
            context.out.json(&all)?;
        }
        Inbox::Unread if is_empty => context.out.line(format!("no unread mail for {name}"))?,
        Inbox::All if is_empty => context.out.line(format!("no mail for {name}"))?,
        Inbox::Unread | Inbox::All => {
            let there = messages.iter();
            let there =
                there.map(|message| row(message, shown(&mut copies, context.now, message).receipt));
            let here = own
                .iter()
                .map(|state| message_text::row(state, context.now));
            let rows: Vec<_> = there.chain(here).collect();
            message_text::rows(context, &rows)?;
        }
    }
    Ok(Code::Ok)
}

/// A message as `--json` shows it, with how far our copy of it has come.
fn shown(
    copies: &mut Copies<'_>,
    now: Timestamp,
    message: &Message,
) -> posthaste_wire::Message<String> {
    let mut shown = message.shown();
    if let Some(state) = copies.find(message) {
        // The script's word is what counts; of what is unread there, ours says more.
        if !message.read {
            let status = state.status.at(&state.message, now);
            shown.receipt = status.receipt().to_string();
        }
        shown.receipts = state.receipts.iter().map(Receipt::new).collect();
    }
    shown
}

fn row(message: &Message, receipt: String) -> Row {
    Row {
        id: text::one_line(&message.id, usize::MAX),
        from: text::one_line(&message.from, 80),
        to: text::one_line(&message.to, 80),
        created_at: message.created_at,
        status: receipt,
        is_waiting: !message.read,
        subject: Some(message.subject.clone()).filter(|subject| !subject.is_empty()),
        body: message.body.clone(),
    }
}

/// The block for an agent's prompt, under the ids that its session shows it.
fn print_prompt(
    context: &mut Context,
    script: &Script,
    name: &AgentName,
    messages: &[Message],
    own: &[MessageState],
) -> Result<()> {
    // Whoever reads the block may ask for a message by the id in it.
    keep(context, script, name, messages, context.config.patience)?;
    let mut copies = Copies::open(context, script);
    let kept = messages.iter();
    let kept: Vec<_> = kept
        .filter_map(|message| {
            let state = copies.find(message)?;
            import::message(script.path(), name, state.message.id, message)
        })
        .collect();
    let there = kept.iter().map(|message| prompt::Entry {
        message,
        text: match &message.envelope.body {
            Body::Inline(text) => text,
            Body::Filed { .. } => "",
        },
    });
    let bodies = own.iter();
    let bodies = bodies.map(|state| message_text::text_or_loss(&context.home, state));
    let bodies = bodies.collect::<Result<Vec<_>>>()?;
    let here = own.iter().zip(&bodies).map(|(state, text)| prompt::Entry {
        message: &state.message,
        text,
    });
    let entries: Vec<_> = there.chain(here).collect();
    let block = prompt::inbox_block(&entries, posthaste_store::times::zone());
    context.out.bytes(block.as_bytes())
}

pub(crate) fn read(
    context: &mut Context,
    mut kept: Kept,
    id: &SaidId,
    body_alone: bool,
) -> Result<Code> {
    let (me, _) = context.me()?;
    let (id, local) = meant(context, id)?;
    let got = kept.get(&id);
    let script = &kept.script;
    // As in the journal: who reads another's mail does not mark it, and what could not be printed
    // was not read.
    let (message, marks) = match got {
        Ok(message) if !me.is_human() && message.to != me.as_str() => {
            note(format!(
                "this is {}'s mail; {me} reading it does not mark it read",
                text::one_line(&message.to, 80)
            ));
            (message, false)
        }
        Ok(message) => (
            Message {
                read: true,
                ..message
            },
            true,
        ),
        // One without 'get' can only be read, which marks it.
        Err(trouble) if trouble.is_unknown_op() => {
            (mark(context, script, &id, local.clone())?, false)
        }
        Err(trouble) => return Err(trouble.into()),
    };
    if context.json {
        context.out.json(&message.shown())?;
    } else if body_alone && context.out.is_terminal() {
        let shown = text::visible(&message.body);
        context.out.bytes(shown.as_bytes())?;
    } else if body_alone {
        context.out.bytes(message.body.as_bytes())?;
    } else {
        head(context, &message)?;
        message_text::text(context, &message.body, "")?;
    }
    context.out.flush()?;
    if marks {
        mark(context, script, &id, local)?;
    }
    Ok(Code::Ok)
}

fn mark(
    context: &Context,
    script: &Script,
    id: &str,
    local: Option<MessageState>,
) -> Result<Message> {
    let message = script.read(id)?;
    if let Some(state) = local.or_else(|| copy(context, script, &message)) {
        follow(context, &state, Order::MarkRead);
    }
    Ok(message)
}

pub(crate) fn show(context: &mut Context, mut kept: Kept, id: &SaidId) -> Result<Code> {
    let (id, local) = meant(context, id)?;
    let message = kept.get(&id)?;
    let script = &kept.script;
    let local = local.or_else(|| copy(context, script, &message));
    let shown = shown(&mut Copies::open(context, script), context.now, &message);
    if context.json {
        context.out.json(&shown)?;
        return Ok(Code::Ok);
    }
    head(context, &message)?;
    if !message.thread_id.is_empty() {
        field(context, "thread", &message.thread_id)?;
    }
    if let Some(state) = &local {
        field(context, "here", &state.message.id.to_string())?;
    }
    message_text::journey(context, shown.receipts)?;
    message_text::text(context, &message.body, "")?;
    Ok(Code::Ok)
}

pub(crate) fn thread(context: &mut Context, mut kept: Kept, id: &SaidId) -> Result<Code> {
    let (id, _) = meant(context, id)?;
    // Some know a thread by its own id alone.
    let thread = match kept.get(&id) {
        Ok(message) if !message.thread_id.is_empty() => message.thread_id,
        Ok(message) => message.id,
        Err(trouble) if trouble.is_unknown_op() => id,
        Err(trouble) => return Err(trouble.into()),
    };
    let script = &kept.script;
    let messages = script.thread(&thread)?;
    if context.json {
        let messages = messages.iter();
        let mut copies = Copies::open(context, script);
        let messages: Vec<_> = messages
            .map(|message| shown(&mut copies, context.now, message))
            .collect();
        context.out.json(&messages)?;
        return Ok(Code::Ok);
    }
    for (index, message) in messages.iter().enumerate() {
        if index > 0 {
            context.out.line("")?;
        }
        head(context, message)?;
        // Set off, so that no text can look like the head of another message.
        message_text::text(context, &message.body, "    ")?;
    }
    Ok(Code::Ok)
}

pub(crate) fn count(context: &Context, script: &Script, name: &AgentName) -> Result<Count> {
    let there = script.count(name.as_str())?;
    let all = journal_mail::mail(context, name, Listing::All)?;
    // A count does not say which it has counted.
    let listed = if all.has_copies() {
        listed(script, Op::Inbox, name)?
    } else {
        Vec::new()
    };
    let mut copies = Copies::open(context, script);
    let mut own = |mail: journal_mail::Mail| mail.beside(&mut copies, &listed).len() as u64;
    let unread = journal_mail::mail(context, name, Listing::Unread)?;
    Ok(Count {
        total: there.total.saturating_add(own(all)),
        unread: there.unread.saturating_add(own(unread)),
    })
}

/// How much is unread; how much there is in all, where that is asked for.
pub(crate) fn check(context: &Context, script: &Script, name: &AgentName) -> Result<Count> {
    if context.json {
        return count(context, script, name);
    }
    let there = listed(script, Op::Check, name)?;
    let here = journal_mail::mail(context, name, Listing::Unread)?;
    let here = here.beside(&mut Copies::open(context, script), &there);
    let unread = (there.len() + here.len()) as u64;
    Ok(Count {
        total: unread,
        unread,
    })
}

fn head(context: &mut Context, message: &Message) -> Result<()> {
    let sent = context.config.time.show(message.created_at, context.now);
    field(context, "message", &message.id)?;
    field(context, "from", &message.from)?;
    field(context, "to", &message.to)?;
    field(context, "sent", &sent)?;
    for (name, value) in [
        ("subject", &message.subject),
        ("reply to", &message.reply_to),
    ] {
        if !value.is_empty() {
            field(context, name, value)?;
        }
    }
    Ok(())
}
