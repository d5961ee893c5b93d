//! `ph checkpoint` and `ph resume`: pause a loop between two iterations, and continue it.

use crate::cli::prelude::*;
use crate::cli::session::call_session;
use posthaste_core::loop_::LoopPhase;
use posthaste_store::live::SessionDir;
use serde_json::json;

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
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
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
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = &args.name;
    call_session(context, name, &method::Checkpoint {})?;
    let (status, when) = match is_paused(context, name) {
        true => ("checkpointed", "is paused"),
        false => ("checkpoint_requested", "pauses after this"),
    };
    let line = format!("{name} {when}; 'ph resume {name}' continues it");
    context.print(&json!({"name": name, "status": status}), line)?;
    Ok(Code::Ok)
}

/// Return whether `name` is a loop that has reached a checkpoint.
fn is_paused(context: &Context, name: &AgentName) -> bool {
    let record = SessionDir::of(&context.home, name).record();
    let state = context.query(|journal| journal.loop_state(name));
    record.is_some_and(|record| record.launch.is_loop())
        && state
            .ok()
            .flatten()
            .is_some_and(|state| matches!(state.phase, LoopPhase::Paused { .. }))
}

pub(crate) fn resume(context: &mut Context, args: &ResumeArgs) -> Result<Code> {
    let name = &args.name;
    let resumed = call_session(context, name, &method::Resume {});
    let resumed = resumed.map_err(|report| match report.advice() {
        Some(_) => report,
        None => report.hint(format!("'ph status {name}' shows its status")),
    })?;
    let (status, line, code) = match resumed.paused {
        true => ("paused", "is still paused", Code::No),
        false => ("running", "continues", Code::Ok),
    };
    let json = json!({"name": name, "status": status});
    context.print(&json, format!("{name} {line}"))?;
    Ok(code)
}
