//! `ph show`: prints everything that is known about a message.

use crate::cli::mail::mailbox::{Located, Mailbox, MailboxEntry, MailboxEntryJson};
use crate::cli::prelude::*;
use crate::output::message_text;
use posthaste_store::files;
use posthaste_wire::{Detail, Receipt};

/// Show a message and all its receipts
///
/// Does not mark the message as read.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph show 3fa8c1d2
  ph show 3fa8c1d2 --json | jq .receipts")]
pub(crate) struct Args {
    /// Message id or id prefix
    #[arg(value_name = "ID", add = complete_ids())]
    id: TypedId,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let mailbox = Mailbox::open(context)?;
    let state = match mailbox.find(context, &args.id)? {
        Located::Journal(_, state) => state,
        Located::Script(message) => return show_script_message(context, &message.entry(context)?),
    };
    let body = message_text::text_or_loss(&context.home, &state)?;
    // If the message's file is lost, the rest of the message is still shown.
    let file = files::ensure(&context.home, &state.message)
        .ok()
        .map(|path| path.display().to_string());
    let reason = context.why(&state).reason;
    if context.json {
        let mut detail = Detail::new(&state, body, file, context.now);
        detail.message.reason = reason;
        context.out.json(&detail)?;
        return Ok(Code::Ok);
    }
    let show = |time| context.shown_time(time);
    let (now, envelope) = (context.now, &state.message.envelope);
    let receipt = state.status.at(&state.message, now).receipt().to_string();
    let mut lines = message_text::head(context, &state);
    lines.extend([
        ("thread", Some(envelope.thread_id.to_string())),
        ("file", file),
        ("key", envelope.key.clone()),
        ("not before", envelope.not_before.map(show)),
        ("expires", envelope.expires_at.map(show)),
        ("deadline", envelope.deadline.map(show)),
        ("closes", envelope.closes.map(|id| id.to_string())),
        ("cause", envelope.cause.map(|id| id.to_string())),
        (
            "hops",
            (envelope.hops > 0).then(|| envelope.hops.to_string()),
        ),
        ("receipt", Some(receipt)),
        ("because", reason),
    ]);
    fields(context, lines)?;
    let receipts = state.receipts.iter().map(Receipt::new).collect();
    message_text::receipts(context, receipts)?;
    message_text::text(context, &body, "")?;
    Ok(Code::Ok)
}

fn show_script_message(context: &mut Context, entry: &MailboxEntry) -> Result<Code> {
    let body = entry.body(&context.home)?;
    let (MailboxEntryJson::Script(shown), MailboxEntry::Script { copy, .. }) =
        (entry.to_json(body, context.now), entry)
    else {
        return Ok(Code::Ok);
    };
    if context.json {
        context.out.json(&shown)?;
        return Ok(Code::Ok);
    }
    let here = copy.as_ref().map(|copy| copy.message.id.to_string());
    let mut lines = entry.head(context);
    lines.extend([("thread", shown.thread_id), ("here", here)]);
    fields(context, lines)?;
    message_text::receipts(context, shown.receipts)?;
    message_text::text(context, &shown.body, "")?;
    Ok(Code::Ok)
}
