use crate::cli::mail::mailbox::{self, Mailbox};
use crate::cli::prelude::*;
use posthaste_client::mail;

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
    let why = mail::why(&context.home, context.config.patience, context.now, &state);
    if context.json {
        context.out.json(&why)?;
        return Ok(Code::Ok);
    }
    let since = context.config.time.show(why.since, context.now);
    match why.reason {
        Some(reason) if why.held => {
            field(context, "held", &reason)?;
            field(context, "rule", &why.rule.unwrap_or_default())?;
            field(context, "since", &since)?;
            field(context, "evidence", &why.evidence.unwrap_or_default())?;
            field(context, "release", &why.release.unwrap_or_default())?;
        }
        reason => {
            let because = reason.map_or(String::new(), |reason| format!(": {reason}"));
            let how = format!("it is {}{because}", why.receipt);
            field(context, "not held", &how)?;
            field(context, "since", &since)?;
        }
    }
    if let Some(reply) = why.reply {
        field(context, "reply", &reply)?;
    }
    Ok(Code::Ok)
}
