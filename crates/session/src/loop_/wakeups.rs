//! What a loop's runner listens to beside its agent: signals, keys, and the bell of its journal.
//! It only hears; what anything means is the runner's to say.

use posthaste_core::AgentName;
use posthaste_store::Home;
use posthaste_store::bell::{self, Watch};
use posthaste_store::report::{Report, Result};
use rustix::io::Errno;
use rustix::stdio::stdin;
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGWINCH};
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::SignalOnly;
use std::io::{Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// A ring that nobody heard costs at most this.
pub(super) const TICK: Duration = bell::TICK;

/// What has come, all at once.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signalled {
    pub(super) resized: bool,
    /// We are asked to end.
    pub(super) end: bool,
    /// A child of ours may have ended.
    pub(super) child: bool,
}

/// What is read from the session's terminal.
#[derive(Debug)]
pub(super) enum Keys {
    Some(usize),
    None,
    /// The session is gone, and its terminal with it.
    Gone,
}

pub(super) struct Ears {
    signals: SignalDelivery<UnixStream, SignalOnly>,
    rings: UnixStream,
    /// Without it there is only the tick.
    _watch: Option<Watch>,
}

impl Ears {
    pub(super) fn listen(home: &Home, agent: &AgentName) -> Result<Self> {
        let broken =
            |error: std::io::Error| Report::storage(format!("cannot listen to signals: {error}"));
        let (read, write) = UnixStream::pair().map_err(broken)?;
        read.set_nonblocking(true).map_err(broken)?;
        let wanted = [SIGCHLD, SIGWINCH, SIGTERM, SIGHUP, SIGINT, SIGQUIT, SIGTSTP];
        let signals = SignalDelivery::with_pipe(read, write, SignalOnly, wanted).map_err(broken)?;
        let (rings, ringer) = UnixStream::pair().map_err(broken)?;
        rings.set_nonblocking(true).map_err(broken)?;
        ringer.set_nonblocking(true).map_err(broken)?;
        let watch = Watch::on(home, Some(agent), move || {
            // When it is full there is a ring that nobody has heard yet: as good as many.
            let _ = (&ringer).write(&[0]);
        });
        Ok(Self {
            signals,
            rings,
            _watch: watch.ok(),
        })
    }

    pub(super) fn signals(&self) -> BorrowedFd<'_> {
        self.signals.get_read().as_fd()
    }

    pub(super) fn rings(&self) -> BorrowedFd<'_> {
        self.rings.as_fd()
    }

    pub(super) fn signalled(&mut self) -> Signalled {
        let mut heard = Signalled::default();
        for signal in self.signals.pending() {
            match signal {
                SIGWINCH => heard.resized = true,
                SIGCHLD => heard.child = true,
                // A key for the agent's terminal; ours is raw. A hang-up comes also where the
                // session was killed: what its terminal says then is certain, and comes after it.
                SIGTSTP | SIGHUP => {}
                _ => heard.end = true,
            }
        }
        heard
    }

    /// Takes note of the rings so far: look after this, not before.
    pub(super) fn hush(&mut self) {
        let mut rings = [0; 256];
        while matches!(self.rings.read(&mut rings), Ok(count) if count > 0) {}
    }
}

/// What a person types at the session's terminal.
pub(super) fn keys(into: &mut [u8]) -> Keys {
    match rustix::io::read(stdin(), into) {
        Ok(0) | Err(Errno::IO | Errno::NXIO) => Keys::Gone,
        Ok(count) => Keys::Some(count),
        Err(_) => Keys::None,
    }
}
