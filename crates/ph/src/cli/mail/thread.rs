//! `ph thread`: prints the messages of a thread.

use crate::cli::mail::mailbox::{self, Mailbox};
use crate::cli::prelude::*;

/// Print all messages of a thread, in order
///
/// ID is the thread's id or that of any message in it. Archived messages are included; deleted
/// messages are not.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph thread 3fa8c1d2
  ph thread 3fa8c1d2 --json | jq -r '.[].body'")]
pub(crate) struct Args {
    /// Id or id prefix of the thread or of a message in it
    #[arg(value_name = "ID", add = complete_ids())]
    id: TypedId,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let messages = Mailbox::open(context)?.thread(context, &args.id)?;
    mailbox::print_thread(context, &messages)?;
    Ok(Code::Ok)
}
