//! Serves `ph`'s mail by the provider protocol: an operation and at most one argument in, JSON out.
//!
//! Parses its arguments itself, because they may be empty or look like flags, and because exit
//! status 2 means only "unknown operation". Always reads the journal, so that it cannot call
//! itself.

use crate::cli::names::long_prefix;
use crate::cli::prelude::*;
use crate::context::agent_name;
use crate::output::message_text;
use posthaste_core::{Draft, MessageId, MessageState, Order, ReceiptState};
use posthaste_provider::{import, recursion_guard};
use posthaste_store::operation::{OrderEffect, Post};
use posthaste_store::{Listing, files};
use posthaste_wire::provider::{
    ALREADY_ARCHIVED, Message, NOT_FOUND_MARKER, Op, Text, UNKNOWN_OP_STATUS,
};
use posthaste_wire::{Count, Why};
use std::ffi::{OsStr, OsString};
use std::io::Read;
use std::process::ExitCode;

/// File name of a link to `ph` that only serves this protocol.
pub(crate) const PROGRAM_NAME: &str = "ph-mail-provider";

const MAX_SUBJECT_BYTES: usize = 1_000;

/// Return whether this program was started under [`PROGRAM_NAME`].
pub(crate) fn is_called(name: &OsStr) -> bool {
    std::path::Path::new(name)
        .file_name()
        .is_some_and(|name| name == PROGRAM_NAME)
}

/// Run the operation in the arguments after the program's name, or after `ph provider`.
pub(crate) fn main(words: &[OsString], options: &GlobalOptions) -> ExitCode {
    match run(words, options) {
        Ok(code) => code,
        Err(report) if !report.is_failure() => ExitCode::SUCCESS,
        Err(report) => {
            if report.code() == Code::NotFound {
                crate::output::to_stderr(&format!("{NOT_FOUND_MARKER}\n"));
            }
            crate::output::show(&report);
            // Never 2, which means "unknown operation".
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[OsString], options: &GlobalOptions) -> Result<ExitCode> {
    let [op, args @ ..] = words else {
        return Err(Report::usage("no operation was given").hint(operations()));
    };
    let Some(op) = op.to_str().and_then(Op::from_word) else {
        let shown = posthaste_core::text::one_line(&op.to_string_lossy(), 40);
        crate::output::to_stderr(&format!("unknown operation '{shown}'\n"));
        return Ok(ExitCode::from(u8::try_from(UNKNOWN_OP_STATUS).unwrap_or(1)));
    };
    let arg = match (op, args) {
        // No server has to run.
        (Op::EnsureRunning, _) => return Ok(ExitCode::SUCCESS),
        (_, [arg]) => arg.to_string_lossy().into_owned(),
        (_, []) => return Err(Report::usage(format!("'{op}' takes an argument"))),
        (_, _) => return Err(Report::usage(format!("'{op}' takes one argument"))),
    };
    let mut context = Context::new(options)?;
    let context = &mut context;
    recursion_guard::refuse(&context.home)?;
    match op {
        Op::EnsureRunning => {}
        Op::Send => {
            let to = agent_name(&arg)?;
            post(context, to, text_on_stdin()?, None)?;
        }
        Op::Reply => {
            let parent = find(context, &arg)?;
            let text = text_on_stdin()?;
            // To the sender of the message, or to its recipient if the sender replies.
            let sender = &parent.message.envelope.from;
            let to = match sender.as_str() == text.from {
                true => parent.message.to.clone(),
                false => sender.clone(),
            };
            post(context, to, text, Some(&parent))?;
        }
        Op::Inbox | Op::Check => list(context, &arg, Listing::Unread)?,
        Op::All => list(context, &arg, Listing::All)?,
        Op::Get => {
            let state = find(context, &arg)?;
            print(context, &state)?;
        }
        Op::Read => read(context, &arg)?,
        Op::MarkRead => order(context, &arg, Order::MarkRead)?,
        Op::MarkUnread => order(context, &arg, Order::MarkUnread)?,
        Op::Archive => order(context, &arg, Order::Archive)?,
        Op::Delete => order(context, &arg, Order::Delete)?,
        Op::Thread => thread(context, &arg)?,
        Op::Count => count(context, &arg)?,
    }
    context.out.flush()?;
    Ok(ExitCode::SUCCESS)
}

fn operations() -> String {
    let names: Vec<_> = Op::ALL.iter().map(|op| op.as_str()).collect();
    format!("the operations are: {}", names.join(", "))
}

fn text_on_stdin() -> Result<Text> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|error| Report::usage(format!("cannot read standard input: {error}")))?;
    let wrong = |why: &dyn std::fmt::Display| {
        Report::usage(format!(
            "standard input is not the JSON of a message: {why}"
        ))
        .hint(r#"write {"from":"…","subject":"…","body":"…"}"#)
    };
    let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(|error| wrong(&error))?;
    // serde would also accept an array with the fields in order.
    if !value.is_object() {
        return Err(wrong(&"not a JSON object"));
    }
    let text: Text = serde_json::from_value(value).map_err(|error| wrong(&error))?;
    let is_line =
        !text.subject.chars().any(char::is_control) && text.subject.len() <= MAX_SUBJECT_BYTES;
    if !is_line {
        return Err(Report::usage(format!(
            "a subject is one line of at most {MAX_SUBJECT_BYTES} bytes, without control characters"
        )));
    }
    Ok(text)
}

/// Store a message, and print it.
fn post(
    context: &mut Context,
    to: AgentName,
    text: Text,
    parent: Option<&MessageState>,
) -> Result<()> {
    let from = match text.from.as_str() {
        "" => None,
        name => Some(agent_name(name)?),
    };
    let (from, from_evidence) = context.sender(from.as_ref())?;
    context.now = posthaste_store::times::now();
    let draft = Draft {
        from_evidence,
        subject: Some(text.subject).filter(|subject| !subject.is_empty()),
        priority: context.config.priority,
        reply_to: parent.map(|state| state.message.id),
        limits: context.config.limits,
        // The caller has decided this already.
        allow_self: true,
        ..Draft::new(MessageId(uuid::Uuid::new_v4()), from, to, text.body)
    };
    let post = Post {
        now: context.now,
        drafts: vec![draft],
    };
    let mut journal = context.journal()?;
    let posted = mail::post(&mut journal, post)?;
    let printed = posted
        .iter()
        .try_for_each(|posted| tell(context, &posted.state));
    context.out.flush()?;
    mail::leave(journal);
    printed
}

/// Print a stored message. A message that will never be delivered is an error, because a printed
/// message counts as sent.
fn tell(context: &mut Context, state: &MessageState) -> Result<()> {
    let why = Why::new(state, context.now);
    if why.receipt != ReceiptState::Failed.as_str() {
        return print(context, state);
    }
    let (id, reason) = (state.message.id, why.reason.unwrap_or_default());
    Err(Report::refused(format!(
        "message {id} was stored but will not be delivered: {reason}"
    )))
}

/// Find a message by its id or a prefix. An invalid id is an unknown id.
fn find(context: &Context, id: &str) -> Result<MessageState> {
    let prefix = long_prefix(id).ok_or_else(|| {
        let shown = posthaste_core::text::one_line(id, 80);
        Report::not_found(format!("no message '{shown}'"))
    })?;
    let mut journal = context.existing_journal()?;
    context.find(journal.as_mut(), &prefix)
}

fn list(context: &mut Context, who: &str, listing: Listing) -> Result<()> {
    let who = agent_name(who)?;
    let messages = mail(context, &who, listing)?;
    print_all(context, &messages)
}

/// Return an agent's mail. Copies of a script's messages are omitted, because that script may be
/// the caller.
fn mail(context: &Context, who: &AgentName, listing: Listing) -> Result<Vec<MessageState>> {
    let Some(mut journal) = context.existing_journal()? else {
        return Ok(Vec::new());
    };
    let mut messages = journal.inbox(who, listing, context.now)?;
    if context.config.mail.is_elsewhere() {
        messages.retain(|state| !import::is_copy(state));
    }
    Ok(messages)
}

/// Print the thread of a message, by its own id or the id of a message in it. An unknown thread is
/// empty.
fn thread(context: &mut Context, id: &str) -> Result<()> {
    let (Some(prefix), Some(mut journal)) = (long_prefix(id), context.existing_journal()?) else {
        return Ok(());
    };
    let thread = match journal.find(&prefix) {
        Ok(state) => state.message.envelope.thread_id,
        // The first message of a thread may be deleted; the others are still in it.
        Err(posthaste_store::Error::NotFound(_)) => match id.parse() {
            Ok(id) => id,
            Err(_) => return Ok(()),
        },
        Err(error) => return Err(error.into()),
    };
    let messages = journal.thread(thread)?;
    print_all(context, &messages)
}

fn read(context: &mut Context, id: &str) -> Result<()> {
    let mut state = find(context, id)?;
    let status = state.status.at(&state.message, context.now);
    // A message that cannot be printed is not marked as read.
    files::body(&context.home, &state.message)?;
    if !status.read
        && let Some(mut journal) = context.existing_journal()?
    {
        let id = state.message.id;
        mail::order(
            &mut journal,
            context.now,
            context.me()?.0,
            Order::MarkRead,
            vec![id],
        )?;
        state = journal.find(&id.into())?;
    }
    print(context, &state)
}

fn order(context: &mut Context, id: &str, order: Order) -> Result<()> {
    let state = find(context, id)?;
    let Some(mut journal) = context.existing_journal()? else {
        return Ok(());
    };
    let ordered = mail::order(
        &mut journal,
        context.now,
        context.me()?.0,
        order,
        vec![state.message.id],
    )?;
    mail::leave(journal);
    if ordered
        .iter()
        .any(|one| one.outcome == OrderEffect::AlreadyArchived)
    {
        let id = state.message.id;
        return Err(Report::refused(format!("message {id}: {ALREADY_ARCHIVED}")));
    }
    Ok(())
}

fn count(context: &mut Context, who: &str) -> Result<()> {
    let who = agent_name(who)?;
    let (total, unread) = match context.existing_journal()? {
        Some(_) if context.config.mail.is_elsewhere() => {
            let count = |listing| Ok::<_, Report>(mail(context, &who, listing)?.len() as u64);
            (count(Listing::All)?, count(Listing::Unread)?)
        }
        Some(mut journal) => {
            let count = journal.count(&who, context.now)?;
            (count.total, count.unread)
        }
        None => (0, 0),
    };
    context.out.json(&Count { total, unread })
}

/// Print a list; nothing if it is empty. A lost body does not hide the other messages.
fn print_all(context: &mut Context, messages: &[MessageState]) -> Result<()> {
    if messages.is_empty() {
        return Ok(());
    }
    let messages = messages.iter().map(|state| {
        let body = message_text::text_or_loss(&context.home, state)?;
        Ok(message(state, body))
    });
    let messages = messages.collect::<Result<Vec<_>>>()?;
    context.out.json(&messages)
}

fn print(context: &mut Context, state: &MessageState) -> Result<()> {
    let body = files::body(&context.home, &state.message)?;
    context.out.json(&message(state, body))
}

fn message(state: &MessageState, body: String) -> Message {
    let message = &state.message;
    let envelope = &message.envelope;
    let reply_to = envelope.reply_to.map(|id| id.to_string());
    Message {
        id: message.id.to_string(),
        from: envelope.from.to_string(),
        to: message.to.to_string(),
        subject: envelope.subject.clone().unwrap_or_default(),
        body,
        created_at: message.created_at,
        read: state.status.read,
        thread_id: envelope.thread_id.to_string(),
        reply_to: reply_to.unwrap_or_default(),
    }
}
