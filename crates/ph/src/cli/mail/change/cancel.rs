use crate::cli::names::{SaidId, complete_ids};
use crate::context::Context;
use posthaste_core::Order;
use posthaste_store::operation::Outcome;
use posthaste_store::report::{Code, Result};

/// Cancel messages that nobody has seen yet
///
/// Only the sender and the person can cancel a message. A message that was offered or read cannot
/// be cancelled.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph cancel 3fa8c1d2")]
pub(crate) struct Args {
    /// Message ids or id prefixes
    #[arg(value_name = "ID", required = true, add = complete_ids())]
    ids: Vec<SaidId>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    crate::cli::mail::change::mark::order(
        context,
        Order::Cancel,
        &args.ids,
        |outcome| match outcome {
            Outcome::Changed => "cancelled",
            Outcome::Unchanged | Outcome::AlreadyArchived => "already cancelled",
        },
    )
}
