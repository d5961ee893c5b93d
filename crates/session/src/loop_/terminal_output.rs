//! What a loop shows of itself in its session's terminal: a line or two between iterations and the
//! title. While an agent runs, its bytes pass, or what is made of them, and nothing of ours goes between.

use posthaste_core::text;
use posthaste_store::report::{Report, Result};
use rustix::stdio::{stdin, stdout};
use rustix::termios::OptionalActions;

/// The size of a terminal that does not know its own.
const USUAL: (u16, u16) = (80, 24);
const NARROWEST: usize = 20;

/// The session's terminal, as the runner has it.
#[derive(Debug, Default)]
pub(super) struct Face {
    /// Whether the last byte that passed left the cursor behind something.
    is_mid_line: bool,
}

impl Face {
    /// Has keys come as they are typed: what they mean is for the agent's own terminal to say.
    pub(super) fn take() -> Result<Self> {
        let broken = |error: rustix::io::Errno| {
            Report::usage(format!("this is for ph itself; see 'ph build' ({error})"))
        };
        let mut raw = rustix::termios::tcgetattr(stdin()).map_err(broken)?;
        raw.make_raw();
        rustix::termios::tcsetattr(stdin(), OptionalActions::Now, &raw).map_err(broken)?;
        Ok(Self::default())
    }

    pub(super) fn size(&self) -> (u16, u16) {
        match rustix::termios::tcgetwinsize(stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            Ok(_) | Err(_) => USUAL,
        }
    }

    /// Passes on what the agent writes. A terminal that is gone is found out by its keys.
    pub(super) fn pass(&mut self, bytes: &[u8]) {
        if let Some(last) = bytes.last() {
            self.is_mid_line = !matches!(last, b'\n' | b'\r');
        }
        write(bytes);
    }

    /// After an agent, whatever it may have left on is off again.
    pub(super) fn wash(&mut self) {
        // Ends a sequence that was cut in half first.
        write(b"\x1b\\");
        write(posthaste_screen::leave());
    }

    /// A line of ours.
    pub(super) fn line(&mut self, said: &str) {
        let width = usize::from(self.size().0).max(NARROWEST);
        let line = text::one_line(said, width.saturating_sub(4));
        let before = if self.is_mid_line { "\r\n" } else { "" };
        write(format!("{before}\x1b[2m-- {line}\x1b[0m\r\n").as_bytes());
        self.is_mid_line = false;
    }

    pub(super) fn title(&mut self, said: &str) {
        let title = text::one_line(said, 100);
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
