//! `ph interactive`: turns a loop's interactive mode on or off.

use crate::cli::prelude::*;
use crate::cli::session::{call_session, find_session};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use posthaste_wire::param::Enabled;

/// Turn a loop's interactive mode on or off
///
/// While interactive mode is on, the loop ignores completion, does not start the next iteration,
/// and lets clients of its socket type (write_pty). Keys of an attached terminal always reach the
/// agent.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph interactive login on
  ph interactive login off")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
    /// on or off
    #[arg(value_name = "on|off", action = clap::ArgAction::Set, value_parser = PossibleValuesParser::new(["on", "off"]).map(|word| word == "on"))]
    mode: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = &args.name;
    let session = find_session(context, name)?;
    if session.socket.is_some() && session.loop_status.is_none() {
        return Err(Report::refused(format!("{name} is not a loop"))
            .hint(format!("'ph attach --take {name}' takes its keyboard")));
    }
    let request = method::SetInteractiveMode {
        enabled: Enabled(args.mode),
    };
    let mode = call_session(context, name, &request)?;
    let word = if mode.interactive_mode { "on" } else { "off" };
    context.print(&mode, format!("interactive mode of {name} is {word}"))?;
    Ok(Code::Ok)
}
