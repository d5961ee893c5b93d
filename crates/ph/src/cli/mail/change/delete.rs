use crate::cli::names::{SaidId, complete_ids};
use crate::context::Context;
use posthaste_core::Order;
use posthaste_store::report::{Code, Result};

/// Delete messages
///
/// Removes messages from the inbox, from threads and from search. The log still lists them, as it
/// lists every fact.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph delete 3fa8c1d2")]
pub(crate) struct Args {
    /// Message ids or id prefixes
    #[arg(value_name = "ID", required = true, add = complete_ids())]
    ids: Vec<SaidId>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    crate::cli::mail::change::mark::order(context, Order::Delete, &args.ids, |_| "deleted")
}
