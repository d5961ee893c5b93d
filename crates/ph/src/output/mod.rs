//! The only place that writes to standard output and the notes on standard error.
//!
//! Colour goes to terminals alone. A reader that closes the pipe ends the command quietly.

pub(crate) mod letters;

use anstream::adapter::strip_str;
use anstream::{AutoStream, ColorChoice};
use posthaste_core::text;
use posthaste_store::report::{Report, Result};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use rustix::pipe::PIPE_BUF;
use serde::Serialize;
use std::io::{BufWriter, ErrorKind, IsTerminal, StdoutLock, Write};
use std::process::ExitCode;

/// How long a hook waits for its reader to take more of its output.
const STDOUT_WRITE_TIMEOUT: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

/// Where the output of a verb goes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Sink {
    #[default]
    Stdout,
    /// Kept, for a caller that is part of this process; see [`Output::kept`].
    Memory,
}

enum Writer {
    Stdout(BufWriter<StdoutLock<'static>>),
    Memory(Vec<u8>),
}

pub(crate) struct Output {
    writer: Writer,
    is_terminal: bool,
    is_coloured: bool,
}

impl Output {
    pub(crate) fn new(choice: ColorChoice) -> Self {
        let stdout = std::io::stdout();
        if choice != ColorChoice::Auto {
            // Standard error follows what the user decided; else it judges for itself, because it
            // may go to a file while standard output goes to a terminal.
            choice.write_global();
        }
        Self {
            is_terminal: stdout.is_terminal(),
            // Where nothing was decided, this is the judgement of NO_COLOR and the like.
            is_coloured: AutoStream::choice(&stdout) != ColorChoice::Never,
            writer: Writer::Stdout(BufWriter::new(stdout.lock())),
        }
    }

    /// For a caller in this process: no terminal, no colour, and standard output is left alone.
    pub(crate) fn in_memory() -> Self {
        Self {
            writer: Writer::Memory(Vec::new()),
            is_terminal: false,
            is_coloured: false,
        }
    }

    /// What was written to memory.
    pub(crate) fn kept(self) -> Vec<u8> {
        match self.writer {
            Writer::Memory(bytes) => bytes,
            Writer::Stdout(_) => Vec::new(),
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Writes our own text, coloured where colour is wanted.
    pub(crate) fn text(&mut self, styled: impl std::fmt::Display) -> Result<()> {
        let written = if self.is_coloured {
            write!(self.writer(), "{styled}")
        } else {
            write!(self.writer(), "{}", strip_str(&styled.to_string()))
        };
        written.map_err(broken)
    }

    pub(crate) fn line(&mut self, styled: impl std::fmt::Display) -> Result<()> {
        self.text(styled)?;
        self.bytes(b"\n")
    }

    /// Writes bytes past all colouring, for what must come out to the byte.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer().write_all(bytes).map_err(broken)
    }

    /// One JSON value: on one line for programs, spread out for a person.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<()> {
        let json = if self.is_terminal {
            serde_json::to_string_pretty(value)
        } else {
            serde_json::to_string(value)
        };
        self.json_text(
            &json.map_err(|error| Report::storage(format!("cannot write JSON: {error}")))?,
        )
    }

    /// JSON that is text already: to the byte, but on a terminal nothing in its strings may act.
    pub(crate) fn json_text(&mut self, json: &str) -> Result<()> {
        if self.is_terminal {
            self.bytes(inert(json).as_bytes())?;
        } else {
            self.bytes(json.as_bytes())?;
        }
        self.bytes(b"\n")
    }

    pub(crate) fn flush(&mut self) -> Result<()> {
        self.writer().flush().map_err(broken)
    }

    pub(crate) fn writer(&mut self) -> &mut dyn Write {
        match &mut self.writer {
            Writer::Stdout(stdout) => stdout,
            Writer::Memory(bytes) => bytes,
        }
    }
}

/// How many of a thing, in words.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

/// Something worth knowing that is not the answer.
pub(crate) fn note(text: impl std::fmt::Display) {
    let mut stderr = anstream::stderr().lock();
    let dim = anstyle::Style::new().dimmed();
    let text = text::visible(&text.to_string());
    // A note that cannot be written is not worth failing for.
    let _ = writeln!(stderr, "{dim}note:{dim:#} {text}");
}

/// Help that was asked for, before there is an [`Output`]; a reader that went away is no failure.
pub(crate) fn to_stdout(styled: &str) {
    let _ = anstream::stdout().lock().write_all(styled.as_bytes());
}

/// Write bytes that must all have gone out before their outcome is recorded. Fail if the reader takes
/// nothing for [`STDOUT_WRITE_TIMEOUT`]: a hook that waits for its reader for ever would hold its agent's mail.
pub(crate) fn all_to_stdout(bytes: &[u8]) -> std::io::Result<()> {
    let stdout = rustix::stdio::stdout();
    let mut rest = bytes;
    while !rest.is_empty() {
        let mut room = [PollFd::new(&stdout, PollFlags::OUT)];
        match rustix::event::poll(&mut room, Some(&STDOUT_WRITE_TIMEOUT)) {
            Ok(0) => {
                let message = "the reader of standard output took nothing for 5 s";
                return Err(std::io::Error::new(ErrorKind::TimedOut, message));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // A pipe with room has room for this many bytes, so the write does not block.
        let piece = &rest[..rest.len().min(PIPE_BUF)];
        match rustix::io::write(stdout, piece) {
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Whether all that is written goes nowhere: to the null device, which also stands in where a
/// caller has closed standard output.
pub(crate) fn goes_nowhere() -> bool {
    let out = rustix::fs::fstat(rustix::stdio::stdout());
    let null = rustix::fs::stat("/dev/null");
    let is_device = |stat: &rustix::fs::Stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode).is_char_device()
    };
    match (out, null) {
        (Ok(out), Ok(null)) => is_device(&out) && is_device(&null) && out.st_rdev == null.st_rdev,
        (Ok(_) | Err(_), _) => false,
    }
}

/// What is wrong with the command line; where it cannot be written, the exit code says it all the
/// same.
pub(crate) fn to_stderr(styled: &str) {
    let _ = anstream::stderr().lock().write_all(styled.as_bytes());
}

/// Says on standard error what failed.
pub(crate) fn show(report: &Report) -> ExitCode {
    if !report.is_failure() {
        return report.code().into();
    }
    let mut stderr = anstream::stderr().lock();
    let red = anstyle::AnsiColor::Red.on_default().bold();
    let cyan = anstyle::AnsiColor::Cyan.on_default();
    // Where even this cannot be written, the exit code still says it.
    let _ = writeln!(
        stderr,
        "{red}error:{red:#} {}",
        text::visible(report.message())
    );
    if let Some(hint) = report.advice() {
        let hint = text::visible(hint);
        let _ = writeln!(stderr, "{cyan}hint:{cyan:#} {hint}");
    }
    report.code().into()
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
        return Report::reader_gone();
    }
    Report::storage(format!("cannot write the output: {error}"))
}

/// The same JSON, with what a string in it may hold and a terminal would obey escaped.
fn inert(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        // The rest of what acts is escaped in any JSON.
        if c > '~' && text::visible(c.encode_utf8(&mut [0; 4])).starts_with(['\\', '\u{2421}']) {
            shown.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            shown.push(c);
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_on_a_terminal_is_the_same_json_and_does_not_act() {
        let every: String = (0..0x3_000).filter_map(char::from_u32).collect();
        let json = serde_json::to_string(&every).unwrap();
        let shown = inert(&json);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), every);
        assert_eq!(text::visible(&shown), shown);
    }
}
