//! The signals of an attached client, as a descriptor to wait on. A signal handler only records that
//! its signal arrived; the event loop acts on it.

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    Resized,
    /// The shell suspends this process.
    Stop,
    Continued,
    Kill(i32),
}

pub(super) struct Signals(SignalDelivery<UnixStream, SignalOnly>);

impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        read.set_nonblocking(true)?;
        let signals = [SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGINT, SIGHUP, SIGQUIT];
        SignalDelivery::with_pipe(read, write, SignalOnly, signals).map(Self)
    }

    pub(super) fn heard(&mut self) -> Vec<Heard> {
        let meaning = |signal| match signal {
            SIGWINCH => Heard::Resized,
            SIGTSTP => Heard::Stop,
            SIGCONT => Heard::Continued,
            other => Heard::Kill(other),
        };
        self.0.pending().map(meaning).collect()
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.get_read().as_fd()
    }
}

/// Stop this process until it is continued.
pub(super) fn stop() {
    let _ = signal_hook::low_level::raise(signal_hook::consts::SIGSTOP);
}

/// End this process as the signal's default action would.
pub(crate) fn die_of(signal: i32) {
    let _ = signal_hook::low_level::emulate_default_handler(signal);
}
