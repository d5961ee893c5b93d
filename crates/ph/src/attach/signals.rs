//! The signals of an attached client, as a descriptor to wait on. A signal handler only records
//! that its signal arrived; the event loop acts on it.

use posthaste_session::poll::{self, SignalPipe};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use std::os::fd::{AsFd, BorrowedFd};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SignalEvent {
    Resized,
    /// The shell suspends this process.
    Stop,
    Continued,
    Kill(i32),
}

pub(super) struct AttachSignals(SignalPipe);

impl AttachSignals {
    pub(super) fn listen() -> std::io::Result<Self> {
        let signals = [SIGWINCH, SIGTSTP, SIGCONT, SIGTERM, SIGINT, SIGHUP, SIGQUIT];
        poll::receive_signals(&signals).map(Self)
    }

    pub(super) fn take(&mut self) -> Vec<SignalEvent> {
        let meaning = |signal| match signal {
            SIGWINCH => SignalEvent::Resized,
            SIGTSTP => SignalEvent::Stop,
            SIGCONT => SignalEvent::Continued,
            other => SignalEvent::Kill(other),
        };
        self.0.pending().map(meaning).collect()
    }
}

impl AsFd for AttachSignals {
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
