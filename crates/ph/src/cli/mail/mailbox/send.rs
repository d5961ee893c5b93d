//! Sends through a script, one call per recipient, and prints what was sent.

use crate::cli::mail::compose::send::{Outgoing, SentFormat};
use crate::cli::prelude::*;
use posthaste_client::session::client::{Client, FALLBACK_TIMEOUT};
use posthaste_provider::script::Script;
use posthaste_wire::provider::{Message, Text};

/// Send a copy to each recipient, stop at the first failure, and print what was sent. A script
/// cannot send all or none. Return the recipients to whom a copy was sent, even if others failed.
pub(crate) fn through_script(
    context: &mut Context,
    script: &Script,
    outgoing: &Outgoing,
    format: SentFormat,
) -> (Vec<AgentName>, Result<()>) {
    let mut sent = Vec::with_capacity(outgoing.to.len());
    let result = send_each(context, script, outgoing, format, &mut sent);
    let names = outgoing.to.iter().take(sent.len());
    (names.cloned().collect(), result)
}

fn send_each(
    context: &mut Context,
    script: &Script,
    outgoing: &Outgoing,
    format: SentFormat,
    sent: &mut Vec<Message>,
) -> Result<()> {
    let (from, message) = (&outgoing.from, &outgoing.message);
    if outgoing.to.contains(from) && !message.allow_self {
        return Err(Report::refused(format!("{from} cannot send to itself"))
            .hint("'ph send --allow-self' sends a message to yourself"));
    }
    let text = Text {
        from: from.to_string(),
        subject: message.subject.clone().unwrap_or_default(),
        body: message.body.clone(),
    };
    let mut failed = None;
    for to in &outgoing.to {
        match script.send(to.as_str(), &text) {
            Ok(message) => {
                wake(context, to.as_str());
                sent.push(message);
            }
            Err(error) => {
                failed = Some((to, error));
                break;
            }
        }
    }
    if failed.is_none() || !sent.is_empty() {
        print_script_messages(context, sent, format)?;
    }
    let Some((to, error)) = failed else {
        return Ok(());
    };
    let (done, all) = (sent.len(), outgoing.to.len());
    let progress = match (error.is_denial(), done) {
        (true, 0) => format!("nothing was sent to {to}:"),
        (true, _) => format!("{done} of {all} were sent, not the one to {to}:"),
        (false, 0) => format!("it is not known whether it was sent to {to}:"),
        (false, _) => {
            format!("{done} of {all} were sent; it is not known whether the one to {to} was:")
        }
    };
    Err(Report::from(error).after(&progress))
}

/// Let the recipient's live session ask the script for mail now instead of at its next tick.
pub(super) fn wake(context: &Context, to: &str) {
    if let Ok(to) = AgentName::parse(to)
        && let Some(mut session) = Client::connect_to(&context.home, &to)
    {
        let _ = session.call(&method::CheckMail {}, FALLBACK_TIMEOUT);
    }
}

pub(crate) fn print_script_messages(
    context: &mut Context,
    sent: &[Message],
    format: SentFormat,
) -> Result<()> {
    let ids = sent
        .iter()
        .map(|message| text::one_line(&message.id, usize::MAX));
    let ids: Vec<_> = ids.collect();
    let shown: Vec<_> = sent.iter().map(Message::shown).collect();
    print_sent(context, &ids, &shown, format)
}

/// Print ids, or in JSON the messages.
pub(crate) fn print_sent(
    context: &mut Context,
    ids: &[String],
    messages: &[impl Serialize],
    format: SentFormat,
) -> Result<()> {
    if context.json {
        return match (format, messages) {
            (SentFormat::Id | SentFormat::Sentence, [message]) => context.out.json(message),
            (SentFormat::Id | SentFormat::Ids | SentFormat::Sentence, several) => {
                context.out.json(&several)
            }
        }
        .and_then(|()| context.out.flush());
    }
    for id in ids {
        match format {
            SentFormat::Id | SentFormat::Ids => context.out.line(id)?,
            SentFormat::Sentence => context.out.line(format!("Message sent: {id}"))?,
        }
    }
    context.out.flush()
}
