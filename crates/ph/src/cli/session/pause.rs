//! `ph pause` and `ph unpause`: hold an agent's mail, and release it.

use crate::cli::prelude::*;
use crate::cli::session::call_session;
use posthaste_wire::method::{self, Paused};
use serde_json::json;

/// Hold an agent's mail
///
/// Messages, urgent ones included, wait until 'ph unpause' or until the session ends. A message
/// that is being typed is completed first.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph pause coder-1
  ph unpause coder-1")]
pub(crate) struct PauseArgs {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
}

/// Deliver an agent's mail again
///
/// Exits with 1 if a person still has the keyboard: mail then waits until the keyboard is released.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph unpause coder-1")]
pub(crate) struct UnpauseArgs {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
}

pub(crate) fn pause(context: &mut Context, args: &PauseArgs) -> Result<Code> {
    let name = &args.name;
    call_session(context, name, &method::Pause {})?;
    let json = json!({"name": name, "paused": true, "reason": null});
    context.print(&json, format!("{name} is paused"))?;
    Ok(Code::Ok)
}

pub(crate) fn unpause(context: &mut Context, args: &UnpauseArgs) -> Result<Code> {
    let name = &args.name;
    let Paused { paused, reason } = call_session(context, name, &method::Resume {})?;
    let (line, code) = match paused {
        true => {
            let reason = reason.as_deref().unwrap_or_default();
            (format!("{name} is still paused: {reason}"), Code::No)
        }
        false => (format!("{name} is no longer paused"), Code::Ok),
    };
    let json = json!({"name": name, "paused": paused, "reason": reason});
    context.print(&json, line)?;
    Ok(code)
}
