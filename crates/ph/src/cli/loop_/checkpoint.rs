//! `checkpoint` and `resume`.

use crate::cli::names::{NameParser, complete_agents};
use crate::cli::session::pause::ask;
use crate::context::Context;
use posthaste_core::AgentName;
use posthaste_core::loop_::LoopPhase;
use posthaste_store::live::SessionDir;
use posthaste_store::report::{Code, Result};
use posthaste_wire::method;
use serde::Serialize;

/// Pause a loop after its current iteration
///
/// The current iteration finishes; then the loop waits for 'ph resume'. If the session is not a
/// loop, its mail is held after the current turn.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph checkpoint login
  ph resume login")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    name: AgentName,
}

/// Resume a loop that is paused at a checkpoint
///
/// If the checkpoint has not been reached yet, it is cancelled.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph resume login")]
pub(crate) struct ResumeArgs {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    name: AgentName,
}

#[derive(Serialize)]
struct Answer<'a> {
    name: &'a AgentName,
    status: &'static str,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = &args.name;
    ask(context, name, &method::Checkpoint {})?;
    let (status, when) = match is_paused(context, name) {
        true => ("checkpointed", "is paused"),
        false => ("checkpoint_requested", "pauses after this"),
    };
    if context.json {
        context.out.json(&Answer { name, status })?;
    } else {
        let line = format!("{name} {when}; 'ph resume {name}' continues it");
        context.out.line(line)?;
    }
    Ok(Code::Ok)
}

/// Return whether `name` is a loop that has reached a checkpoint.
fn is_paused(context: &Context, name: &AgentName) -> bool {
    let record = SessionDir::of(&context.home, name).record();
    let journal = context.reader().ok().flatten();
    let state = journal.and_then(|mut journal| journal.loop_state(name).ok().flatten());
    record.is_some_and(|record| record.launch.is_loop())
        && state.is_some_and(|state| matches!(state.phase, LoopPhase::Paused { .. }))
}

pub(crate) fn resume(context: &mut Context, args: &ResumeArgs) -> Result<Code> {
    let name = &args.name;
    let answer = ask(context, name, &method::Resume {});
    let answer = answer.map_err(|report| match report.advice() {
        Some(_) => report,
        None => report.hint(format!("'ph status {name}' shows its status")),
    });
    let paused = answer?.paused;
    let code = if paused { Code::No } else { Code::Ok };
    let status = if paused { "paused" } else { "running" };
    if context.json {
        context.out.json(&Answer { name, status })?;
    } else if paused {
        context.out.line(format!("{name} is still paused"))?;
    } else {
        context.out.line(format!("{name} continues"))?;
    }
    Ok(code)
}
