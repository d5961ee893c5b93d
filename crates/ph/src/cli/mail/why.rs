//! `ph why`: explains what holds a message.

use crate::cli::mail::mailbox::{self, Mailbox};
use crate::cli::prelude::*;

/// Explain what holds a message and what will release it
///
/// Prints which rule holds the message, since when, on what evidence, and what would release it.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph why 3fa8c1d2")]
pub(crate) struct Args {
    /// Message id or id prefix
    #[arg(value_name = "ID", add = complete_ids())]
    id: TypedId,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let mailbox = Mailbox::open(context)?;
    let Some(state) = mailbox::explain(context, &mailbox, &args.id)? else {
        return Ok(Code::Ok);
    };
    let why = context.why(&state);
    if context.json {
        context.out.json(&why)?;
        return Ok(Code::Ok);
    }
    let since = Some(context.shown_time(why.since));
    let lines = if why.held {
        vec![
            ("held", why.reason),
            ("rule", why.rule),
            ("since", since),
            ("evidence", why.evidence),
            ("release", why.release),
            ("reply", why.reply),
        ]
    } else {
        let because = why
            .reason
            .map_or(String::new(), |reason| format!(": {reason}"));
        let how = format!("it is {}{because}", why.receipt);
        vec![
            ("not held", Some(how)),
            ("since", since),
            ("reply", why.reply),
        ]
    };
    fields(context, lines)?;
    Ok(Code::Ok)
}
