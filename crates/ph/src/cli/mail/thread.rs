use crate::cli::mail::script_mailbox;
use crate::cli::names::{SaidId, complete_ids};
use crate::context::Context;
use crate::output::letters;
use posthaste_store::report::{Code, Result};

/// Print all messages of a thread, in order
///
/// Any message of the thread will do, or the thread's own id. Archived messages are part of it;
/// deleted ones are not.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph thread 3fa8c1d2
  ph thread 3fa8c1d2 --json | jq -r '.[].body'")]
pub(crate) struct Args {
    /// The id of the thread or of a message in it, or its beginning
    #[arg(value_name = "ID", add = complete_ids())]
    id: SaidId,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    if let Some(kept) = script_mailbox::kept(context, &args.id)? {
        return script_mailbox::thread(context, kept, &args.id);
    }
    let mut journal = context.reader()?;
    let prefix = args.id.prefix()?;
    let letters = match &mut journal {
        Some(journal) => {
            let thread = journal.find_thread(&prefix)?;
            journal.thread(thread)?
        }
        None => return Err(posthaste_store::Error::NotFound(prefix).into()),
    };
    if context.json {
        let messages = letters::all_as_json(&context.home, &letters, context.now)?;
        context.out.json(&messages)?;
        return Ok(Code::Ok);
    }
    for (index, letter) in letters.iter().enumerate() {
        if index > 0 {
            context.out.line("")?;
        }
        let body = letters::text_or_loss(&context.home, letter)?;
        letters::head(context, letter)?;
        // Set off, so that no text can look like the head of another message.
        letters::text(context, &body, "    ")?;
    }
    Ok(Code::Ok)
}
