//! Wakes the runner: signals, and the bell of the journal. Only reports them; the runner decides
//! what they mean.

use crate::poll::{self, SignalPipe};
use posthaste_core::AgentName;
use posthaste_store::Home;
use posthaste_store::bell::{self, Watch};
use posthaste_store::report::{Report, Result};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Maximum interval between checks of the journal, in case a ring of the bell is missed.
pub(super) const CHECK_INTERVAL: Duration = bell::BELL_CHECK_INTERVAL;

/// The signals that have arrived since the last call of [`WakeupSources::take_signals`].
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct ArrivedSignals {
    pub(super) resize: bool,
    pub(super) end: bool,
}

pub(super) struct WakeupSources {
    signals: SignalPipe,
    bell: UnixStream,
    /// `None` if the bell cannot be watched: the journal is then only checked at each interval.
    _watch: Option<Watch>,
}

impl WakeupSources {
    pub(super) fn listen(home: &Home, agent: &AgentName) -> Result<Self> {
        let failed =
            |error: std::io::Error| Report::storage(format!("cannot handle signals: {error}"));
        let received = [SIGCHLD, SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP];
        let signals = poll::receive_signals(&received).map_err(failed)?;
        let (bell, ringer) = UnixStream::pair().map_err(failed)?;
        bell.set_nonblocking(true).map_err(failed)?;
        ringer.set_nonblocking(true).map_err(failed)?;
        let watch = Watch::on(home, Some(agent), move || {
            // If the socket is full, unread rings will wake the runner anyway.
            let _ = (&ringer).write(&[0]);
        });
        Ok(Self {
            signals,
            bell,
            _watch: watch.ok(),
        })
    }

    pub(super) fn signals(&self) -> BorrowedFd<'_> {
        self.signals.get_read().as_fd()
    }

    pub(super) fn bell(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    pub(super) fn take_signals(&mut self) -> ArrivedSignals {
        let mut signals = ArrivedSignals::default();
        for signal in self.signals.pending() {
            match signal {
                SIGWINCH => signals.resize = true,
                // SIGCHLD only wakes the runner. SIGTSTP is meant for the agent's terminal, because
                // ours is in raw mode. SIGHUP is ignored: the end of input on the terminal follows,
                // and is certain.
                SIGCHLD | SIGTSTP | SIGHUP => {}
                _ => signals.end = true,
            }
        }
        signals
    }

    /// Clear the bell. Call this before reading the journal, so that a later change rings again.
    pub(super) fn clear_bell(&mut self) {
        let mut rings = [0; 256];
        while matches!(self.bell.read(&mut rings), Ok(count) if count > 0) {}
    }
}
