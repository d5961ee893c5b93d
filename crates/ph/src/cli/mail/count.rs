use crate::cli::mail::mailbox::Mailbox;
use crate::cli::prelude::*;
use posthaste_client::roster::Address;
use posthaste_wire::Count;

/// Count the messages in an inbox
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph count coder-1
  ph count --json | jq .unread")]
pub(crate) struct Args {
    /// Owner of the inbox [default: PH_AGENT, else human]
    #[arg(value_name = "NAME", value_parser = AddressParser, add = complete_agents())]
    name: Option<Address>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = context.owner(args.name.as_ref())?;
    let Count { total, unread } = Mailbox::open(context)?.count(context, &name)?;
    if context.json {
        context.out.json(&Count { total, unread })?;
    } else {
        context
            .out
            .line(format!("{total} in total, {unread} unread"))?;
    }
    Ok(Code::Ok)
}
