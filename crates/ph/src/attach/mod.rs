//! An attached terminal, from the client's side: the person's keys to a session, the session's
//! output to the person's screen.
//!
//! Starts no runtime: it is on the screen within a few milliseconds. Keys and output pass as they
//! are. What is on the person's screen is moved up, not overwritten; the alternate screen is the
//! program's alone, so that its scrollback is the terminal's. However it ends, the terminal is
//! given back as it was.

mod bottom;
mod boundary;
mod guardian;
mod hello;
mod keys;
mod pump;
mod signals;
mod terminal;
mod view;

pub(crate) use guardian::{WORD as GUARDIAN, run as guard};
pub(crate) use keys::Key;
pub(crate) use signals::die_of;
pub(crate) use terminal::{GoOn, farewell};

use posthaste_store::report::{Report, Result};
use std::io::IsTerminal;
use std::path::Path;

#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// Only look.
    pub(crate) read_only: bool,
    /// Take the keyboard at once.
    pub(crate) take: bool,
    /// Whose session it is, for what is said about it.
    pub(crate) name: String,
    /// What commands begin with.
    pub(crate) prefix: Key,
}

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Left {
    Detached,
    /// The program has ended; `how` is fit to be shown.
    Ended {
        how: String,
    },
    /// The connection broke, and nobody said why.
    LostSession,
    /// By this signal. The terminal is given back; to die of it is left to the caller.
    Killed(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    cols: u16,
    rows: u16,
}

/// Attaches this terminal to the session that listens there, until either leaves.
pub(crate) fn attach(socket: &Path, options: Options) -> Result<Left> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Report::usage("attaching needs a terminal")
            .hint(format!("'ph peek {}' prints the screen", options.name)));
    }
    let size = terminal::size();
    let (stream, first) = hello::ask(socket, &options, size)?;
    let broken =
        |error: std::io::Error| Report::refused(format!("the terminal cannot be used: {error}"));
    stream.set_nonblocking(true).map_err(broken)?;
    let signals = signals::Signals::listen().map_err(broken)?;
    let terminal = terminal::Terminal::take().map_err(|error| broken(error.into()))?;
    let mut view = view::View::new(options, size);
    // It may have changed before anybody listened.
    if terminal::size() != size {
        view.resized(terminal::size());
    }
    let pump = pump::Pump {
        stream,
        terminal: &terminal,
        signals,
        view,
    };
    pump.run(&first)
}
