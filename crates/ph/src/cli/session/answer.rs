//! `ph answer`: types a text into a session's terminal, to answer a dialog.

use crate::cli::mail::compose::body::not_empty;
use crate::cli::mail::compose::send::{self, Outgoing, SentFormat};
use crate::cli::mail::compose::wait::WaitArgs;
use crate::cli::mail::mailbox::Mailbox;
use crate::cli::prelude::*;
use crate::cli::session::is_silent;
use posthaste_client::session::client::{CallError, Client, TYPING_TIMEOUT};
use posthaste_core::MessageId;
use posthaste_wire::method::{self, TYPING_REQUEST_VALIDITY};

/// Answer an agent's question or permission request
///
/// Types TEXT into the agent's terminal, without a header, then presses Enter. If the harness
/// recognises dialogs, Enter is pressed only while the same dialog is open, and the answer is
/// refused if no dialog is open. With other harnesses, TEXT is typed at once. Refused if the agent
/// is not running. Equivalent to 'ph send --raw'.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph peek coder-1
  ph answer coder-1 y
  ph answer coder-1 2 --wait offered --timeout 5s")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
    /// Text to type
    #[arg(value_name = "TEXT")]
    text: String,
    /// Sender [default: PH_AGENT, else human]
    #[arg(long, value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    from: Option<AgentName>,
    #[command(flatten)]
    wait: WaitArgs,
}

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let (from, from_evidence) = context.sender(args.from.as_ref())?;
    let text = not_empty(args.text).map_err(|report| {
        let name = &args.name;
        report.hint(format!(
            "'ph answer {name} y' types y and Enter; 'ph peek {name}' shows the question"
        ))
    })?;
    let outgoing = Outgoing {
        from,
        from_evidence,
        to: vec![args.name],
        message: method::Send {
            raw: true,
            ..method::Send::new(text)
        },
        notifies: false,
    };
    let mailbox = Mailbox::Journal;
    send::post(context, &mailbox, &outgoing, SentFormat::Id, &args.wait)
}

/// Send an answer to the recipient's session. There is no fallback through the journal: an answer
/// that is typed later could answer another question.
pub(crate) fn hand_over(
    context: &Context,
    name: &AgentName,
    send: &method::Send,
) -> Result<method::Sent> {
    let Some(mut client) = Client::connect_responsive(&context.home, name) else {
        return Err(unreachable(context, name));
    };
    // This timeout is longer than the time within which the session may start to type the answer.
    client.call(send, TYPING_TIMEOUT).map_err(|error| match error {
        CallError::Refused(failure) => Report::refused(failure.message).hint(format!(
            "'ph peek {name}' shows its screen; 'ph send {name}' leaves a message"
        )),
        CallError::NoReply => Report::storage(format!("the session of {name} does not answer"))
            .hint(format!(
                "'ph show {}' shows whether it was stored; it is not typed later than {} s after sending",
                send.id.map(MessageId::id8).unwrap_or_default(),
                TYPING_REQUEST_VALIDITY.as_secs()
            )),
    })
}

/// Return the error for an agent whose session cannot be reached.
fn unreachable(context: &Context, name: &AgentName) -> Report {
    match is_silent(context, name) {
        true => Report::storage(format!("the session of {name} does not answer")).hint(format!(
            "nothing was stored; 'ph status {name}' shows more, 'ph stop {name}' ends it"
        )),
        false => Report::refused(format!(
            "no session of {name} is running: there is no question to answer"
        ))
        .hint(format!("'ph send {name}' leaves a message")),
    }
}
