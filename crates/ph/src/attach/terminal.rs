//! The person's terminal: sets raw mode, and restores the terminal afterwards.
//!
//! The terminal is restored by the guard's drop, by the panic hook, or by the guardian process.
//! Restoring never waits long for a terminal that accepts no output.

use super::Size;
use posthaste_session::poll;
use rustix::event::PollFlags;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, QueueSelector, Termios};
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The position of the shell's next line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextLine {
    /// Below the whole screen: the program still runs.
    AtTheBottom,
    /// Below the last line of a program that has ended.
    Below,
}

/// The bytes that turn off every mode that a program may have turned on, and put the cursor on a
/// new line. They begin by ending an unfinished escape sequence.
pub(crate) fn reset_sequence(next_line: NextLine) -> Vec<u8> {
    let line: &[u8] = match next_line {
        NextLine::AtTheBottom => b"\x1b[9999;1H\r\n",
        NextLine::Below => b"\r\n\x1b[J",
    };
    [b"\x1b\\", posthaste_screen::leave_sequence(), line].concat()
}

/// Push the window's title on the terminal's title stack, and pop it. Terminals without such a
/// stack ignore both.
const PUSH_TITLE: &[u8] = b"\x1b[22;2t";
const POP_TITLE: &[u8] = b"\x1b[23;2t";

/// How long writing the [`reset_sequence`] may take.
const RESET_TIMEOUT: Duration = Duration::from_millis(500);

/// The descriptor to draw on. It must not block, but our standard output is shared with the shell,
/// and a flag set on it would outlive this process. So the terminal is opened again.
pub(super) enum TerminalOutput {
    Own(OwnedFd),
    /// The terminal could not be opened, for example after `su`. Write small pieces to standard
    /// output when it has room.
    Shared,
}

impl TerminalOutput {
    pub(super) fn open() -> Self {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::termios::ttyname(stdout(), Vec::new())
            .and_then(|name| rustix::fs::open(name, flags, Mode::empty()))
            .map_or(Self::Shared, Self::Own)
    }

    /// Write without blocking. Return [`Errno::AGAIN`] if nothing could be written.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Own(own) => rustix::io::write(own, bytes),
            Self::Shared if !self.has_room(Duration::ZERO) => Err(Errno::AGAIN),
            Self::Shared => rustix::io::write(stdout(), &bytes[..bytes.len().min(256)]),
        }
    }

    /// Write all bytes within `timeout`. Return whether that succeeded.
    pub(super) fn write_within(&self, mut bytes: &[u8], timeout: Duration) -> bool {
        let deadline = Instant::now() + timeout;
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(written) => bytes = &bytes[written..],
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return false;
                    }
                    self.has_room(left);
                }
                Err(_) => return false,
            }
        }
        true
    }

    fn has_room(&self, at_most: Duration) -> bool {
        let deadline = Instant::now() + at_most;
        poll::wait([(Some(self.as_fd()), PollFlags::OUT)], Some(deadline))
            .is_ok_and(|[events]| !events.is_empty())
    }
}

impl AsFd for TerminalOutput {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(own) => own.as_fd(),
            Self::Shared => stdout(),
        }
    }
}

/// Return the terminal's size, or 80×24 if it is unknown.
pub(super) fn size() -> Size {
    match rustix::termios::tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
            cols: size.ws_col,
            rows: size.ws_row,
        },
        Ok(_) | Err(_) => Size { cols: 80, rows: 24 },
    }
}

pub(super) struct TerminalState {
    /// The modes to restore.
    pub(super) before: Termios,
    pub(super) screen: TerminalOutput,
    is_raw: AtomicBool,
    has_program_ended: AtomicBool,
}

impl TerminalState {
    /// Set raw mode, again after [`Self::restore`].
    pub(super) fn take(&self) -> rustix::io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        self.is_raw.store(true, Ordering::SeqCst);
        self.screen.write_within(PUSH_TITLE, RESET_TIMEOUT);
        Ok(())
    }

    pub(super) fn is_raw(&self) -> bool {
        self.is_raw.load(Ordering::SeqCst)
    }

    /// Note that the program has ended, so that the shell continues below its last line.
    pub(super) fn set_program_ended(&self) {
        self.has_program_ended.store(true, Ordering::SeqCst);
    }

    pub(super) fn restore(&self) {
        if self.is_raw.swap(false, Ordering::SeqCst) {
            let next_line = if self.has_program_ended.load(Ordering::SeqCst) {
                NextLine::Below
            } else {
                NextLine::AtTheBottom
            };
            reset(&self.screen, next_line);
            // `Now` does not wait for pending output, which may never be accepted. A failure means
            // that the terminal is gone.
            let _ = rustix::termios::tcsetattr(stdin(), OptionalActions::Now, &self.before);
        }
    }
}

/// Write the [`reset_sequence`] and restore the title. If the terminal accepts no output, drop its
/// pending output. Drop pending input too: mouse reports and replies to the program are not for the
/// shell.
pub(super) fn reset(screen: &TerminalOutput, next_line: NextLine) {
    if !screen.has_room(Duration::ZERO) {
        let _ = rustix::termios::tcflush(screen, QueueSelector::OFlush);
    }
    let reset_bytes = [&reset_sequence(next_line), POP_TITLE].concat();
    if !screen.write_within(&reset_bytes, RESET_TIMEOUT) {
        let _ = rustix::termios::tcflush(screen, QueueSelector::OFlush);
        screen.write_within(&reset_bytes, Duration::ZERO);
    }
    let _ = rustix::termios::tcflush(screen, QueueSelector::IFlush);
}

/// The terminal in raw mode. It is restored when this is dropped, and before a panic is printed.
pub(super) struct RawTerminal {
    state: Arc<TerminalState>,
}

impl RawTerminal {
    pub(super) fn take() -> rustix::io::Result<Self> {
        let state = Arc::new(TerminalState {
            before: rustix::termios::tcgetattr(stdin())?,
            screen: TerminalOutput::open(),
            is_raw: AtomicBool::new(false),
            has_program_ended: AtomicBool::new(false),
        });
        let hooked = Arc::clone(&state);
        before_panics(move || hooked.restore());
        state.take()?;
        Ok(Self { state })
    }
}

impl Deref for RawTerminal {
    type Target = TerminalState;

    fn deref(&self) -> &TerminalState {
        &self.state
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        self.restore();
    }
}

/// Call `act` before a panic is printed, because a raw terminal would garble the message.
fn before_panics(act: impl Fn() + Send + Sync + 'static) {
    let previous = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        act();
        previous(panic);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn the_terminal_is_restored_before_a_panic_is_printed() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let (printed, restored) = (Arc::clone(&order), Arc::clone(&order));
        let default = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |_| printed.lock().unwrap().push("printed")));
        before_panics(move || restored.lock().unwrap().push("restored"));
        let caught = std::panic::catch_unwind(|| panic!("on purpose"));
        std::panic::set_hook(default);
        assert!(caught.is_err());
        assert_eq!(*order.lock().unwrap(), ["restored", "printed"]);
    }
}
