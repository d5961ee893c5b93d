//! `mark-read` and `mark-unread`, and the output of every verb that changes messages.

use crate::cli::mail::mailbox::Mailbox;
use crate::cli::names::{NameParser, SaidId, complete_agents, complete_ids};
use crate::context::Context;
use posthaste_core::{AgentName, Order};
use posthaste_store::operation::Outcome;
use posthaste_store::report::{Code, Report, Result};

/// Mark messages as read without printing them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph mark-read 3fa8c1d2 9b0e77aa")]
pub(crate) struct ReadArgs {
    /// Message ids or id prefixes
    #[arg(value_name = "ID", required = true, add = complete_ids())]
    ids: Vec<SaidId>,
    /// Recipient that the messages must have [default: any]
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    agent: Option<AgentName>,
}

/// Mark messages as unread
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph mark-unread 3fa8c1d2")]
pub(crate) struct UnreadArgs {
    /// Message ids or id prefixes
    #[arg(value_name = "ID", required = true, add = complete_ids())]
    ids: Vec<SaidId>,
    /// Recipient that the messages must have [default: any]
    #[arg(long, value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    agent: Option<AgentName>,
}

pub(crate) fn read(context: &mut Context, args: &ReadArgs) -> Result<Code> {
    check_recipient(context, &args.ids, args.agent.as_ref())?;
    order(
        context,
        Order::MarkRead,
        &args.ids,
        |outcome| match outcome {
            Outcome::Changed => "marked as read",
            Outcome::Unchanged | Outcome::AlreadyArchived => "already read",
        },
    )
}

pub(crate) fn unread(context: &mut Context, args: &UnreadArgs) -> Result<Code> {
    check_recipient(context, &args.ids, args.agent.as_ref())?;
    order(
        context,
        Order::MarkUnread,
        &args.ids,
        |outcome| match outcome {
            Outcome::Changed => "marked as unread",
            Outcome::Unchanged | Outcome::AlreadyArchived => "already unread",
        },
    )
}

/// Refuse messages to another recipient than `agent`.
fn check_recipient(context: &Context, said: &[SaidId], agent: Option<&AgentName>) -> Result<()> {
    let Some(agent) = agent else { return Ok(()) };
    if let Mailbox::Script(_) = Mailbox::open(context)? {
        return Err(
            Report::usage("--agent cannot be used while a script keeps the mail")
                .hint("omit --agent: the script finds messages by id"),
        );
    }
    let mut journal = context.reader()?;
    for id in said {
        let prefix = id.prefix()?;
        let to = context.find(journal.as_mut(), &prefix)?.message.to;
        if to != *agent {
            return Err(Report::not_found(format!("no message {prefix} to {agent}"))
                .hint(format!("the recipient of that message is {to}")));
        }
    }
    Ok(())
}

/// Apply an order to messages, and print each outcome as `word` names it.
pub(crate) fn order(
    context: &mut Context,
    order: Order,
    ids: &[SaidId],
    word: fn(Outcome) -> &'static str,
) -> Result<Code> {
    Mailbox::open(context)?.order(context, order, ids, word)
}
