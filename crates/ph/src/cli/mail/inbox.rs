//! `ph inbox`: lists an agent's messages.

use crate::cli::mail::mailbox::{self, InboxPart, Mailbox};
use crate::cli::prelude::*;

/// List an agent's unread messages
///
/// Changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph inbox
  ph inbox coder-1 --all
  ph inbox --awaiting
  ph inbox coder-1 --prompt >> prompt.md")]
pub(crate) struct Args {
    /// Owner of the inbox [default: PH_AGENT, else human]
    #[arg(value_name = "NAME", value_parser = parse_address, add = complete_agents())]
    name: Option<Address>,
    /// Include messages that were read but not archived, and messages that failed
    #[arg(long)]
    all: bool,
    /// List the messages that NAME has sent and that still await a reply
    #[arg(long, conflicts_with_all = ["all", "prompt"])]
    awaiting: bool,
    /// Print unread mail as a block for an agent's prompt; nothing if there is none
    #[arg(long, conflicts_with_all = ["all", "json"])]
    prompt: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = context.owner(args.name.as_ref())?;
    let part = match (args.awaiting, args.prompt, args.all) {
        (true, _, _) => InboxPart::Awaiting,
        (_, true, _) => InboxPart::Imported,
        (_, _, true) => InboxPart::All,
        (_, _, false) => InboxPart::Unread,
    };
    let messages = Mailbox::open(context)?.list(context, &name, part)?;
    if args.prompt {
        mailbox::print_prompt(context, &messages)?;
    } else if messages.is_empty() && !context.json {
        let none = match (args.awaiting, args.all) {
            (true, _) => format!("{name} awaits no reply"),
            (false, true) => format!("no mail for {name}"),
            (false, false) => format!("no unread mail for {name}"),
        };
        context.out.line(none)?;
    } else {
        mailbox::print_list(context, &messages)?;
    }
    Ok(Code::Ok)
}
