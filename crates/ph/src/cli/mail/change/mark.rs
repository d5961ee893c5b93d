//! `mark-read` and `mark-unread`, and the output of every verb that changes messages.

use crate::cli::mail::mailbox;
use crate::cli::names::{NameParser, SaidId, complete_agents, complete_ids};
use crate::context::Context;
use posthaste_client::mail;
use posthaste_core::{AgentName, Order};
use posthaste_store::operation::{Ordered, Outcome};
use posthaste_store::report::{Code, Report, Result};
use serde::Serialize;

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
    if mailbox::script(context)?.is_some() {
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

#[derive(Serialize)]
struct Answer {
    id: String,
    outcome: &'static str,
    changed: bool,
}

/// Apply an order to all messages or to none, and print each outcome as `word` names it.
pub(crate) fn order(
    context: &mut Context,
    order: Order,
    said: &[SaidId],
    word: impl Fn(Outcome) -> &'static str,
) -> Result<Code> {
    if let Some(script) = mailbox::script(context)? {
        let here = said.iter().map(|id| mailbox::is_here(context, &script, id));
        let here = here.collect::<Result<Vec<_>>>()?;
        if !here.contains(&true) {
            return mailbox::order(context, &script, order, said, word);
        }
        if here.contains(&false) {
            return Err(Report::usage(
                "some of these messages are in the journal, others are kept by a script",
            )
            .hint("use one command for each kind; 'ph show ID' finds messages in the journal"));
        }
    }
    let prefixes = said.iter().map(SaidId::prefix);
    let prefixes = prefixes.collect::<Result<Vec<_>>>()?;
    let mut journal = context.reader()?;
    let mut ids = Vec::with_capacity(prefixes.len());
    for prefix in &prefixes {
        let id = context.find(journal.as_mut(), prefix)?.message.id;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    if let Some(mut journal) = journal {
        let ordered = mail::order(&mut journal, context.now, context.me()?.0, order, ids)?;
        answer(context, &ordered, word)?;
        context.out.flush()?;
        mail::leave(journal);
    }
    Ok(Code::Ok)
}

fn answer(
    context: &mut Context,
    ordered: &[Ordered],
    word: impl Fn(Outcome) -> &'static str,
) -> Result<()> {
    if context.json {
        let answers: Vec<_> = ordered
            .iter()
            .map(|one| Answer {
                id: one.message.id.to_string(),
                outcome: word(one.outcome),
                changed: one.outcome == Outcome::Changed,
            })
            .collect();
        context.out.json(&answers)?;
    } else {
        for one in ordered {
            context
                .out
                .line(format!("{} {}", one.message.id.id8(), word(one.outcome)))?;
        }
    }
    Ok(())
}
