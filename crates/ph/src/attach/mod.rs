//! The client side of an attached terminal: sends the person's keys to a session, and draws the
//! session's output on the person's screen.
//!
//! Uses no async runtime, so that the screen appears within a few milliseconds. Never changes keys
//! or output. Scrolls the person's screen up instead of overwriting it, and restores the terminal
//! however the client ends.

mod event_loop;
mod guardian;
mod handshake;
mod keys;
mod signals;
mod status_line;
mod terminal;
mod view;

pub(crate) use guardian::{GUARDIAN_ARGUMENT, run as run_guardian};
pub(crate) use signals::die_of;
pub(crate) use terminal::{NextLine, reset_sequence};

use posthaste_store::report::{Report, Result};
use std::io::IsTerminal;
use std::path::Path;

#[derive(Debug, Clone)]
pub(crate) struct AttachOptions {
    /// Send no keys to the program.
    pub(crate) read_only: bool,
    /// Take the keyboard when attaching.
    pub(crate) take: bool,
    /// The agent's name, for messages to the person.
    pub(crate) name: String,
}

/// How the client ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttachEnd {
    Detached,
    /// The program has ended. `how` has no control characters.
    Ended {
        how: String,
    },
    /// The connection broke without a reason.
    LostSession,
    /// A signal asked the client to end. The terminal is restored; the caller ends the process.
    Killed(i32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    cols: u16,
    rows: u16,
}

/// Attach this terminal to the session that listens on `socket`, until the person detaches or the
/// session ends.
pub(crate) fn attach(socket: &Path, options: AttachOptions) -> Result<AttachEnd> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return Err(Report::usage("attaching needs a terminal")
            .hint(format!("'ph peek {}' prints the screen", options.name)));
    }
    let size = terminal::size();
    let (stream, first) = handshake::connect(socket, &options, size)?;
    let broken =
        |error: std::io::Error| Report::refused(format!("the terminal cannot be used: {error}"));
    stream.set_nonblocking(true).map_err(broken)?;
    let signals = signals::AttachSignals::listen().map_err(broken)?;
    let terminal = terminal::RawTerminal::take().map_err(|error| broken(error.into()))?;
    let mut view = view::View::new(options, size);
    // The terminal may have been resized before the signal handler was installed.
    if terminal::size() != size {
        view.resized(terminal::size());
    }
    event_loop::EventLoop {
        stream,
        terminal: &terminal,
        signals,
        view,
    }
    .run(&first)
}
