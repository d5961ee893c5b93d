//! `ph read`: prints a message, and then marks it as read.

use crate::cli::mail::mailbox::{Located, Mailbox, MailboxEntry, Marking};
use crate::cli::prelude::*;
use crate::output::message_text;
use jiff::Timestamp;
use posthaste_core::Order;
use posthaste_core::receipt::{Receipt, Step};
use posthaste_store::files;

/// Print a message and mark it as read
///
/// A message is marked as read only if its recipient or the person reads it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph read 3fa8c1d2
  ph read 3fa8c1d2 --body > review.md")]
pub(crate) struct Args {
    /// Message id or id prefix
    #[arg(value_name = "ID", add = complete_ids())]
    id: TypedId,
    /// Print only the text; its bytes are unchanged unless the output is a terminal
    #[arg(long, conflicts_with = "json")]
    body: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let mailbox = Mailbox::open(context)?;
    let mut found = mailbox.find(context, &args.id)?;
    // Load the text first: a message that cannot be shown is not marked as read.
    let (entry, body, marking) = open(context, &mut found)?;
    if context.json {
        context.out.json(&entry.to_json(body, context.now))?;
    } else if args.body && context.out.is_terminal() {
        context.out.bytes(text::visible(&body).as_bytes())?;
    } else if args.body {
        context.out.bytes(body.as_bytes())?;
    } else {
        fields(context, entry.head(context))?;
        message_text::text(context, &body, "")?;
    }
    context.out.flush()?;
    let (me, _) = context.me()?;
    if marking == Marking::NotMine {
        let to = text::one_line(entry.recipient(), 80);
        note(format!(
            "not marked as read: the message is for {to}, not for {me}"
        ));
    }
    match found {
        Located::Script(message) if marking == Marking::Due => {
            message.mark_read(context)?;
        }
        Located::Script(_) => {}
        Located::Journal(mut journal, state) => {
            if marking == Marking::Due {
                let ids = vec![state.message.id];
                mail::order(&mut journal, context.now, me, Order::MarkRead, ids)?;
            }
            mail::leave(journal);
        }
    }
    Ok(Code::Ok)
}

/// Return the message as it is after this reading, its text, and whether to mark it.
fn open(context: &Context, found: &mut Located<'_>) -> Result<(MailboxEntry, String, Marking)> {
    match found {
        Located::Script(message) => {
            let (message, marking) = message.open(context)?;
            let (message, copy) = (Box::new(message), None);
            let body = message.body.clone();
            Ok((MailboxEntry::Script { message, copy }, body, marking))
        }
        Located::Journal(_, state) => {
            let body = files::body(&context.home, &state.message)?;
            let (me, _) = context.me()?;
            let status = state.status.at(&state.message, context.now);
            let marking = match me.is_human() || me == state.message.to {
                false => Marking::NotMine,
                true if status.is_unread() => Marking::Due,
                true => Marking::Done,
            };
            if marking == Marking::Due {
                state.status.apply(Step::Read);
                state.receipts.push(reading(&me, context.now));
            }
            Ok((MailboxEntry::Journal(state.clone()), body, marking))
        }
    }
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
