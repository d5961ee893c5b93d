use crate::cli::names::{SaidId, complete_ids};
use crate::context::Context;
use posthaste_core::Order;
use posthaste_store::operation::Outcome;
use posthaste_store::report::{Code, Result};

/// Archive messages
///
/// Removes messages from the inbox. 'ph thread', 'ph search' and 'ph log' still show them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph archive 3fa8c1d2
  ph archive 3fa8c1d2 9b0e77aa")]
pub(crate) struct Args {
    /// Message ids or id prefixes
    #[arg(value_name = "ID", required = true, add = complete_ids())]
    ids: Vec<SaidId>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    crate::cli::mail::change::mark::order(context, Order::Archive, &args.ids, |outcome| {
        match outcome {
            Outcome::Changed | Outcome::Unchanged => "archived",
            Outcome::AlreadyArchived => "already archived",
        }
    })
}
