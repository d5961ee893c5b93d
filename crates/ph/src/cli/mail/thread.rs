use crate::cli::mail::mailbox;
use crate::cli::names::{SaidId, complete_ids};
use crate::context::Context;
use crate::output::message_text;
use posthaste_store::report::{Code, Result};

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
    id: SaidId,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    if let Some(kept) = mailbox::kept(context, &args.id)? {
        return mailbox::thread(context, kept, &args.id);
    }
    let mut journal = context.reader()?;
    let prefix = args.id.prefix()?;
    let messages = match &mut journal {
        Some(journal) => {
            let thread = journal.find_thread(&prefix)?;
            journal.thread(thread)?
        }
        None => return Err(posthaste_store::Error::NotFound(prefix).into()),
    };
    if context.json {
        let messages = message_text::all_as_json(&context.home, &messages, context.now)?;
        context.out.json(&messages)?;
        return Ok(Code::Ok);
    }
    for (index, state) in messages.iter().enumerate() {
        if index > 0 {
            context.out.line("")?;
        }
        let body = message_text::text_or_loss(&context.home, state)?;
        message_text::head(context, state)?;
        // Indented, so that no text can be mistaken for the header of another message.
        message_text::text(context, &body, "    ")?;
    }
    Ok(Code::Ok)
}
