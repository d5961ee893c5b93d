//! `ph attach`: attaches this terminal to a session, and reports how that ended.

use crate::attach::{self, AttachEnd, AttachOptions};
use crate::cli::prelude::*;
use crate::cli::session::find_session;
use std::path::{Path, PathBuf};

/// Attach this terminal to a session
///
/// Shows the session's screen and sends your keys to its program. Detaching leaves the session
/// running.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Commands are Ctrl+\\ followed by a key: d detaches, t takes or releases the keyboard, r redraws,
Ctrl+\\ sends Ctrl+\\ to the program.

Examples:
  ph attach coder-1
  ph attach coder-1 --read-only")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
    /// Show the screen only: send no keys to the program
    #[arg(long, conflicts_with = "take")]
    read_only: bool,
    /// Take the keyboard now; mail waits until you release it
    #[arg(long)]
    take: bool,
    /// Socket of the session [default: that of the agent's session]
    #[arg(long, value_name = "PATH", hide = true)]
    socket: Option<PathBuf>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => socket_of(context, &args.name)?,
    };
    let options = AttachOptions {
        read_only: args.read_only,
        take: args.take,
        name: args.name.to_string(),
    };
    show(context, &socket, options)
}

/// Attach to a session until the person detaches or the session ends, and print which it was.
pub(crate) fn show(context: &mut Context, socket: &Path, options: AttachOptions) -> Result<Code> {
    let name = options.name.clone();
    let (line, code) = match attach::attach(socket, options)? {
        AttachEnd::Detached => (format!("detached from {name}"), Code::Ok),
        AttachEnd::Ended { how } => (format!("{name} ended: {how}"), Code::Ok),
        AttachEnd::LostSession => (format!("the connection to {name} is lost"), Code::No),
        AttachEnd::Killed(signal) => {
            attach::die_of(signal);
            return Ok(Code::No);
        }
    };
    context.out.line(line)?;
    Ok(code)
}

/// Return the socket of an agent's live session.
fn socket_of(context: &Context, name: &AgentName) -> Result<PathBuf> {
    // A session that is ending still holds its lock, but has no socket.
    match find_session(context, name)?.socket {
        Some(socket) => Ok(PathBuf::from(socket)),
        None => Err(
            Report::refused(format!("no session of {name} is running")).hint(format!(
                "'ph peek {name}' shows its last screen; 'ph restart {name}' starts it again"
            )),
        ),
    }
}
