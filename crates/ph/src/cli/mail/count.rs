//! `ph count`: counts the messages in an inbox.

use crate::cli::mail::mailbox::Mailbox;
use crate::cli::prelude::*;

/// Count the messages in an inbox
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph count coder-1
  ph count --json | jq .unread")]
pub(crate) struct Args {
    /// Owner of the inbox [default: PH_AGENT, else human]
    #[arg(value_name = "NAME", value_parser = parse_address, add = complete_agents())]
    name: Option<Address>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = context.owner(args.name.as_ref())?;
    let count = Mailbox::open(context)?.count(context, &name)?;
    let line = format!("{} in total, {} unread", count.total, count.unread);
    context.print(&count, line)?;
    Ok(Code::Ok)
}
