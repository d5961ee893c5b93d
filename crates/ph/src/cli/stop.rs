use super::names::{NameParser, complete_agents};
use super::status;
use crate::context::Context;
use crate::output::{progress, progress_done};
use crate::report::{Code, Report, Result};
use crate::session::client::{Client, NoAnswer, PATIENT};
use crate::session::place::Place;
use posthaste_core::AgentName;
use posthaste_wire::method;
use std::time::{Duration, Instant};

/// End a session
///
/// Asks its command to end (SIGHUP, SIGTERM), and after five seconds insists (SIGKILL). Its mail
/// stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph stop coder-1
  ph stop coder-1 --kill")]
pub(super) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    name: AgentName,
    /// Do not ask first
    #[arg(long, short)]
    kill: bool,
}

/// How long a session may take to end, once it insists.
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = &args.name;
    if !end(context, name, args.kill)? {
        // Whether it ever ran is worth knowing.
        let session = status::find(context, name)?;
        if context.json {
            context.out.json(&session)?;
        } else {
            context.out.line(format!("{name} does not run"))?;
        }
        return Ok(Code::Ok);
    }
    let session = status::find(context, name)?;
    if context.json {
        context.out.json(&session)?;
    } else {
        let how = session.exit.unwrap_or_default();
        context.out.line(format!("{name} has ended: {how}"))?;
    }
    Ok(Code::Ok)
}

/// Ends a session and waits until it is gone; false where none runs.
pub(super) fn end(context: &Context, name: &AgentName, kill: bool) -> Result<bool> {
    let place = Place::of(&context.home, name);
    if !place.is_held()? {
        return Ok(false);
    }
    let asked = match Client::of(&context.home, name) {
        Some(mut client) if kill => client.call(&method::Kill {}, PATIENT).map(drop),
        Some(mut client) => client.call(&method::Stop {}, PATIENT).map(drop),
        None => Err(NoAnswer::Silence),
    };
    // It may have ended before it could answer, or be about to end anyway.
    let refusal = match asked {
        Ok(()) | Err(NoAnswer::Silence) => None,
        Err(NoAnswer::Refused(failure)) => Some(failure.message),
    };
    let deadline = Instant::now() + PATIENCE;
    while place.is_held()? {
        if Instant::now() > deadline {
            progress_done();
            let why = refusal.map_or(String::new(), |why| format!(": {why}"));
            return Err(
                Report::storage(format!("{name} does not end{why}")).hint(format!(
                    "'ph stop --kill {name}', or see 'ph status {name}' for its process"
                )),
            );
        }
        progress(format!("waiting for {name} to end"));
        std::thread::sleep(Duration::from_millis(5));
    }
    progress_done();
    Ok(true)
}
