//! `ph hook`: what an agent's hooks call, at every prompt and every tool.
//!
//! Tells the agent's session what happened, and prints what the agent expects. It starts nothing
//! that it does not need, waits for nobody for long, never fails its agent, and is silent unless
//! `PH_LOG` asks.

mod alone;
mod stdin;

use crate::output;
use posthaste_client::session::client::{Client, NoAnswer};
use posthaste_core::text;
use posthaste_session::routes::hook::{INJECTED, MARK, RUN};
use posthaste_wire::method;
use posthaste_wire::param::Payload;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long a session may take. An agent waits for this.
const PATIENCE: Duration = Duration::from_millis(200);
/// No event has a longer name.
const LONGEST_NAME: usize = 200;

/// What a hook's command line says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Call {
    pub(crate) harness: String,
    pub(crate) event: Option<String>,
    /// Whose mail it is, where no session runs the program.
    pub(crate) agent: Option<String>,
    /// Whether the session gave this hook to the program.
    pub(crate) is_injected: bool,
}

/// Whatever happens, an agent must not fail because of its mail.
pub(crate) fn run(call: &Call) -> ExitCode {
    let is_marked = std::env::var_os(MARK).is_some_and(|mark| mark == INJECTED);
    if is_marked && !call.is_injected {
        tell("the session's own hook speaks for this agent");
    } else if let Err(why) = hook(call) {
        tell(&why);
    }
    ExitCode::SUCCESS
}

fn tell(why: &str) {
    if std::env::var_os("PH_LOG").is_some_and(|log| !log.is_empty() && log != "off") {
        output::note(why);
    }
}

fn hook(call: &Call) -> Result<(), String> {
    let heard = stdin::read();
    let named = heard.event.as_deref().or(call.event.as_deref());
    let event_name = named.filter(|name| !name.is_empty() && name.len() <= LONGEST_NAME);
    let event_name =
        event_name.ok_or("no event is named, neither on standard input nor by --event")?;
    let socket = std::env::var_os("PH_SOCKET").filter(|path| !path.is_empty());
    match socket {
        Some(socket) => {
            let question = method::HookEvent {
                harness: Some(call.harness.clone()),
                event_name: event_name.to_owned(),
                payload: heard.payload.unwrap_or_else(Payload::null),
                // Where nobody reads what is printed, nothing may be handed to it.
                takes_context: !output::goes_nowhere(),
                run: std::env::var(RUN).ok(),
            };
            ask(&PathBuf::from(socket), &question)
        }
        // The session has gone, and took its program's mail with it.
        None if call.is_injected => Err("there is no session: PH_SOCKET is not set".to_owned()),
        None => {
            let payload = heard.payload.unwrap_or_else(Payload::null);
            alone::inject(call, event_name, payload.get())
        }
    }
}

/// Tells the session, prints what it answers, and says so: until then it cannot know that its
/// agent was given anything.
fn ask(socket: &Path, question: &method::HookEvent) -> Result<(), String> {
    let deadline = Instant::now() + PATIENCE;
    let left = || deadline.saturating_duration_since(Instant::now());
    let mut client = Client::connect(socket).ok_or("the session does not listen")?;
    client
        .ask_within(question, left())
        .map_err(|_| "the session does not listen")?;
    let hooked = match client.answer::<method::HookEvent>(left()) {
        Ok(hooked) => hooked,
        Err(NoAnswer::Silence) => return Err("the session does not answer".to_owned()),
        Err(NoAnswer::Refused(failure)) => return Err(text::one_line(&failure.message, 200)),
    };
    if let Some(output) = hooked.output {
        output::all_to_stdout(output.as_bytes())
            .map_err(|error| format!("nobody reads what the agent is given: {error}"))?;
    }
    if let Some(offer) = hooked.offer {
        // Read in its own time; what is written stays when this process has gone.
        client
            .ask_within(&method::HookTaken { offer }, PATIENCE)
            .map_err(|_| "the session was not told that its agent has its mail")?;
    }
    Ok(())
}
