//! The person's own terminal, while it is ours: raw, and given back as it was.
//!
//! Whatever ends the client, the terminal is usable afterwards: by the guard's drop, by the panic
//! hook, or by the guardian. Giving back never waits long for a terminal that takes no output.

use super::Size;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::stdio::{stdin, stdout};
use rustix::termios::{OptionalActions, QueueSelector, Termios};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Where the person's own lines go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GoOn {
    /// Below all that is shown, because the program goes on too.
    AtTheBottom,
    /// Where the program has ended.
    Below,
}

/// Undoes whatever a program may have switched on, and puts the cursor on a fresh line. Begins by
/// ending a sequence that was cut in half.
pub(crate) fn farewell(go_on: GoOn) -> Vec<u8> {
    let line: &[u8] = match go_on {
        GoOn::AtTheBottom => b"\x1b[9999;1H\r\n",
        GoOn::Below => b"\r\n\x1b[J",
    };
    [b"\x1b\\", posthaste_screen::leave(), line].concat()
}

/// The window's title, put on the terminal's own stack, and taken from it again. A terminal that
/// has no such stack ignores both.
const KEEP_TITLE: &[u8] = b"\x1b[22;2t";
const TITLE_BACK: &[u8] = b"\x1b[23;2t";

/// How long a terminal may take to accept the [`farewell`].
const PATIENCE: Duration = Duration::from_millis(500);

/// Where to draw. It has to be possible without blocking, and our own descriptors are shared with
/// the shell: setting a flag on them would outlive us. So the terminal is opened anew.
pub(super) enum Screen {
    Own(OwnedFd),
    /// It could not be opened (it may belong to somebody else, after `su`): small pieces, when
    /// there is room.
    Shared,
}

impl Screen {
    pub(super) fn open() -> Self {
        let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::termios::ttyname(stdout(), Vec::new())
            .and_then(|name| rustix::fs::open(name, flags, Mode::empty()))
            .map_or(Self::Shared, Self::Own)
    }

    /// Writes as much as is taken at once; [`Errno::AGAIN`] if that is nothing.
    pub(super) fn write(&self, bytes: &[u8]) -> Result<usize, Errno> {
        match self {
            Self::Own(own) => rustix::io::write(own, bytes),
            Self::Shared if !self.has_room(Duration::ZERO) => Err(Errno::AGAIN),
            Self::Shared => rustix::io::write(stdout(), &bytes[..bytes.len().min(256)]),
        }
    }

    /// Writes all of it, unless that takes too long.
    pub(super) fn write_within(&self, mut bytes: &[u8], patience: Duration) -> bool {
        let deadline = Instant::now() + patience;
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
        let timeout = Timespec::try_from(at_most).ok();
        let mut fds = [PollFd::from_borrowed_fd(self.as_fd(), PollFlags::OUT)];
        poll(&mut fds, timeout.as_ref()).is_ok_and(|ready| ready > 0)
    }
}

impl AsFd for Screen {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Own(own) => own.as_fd(),
            Self::Shared => stdout(),
        }
    }
}

/// How large the terminal is; the usual size where it does not know.
pub(super) fn size() -> Size {
    match rustix::termios::tcgetwinsize(stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => Size {
            cols: size.ws_col,
            rows: size.ws_row,
        },
        Ok(_) | Err(_) => Size { cols: 80, rows: 24 },
    }
}

struct Held {
    before: Termios,
    screen: Screen,
    /// Whether it is ours at the moment.
    is_ours: AtomicBool,
    /// Whether the program has ended.
    is_over: AtomicBool,
}

impl Held {
    fn take(&self) -> rustix::io::Result<()> {
        let mut raw = self.before.clone();
        raw.make_raw();
        rustix::termios::tcsetattr(stdin(), OptionalActions::Now, &raw)?;
        self.is_ours.store(true, Ordering::SeqCst);
        self.screen.write_within(KEEP_TITLE, PATIENCE);
        Ok(())
    }

    fn give_back(&self) {
        if self.is_ours.swap(false, Ordering::SeqCst) {
            let go_on = if self.is_over.load(Ordering::SeqCst) {
                GoOn::Below
            } else {
                GoOn::AtTheBottom
            };
            reset(&self.screen, go_on);
            // Nor does this wait for output to be taken, which may never happen. Where it fails,
            // the terminal is gone.
            let _ = rustix::termios::tcsetattr(stdin(), OptionalActions::Now, &self.before);
        }
    }
}

/// Sends the [`farewell`], and the title that was there before. A terminal that takes nothing loses what is still on the way to it; and
/// what it has sent for the program (the mouse, answers) is not for the shell.
pub(super) fn reset(screen: &Screen, go_on: GoOn) {
    if !screen.has_room(Duration::ZERO) {
        let _ = rustix::termios::tcflush(screen, QueueSelector::OFlush);
    }
    let farewell = [&farewell(go_on), TITLE_BACK].concat();
    if !screen.write_within(&farewell, PATIENCE) {
        let _ = rustix::termios::tcflush(screen, QueueSelector::OFlush);
        screen.write_within(&farewell, Duration::ZERO);
    }
    let _ = rustix::termios::tcflush(screen, QueueSelector::IFlush);
}

/// The terminal in our hands; given back when this is dropped, and before a panic is told.
pub(super) struct Terminal {
    held: Arc<Held>,
}

impl Terminal {
    pub(super) fn take() -> rustix::io::Result<Self> {
        let held = Arc::new(Held {
            before: rustix::termios::tcgetattr(stdin())?,
            screen: Screen::open(),
            is_ours: AtomicBool::new(false),
            is_over: AtomicBool::new(false),
        });
        let hooked = Arc::clone(&held);
        before_panics(move || hooked.give_back());
        held.take()?;
        Ok(Self { held })
    }

    /// After [`Self::give_back`].
    pub(super) fn take_again(&self) -> rustix::io::Result<()> {
        self.held.take()
    }

    pub(super) fn give_back(&self) {
        self.held.give_back();
    }

    /// The program has ended: the person's lines go on below its last.
    pub(super) fn is_over(&self) {
        self.held.is_over.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_ours(&self) -> bool {
        self.held.is_ours.load(Ordering::SeqCst)
    }

    /// The modes to give back.
    pub(super) fn before(&self) -> &Termios {
        &self.held.before
    }

    pub(super) fn screen(&self) -> &Screen {
        &self.held.screen
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// Does something before a panic is told, which would otherwise be told to a raw terminal.
fn before_panics(act: impl Fn() + Send + Sync + 'static) {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        act();
        told(panic);
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    #[test]
    fn before_a_panic_is_told_the_terminal_is_given_back() {
        let order = Arc::new(Mutex::new(Vec::new()));
        let (told, acted) = (Arc::clone(&order), Arc::clone(&order));
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |_| told.lock().unwrap().push("told")));
        before_panics(move || acted.lock().unwrap().push("given back"));
        let caught = std::panic::catch_unwind(|| panic!("on purpose"));
        std::panic::set_hook(usual);
        assert!(caught.is_err());
        assert_eq!(*order.lock().unwrap(), ["given back", "told"]);
    }
}
