use crate::cli::mail::mailbox;
use crate::cli::names::{SaidId, complete_ids};
use crate::context::Context;
use crate::output::message_text;
use crate::output::note;
use jiff::Timestamp;
use posthaste_client::mail;
use posthaste_core::receipt::{Receipt, Step};
use posthaste_core::{AgentName, Order, text};
use posthaste_store::files;
use posthaste_store::report::{Code, Result};

/// Print a message and mark it as read
///
/// If an agent reads another agent's mail, the message is not marked. If the person reads it, it
/// is.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph read 3fa8c1d2
  ph read 3fa8c1d2 --body > review.md")]
pub(crate) struct Args {
    /// Message id or id prefix
    #[arg(value_name = "ID", add = complete_ids())]
    id: SaidId,
    /// Print only the text; unchanged byte for byte unless the output is a terminal
    #[arg(long, conflicts_with = "json")]
    body: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    if let Some(kept) = mailbox::kept(context, &args.id)? {
        return mailbox::read(context, kept, &args.id, args.body);
    }
    let (me, _) = context.me()?;
    let mut journal = context.reader()?;
    let mut message_state = context.find(journal.as_mut(), &args.id.prefix()?)?;
    let status = message_state.status.at(&message_state.message, context.now);
    // Load the text first: a message that cannot be shown is not marked as read.
    let body = files::body(&context.home, &message_state.message)?;
    let is_mine = me.is_human() || me == message_state.message.to;
    let marks = is_mine && status.is_unread();
    if marks {
        // Print the state after this reading, which is recorded as soon as all of it is printed.
        message_state.status.apply(Step::Read);
        message_state.receipts.push(reading(&me, context.now));
    }
    if context.json {
        let message = posthaste_wire::Message::new(&message_state, body, context.now);
        context.out.json(&message)?;
    } else if args.body && context.out.is_terminal() {
        context.out.bytes(text::visible(&body).as_bytes())?;
    } else if args.body {
        context.out.bytes(body.as_bytes())?;
    } else {
        message_text::head(context, &message_state)?;
        message_text::text(context, &body, "")?;
    }
    if !is_mine {
        context.out.flush()?;
        note(format!(
            "this message is for {}; it is not marked as read when {me} reads it",
            message_state.message.to
        ));
    }
    context.out.flush()?;
    if let Some(mut journal) = journal {
        if marks {
            let ids = vec![message_state.message.id];
            mail::order(
                &mut journal,
                context.now,
                context.me()?.0,
                Order::MarkRead,
                ids,
            )?;
        }
        mail::leave(journal);
    }
    Ok(Code::Ok)
}

/// Return the receipt for reading the message now.
fn reading(by: &AgentName, at: Timestamp) -> Receipt {
    Receipt {
        state: Step::Read.as_str().to_owned(),
        at,
        by: Some(by.clone()),
        route: None,
        evidence: None,
        reason: None,
    }
}
