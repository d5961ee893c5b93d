use crate::cli::prelude::*;
use crate::cli::session::status;
use posthaste_client::roster::{self, Address};
use posthaste_client::session::client::{CallError, Client, TYPING_TIMEOUT};
use posthaste_client::session::sessions::NO_RESPONSE;
use posthaste_wire::Activity;
use posthaste_wire::method::{self, Nudged};
use posthaste_wire::param::Keys;

/// Type a line into an agent's terminal without storing a message
///
/// The line is neither stored nor retried: if the agent is not running, or a person is typing, the
/// line is discarded, and ph prints why and exits with 1. Without TEXT, ph types the text in the
/// settings: [agents.NAME] nudge = "TEXT".
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph nudge coder-1 'Check your mail'
  ph nudge coder-1")]
pub(crate) struct Args {
    /// The agent's name, an alias or a group
    #[arg(value_name = "NAME", value_parser = AddressParser, add = complete_agents())]
    name: Address,
    /// Line to type [default: the setting agents.NAME.nudge]
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

#[derive(Serialize)]
struct Answer<'a> {
    name: &'a AgentName,
    nudged: bool,
    reason: Option<String>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let names = context
        .config
        .roster
        .resolve(std::slice::from_ref(&args.name))?;
    let texts = names.iter().map(|name| text(context, args, name));
    let texts = texts.collect::<Result<Vec<_>>>()?;
    let mut answers = Vec::with_capacity(names.len());
    for (name, text) in names.iter().zip(&texts) {
        let reason = nudge(context, name, text)?;
        let nudged = reason.is_none();
        answers.push(Answer {
            name,
            nudged,
            reason,
        });
    }
    match answers.as_slice() {
        [answer] if context.json => context.out.json(answer)?,
        answers if context.json => context.out.json(&answers)?,
        answers => {
            for Answer { name, reason, .. } in answers {
                let whom = match answers {
                    [_] => String::new(),
                    _ => format!(" ({name})"),
                };
                if let Some(reason) = reason {
                    context.out.line(format!("not nudged{whom}: {reason}"))?;
                    if *reason == absence(name) {
                        note(format!(
                            "'ph send {name}' leaves a message; 'ph run --name {name} COMMAND' \
                             starts it"
                        ));
                    }
                }
            }
        }
    }
    let is_done = answers.iter().all(|answer| answer.nudged);
    Ok(if is_done { Code::Ok } else { Code::No })
}

/// Return the line to type: the argument, else the agent's setting.
fn text(context: &Context, args: &Args, name: &AgentName) -> Result<String> {
    let text = args.text.as_deref().or(context.config.roster.nudge(name));
    let text = text.ok_or_else(|| {
        Report::usage(format!(
            "the text is missing, and the settings have none for {name}"
        ))
        .hint(format!(
            "write it after the name, or set agents.{name}.nudge"
        ))
    })?;
    if text.trim().is_empty() {
        return Err(Report::usage("the text to type is empty"));
    }
    if !roster::is_line(text.trim()) {
        return Err(
            Report::usage("a nudge is one line, without control characters")
                .hint("'ph send' takes any text"),
        );
    }
    Ok(text.to_owned())
}

/// Type a line into an agent's terminal. Return the reason if it was discarded.
pub(crate) fn nudge(context: &Context, name: &AgentName, text: &str) -> Result<Option<String>> {
    let Some(mut client) = Client::connect_responsive(&context.home, name) else {
        return Ok(Some(silence(context, name)));
    };
    let nudge = method::Nudge {
        text: Keys(text.to_owned()),
        asked_at: Some(posthaste_store::times::now()),
    };
    // This timeout is longer than the time within which the session may start to type the line, so
    // a line without a reply is not typed later.
    match client.call(&nudge, TYPING_TIMEOUT) {
        Ok(Nudged::Nudged) => Ok(None),
        Ok(Nudged::Held { reason }) => Ok(Some(reason)),
        Err(CallError::NoReply) => Ok(Some(silence(context, name))),
        Err(CallError::Refused(failure)) => Err(Report::refused(failure.message)),
    }
}

/// Explain why a session did not reply: it may be ending.
fn silence(context: &Context, name: &AgentName) -> String {
    if status::is_silent(context, name) {
        return NO_RESPONSE.to_owned();
    }
    match status::find(context, name) {
        Ok(session) if session.activity != Activity::Exited => NO_RESPONSE.to_owned(),
        Ok(_) | Err(_) => absence(name),
    }
}

fn absence(name: &AgentName) -> String {
    format!("{name} is not running")
}
