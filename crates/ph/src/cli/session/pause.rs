//! `pause` and `unpause`.

use crate::cli::prelude::*;
use crate::cli::session::status;
use posthaste_client::session::client::{CallError, Client, TYPING_TIMEOUT};
use posthaste_client::session::sessions::NO_RESPONSE;
use posthaste_wire::method::{self, Method, Paused};

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
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
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
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    name: AgentName,
}

#[derive(Serialize)]
struct Answer<'a> {
    name: &'a AgentName,
    paused: bool,
    reason: Option<String>,
}

pub(crate) fn pause(context: &mut Context, args: &PauseArgs) -> Result<Code> {
    let name = &args.name;
    ask(context, name, &method::Pause {})?;
    if context.json {
        let (paused, reason) = (true, None);
        context.out.json(&Answer {
            name,
            paused,
            reason,
        })?;
    } else {
        context.out.line(format!("{name} is paused"))?;
    }
    Ok(Code::Ok)
}

pub(crate) fn unpause(context: &mut Context, args: &UnpauseArgs) -> Result<Code> {
    let name = &args.name;
    let Paused { paused, reason } = ask(context, name, &method::Resume {})?;
    let code = if paused { Code::No } else { Code::Ok };
    if context.json {
        context.out.json(&Answer {
            name,
            paused,
            reason,
        })?;
    } else if paused {
        let reason = reason.unwrap_or_default();
        context
            .out
            .line(format!("{name} is still paused: {reason}"))?;
    } else {
        context.out.line(format!("{name} is no longer paused"))?;
    }
    Ok(code)
}

/// Call the live session of an agent. Without one, return an error that explains why.
pub(crate) fn ask<M: Method>(
    context: &Context,
    name: &AgentName,
    question: &M,
) -> Result<M::Reply> {
    let awake = Client::connect_responsive(&context.home, name);
    let answer = awake.map(|mut client| client.call(question, TYPING_TIMEOUT));
    match answer {
        Some(Ok(answer)) => Ok(answer),
        Some(Err(CallError::Refused(failure))) => Err(Report::refused(failure.message)),
        Some(Err(CallError::NoReply)) | None => Err(silence(context, name)),
    }
}

/// Return the error for a session that did not reply: it never ran, has ended, or hangs.
fn silence(context: &Context, name: &AgentName) -> Report {
    let hangs = || {
        Report::storage(format!("{name}: {NO_RESPONSE}")).hint(format!(
            "'ph status {name}' shows whether it is paused; 'ph stop {name}' ends it"
        ))
    };
    if status::is_silent(context, name) {
        return hangs();
    }
    match status::find(context, name) {
        Err(report) => report,
        Ok(session) if session.socket.is_some() => hangs(),
        Ok(_) => Report::refused(format!("no session of {name} is running")).hint(format!(
            "its mail waits in the inbox; 'ph restart {name}' starts it again"
        )),
    }
}
