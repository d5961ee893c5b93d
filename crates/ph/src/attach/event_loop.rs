//! The event loop of an attached client: moves bytes between the session and the terminal.
//!
//! One thread waits on all descriptors. A terminal that accepts no output stops only the session's
//! output: keys and signals are still processed.

use super::AttachEnd;
use super::guardian::Guardian;
use super::signals::{self, AttachSignals, SignalEvent};
use super::terminal::{self, RawTerminal};
use super::view::View;
use posthaste_session::poll::{self, GONE, TerminalRead, read_terminal};
use posthaste_store::report::{Report, Result};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::stdio::stdin;
use signal_hook::consts::SIGHUP;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Latest start of the guardian. It normally starts after the first screen, which is drawn sooner.
const GUARDIAN_DELAY: Duration = Duration::from_millis(50);
/// How long writing the program's last output may take.
const LAST_OUTPUT_TIMEOUT: Duration = Duration::from_secs(1);
const READ_BUFFER_BYTES: usize = 64 << 10;

pub(super) struct EventLoop<'a> {
    pub(super) stream: UnixStream,
    pub(super) terminal: &'a RawTerminal,
    pub(super) signals: AttachSignals,
    pub(super) view: View,
}

/// Which descriptors are ready.
struct ReadyDescriptors {
    signals: bool,
    keys: bool,
    session: bool,
}

impl EventLoop<'_> {
    /// Run until the client ends. `first` are bytes that the session has already sent.
    pub(super) fn run(mut self, first: &[u8]) -> Result<AttachEnd> {
        let begun = Instant::now();
        let mut guardian = None;
        let mut end = self.view.received(begun, first);
        let mut buffer = vec![0; READ_BUFFER_BYTES];
        loop {
            self.view.update_line(Instant::now());
            if end.is_none() {
                end = self.write();
            }
            if let Some(end) = end {
                return Ok(self.finish(end));
            }
            let is_late = begun.elapsed() >= GUARDIAN_DELAY;
            if guardian.is_none() && (self.view.has_drawn() || is_late) {
                // A failed start is not retried, hence the nested option.
                guardian = Some(Guardian::start(&self.terminal.before));
            }
            let unguarded = guardian.is_none().then(|| begun + GUARDIAN_DELAY);
            let deadline = self.view.deadline().into_iter().chain(unguarded).min();
            let ready = self.wait(deadline).map_err(broken)?;
            if ready.signals {
                end = self.handle_signals(&mut guardian)?;
            }
            if end.is_none() && ready.keys {
                end = self.send_keys(&mut buffer);
            }
            if end.is_none() && ready.session {
                end = self.receive(&mut buffer);
            }
        }
    }

    fn wait(&self, deadline: Option<Instant>) -> std::result::Result<ReadyDescriptors, Errno> {
        let view = &self.view;
        let when = |is_wanted, flags| if is_wanted { flags } else { PollFlags::empty() };
        let session = when(view.wants_output(), PollFlags::IN)
            | when(!view.to_session.is_empty(), PollFlags::OUT);
        let screen = when(!view.to_screen.is_empty(), PollFlags::OUT);
        let wanted = [
            (self.signals.as_fd(), PollFlags::IN),
            (stdin(), when(view.wants_keys(), PollFlags::IN)),
            (self.stream.as_fd(), session),
            (self.terminal.screen.as_fd(), screen),
        ];
        let events = poll::wait(wanted.map(|(fd, flags)| (Some(fd), flags)), deadline)?;
        let [signals, keys, session, _] =
            events.map(|events| events.intersects(PollFlags::IN | GONE));
        Ok(ReadyDescriptors {
            signals,
            keys,
            session,
        })
    }

    fn handle_signals(
        &mut self,
        guardian: &mut Option<Option<Guardian>>,
    ) -> Result<Option<AttachEnd>> {
        for event in self.signals.take() {
            match event {
                SignalEvent::Resized => self.view.resized(terminal::size()),
                SignalEvent::Stop => {
                    self.terminal.restore();
                    *guardian = Some(None);
                    signals::stop();
                }
                SignalEvent::Continued => {
                    self.terminal.take().map_err(broken)?;
                    self.view.continued(terminal::size());
                    *guardian = None;
                }
                SignalEvent::Kill(signal) => return Ok(Some(AttachEnd::Killed(signal))),
            }
        }
        Ok(None)
    }

    fn send_keys(&mut self, buffer: &mut [u8]) -> Option<AttachEnd> {
        match read_terminal(stdin(), buffer) {
            // The terminal was closed without a SIGHUP.
            TerminalRead::Closed => Some(AttachEnd::Killed(SIGHUP)),
            TerminalRead::Bytes(count) => self.view.typed(Instant::now(), &buffer[..count]),
            TerminalRead::Nothing => None,
        }
    }

    fn receive(&mut self, buffer: &mut [u8]) -> Option<AttachEnd> {
        match self.stream.read(buffer) {
            Ok(0) => Some(AttachEnd::LostSession),
            Ok(read) => self.view.received(Instant::now(), &buffer[..read]),
            Err(error) if is_temporary(&error) => None,
            Err(_) => Some(AttachEnd::LostSession),
        }
    }

    /// Write as much as the session and the screen accept without blocking.
    fn write(&mut self) -> Option<AttachEnd> {
        while !self.view.to_session.is_empty() {
            match self.stream.write(self.view.to_session.waiting()) {
                Ok(written) => self.view.to_session.written(written),
                Err(error) if is_temporary(&error) => break,
                // The session's last output is still to be read.
                Err(_) => {
                    let all = self.view.to_session.waiting().len();
                    self.view.to_session.written(all);
                }
            }
        }
        // While this process is stopped, the terminal belongs to another one.
        while self.terminal.is_raw() && !self.view.to_screen.is_empty() {
            match self.terminal.screen.write(self.view.to_screen.waiting()) {
                Ok(written) => self.view.to_screen.written(written),
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(_) => return Some(AttachEnd::Killed(SIGHUP)),
            }
        }
        None
    }

    /// Restore the terminal while the guardian still runs. After the program's end, write its last
    /// output first.
    fn finish(&mut self, end: AttachEnd) -> AttachEnd {
        match end {
            AttachEnd::Ended { .. } | AttachEnd::LostSession => {
                if matches!(end, AttachEnd::Ended { .. }) {
                    self.terminal.set_program_ended();
                }
                let last = self.view.to_screen.waiting();
                self.terminal.screen.write_within(last, LAST_OUTPUT_TIMEOUT);
            }
            AttachEnd::Detached | AttachEnd::Killed(_) => {}
        }
        self.terminal.restore();
        end
    }
}

fn is_temporary(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

fn broken(error: Errno) -> Report {
    Report::refused(format!("the terminal cannot be used: {error}"))
}
