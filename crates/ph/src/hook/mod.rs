//! `ph hook`: the command that an agent's hooks run, at every prompt and every tool.
//!
//! Reports the event to the agent's session, and prints the reply that the agent expects. Starts
//! quickly, has a timeout for every wait, never fails, and prints errors only if `PH_LOG` is set.

mod alone;
mod stdin;

use crate::cli::admin::hook::Args;
use crate::output;
use posthaste_client::session::client::{CallError, Client};
use posthaste_core::text;
use posthaste_session::routes::hook_env::{HOOKS_INJECTED, HOOKS_VARIABLE, RUN_VARIABLE};
use posthaste_wire::method;
use posthaste_wire::param::Payload;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Timeout for the session's reply. The agent waits for the hook.
const SESSION_TIMEOUT: Duration = Duration::from_millis(200);
/// Maximum length of an event's name.
const MAX_EVENT_NAME_BYTES: usize = 200;

/// Run a hook. Always succeeds: an agent must never fail because of its mail.
pub(crate) fn run(call: &Args) {
    let is_marked = std::env::var_os(HOOKS_VARIABLE).is_some_and(|mark| mark == HOOKS_INJECTED);
    if is_marked && !call.injected {
        note_if_logging("the session's own hook reports this event");
    } else if let Err(why) = hook(call) {
        note_if_logging(&why);
    }
}

fn note_if_logging(why: &str) {
    if std::env::var_os("PH_LOG").is_some_and(|log| !log.is_empty() && log != "off") {
        output::note(why);
    }
}

fn hook(call: &Args) -> Result<(), String> {
    let input = stdin::read();
    let named = input.event.as_deref().or(call.event.as_deref());
    let event_name = named.filter(|name| !name.is_empty() && name.len() <= MAX_EVENT_NAME_BYTES);
    let event_name =
        event_name.ok_or("the event name is missing, both on standard input and in --event")?;
    let socket = std::env::var_os("PH_SOCKET").filter(|path| !path.is_empty());
    match socket {
        Some(socket) => {
            let question = method::HookEvent {
                harness: Some(call.harness.clone()),
                event_name: event_name.to_owned(),
                payload: input.payload.unwrap_or_else(Payload::null),
                // Mail must not be handed over if the output is discarded.
                takes_context: !output::goes_nowhere(),
                run: std::env::var(RUN_VARIABLE).ok(),
            };
            ask(&PathBuf::from(socket), &question)
        }
        // A session's hook outlived its session, which delivered the mail itself.
        None if call.injected => Err("there is no session: PH_SOCKET is not set".to_owned()),
        None => {
            let payload = input.payload.unwrap_or_else(Payload::null);
            alone::inject(call, event_name, payload.get())
        }
    }
}

/// Report the event to the session, print its reply, and confirm that the reply was printed: the
/// confirmation is the session's only evidence that the agent got its mail.
fn ask(socket: &Path, question: &method::HookEvent) -> Result<(), String> {
    let deadline = Instant::now() + SESSION_TIMEOUT;
    let left = || deadline.saturating_duration_since(Instant::now());
    let mut client = Client::connect(socket).ok_or("cannot reach the session")?;
    client
        .send(question, left())
        .map_err(|_| "cannot reach the session")?;
    let hooked = match client.receive::<method::HookEvent>(left()) {
        Ok(hooked) => hooked,
        Err(CallError::NoReply) => return Err("the session does not respond".to_owned()),
        Err(CallError::Refused(failure)) => return Err(text::one_line(&failure.message, 200)),
    };
    if let Some(output) = hooked.output {
        output::all_to_stdout(output.as_bytes())
            .map_err(|error| format!("cannot print the session's reply: {error}"))?;
    }
    if let Some(offer) = hooked.offer {
        // The session reads this later, even after this process has exited.
        client
            .send(&method::HookTaken { offer }, SESSION_TIMEOUT)
            .map_err(|_| "cannot confirm to the session that the agent got its mail")?;
    }
    Ok(())
}
