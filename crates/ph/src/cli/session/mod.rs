//! The verbs of sessions, and how they find and call the session of an agent.

pub(crate) mod attach;
pub(crate) mod ls;
pub(crate) mod nudge;
pub(crate) mod pause;
pub(crate) mod peek;
pub(crate) mod replay;
pub(crate) mod restart;
pub(crate) mod run;
pub(crate) mod status;
pub(crate) mod stop;

use super::prelude::*;
use posthaste_client::session::client::{CallError, Client, TYPING_TIMEOUT};
use posthaste_client::session::sessions::{self, NO_RESPONSE};
use posthaste_wire::Session;
use posthaste_wire::method::Method;
use std::time::Duration;

/// Find the latest session of an agent, running or ended. Return an error if it has never run.
pub(crate) fn find_session(context: &Context, name: &AgentName) -> Result<Session> {
    let patience = context.config.patience;
    sessions::latest(&context.home, patience, name, context.now)?.ok_or_else(|| never_ran(name))
}

pub(crate) fn never_ran(name: &AgentName) -> Report {
    let report = Report::not_found(format!("{name} has never run"));
    if name.is_human() {
        return report
            .hint("'human' is the person, and has no session; 'ph ls' lists running sessions");
    }
    report.hint(format!("'ph run --name {name} COMMAND' starts it"))
}

/// Call the live session of an agent. Without one, return an error that explains why.
pub(crate) fn call_session<M: Method>(
    context: &Context,
    name: &AgentName,
    request: &M,
) -> Result<M::Reply> {
    if let Some(reply) = try_call_session(context, name, request, TYPING_TIMEOUT)? {
        return Ok(reply);
    }
    let hangs = is_silent(context, name) || find_session(context, name)?.socket.is_some();
    Err(match hangs {
        true => Report::storage(format!("{name}: {NO_RESPONSE}")).hint(format!(
            "'ph status {name}' shows whether it is paused; 'ph stop {name}' ends it"
        )),
        false => Report::refused(format!("no session of {name} is running")).hint(format!(
            "its mail waits in the inbox; 'ph restart {name}' starts it again"
        )),
    })
}

/// Like [`call_session`], but return `None` if the agent has no live session, or if the session
/// does not reply.
pub(crate) fn try_call_session<M: Method>(
    context: &Context,
    name: &AgentName,
    request: &M,
    timeout: Duration,
) -> Result<Option<M::Reply>> {
    let client = Client::connect_responsive(&context.home, name);
    match client.map(|mut client| client.call(request, timeout)) {
        Some(Ok(reply)) => Ok(Some(reply)),
        Some(Err(CallError::Refused(failure))) => Err(Report::refused(failure.message)),
        Some(Err(CallError::NoReply)) | None => Ok(None),
    }
}

/// Return whether a session is alive, for an agent whose session has just failed to reply.
pub(crate) fn is_silent(context: &Context, name: &AgentName) -> bool {
    let patience = context.config.patience;
    sessions::is_silent(&context.home, patience, name, context.now).unwrap_or(false)
}
