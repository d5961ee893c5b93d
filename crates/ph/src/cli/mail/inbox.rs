use crate::cli::mail::mailbox::{self, Inbox};
use crate::cli::names::{AddressParser, complete_agents};
use crate::context::Context;
use crate::output::message_text;
use posthaste_client::roster::Address;
use posthaste_core::{MessageState, prompt};
use posthaste_store::Listing;
use posthaste_store::report::{Code, Result};

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
    #[arg(value_name = "NAME", value_parser = AddressParser, add = complete_agents())]
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
    let name = match &args.name {
        Some(name) => context.config.book.agent(name)?,
        None => context.me()?.0,
    };
    if let Some(script) = mailbox::script(context)? {
        if args.awaiting {
            return Err(mailbox::cannot(&script, "tell which replies are awaited"));
        }
        let which = match (args.prompt, args.all) {
            (true, _) => Inbox::Prompt,
            (false, true) => Inbox::All,
            (false, false) => Inbox::Unread,
        };
        return mailbox::inbox(context, &script, &name, which);
    }
    let listing = if args.all {
        Listing::All
    } else {
        Listing::Unread
    };
    let messages = match context.reader()? {
        Some(mut journal) if args.awaiting => journal.awaited(&name, context.now)?,
        Some(mut journal) => journal.inbox(&name, listing, context.now)?,
        None => Vec::new(),
    };
    if args.prompt {
        print_prompt(context, &messages)?;
    } else if context.json {
        let messages = message_text::all_as_json(&context.home, &messages, context.now)?;
        context.out.json(&messages)?;
    } else if messages.is_empty() {
        let none = match (args.awaiting, args.all) {
            (true, _) => format!("{name} awaits no reply"),
            (false, true) => format!("no mail for {name}"),
            (false, false) => format!("no unread mail for {name}"),
        };
        context.out.line(none)?;
    } else {
        message_text::list(context, &messages)?;
    }
    Ok(Code::Ok)
}

fn print_prompt(context: &mut Context, messages: &[MessageState]) -> Result<()> {
    let bodies = messages
        .iter()
        .map(|state| message_text::text_or_loss(&context.home, state));
    let bodies = bodies.collect::<Result<Vec<_>>>()?;
    let entries: Vec<_> = messages
        .iter()
        .zip(&bodies)
        .map(|(state, text)| prompt::Entry {
            message: &state.message,
            text,
        })
        .collect();
    let block = prompt::inbox_block(&entries, posthaste_store::times::zone());
    context.out.bytes(block.as_bytes())
}
