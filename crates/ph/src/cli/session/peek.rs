//! `ph peek`: prints a session's screen, live or from its recording.

use crate::cli::prelude::*;
use crate::cli::session::{find_session, is_silent, try_call_session};
use posthaste_client::session::client::REQUEST_TIMEOUT;
use posthaste_client::session::sessions::NO_RESPONSE;
use posthaste_screen as screen;
use posthaste_session::host::program_io::{RECORDING_STEM, SCROLLBACK_LINES};
use posthaste_store::live::SessionDir;
use posthaste_wire::method::{self, ScreenText};

/// Print an agent's screen, or its last one if the session has ended
///
/// Changes nothing and needs no terminal.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph peek coder-1
  ph peek coder-1 --lines 100
  ph peek coder-1 --ansi | less -R")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
    /// Print the last N lines, scrollback included [default: the screen]
    #[arg(long, short = 'n', value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    lines: Option<u64>,
    /// Print colours
    #[arg(long)]
    ansi: bool,
}

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let screen = match live(context, args)? {
        Some(screen) => screen,
        None => recorded(context, args)?,
    };
    if context.json {
        context.out.json(&screen)?;
        return Ok(Code::Ok);
    }
    let last = screen.lines.iter().rposition(|line| !line.is_empty());
    for line in screen.lines.iter().take(last.map_or(0, |last| last + 1)) {
        // Rows of a session's screen have no escape sequences except the requested colours.
        context.out.bytes(line.as_bytes())?;
        context.out.bytes(b"\n")?;
    }
    Ok(Code::Ok)
}

fn live(context: &Context, args: &Args) -> Result<Option<ScreenText>> {
    let peek = method::Peek {
        lines: args.lines,
        ansi: args.ansi,
    };
    let name = &args.name;
    let screen = try_call_session(context, name, &peek, REQUEST_TIMEOUT)?;
    // The last recorded screen may be old, and must not be mistaken for the current one.
    if screen.is_none() && is_silent(context, name) {
        return Err(
            Report::storage(format!("{name}: {NO_RESPONSE}")).hint(format!(
                "'ph replay {name}' plays its recorded output; 'ph stop {name}' ends it"
            )),
        );
    }
    Ok(screen)
}

fn recorded(context: &Context, args: &Args) -> Result<ScreenText> {
    let name = &args.name;
    let dir = SessionDir::of(&context.home, name).dir();
    let Some(screen) = screen::last_screen(&dir, RECORDING_STEM, SCROLLBACK_LINES) else {
        // For a name that never ran, this returns the error.
        find_session(context, name)?;
        return Err(Report::not_found(format!("{name} has no recording")));
    };
    let lines = args.lines.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let size = screen.size();
    Ok(ScreenText {
        lines: if args.ansi {
            screen.ansi(lines)
        } else {
            screen.text(lines)
        },
        cols: size.cols,
        rows: size.rows,
        title: screen.title().map(str::to_owned),
    })
}
