//! Writes to the session's terminal: the agent's output, and between iterations the runner's own
//! lines and the window's title.

use posthaste_core::text;
use posthaste_store::report::{Report, Result};
use rustix::stdio::{stdin, stdout};
use rustix::termios::OptionalActions;

/// Columns and rows of a terminal that reports no size.
const DEFAULT_SIZE: (u16, u16) = (80, 24);
/// Minimum width for the runner's own lines.
const MIN_LINE_COLUMNS: usize = 20;

/// The session's terminal.
#[derive(Debug, Default)]
pub(super) struct TerminalOutput {
    /// Whether the last byte left the cursor behind some text.
    is_mid_line: bool,
}

impl TerminalOutput {
    /// Set raw mode: the agent's own terminal interprets the keys.
    pub(super) fn enter_raw_mode() -> Result<Self> {
        let failed = |error: rustix::io::Errno| {
            Report::usage(format!("'ph __loop' is internal; use 'ph build' ({error})"))
        };
        let mut raw = rustix::termios::tcgetattr(stdin()).map_err(failed)?;
        raw.make_raw();
        rustix::termios::tcsetattr(stdin(), OptionalActions::Now, &raw).map_err(failed)?;
        Ok(Self::default())
    }

    pub(super) fn size(&self) -> (u16, u16) {
        match rustix::termios::tcgetwinsize(stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            Ok(_) | Err(_) => DEFAULT_SIZE,
        }
    }

    /// Write output of the agent. Errors are ignored: reading keys reveals a closed terminal.
    pub(super) fn forward(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.is_mid_line = !matches!(last, b'\n' | b'\r');
        }
        write(bytes);
    }

    /// Turn off all modes that the agent may have left on.
    pub(super) fn reset(&mut self) {
        // End a sequence that was cut in half.
        write(b"\x1b\\");
        write(posthaste_screen::leave_sequence());
    }

    /// Print a line of the runner.
    pub(super) fn print_line(&mut self, line: &str) {
        let width = usize::from(self.size().0).max(MIN_LINE_COLUMNS);
        let line = text::one_line(line, width.saturating_sub(4));
        let before = if self.is_mid_line { "\r\n" } else { "" };
        write(format!("{before}\x1b[2m-- {line}\x1b[0m\r\n").as_bytes());
        self.is_mid_line = false;
    }

    pub(super) fn set_title(&mut self, title: &str) {
        let title = text::one_line(title, 100);
        write(format!("\x1b]0;{title}\x07").as_bytes());
    }
}

fn write(mut bytes: &[u8]) {
    while !bytes.is_empty() {
        match rustix::io::write(stdout(), bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}
