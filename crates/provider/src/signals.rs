//! Cancels a call on SIGINT, SIGTERM or SIGHUP.
//!
//! A script has its own process group and does not get the terminal's signals, so `ph` kills it,
//! and then exits by the signal.

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Handlers for the signals that end a command.
#[derive(Debug)]
pub(crate) struct EndSignals {
    pipe: UnixStream,
    /// Whether a signal has its default effect, as it has while no script runs.
    is_default: Arc<AtomicBool>,
    /// The last signal that arrived while a script ran.
    last_signal: Arc<AtomicUsize>,
}

impl EndSignals {
    /// Install the handlers once per process. Return `None` if that fails: signals then keep their
    /// default effect.
    pub(crate) fn installed() -> Option<&'static Self> {
        static INSTALLED: OnceLock<Option<EndSignals>> = OnceLock::new();
        INSTALLED.get_or_init(|| Self::install().ok()).as_ref()
    }

    fn install() -> std::io::Result<Self> {
        let (pipe, notify) = UnixStream::pair()?;
        pipe.set_nonblocking(true)?;
        let is_default = Arc::new(AtomicBool::new(true));
        let last_signal = Arc::new(AtomicUsize::new(0));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            let number = usize::try_from(signal).unwrap_or_default();
            let default = is_default.clone();
            signal_hook::flag::register_conditional_default(signal, default)?;
            signal_hook::flag::register_usize(signal, last_signal.clone(), number)?;
            signal_hook::low_level::pipe::register(signal, notify.try_clone()?)?;
        }
        Ok(Self {
            pipe,
            is_default,
            last_signal,
        })
    }

    /// Run `call`. A signal makes its argument readable, and does not end this process.
    pub(crate) fn redirect_during<T>(&self, call: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
        self.is_default.store(false, Ordering::SeqCst);
        let answer = call(self.pipe.as_fd());
        self.is_default.store(true, Ordering::SeqCst);
        answer
    }

    /// Exit by the last signal, if there was one.
    pub(crate) fn exit_by_signal(&self) {
        let last_signal = i32::try_from(self.last_signal.load(Ordering::SeqCst));
        if let Ok(signal @ 1..) = last_signal {
            let _ = signal_hook::low_level::emulate_default_handler(signal);
        }
    }
}
