//! The end of a session: asked for, insisted on, and brought to its close.

use super::{Clerk, Wish};
use crate::host::ending;
use crate::host::log;
use crate::pty::terminal::Ask;
use crate::state::errands;
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
#[derive(Debug, Clone, Copy)]
pub(super) enum Ending {
    Asked { insist_at: Instant },
    Insisted,
}

impl Clerk {
    /// Asks the program to end. Interactive shells pass over one of the two signals.
    pub(super) fn end(&mut self) {
        if self.ending.is_some() {
            return;
        }
        let (child, _) = self.shared.child;
        for signal in [Signal::HUP, Signal::TERM, Signal::CONT] {
            process::signal_group(child, signal);
        }
        self.ending = Some(Ending::Asked {
            insist_at: Instant::now() + GRACE,
        });
    }

    pub(super) fn insist(&mut self) {
        if !matches!(self.ending, Some(Ending::Insisted)) {
            warn!(target: log::SESSION, "the program is killed");
        }
        let (child, started) = self.shared.child;
        process::signal_all(child, started, Signal::KILL);
        self.ending = Some(Ending::Insisted);
    }

    /// The program has ended: reads its last words, says how it went, and answers what is still
    /// asked.
    pub(super) async fn finish(
        mut self,
        status: &std::io::Result<ExitStatus>,
        drained: oneshot::Receiver<()>,
        wishes: &mut mpsc::Receiver<Wish>,
    ) {
        self.shared.terminal.ask(Ask::End).await;
        let _ = drained.await;
        let how = ending(status);
        let _ = tokio::time::timeout(LAST_RECEIPTS, self.read_last()).await;
        self.tell(Input::Exited(how));
        self.drive();
        // What was being offered has its receipt before the session has its end.
        self.record_last(wishes).await;
        let never_proven = errands::never_proven(&self.shared);
        let _ = tokio::time::timeout(LAST_RECEIPTS, never_proven).await;
        self.last_look(Instant::now() + LAST_RECEIPTS).await;
        let run = match (&self.ending, status) {
            (Some(_), _) => Run::Stopped,
            (None, Ok(status)) if status.success() => Run::Completed,
            (None, _) => Run::Failed,
        };
        self.set_run(self.run_of_loop().unwrap_or(run));
        self.tell_changes();
        self.clear_up(wishes).await;
        // A hook may have passed its mail on meanwhile.
        self.record_last(wishes).await;
    }

    /// Serve what was asked and perform what follows, until every receipt is recorded or the time is
    /// up. A write that hangs has no receipt to wait for.
    async fn record_last(&mut self, wishes: &mut mpsc::Receiver<Wish>) {
        let deadline = Instant::now() + LAST_RECEIPTS;
        loop {
            while let Ok(wish) = wishes.try_recv() {
                self.grant(wish);
            }
            self.drive();
            let is_done = self.tasks == 0 && self.driver.has_committed_all();
            if is_done || Instant::now() >= deadline {
                return;
            }
            let wakeup = self.driver.next_timeout(self.now());
            let wakeup = wakeup.map_or(deadline, |at| (self.begun + at).min(deadline));
            tokio::select! {
                Some(report) = self.reported.recv() => self.hear(report),
                Some(wish) = wishes.recv() => self.grant(wish),
                () = tokio::time::sleep_until(wakeup.into()) => self.tell(Input::Tick),
            }
        }
    }

    /// Whatever the program has left running ends with it: by a hang-up, as when a window is
    /// closed; and where an end was asked for, in any case.
    async fn clear_up(&mut self, wishes: &mut mpsc::Receiver<Wish>) {
        let (child, started) = self.shared.child;
        process::signal_all(child, started, Signal::HUP);
        if self.ending.is_none() {
            return;
        }
        process::signal_all(child, started, Signal::TERM);
        let give_up = Instant::now() + 2 * GRACE;
        while !process::left_of(child, started).is_empty() && Instant::now() < give_up {
            match self.ending {
                Some(Ending::Asked { insist_at }) if Instant::now() < insist_at => {}
                // Again and again: one may have started another meanwhile.
                Some(Ending::Asked { .. } | Ending::Insisted) | None => self.insist(),
            }
            // Who does not want to wait may still say so.
            if let Ok(Some(wish)) = tokio::time::timeout(LOOK, wishes.recv()).await {
                self.grant(wish);
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
