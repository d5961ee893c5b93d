//! `ph archive`, `cancel`, `delete`, `mark-read` and `mark-unread`: change messages without writing
//! one.

use crate::cli::mail::mailbox::Mailbox;
use crate::cli::prelude::*;
use posthaste_core::Order;

/// Archive messages
///
/// Removes messages from the inbox. 'ph thread', 'ph search' and 'ph log' still show them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph archive 3fa8c1d2
  ph archive 3fa8c1d2 9b0e77aa")]
pub(crate) struct ArchiveArgs {
    #[command(flatten)]
    ids: IdsArgs,
}

/// Cancel messages that nobody has seen yet
///
/// Only the sender and the person can cancel a message. A message that was offered or read cannot
/// be cancelled.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph cancel 3fa8c1d2")]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    ids: IdsArgs,
}

/// Delete messages
///
/// Removes messages from the inbox, from threads and from search. The log still lists them, as it
/// lists every fact.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph delete 3fa8c1d2")]
pub(crate) struct DeleteArgs {
    #[command(flatten)]
    ids: IdsArgs,
}

/// Mark messages as read without printing them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph mark-read 3fa8c1d2 9b0e77aa")]
pub(crate) struct ReadArgs {
    #[command(flatten)]
    ids: IdsArgs,
    #[command(flatten)]
    recipient: AgentArgs,
}

/// Mark messages as unread
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph mark-unread 3fa8c1d2")]
pub(crate) struct UnreadArgs {
    #[command(flatten)]
    ids: IdsArgs,
    #[command(flatten)]
    recipient: AgentArgs,
}

#[derive(Debug, clap::Args)]
struct IdsArgs {
    /// Message ids or id prefixes
    #[arg(value_name = "ID", required = true, add = complete_ids())]
    ids: Vec<TypedId>,
}

#[derive(Debug, clap::Args)]
struct AgentArgs {
    /// Change nothing if a message is not to this agent
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    agent: Option<AgentName>,
}

pub(crate) fn archive(context: &mut Context, args: &ArchiveArgs) -> Result<Code> {
    order(context, Order::Archive, &args.ids)
}

pub(crate) fn cancel(context: &mut Context, args: &CancelArgs) -> Result<Code> {
    order(context, Order::Cancel, &args.ids)
}

pub(crate) fn delete(context: &mut Context, args: &DeleteArgs) -> Result<Code> {
    order(context, Order::Delete, &args.ids)
}

pub(crate) fn mark_read(context: &mut Context, args: &ReadArgs) -> Result<Code> {
    check_recipient(context, &args.ids, &args.recipient)?;
    order(context, Order::MarkRead, &args.ids)
}

pub(crate) fn mark_unread(context: &mut Context, args: &UnreadArgs) -> Result<Code> {
    check_recipient(context, &args.ids, &args.recipient)?;
    order(context, Order::MarkUnread, &args.ids)
}

fn order(context: &mut Context, order: Order, args: &IdsArgs) -> Result<Code> {
    Mailbox::open(context)?.order(context, order, &args.ids)
}

/// Refuse messages to another recipient than `--agent`.
fn check_recipient(context: &Context, args: &IdsArgs, recipient: &AgentArgs) -> Result<()> {
    let Some(agent) = &recipient.agent else {
        return Ok(());
    };
    if let Mailbox::Script(_) = Mailbox::open(context)? {
        return Err(
            Report::usage("--agent cannot be used while a script keeps the mail")
                .hint("omit --agent: the script finds messages by id"),
        );
    }
    let mut journal = context.reader()?;
    for id in &args.ids {
        let prefix = id.prefix()?;
        let to = context.find(journal.as_mut(), &prefix)?.message.to;
        if to != *agent {
            return Err(Report::not_found(format!("no message {prefix} to {agent}"))
                .hint(format!("the recipient of that message is {to}")));
        }
    }
    Ok(())
}
