use super::names::{NameParser, complete_agents};
use crate::context::Context;
use crate::report::{Code, Report, Result};
use crate::session::client::{Client, NoAnswer, PATIENT};
use crate::session::place::Place;
use crate::session::roll::SILENT;
use posthaste_core::AgentName;
use posthaste_wire::method::{self, Nudged};
use posthaste_wire::param::Keys;
use serde::Serialize;

/// Type a line into an agent's terminal, without a message
///
/// Nothing is stored and nothing is tried again: if the agent does not run, or a person is
/// typing, the line is lost, and this says so (exit 1).
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph nudge coder-1 'Check your mail'")]
pub(super) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    name: AgentName,
    /// What to type
    #[arg(value_name = "TEXT")]
    text: String,
}

#[derive(Serialize)]
struct Answer<'a> {
    name: &'a AgentName,
    nudged: bool,
    reason: Option<String>,
}

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = &args.name;
    if args.text.trim().is_empty() {
        return Err(Report::usage("there is nothing to type"));
    }
    let nudge = method::Nudge {
        text: Keys(args.text.clone()),
    };
    let reason = match Client::of(&context.home, name) {
        None if Place::of(&context.home, name).is_held()? => Some(SILENT.to_owned()),
        None => Some(format!("{name} does not run")),
        Some(mut client) => match client.call(&nudge, PATIENT) {
            Ok(Nudged::Nudged) => None,
            Ok(Nudged::Held { reason }) => Some(reason),
            Err(NoAnswer::Silence) => Some(SILENT.to_owned()),
            Err(NoAnswer::Refused(failure)) => return Err(Report::refused(failure.message)),
        },
    };
    let nudged = reason.is_none();
    if context.json {
        context.out.json(&Answer {
            name,
            nudged,
            reason,
        })?;
    } else if let Some(reason) = reason {
        context.out.line(format!("not nudged: {reason}"))?;
    }
    Ok(if nudged { Code::Ok } else { Code::No })
}
