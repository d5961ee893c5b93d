use crate::attach::{self, Key, Left, Options};
use crate::cli::names::{NameParser, complete_agents};
use crate::context::Context;
use posthaste_core::AgentName;
use posthaste_store::report::{Code, Report, Result};
use std::path::{Path, PathBuf};

/// Attach this terminal to a session
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Ctrl+\\ and then a key: d detaches, t takes the keyboard or gives it back, r redraws,
Ctrl+\\ goes to the program itself.

Examples:
  ph attach coder-1
  ph attach coder-1 --read-only")]
pub(crate) struct Args {
    /// Whose session
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    name: AgentName,
    /// Only look: no key goes to the program
    #[arg(long, conflicts_with = "take")]
    read_only: bool,
    /// Take the keyboard at once: mail waits until it is given back
    #[arg(long)]
    take: bool,
    /// The session that listens there, whoever is said to be its agent
    #[arg(long, value_name = "PATH", hide = true)]
    socket: Option<PathBuf>,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let socket = match &args.socket {
        Some(socket) => socket.clone(),
        None => socket_of(context, &args.name)?,
    };
    let options = Options {
        read_only: args.read_only,
        take: args.take,
        name: args.name.to_string(),
        prefix: Key::CTRL_BACKSLASH,
    };
    show(context, &socket, options)
}

/// Shows a session until one of the two leaves, and says who did.
pub(crate) fn show(context: &mut Context, socket: &Path, options: Options) -> Result<Code> {
    let name = options.name.clone();
    match attach::attach(socket, options)? {
        Left::Detached => {
            context.out.line(format!("detached from {name}"))?;
            Ok(Code::Ok)
        }
        Left::Ended { how } => {
            context.out.line(format!("{name} ended: {how}"))?;
            Ok(Code::Ok)
        }
        Left::LostSession => {
            context
                .out
                .line(format!("the connection to {name} is lost"))?;
            Ok(Code::No)
        }
        Left::Killed(signal) => {
            attach::die_of(signal);
            Ok(Code::No)
        }
    }
}

/// Where a live session of this name listens.
fn socket_of(context: &Context, name: &AgentName) -> Result<PathBuf> {
    // One that is on its way out still has its lock, and nothing more to show.
    match crate::cli::session::status::find(context, name)?.socket {
        Some(socket) => Ok(PathBuf::from(socket)),
        None => Err(
            Report::refused(format!("no session of {name} is running")).hint(format!(
                "'ph peek {name}' shows what it showed last; 'ph restart {name}' starts it again"
            )),
        ),
    }
}
