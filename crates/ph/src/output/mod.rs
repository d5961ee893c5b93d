//! The only module that writes to standard output, and notes to standard error.
//!
//! Colour is only written to terminals. If the reader closes the pipe, the command ends silently.

pub(crate) mod message_text;
pub(crate) mod table;

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

/// Timeout for a hook's reader to accept more output.
const STDOUT_WRITE_TIMEOUT: Timespec = Timespec {
    tv_sec: 5,
    tv_nsec: 0,
};

/// The destination of a verb's output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Sink {
    #[default]
    Stdout,
    /// Kept in memory, for a caller in this process; see [`Output::kept`].
    Memory,
}

enum OutputWriter {
    Stdout(BufWriter<StdoutLock<'static>>),
    Memory(Vec<u8>),
}

pub(crate) struct Output {
    writer: OutputWriter,
    is_terminal: bool,
    is_coloured: bool,
}

impl Output {
    pub(crate) fn new(choice: ColorChoice) -> Self {
        let stdout = std::io::stdout();
        if choice != ColorChoice::Auto {
            // An explicit choice applies to standard error too. Without one, standard error is
            // checked separately, because it may be a file while standard output is a terminal.
            choice.write_global();
        }
        Self {
            is_terminal: stdout.is_terminal(),
            // Without an explicit choice, NO_COLOR and similar variables decide.
            is_coloured: AutoStream::choice(&stdout) != ColorChoice::Never,
            writer: OutputWriter::Stdout(BufWriter::new(stdout.lock())),
        }
    }

    /// Create an output in memory, without colour, for a caller in this process.
    pub(crate) fn in_memory() -> Self {
        Self {
            writer: OutputWriter::Memory(Vec::new()),
            is_terminal: false,
            is_coloured: false,
        }
    }

    /// Return the output in memory.
    pub(crate) fn kept(self) -> Vec<u8> {
        match self.writer {
            OutputWriter::Memory(bytes) => bytes,
            OutputWriter::Stdout(_) => Vec::new(),
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Write styled text.
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

    /// Write bytes unchanged.
    pub(crate) fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.writer().write_all(bytes).map_err(broken)
    }

    /// Write a JSON value: on one line, or indented on a terminal.
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

    /// Write JSON text unchanged, except that on a terminal its strings are made harmless.
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
            OutputWriter::Stdout(stdout) => stdout,
            OutputWriter::Memory(bytes) => bytes,
        }
    }
}

/// Return a text such as '3 messages'.
pub(crate) fn counted(count: u64, thing: &str) -> String {
    match count {
        1 => format!("1 {thing}"),
        count => format!("{count} {thing}s"),
    }
}

/// Write a note to standard error.
pub(crate) fn note(text: impl std::fmt::Display) {
    let mut stderr = anstream::stderr().lock();
    let dim = anstyle::Style::new().dimmed();
    let text = text::visible(&text.to_string());
    // A note that cannot be written is not an error.
    let _ = writeln!(stderr, "{dim}note:{dim:#} {text}");
}

/// Write a help text before an [`Output`] exists. A closed pipe is not an error.
pub(crate) fn to_stdout(styled: &str) {
    let _ = anstream::stdout().lock().write_all(styled.as_bytes());
}

/// Write bytes whose delivery is recorded afterwards. Fail if the reader takes nothing for
/// [`STDOUT_WRITE_TIMEOUT`]: a hook that waits without a limit would hold its agent's mail.
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
        // A writable pipe has room for this many bytes, so the write does not block.
        let piece = &rest[..rest.len().min(PIPE_BUF)];
        match rustix::io::write(stdout, piece) {
            Ok(written) => rest = &rest[written..],
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Return whether standard output is the null device, which also replaces a closed standard output.
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

/// Write an error in the command line. If that fails, the exit code still reports the error.
pub(crate) fn to_stderr(styled: &str) {
    let _ = anstream::stderr().lock().write_all(styled.as_bytes());
}

/// Print an error and its hint on standard error. Return the exit code.
pub(crate) fn show(report: &Report) -> ExitCode {
    if !report.is_failure() {
        return report.code().into();
    }
    let mut stderr = anstream::stderr().lock();
    let red = anstyle::AnsiColor::Red.on_default().bold();
    let cyan = anstyle::AnsiColor::Cyan.on_default();
    // If this cannot be written, the exit code still reports the error.
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

/// Show the progress of a long operation on one line, if standard error is a terminal.
pub(crate) fn progress(text: impl std::fmt::Display) {
    let mut stderr = std::io::stderr().lock();
    if stderr.is_terminal() {
        let _ = write!(stderr, "\r\x1b[K{text}");
        let _ = stderr.flush();
    }
}

/// Clear the line of [`progress`].
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

/// Escape the characters in JSON strings that could act on a terminal.
fn inert(json: &str) -> String {
    let mut shown = String::with_capacity(json.len());
    for c in json.chars() {
        // JSON always escapes the other control characters.
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
    fn json_on_a_terminal_is_equal_and_has_no_control_characters() {
        let every: String = (0..0x3_000).filter_map(char::from_u32).collect();
        let json = serde_json::to_string(&every).unwrap();
        let shown = inert(&json);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), every);
        assert_eq!(text::visible(&shown), shown);
    }
}
