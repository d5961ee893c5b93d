use crate::cli::mail::mailbox::{Entry, EntryJson, Located, Mailbox};
use crate::cli::prelude::*;
use crate::output::message_text;
use posthaste_client::mail;
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
    let reason = mail::why(&context.home, context.config.patience, context.now, &state).reason;
    if context.json {
        let mut detail = Detail::new(&state, body, file, context.now);
        detail.message.reason = reason;
        context.out.json(&detail)?;
        return Ok(Code::Ok);
    }
    let now = context.now;
    let show = |time| context.config.time.show(time, now);
    let envelope = &state.message.envelope;
    let mut more = vec![("thread", envelope.thread_id.to_string())];
    more.extend(file.map(|file| ("file", file)));
    more.extend(envelope.key.clone().map(|key| ("key", key)));
    more.extend(envelope.not_before.map(|time| ("not before", show(time))));
    more.extend(envelope.expires_at.map(|time| ("expires", show(time))));
    more.extend(envelope.deadline.map(|time| ("deadline", show(time))));
    more.extend(envelope.closes.map(|id| ("closes", id.to_string())));
    more.extend(envelope.cause.map(|id| ("cause", id.to_string())));
    if envelope.hops > 0 {
        more.push(("hops", envelope.hops.to_string()));
    }
    more.push((
        "receipt",
        state.status.at(&state.message, now).receipt().to_string(),
    ));
    more.extend(reason.map(|reason| ("because", reason)));
    message_text::head(context, &state)?;
    for (name, value) in more {
        field(context, name, &value)?;
    }
    let receipts = state.receipts.iter().map(Receipt::new).collect();
    message_text::receipts(context, receipts)?;
    message_text::text(context, &body, "")?;
    Ok(Code::Ok)
}

fn show_script_message(context: &mut Context, entry: &Entry) -> Result<Code> {
    let body = entry.body(&context.home)?;
    let (EntryJson::Script(shown), Entry::Script { copy, .. }) =
        (entry.to_json(body, context.now), entry)
    else {
        return Ok(Code::Ok);
    };
    if context.json {
        context.out.json(&shown)?;
        return Ok(Code::Ok);
    }
    entry.print_head(context)?;
    if let Some(thread) = &shown.thread_id {
        field(context, "thread", thread)?;
    }
    if let Some(copy) = copy {
        field(context, "here", &copy.message.id.to_string())?;
    }
    message_text::receipts(context, shown.receipts)?;
    message_text::text(context, &shown.body, "")?;
    Ok(Code::Ok)
}
