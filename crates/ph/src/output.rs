//! The only place that writes to standard output and the notes on standard error.
//!
//! Colour goes to terminals alone. A reader that closes the pipe ends the command quietly.

use crate::report::{Report, Result};
use anstream::{AutoStream, ColorChoice};
use serde::Serialize;
use std::io::{BufWriter, ErrorKind, IsTerminal, StdoutLock, Write};

pub(crate) struct Output {
    stdout: BufWriter<AutoStream<StdoutLock<'static>>>,
    is_terminal: bool,
}

impl Output {
    pub(crate) fn new(choice: ColorChoice) -> Self {
        let stdout = std::io::stdout();
        let is_terminal = stdout.is_terminal();
        // The stream's own judgement of NO_COLOR and the like, unless the user decided.
        let choice = match choice {
            ColorChoice::Auto => AutoStream::choice(&stdout),
            decided => decided,
        };
        choice.write_global();
        Self {
            stdout: BufWriter::new(AutoStream::new(stdout.lock(), choice)),
            is_terminal,
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes text as it is.
    pub(crate) fn text(&mut self, text: impl std::fmt::Display) -> Result<()> {
        write!(self.stdout, "{text}").map_err(broken)
    }

    pub(crate) fn line(&mut self, line: impl std::fmt::Display) -> Result<()> {
        writeln!(self.stdout, "{line}").map_err(broken)
    }

    /// Writes bytes past all colouring, for what must come out to the byte.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.flush()?;
        let mut raw = std::io::stdout().lock();
        raw.write_all(bytes)
            .and_then(|()| raw.flush())
            .map_err(broken)
    }

    /// One JSON value: on one line for programs, spread out for a person.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let text = if self.is_terminal {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        self.line(text.map_err(|error| Report::storage(format!("cannot write JSON: {error}")))?)
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.stdout.flush().map_err(broken)
    }

    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        &mut self.stdout
    }
}

/// Something worth knowing that is not the answer.
pub(crate) fn note(text: impl std::fmt::Display) {
    let mut stderr = anstream::stderr().lock();
    let dim = anstyle::Style::new().dimmed();
    // A note that cannot be written is not worth failing for.
    let _ = writeln!(stderr, "{dim}note:{dim:#} {text}");
}

/// Progress of something long, on one line that is written over; only for a person.
pub(crate) fn progress(text: impl std::fmt::Display) {
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K{text}");
        let _ = stderr.flush();
    }
}

/// Clears the line that [`progress`] left.
pub(crate) fn progress_done() {
    progress("");
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "it is what map_err hands over"
)]
fn broken(error: std::io::Error) -> Report {
    if error.kind() == ErrorKind::BrokenPipe {
        // Nobody reads any more: done, as for any tool in a pipe.
        std::process::exit(0);
    }
    Report::storage(format!("cannot write the output: {error}"))
}
