//! The end of a session: asked for, insisted on, and brought to its close.

use super::lost_home::{HomeNews, LostHome};
use super::{SessionState, StateRequest};
use crate::host::ending;
use crate::host::log;
use crate::pty::terminal::TerminalRequest;
use crate::state::actions;
use posthaste_core::driver::Input;
use posthaste_store::live::process;
use posthaste_wire::Run;
use rustix::process::Signal;
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tokio::signal::unix::{self, SignalKind};
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

/// How long a child that was asked to end may take.
const GRACE: Duration = Duration::from_secs(5);

/// How long the last receipts may take.
const LAST_RECEIPTS: Duration = Duration::from_secs(2);
/// How often what is left is looked for.
const LOOK: Duration = Duration::from_millis(20);

/// How far an end that was asked for has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Not,
    /// The program was asked, and has until `insist_at`.
    Politely {
        insist_at: Instant,
    },
    Insisted,
}

/// Why and when the session ends before its program does so by itself.
#[derive(Debug)]
pub(super) struct EndRequest {
    asked: Asked,
    home: LostHome,
}

impl EndRequest {
    pub(super) fn new(without_home: Duration) -> Self {
        Self {
            asked: Asked::Not,
            home: LostHome::new(without_home),
        }
    }

    fn is_asked(&self) -> bool {
        self.asked != Asked::Not
    }

    /// Ask for the end. Return whether nobody has before.
    fn ask(&mut self, now: Instant) -> bool {
        let is_new = !self.is_asked();
        if is_new {
            let insist_at = now + GRACE;
            self.asked = Asked::Politely { insist_at };
        }
        is_new
    }

    /// Insist on the end. Return whether nobody has before.
    fn insist(&mut self) -> bool {
        std::mem::replace(&mut self.asked, Asked::Insisted) != Asked::Insisted
    }

    /// Note whether the home was found. Return what has changed, in words.
    pub(super) fn see_home(&mut self, is_there: bool, now: Instant) -> Option<HomeNews> {
        self.home.see(is_there, now)
    }

    pub(super) fn grace_without_home(&self) -> Duration {
        self.home.grace()
    }

    fn is_insistence_due(&self, now: Instant) -> bool {
        matches!(self.asked, Asked::Politely { insist_at } if insist_at <= now)
    }

    /// Whether the session has gone on without its home for long enough.
    fn is_due_without_home(&self, now: Instant) -> bool {
        !self.is_asked() && self.home.ends_at().is_some_and(|at| at <= now)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        match self.asked {
            Asked::Not => self.home.ends_at(),
            Asked::Politely { insist_at } => Some(insist_at),
            Asked::Insisted => None,
        }
    }
}

impl SessionState {
    /// Asks the program to end. Interactive shells pass over one of the two signals.
    pub(super) fn end(&mut self) {
        if !self.ending.ask(Instant::now()) {
            return;
        }
        let (child, _) = self.setup.shared.child;
        for signal in [Signal::HUP, Signal::TERM, Signal::CONT] {
            process::signal_group(child, signal);
        }
    }

    pub(super) fn insist(&mut self) {
        if self.ending.insist() {
            warn!(target: log::SESSION, "the program is killed");
        }
        let (child, started) = self.setup.shared.child;
        process::signal_all(child, started, Signal::KILL);
    }

    /// End the program, or insist on its end, if it is time.
    pub(super) fn end_if_due(&mut self) {
        let now = Instant::now();
        if self.ending.is_insistence_due(now) {
            self.insist();
        }
        if self.ending.is_due_without_home(now) {
            warn!(target: log::SESSION, "the home has not come back: the session ends");
            self.end();
        }
    }

    /// The program has ended: reads its last words, says how it went, and answers what is still
    /// asked.
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
        let how = ending(status);
        let _ = tokio::time::timeout(LAST_RECEIPTS, self.read_last()).await;
        self.tell(Input::Exited(how));
        self.drive();
        // What was being offered has its receipt before the session has its end.
        self.record_last(requests).await;
        let never_proven = actions::never_proven(&self.setup.shared);
        let _ = tokio::time::timeout(LAST_RECEIPTS, never_proven).await;
        self.last_look(Instant::now() + LAST_RECEIPTS).await;
        let run = match status {
            _ if self.ending.is_asked() => Run::Stopped,
            Ok(status) if status.success() => Run::Completed,
            Ok(_) | Err(_) => Run::Failed,
        };
        self.set_run(self.looped.ended_as().unwrap_or(run));
        self.tell_changes();
        self.clear_up(requests).await;
        // A hook may have passed its mail on meanwhile.
        self.record_last(requests).await;
    }

    /// Serve what was asked and perform what follows, until every receipt is recorded or the time is
    /// up. A write that hangs has no receipt to wait for.
    async fn record_last(&mut self, requests: &mut mpsc::Receiver<StateRequest>) {
        let deadline = Instant::now() + LAST_RECEIPTS;
        loop {
            while let Ok(request) = requests.try_recv() {
                self.handle(request);
            }
            self.drive();
            let is_done = self.tasks.are_done() && self.driver.has_committed_all();
            if is_done || Instant::now() >= deadline {
                return;
            }
            let wakeup = self.driver.next_timeout();
            let wakeup = wakeup.map_or(deadline, |at| at.min(deadline));
            tokio::select! {
                Some(report) = self.tasks.next() => self.hear(report),
                Some(request) = requests.recv() => self.handle(request),
                () = tokio::time::sleep_until(wakeup.into()) => self.tell(Input::Tick),
            }
        }
    }

    /// Whatever the program has left running ends with it: by a hang-up, as when a window is
    /// closed; and where an end was asked for, in any case.
    async fn clear_up(&mut self, requests: &mut mpsc::Receiver<StateRequest>) {
        let (child, started) = self.setup.shared.child;
        process::signal_all(child, started, Signal::HUP);
        if !self.ending.is_asked() {
            return;
        }
        process::signal_all(child, started, Signal::TERM);
        let give_up = Instant::now() + 2 * GRACE;
        while !process::left_of(child, started).is_empty() && Instant::now() < give_up {
            // Again and again: one may have started another meanwhile.
            if self
                .ending
                .next_timeout()
                .is_none_or(|at| at <= Instant::now())
            {
                self.insist();
            }
            // Who does not want to wait may still say so.
            if let Ok(Some(request)) = tokio::time::timeout(LOOK, requests.recv()).await {
                self.handle(request);
                self.drive();
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
        // A hang-up is none of ours: the session has no terminal, and outlives all of them. It is
        // listened to so that it does not end us.
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
    fn a_program_is_asked_once_and_killed_after_a_while() {
        let now = Instant::now();
        let mut request = EndRequest::new(Duration::from_secs(60));
        assert_eq!(request.next_timeout(), None);
        assert!(request.ask(now));
        assert!(!request.ask(now + GRACE / 2), "the time is not extended");
        assert_eq!(request.next_timeout(), Some(now + GRACE));
        assert!(!request.is_insistence_due(now) && request.is_insistence_due(now + GRACE));
        assert!(request.insist() && !request.insist());
        assert_eq!(request.next_timeout(), None);
        assert!(!request.ask(now) && request.is_asked());
    }

    #[test]
    fn a_session_that_ends_anyway_does_not_end_for_want_of_a_home() {
        let now = Instant::now();
        let minute = Duration::from_secs(60);
        let mut request = EndRequest::new(minute);
        request.see_home(false, now);
        assert_eq!(request.next_timeout(), Some(now + minute));
        assert!(request.is_due_without_home(now + minute));
        request.ask(now);
        assert!(!request.is_due_without_home(now + minute));
    }
}
