//! `ph reply`: sends a reply in the thread of a message.

use crate::cli::mail::compose::body::{BodyArgs, one_line};
use crate::cli::mail::compose::send::{MessageArgs, Outgoing, SentFormat, post};
use crate::cli::mail::compose::wait::WaitArgs;
use crate::cli::mail::mailbox::{self, Located, Mailbox};
use crate::cli::prelude::*;
use posthaste_store::times;
use posthaste_wire::method::Send;
use posthaste_wire::provider::Text;

/// Reply to a message in its thread
///
/// The reply goes to the sender of the message, or to its recipient if you sent it. The original
/// message is not marked as read; 'ph read' does that.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph reply 3fa8c1d2 'Done, see commit 1a2b3c'
  ph reply 3fa8c1d2 --file report.md
  ph reply 3fa8c1d2 'Which branch?' --wait read --timeout 10m")]
pub(crate) struct Args {
    /// Message to reply to: its id or an id prefix
    #[arg(value_name = "ID", add = complete_ids())]
    id: TypedId,
    #[command(flatten)]
    body: BodyArgs,
    /// Subject line [default: 'Re: ' and the subject of the original message]
    #[arg(long, value_name = "TEXT", value_parser = one_line("subject"))]
    subject: Option<String>,
    #[command(flatten)]
    message: MessageArgs,
    #[command(flatten)]
    wait: WaitArgs,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let (from, from_evidence) = context.sender(args.message.from.as_ref())?;
    let mailbox = Mailbox::open(context)?;
    let parent = match mailbox.find_parent(context, &args.id)? {
        Located::Journal(_, state) => state.message,
        Located::Script(parent) => {
            mailbox.refuse_options(&[
                ("--priority", args.message.priority.is_some()),
                ("--expects-reply", args.message.expects_reply),
                ("--wait", args.wait.begin().is_some()),
            ])?;
            let text = Text {
                from: from.to_string(),
                subject: args.subject.unwrap_or_default(),
                body: args.body.read()?,
            };
            let sent = parent.reply(context, &text)?;
            mailbox::print_script_messages(context, &[sent], SentFormat::Id)?;
            return Ok(Code::Ok);
        }
    };
    let body = args.body.read()?;
    context.now = times::now();
    let to = if parent.envelope.from == from {
        parent.to
    } else {
        parent.envelope.from
    };
    let subject = parent.envelope.subject;
    let subject = args.subject.or_else(|| Some(reply_subject(&subject?)));
    let outgoing = Outgoing {
        from,
        from_evidence,
        to: vec![to],
        message: Send {
            subject,
            reply_to: Some(parent.id.into()),
            // A reply to one's own message to oneself is always intended.
            allow_self: true,
            ..args.message.message(context, body)
        },
        notifies: false,
    };
    let mailbox = Mailbox::Journal;
    post(context, &mailbox, &outgoing, SentFormat::Id, &args.wait)
}

fn reply_subject(subject: &str) -> String {
    let start = subject.get(..3);
    match start.is_some_and(|start| start.eq_ignore_ascii_case("re:")) {
        true => subject.to_owned(),
        false => format!("Re: {subject}"),
    }
}
