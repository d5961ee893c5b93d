//! Sending where a script keeps the mail: what was sent is told, and nothing that was not.

use super::journal_mail::Kept;
use super::local_copies::meant;
use crate::cli::mail::compose::send::Answer;
use crate::cli::names::SaidId;
use crate::context::Context;
use posthaste_client::session::client::{Client, PROMPT};
use posthaste_core::{AgentName, text};
use posthaste_provider::script::Script;
use posthaste_store::report::{Code, Report, Result};
use posthaste_wire::method;
use posthaste_wire::provider::{Message, Text};

/// What is to be sent, to whom.
pub(crate) struct Sending {
    pub(crate) from: AgentName,
    pub(crate) to: Vec<AgentName>,
    pub(crate) subject: Option<String>,
    pub(crate) body: String,
    pub(crate) allow_self: bool,
}

/// Sends one copy to each. A script cannot send all or none: where one fails, what was sent is
/// told, and the rest is not tried. Gives back who was sent to, too.
pub(crate) fn send(
    context: &mut Context,
    script: &Script,
    sending: &Sending,
    answer: Answer,
) -> (Vec<AgentName>, Result<Code>) {
    let mut sent = Vec::with_capacity(sending.to.len());
    let code = send_each(context, script, sending, answer, &mut sent);
    let names = sending.to.iter().take(sent.len()).cloned().collect();
    (names, code)
}

fn send_each(
    context: &mut Context,
    script: &Script,
    sending: &Sending,
    answer: Answer,
    sent: &mut Vec<Message>,
) -> Result<Code> {
    if sending.to.contains(&sending.from) && !sending.allow_self {
        let from = &sending.from;
        return Err(Report::refused(format!("{from} cannot send to itself"))
            .hint("'ph send --allow-self' sends it all the same"));
    }
    let text = Text {
        from: sending.from.to_string(),
        subject: sending.subject.clone().unwrap_or_default(),
        body: sending.body.clone(),
    };
    let mut failed = None;
    for to in &sending.to {
        match script.send(to.as_str(), &text) {
            Ok(message) => {
                wake(context, to);
                sent.push(message);
            }
            Err(trouble) => {
                failed = Some((to, trouble));
                break;
            }
        }
    }
    if failed.is_none() || !sent.is_empty() {
        print_sent(context, sent, answer)?;
    }
    let Some((to, trouble)) = failed else {
        return Ok(Code::Ok);
    };
    let (done, all) = (sent.len(), sending.to.len());
    let how_far = match (trouble.is_denial(), done) {
        (true, 0) => format!("nothing was sent to {to}:"),
        (true, _) => format!("{done} of {all} were sent, not the one to {to}:"),
        (false, 0) => format!("it is not known whether it was sent to {to}:"),
        (false, _) => {
            format!("{done} of {all} were sent; it is not known whether the one to {to} was:")
        }
    };
    Err(Report::from(trouble).after(&how_far))
}

/// Has the live session of a recipient ask for its mail now, and not at its next tick.
fn wake(context: &Context, to: &AgentName) {
    if let Some(mut session) = Client::of(&context.home, to) {
        let _ = session.call(&method::CheckMail {}, PROMPT);
    }
}

fn print_sent(context: &mut Context, sent: &[Message], answer: Answer) -> Result<()> {
    if context.json {
        let shown: Vec<_> = sent.iter().map(Message::shown).collect();
        match (answer, shown.as_slice()) {
            (Answer::Id | Answer::Sentence, [message]) => context.out.json(message)?,
            (Answer::Id | Answer::Ids | Answer::Sentence, several) => context.out.json(&several)?,
        }
    } else {
        for message in sent {
            let id = text::one_line(&message.id, usize::MAX);
            match answer {
                Answer::Id | Answer::Ids => context.out.line(id)?,
                Answer::Sentence => context.out.line(format!("Message sent: {id}"))?,
            }
        }
    }
    context.out.flush()
}

pub(crate) fn reply(
    context: &mut Context,
    mut kept: Kept,
    id: &SaidId,
    text: &Text,
) -> Result<Code> {
    let (id, _) = meant(context, id)?;
    // Who it must go to. One without 'get', or without the message, says so itself.
    let answered = match kept.get(&id) {
        Ok(message) => Some(message),
        Err(trouble) if trouble.is_unknown_op() || trouble.is_not_found() => None,
        Err(trouble) => return Err(trouble.into()),
    };
    let sent = kept.script.reply(&id, text, answered.as_ref());
    let sent = sent.map_err(|trouble| {
        let is_denial = trouble.is_denial();
        let report = Report::from(trouble);
        if is_denial {
            report
        } else {
            report.after("it is not known whether it was sent:")
        }
    })?;
    if let Ok(to) = AgentName::parse(&sent.to) {
        wake(context, &to);
    }
    print_sent(context, &[sent], Answer::Id)?;
    Ok(Code::Ok)
}
