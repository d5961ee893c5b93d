use crate::cli::names::{AddressParser, complete_agents};
use crate::cli::session::status;
use crate::context::Context;
use crate::output::note;
use posthaste_client::roster::{self, Address};
use posthaste_client::session::client::{Client, NoAnswer, UNHURRIED};
use posthaste_client::session::roll::SILENT;
use posthaste_core::AgentName;
use posthaste_store::report::{Code, Report, Result};
use posthaste_wire::Activity;
use posthaste_wire::method::{self, Nudged};
use posthaste_wire::param::Keys;
use serde::Serialize;

/// Type a line into an agent's terminal without storing a message
///
/// Nothing is stored and nothing is tried again: if the agent does not run, or a person is
/// typing, the line is lost, and this says so (exit 1). Without a text it is the one that the
/// settings have for the agent: [agents.NAME] nudge = "TEXT".
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph nudge coder-1 'Check your mail'
  ph nudge coder-1")]
pub(crate) struct Args {
    /// The agent's name, an alias or a group
    #[arg(value_name = "NAME", value_parser = AddressParser, add = complete_agents())]
    name: Address,
    /// What to type [default: the setting agents.NAME.nudge]
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
        .book
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

/// What is typed: what was said, else what the settings have for this agent.
fn text(context: &Context, args: &Args, name: &AgentName) -> Result<String> {
    let text = args.text.as_deref().or(context.config.book.nudge(name));
    let text = text.ok_or_else(|| {
        Report::usage(format!(
            "no text is given, and the settings have none for {name}"
        ))
        .hint(format!(
            "write it after the name, or set agents.{name}.nudge"
        ))
    })?;
    if text.trim().is_empty() {
        return Err(Report::usage("there is nothing to type"));
    }
    if !roster::is_line(text.trim()) {
        return Err(
            Report::usage("a nudge is one line, without control characters")
                .hint("'ph send' takes any text"),
        );
    }
    Ok(text.to_owned())
}

/// Types a line into an agent's terminal; gives back why it did not, where it is lost.
pub(crate) fn nudge(context: &Context, name: &AgentName, text: &str) -> Result<Option<String>> {
    let Some(mut client) = Client::awake(&context.home, name) else {
        return Ok(Some(silence(context, name)));
    };
    let nudge = method::Nudge {
        text: Keys(text.to_owned()),
        asked_at: Some(posthaste_store::times::now()),
    };
    // Longer than the session would begin with it: what was not answered is not typed later.
    match client.call(&nudge, UNHURRIED) {
        Ok(Nudged::Nudged) => Ok(None),
        Ok(Nudged::Held { reason }) => Ok(Some(reason)),
        Err(NoAnswer::Silence) => Ok(Some(silence(context, name))),
        Err(NoAnswer::Refused(failure)) => Err(Report::refused(failure.message)),
    }
}

/// Why nobody answers: one that has ended may still be on its way out.
fn silence(context: &Context, name: &AgentName) -> String {
    if status::is_silent(context, name) {
        return SILENT.to_owned();
    }
    match status::find(context, name) {
        Ok(session) if session.activity != Activity::Exited => SILENT.to_owned(),
        Ok(_) | Err(_) => absence(name),
    }
}

fn absence(name: &AgentName) -> String {
    format!("{name} does not run")
}
