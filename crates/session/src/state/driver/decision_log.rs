//! Writes the driver's decisions to the session's log. The texts come from the driver.

use crate::host::log::DELIVERY;
use posthaste_core::MessageState;
use posthaste_core::delivery::{Decision, Delivery};
use posthaste_core::driver::{
    Action, DecisionLines, HoldLog, Input, JournalOperation, LogLevel, LogLine, Observer,
};
use posthaste_core::moment::Moment;
use tracing::{debug, error, info, warn};

/// The waiting messages and their reasons, as they were logged last.
#[derive(Debug, Default)]
pub(super) struct Holds {
    log: HoldLog,
    /// Whether something that may hold or release messages has changed since the last log line.
    is_stale: bool,
}

impl Holds {
    pub(super) fn note_change(&mut self) {
        self.is_stale = true;
    }

    /// Log which messages wait and why, if that may have changed.
    pub(super) fn log(&mut self, now: Moment, delivery: &Delivery, pending: &[MessageState]) {
        let is_stale = std::mem::take(&mut self.is_stale);
        if !is_stale || !tracing::enabled!(target: DELIVERY, tracing::Level::INFO) {
            return;
        }
        for line in self.log.news(now, delivery, pending) {
            log(Some(line));
        }
    }
}

fn log(line: Option<LogLine>) {
    let Some(line) = line else { return };
    match line.level {
        LogLevel::Error => error!(target: DELIVERY, "{line}"),
        LogLevel::Warn => warn!(target: DELIVERY, "{line}"),
        LogLevel::Info => info!(target: DELIVERY, "{line}"),
        LogLevel::Debug => debug!(target: DELIVERY, "{line}"),
    }
}

/// Logs what a driver decides.
#[derive(Default)]
pub(super) struct DecisionLog(DecisionLines);

impl Observer for DecisionLog {
    fn on_input(&mut self, _now: Moment, input: &Input) {
        log(self.0.on_input(input));
    }

    fn after_input(&mut self) {}

    fn on_decision(&mut self, _: Moment, _: &Delivery, _: &[MessageState], _: &Decision) {}

    fn on_action(&mut self, _now: Moment, delivery: &Delivery, action: &Action) {
        log(self.0.on_action(delivery, action));
    }

    fn on_commit_retry(&mut self, operation: &JournalOperation, why: &str) {
        log(Some(self.0.on_commit_retry(operation, why)));
    }

    fn on_commit_lost(&mut self, operation: &JournalOperation, why: &str) {
        log(Some(self.0.on_commit_lost(operation, why)));
    }
}
