//! The session driver, with the session's clock and log.

mod decision_log;
pub(super) mod typing_and_output;

use crate::pty::keyboard::TypingState;
use decision_log::{DecisionLog, Holds};
use posthaste_core::MessageState;
use posthaste_core::delivery::Delivery;
use posthaste_core::driver::{Action, DriverConfig, Input, SessionDriver};
use posthaste_core::moment::Moment;
use posthaste_core::why::Hold;
use std::time::{Duration, Instant};
use typing_and_output::{OutputTimes, TypingAndOutput};

pub(super) struct Driver {
    driver: SessionDriver,
    log: DecisionLog,
    holds: Holds,
    typing_and_output: TypingAndOutput,
    /// Zero of the driver's monotonic clock.
    begun: Instant,
}

impl Driver {
    /// Create the driver of a program that was started just now.
    pub(super) fn new(config: DriverConfig) -> Self {
        let begun = Instant::now();
        let now = Moment {
            wall: posthaste_store::times::now(),
            mono: Duration::ZERO,
        };
        Self {
            log: DecisionLog::default(),
            driver: SessionDriver::new(config, now),
            holds: Holds::default(),
            typing_and_output: TypingAndOutput::default(),
            begun,
        }
    }

    pub(super) fn delivery(&self) -> &Delivery {
        self.driver.delivery()
    }

    /// The agent's mail as of the last read.
    pub(super) fn pending(&self) -> &[MessageState] {
        &self.driver.mail().pending
    }

    /// Return why an offered message cannot be proven to be accepted, if there is a reason.
    pub(super) fn lacks_proof(&self, state: &MessageState) -> Option<String> {
        self.driver.lacks_proof(state)
    }

    pub(super) fn is_finished(&self) -> bool {
        self.driver.is_finished()
    }

    pub(super) fn now(&self) -> Moment {
        self.moment(Instant::now())
    }

    /// Return a time of this session as the driver counts it.
    fn moment(&self, at: Instant) -> Moment {
        let wall = posthaste_store::times::now();
        Moment {
            wall: wall.checked_sub(at.elapsed()).unwrap_or(wall),
            mono: at.saturating_duration_since(self.begun),
        }
    }

    /// Return the time at which the driver's clock shows `mono`.
    pub(super) fn instant(&self, mono: Duration) -> Instant {
        self.begun + mono
    }

    /// Pass an input to the driver, with the time at which it came.
    pub(super) fn feed_as_of(&mut self, at: Instant, input: Input) {
        let now = self.moment(at);
        self.driver.handle(now, input, &mut self.log);
    }

    /// Tell the driver about keys and output since the last call.
    pub(super) fn catch_up(&mut self, typing: TypingState, output: OutputTimes) {
        for (at, input) in self.typing_and_output.news(typing, output) {
            self.feed_as_of(at, input);
        }
    }

    pub(super) fn poll_action(&mut self) -> Option<Action> {
        let now = self.now();
        self.driver.poll_action(now, &mut self.log)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let next = self.driver.next_timeout(self.now());
        next.map(|at| self.instant(at))
    }

    /// Return why a message waits, if it does.
    pub(super) fn hold(&self, state: &MessageState) -> Option<Hold> {
        self.delivery().hold(self.now(), state, self.pending())
    }

    /// Note that something may hold or release messages that was not logged yet.
    pub(super) fn note_change(&mut self) {
        self.holds.note_change();
    }

    /// Log which messages wait and why, if that has changed.
    pub(super) fn log_holds(&mut self) {
        let now = self.now();
        self.holds
            .log(now, self.driver.delivery(), &self.driver.mail().pending);
    }
}
