//! `ph nudge`: types a line into an agent's terminal, now or never.

use crate::cli::prelude::*;
use crate::cli::session::{find_session, is_silent, try_call_session};
use posthaste_client::roster;
use posthaste_client::session::client::TYPING_TIMEOUT;
use posthaste_client::session::sessions::NO_RESPONSE;
use posthaste_wire::method::{self, Nudged};
use posthaste_wire::param::KeyText;
use posthaste_wire::{Activity, Session};

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
    #[arg(value_name = "NAME", value_parser = parse_address, add = complete_agents())]
    name: Address,
    /// Line to type [default: the setting agents.NAME.nudge]
    #[arg(value_name = "TEXT")]
    text: Option<String>,
}

#[derive(Serialize)]
struct NudgeJson<'a> {
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
    let mut outcomes = Vec::with_capacity(names.len());
    for (name, text) in names.iter().zip(&texts) {
        let reason = nudge(context, name, text)?;
        outcomes.push(NudgeJson {
            name,
            nudged: reason.is_none(),
            reason,
        });
    }
    match outcomes.as_slice() {
        [outcome] if context.json => context.out.json(outcome)?,
        outcomes if context.json => context.out.json(&outcomes)?,
        outcomes => print(context, outcomes)?,
    }
    let is_done = outcomes.iter().all(|outcome| outcome.nudged);
    Ok(if is_done { Code::Ok } else { Code::No })
}

/// Print which agents were not nudged, and why.
fn print(context: &mut Context, outcomes: &[NudgeJson<'_>]) -> Result<()> {
    for NudgeJson { name, reason, .. } in outcomes {
        let Some(reason) = reason else { continue };
        let whom = match outcomes {
            [_] => String::new(),
            _ => format!(" ({name})"),
        };
        context.out.line(format!("not nudged{whom}: {reason}"))?;
        if *reason == absence(name) {
            note(format!(
                "'ph send {name}' leaves a message; 'ph run --name {name} COMMAND' starts it"
            ));
        }
    }
    Ok(())
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
    let nudge = method::Nudge {
        text: KeyText(text.to_owned()),
        asked_at: Some(posthaste_store::times::now()),
    };
    // This timeout is longer than the time within which the session may start to type the line, so
    // a line without a reply is not typed later.
    Ok(
        match try_call_session(context, name, &nudge, TYPING_TIMEOUT)? {
            Some(Nudged::Nudged) => None,
            Some(Nudged::Held { reason }) => Some(reason),
            None => Some(silence(context, name)),
        },
    )
}

/// Explain why a session did not reply: it may be ending.
fn silence(context: &Context, name: &AgentName) -> String {
    let is_alive = |session: Session| session.activity != Activity::Exited;
    match is_silent(context, name) || find_session(context, name).is_ok_and(is_alive) {
        true => NO_RESPONSE.to_owned(),
        false => absence(name),
    }
}

fn absence(name: &AgentName) -> String {
    format!("{name} is not running")
}
