//! `checkpoint` and `resume`.

use super::names::{NameParser, complete_agents};
use super::pause::ask;
use crate::context::Context;
use crate::report::{Code, Result};
use posthaste_core::AgentName;
use posthaste_wire::method;
use serde::Serialize;

/// Pause a loop once its iteration is over
///
/// What runs is brought to its end; then the loop waits for 'ph resume'. A session that is no loop
/// holds its mail back after this turn.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph checkpoint login
  ph resume login")]
pub(super) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    name: AgentName,
}

/// Go on with a loop that is paused at a checkpoint
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph resume login")]
pub(super) struct ResumeArgs {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    name: AgentName,
}

#[derive(Serialize)]
struct Answer<'a> {
    name: &'a AgentName,
    status: &'static str,
}

pub(super) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = &args.name;
    ask(context, name, &method::Checkpoint {})?;
    if context.json {
        let status = "checkpoint_requested";
        context.out.json(&Answer { name, status })?;
    } else {
        let line = format!("{name} pauses after this; 'ph resume {name}' goes on");
        context.out.line(line)?;
    }
    Ok(Code::Ok)
}

pub(super) fn resume(context: &mut Context, args: &ResumeArgs) -> Result<Code> {
    let name = &args.name;
    let paused = ask(context, name, &method::Resume {})?.paused;
    let code = if paused { Code::No } else { Code::Ok };
    let status = if paused { "paused" } else { "running" };
    if context.json {
        context.out.json(&Answer { name, status })?;
    } else if paused {
        context.out.line(format!("{name} is still paused"))?;
    } else {
        context.out.line(format!("{name} goes on"))?;
    }
    Ok(code)
}
