use crate::cli::names::{SaidId, complete_ids};
use crate::context::Context;
use posthaste_core::Order;
use posthaste_store::report::{Code, Result};

/// Delete messages
///
/// They are not found any more. The log keeps what happened, as it keeps everything.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph delete 3fa8c1d2")]
pub(crate) struct Args {
    /// The messages' ids or their beginnings
    #[arg(value_name = "ID", required = true, add = complete_ids())]
    ids: Vec<SaidId>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    crate::cli::mail::change::mark::order(context, Order::Delete, &args.ids, |_| "deleted")
}
