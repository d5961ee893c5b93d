//! The end of a session: requested, enforced by a kill, and completed by the last records.

mod lost_home;

use super::{SessionState, StateRequest};
use crate::host::ending;
use crate::host::log;
use crate::pty::terminal::TerminalRequest;
use lost_home::{HomeChange, LostHome};
use posthaste_core::driver::Input;
use posthaste_store::live::process;
use posthaste_wire::RunStatus;
use rustix::process::Signal;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

/// How long a program that was asked to end may take.
const PROGRAM_END_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the session waits for its last read of the journal.
const LAST_READ_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a program that ended by itself may leave processes that could still write to its
/// transcript.
const LEFT_PROCESSES_TIMEOUT: Duration = Duration::from_millis(500);
/// How often to check whether processes of the program are left.
const LEFT_PROCESSES_POLL_INTERVAL: Duration = Duration::from_millis(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EndProgress {
    NotRequested,
    /// The program was asked to end.
    Requested {
        kill_at: Instant,
    },
    Killed,
}

/// Whether and when the session ends its program.
#[derive(Debug)]
pub(super) struct EndRequest {
    progress: EndProgress,
    home: LostHome,
    /// Whether the driver waits for the end of the processes that the program has left.
    must_end_processes: bool,
}

impl EndRequest {
    pub(super) fn new(without_home: Duration) -> Self {
        Self {
            progress: EndProgress::NotRequested,
            home: LostHome::new(without_home),
            must_end_processes: false,
        }
    }

    fn is_requested(&self) -> bool {
        self.progress != EndProgress::NotRequested
    }

    pub(super) fn begin_ending_processes(&mut self) {
        self.must_end_processes = true;
    }

    fn take_ending_processes(&mut self) -> bool {
        std::mem::take(&mut self.must_end_processes)
    }

    /// Note that the program is asked to end. Return whether this is the first request.
    fn request(&mut self, now: Instant) -> bool {
        let is_new = !self.is_requested();
        if is_new {
            let kill_at = now + PROGRAM_END_TIMEOUT;
            self.progress = EndProgress::Requested { kill_at };
        }
        is_new
    }

    /// Note that the program is killed. Return whether this is the first time.
    fn kill(&mut self) -> bool {
        std::mem::replace(&mut self.progress, EndProgress::Killed) != EndProgress::Killed
    }

    /// Note whether the home was found. Return the change, if any.
    fn note_home(&mut self, is_there: bool, now: Instant) -> Option<HomeChange> {
        self.home.note(is_there, now)
    }

    fn grace_without_home(&self) -> Duration {
        self.home.grace()
    }

    fn is_kill_due(&self, now: Instant) -> bool {
        matches!(self.progress, EndProgress::Requested { kill_at } if kill_at <= now)
    }

    /// Whether the session ends because its home has not come back.
    fn is_due_without_home(&self, now: Instant) -> bool {
        !self.is_requested() && self.home.ends_at().is_some_and(|at| at <= now)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self.progress {
            EndProgress::NotRequested => self.home.ends_at(),
            EndProgress::Requested { kill_at } => Some(kill_at),
            EndProgress::Killed => None,
        }
    }
}

impl SessionState {
    /// Ask the program to end.
    pub(super) fn request_end(&mut self) {
        if !self.end.request(Instant::now()) {
            return;
        }
        let (child, _) = self.setup.shared.child;
        process::request_group_end(child);
    }

    /// Kill the program and its descendants.
    pub(super) fn kill(&mut self) {
        if self.end.kill() {
            warn!(target: log::SESSION, "the program is killed");
        }
        let (child, started) = self.setup.shared.child;
        process::signal_all(child, started, Signal::KILL);
    }

    /// Ask the program to end, or kill it, if that is due.
    pub(super) fn end_if_due(&mut self) {
        let now = Instant::now();
        if self.end.is_kill_due(now) {
            self.kill();
        }
        if self.end.is_due_without_home(now) {
            warn!(target: log::SESSION, "the home has not come back, so the session ends");
            self.request_end();
        }
    }

    /// Complete the session after its program has ended: read the last output, do what the driver has
    /// left to do, publish the end, and answer open requests.
    pub(super) async fn finish(
        mut self,
        status: &std::io::Result<ExitStatus>,
        drained: oneshot::Receiver<()>,
        requests: &mut mpsc::Receiver<StateRequest>,
    ) {
        self.setup
            .shared
            .terminal
            .request(TerminalRequest::End)
            .await;
        let _ = drained.await;
        self.feed(Input::Exited(ending(status)));
        loop {
            while let Ok(request) = requests.try_recv() {
                self.handle(request);
            }
            self.perform_actions();
            if self.driver.is_finished() {
                break;
            }
            if self.end.take_ending_processes() {
                // A client that asked for the end is told of it before processes are waited for.
                if self.end.is_requested() {
                    self.publish_end(status).await;
                }
                self.end_left_processes(requests).await;
                self.feed(Input::ProcessesEnded);
                continue;
            }
            let wakeup = self.driver.next_timeout();
            tokio::select! {
                Some(report) = self.tasks.next() => self.apply_report(report),
                Some(request) = requests.recv() => self.handle(request),
                () = tokio::time::sleep_until(wakeup.unwrap_or_else(Instant::now).into()), if wakeup.is_some() => {}
            }
        }
        self.publish_end(status).await;
    }

    /// Publish the last steps of messages, and then the end of the run.
    async fn publish_end(&mut self, status: &std::io::Result<ExitStatus>) {
        self.read_last_steps(Instant::now() + LAST_READ_TIMEOUT)
            .await;
        let run = match status {
            _ if self.end.is_requested() => RunStatus::Stopped,
            Ok(status) if status.success() => RunStatus::Completed,
            Ok(_) | Err(_) => RunStatus::Failed,
        };
        self.set_run(self.loop_watch.ended_as().unwrap_or(run));
        self.publish_changes();
    }

    /// End the processes that the program has left. They receive SIGHUP, as when a window is closed. If
    /// the end of the session was requested, they also receive SIGTERM, and are killed after a timeout.
    async fn end_left_processes(&mut self, requests: &mut mpsc::Receiver<StateRequest>) {
        let (child, started) = self.setup.shared.child;
        process::signal_all(child, started, Signal::HUP);
        let is_requested = self.end.is_requested();
        let timeout = match is_requested {
            true => 2 * PROGRAM_END_TIMEOUT,
            false if self.driver.delivery().needs_transcript() => LEFT_PROCESSES_TIMEOUT,
            false => return,
        };
        if is_requested {
            process::signal_all(child, started, Signal::TERM);
        }
        let give_up = Instant::now() + timeout;
        while !process::left_of(child, started).is_empty() && Instant::now() < give_up {
            let kill_at = self.end.next_timeout();
            // Repeat the kill, because a process may have started another one.
            if self.end.is_requested() && kill_at.is_none_or(|at| at <= Instant::now()) {
                self.kill();
            }
            // A client may still request a kill.
            if let Ok(Some(request)) =
                tokio::time::timeout(LEFT_PROCESSES_POLL_INTERVAL, requests.recv()).await
            {
                self.handle(request);
                self.perform_actions();
            }
        }
    }
}

/// The signals that ask a process to end.
pub(super) struct Signals {
    signals: Vec<unix::Signal>,
}

impl Signals {
    pub(super) fn listen() -> Self {
        // Catch SIGHUP so that it does not end the session, which has no terminal of its own.
        let kinds = [
            SignalKind::terminate(),
            SignalKind::interrupt(),
            SignalKind::hangup(),
        ];
        let signals = kinds.into_iter().filter_map(|kind| unix::signal(kind).ok());
        Self {
            signals: signals.collect(),
        }
    }

    pub(super) async fn next(&mut self) {
        match self.signals.as_mut_slice() {
            [terminate, interrupt, hangup] => loop {
                tokio::select! {
                    _ = terminate.recv() => return,
                    _ = interrupt.recv() => return,
                    _ = hangup.recv() => {}
                }
            },
            _ => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_asked_to_end_once_and_killed_after_the_timeout() {
        let now = Instant::now();
        let mut end = EndRequest::new(Duration::from_secs(60));
        assert_eq!(end.next_timeout(), None);
        assert!(end.request(now));
        assert!(
            !end.request(now + PROGRAM_END_TIMEOUT / 2),
            "the time is not extended"
        );
        assert_eq!(end.next_timeout(), Some(now + PROGRAM_END_TIMEOUT));
        assert!(!end.is_kill_due(now) && end.is_kill_due(now + PROGRAM_END_TIMEOUT));
        assert!(end.kill() && !end.kill());
        assert_eq!(end.next_timeout(), None);
        assert!(!end.request(now) && end.is_requested());
    }

    #[test]
    fn a_session_that_is_ending_does_not_end_because_of_its_home() {
        let now = Instant::now();
        let minute = Duration::from_secs(60);
        let mut end = EndRequest::new(minute);
        end.note_home(false, now);
        assert_eq!(end.next_timeout(), Some(now + minute));
        assert!(end.is_due_without_home(now + minute));
        end.request(now);
        assert!(!end.is_due_without_home(now + minute));
    }
}
