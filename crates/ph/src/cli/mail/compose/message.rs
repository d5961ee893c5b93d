//! `ph message`: a short form of `ph send`, for callers of ralph's command.

use crate::cli::mail::compose::body::not_empty;
use crate::cli::mail::compose::recipients::{self, Agents};
use crate::cli::mail::compose::send::{Outgoing, SentFormat, post};
use crate::cli::mail::compose::wait::WaitArgs;
use crate::cli::mail::mailbox::Mailbox;
use crate::cli::prelude::*;
use crate::context::agent_name;
use posthaste_wire::method::Send;

/// Send a message to a loop or session by name
///
/// A short form of 'ph send'. The recipient need not be running, and need never have run.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph message --name my-feature 'Please prioritize the login feature'")]
pub(crate) struct Args {
    /// Recipient
    #[arg(short, long, value_name = "NAME", add = complete_agents())]
    name: Option<String>,
    /// Message text
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let name = args.name.filter(|name| !name.is_empty()).ok_or_else(|| {
        Report::usage("--name flag required")
            .hint("for example: ph message --name my-feature 'text'")
    })?;
    let to = agent_name(&name)?;
    let text = args.text.ok_or_else(|| {
        Report::usage("the message text is missing")
            .hint("for example: ph message --name my-feature 'text'")
    })?;
    let (from, from_evidence) = context.sender(None)?;
    let body = not_empty(text)?;
    let allow_self = false;
    let Agents { names, .. } = recipients::resolve(context, &[to.into()], &from, allow_self)?;
    let mailbox = Mailbox::open(context)?;
    let outgoing = Outgoing {
        from,
        from_evidence,
        to: names,
        message: Send {
            priority: Some(context.config.priority),
            ..Send::new(body)
        },
        notifies: false,
    };
    let wait = WaitArgs::default();
    post(context, &mailbox, &outgoing, SentFormat::Sentence, &wait)
}
