//! What ends a call of a script before it has answered.
//!
//! A script has a process group of its own, so what is typed at the terminal does not reach it:
//! whoever waits for it hears the signal, ends the script, and then itself as the signal would.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// The signals that end a command.
#[derive(Debug)]
pub(crate) struct Signals {
    heard: UnixStream,
    /// Whether a signal does what it always does: while no script runs.
    is_usual: Arc<AtomicBool>,
    /// The last one that came while a script ran.
    which: Arc<AtomicUsize>,
}

impl Signals {
    /// Those of this process, from the first call of a script on. None where they cannot be heard:
    /// then they do what they always do.
    pub(crate) fn ours() -> Option<&'static Self> {
        static OURS: OnceLock<Option<Signals>> = OnceLock::new();
        OURS.get_or_init(|| Self::listen().ok()).as_ref()
    }

    fn listen() -> std::io::Result<Self> {
        let (heard, tell) = UnixStream::pair()?;
        heard.set_nonblocking(true)?;
        let is_usual = Arc::new(AtomicBool::new(true));
        let which = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let number = usize::try_from(signal).unwrap_or_default();
            let usual = is_usual.clone();
            signal_hook::flag::register_conditional_default(signal, usual)?;
            signal_hook::flag::register_usize(signal, which.clone(), number)?;
            signal_hook::low_level::pipe::register(signal, tell.try_clone()?)?;
        }
        Ok(Self {
            heard,
            is_usual,
            which,
        })
    }

    /// Has signals end a call instead of this process, as long as it lasts.
    pub(crate) fn during<T>(&self, call: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        self.is_usual.store(false, Ordering::SeqCst);
        let answer = call(self.heard.as_fd());
        self.is_usual.store(true, Ordering::SeqCst);
        answer
    }

    /// Ends this process, where a signal asked for it.
    pub(crate) fn obey(&self) {
        let which = i32::try_from(self.which.load(Ordering::SeqCst));
        if let Ok(signal @ 1..) = which {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}
