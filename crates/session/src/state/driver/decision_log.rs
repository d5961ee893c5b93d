//! Writes the driver's decisions to the session's log. The texts come from the driver.

use crate::host::log::DELIVERY;
use posthaste_core::delivery::{Decision, Delivery, Effect, Event};
use posthaste_core::driver::{Decisions, HoldLog, Level, Line, NudgeOutcome, Observer};
use posthaste_core::harness::Manifest;
use posthaste_core::moment::Moment;
use posthaste_core::{MessageId, MessageState};
use std::sync::Arc;
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

fn log(line: Option<Line>) {
    let Some(line) = line else { return };
    match line.level {
        Level::Error => error!(target: DELIVERY, "{line}"),
        Level::Warn => warn!(target: DELIVERY, "{line}"),
        Level::Info => info!(target: DELIVERY, "{line}"),
        Level::Debug => debug!(target: DELIVERY, "{line}"),
    }
}

/// Logs what a driver decides.
pub(super) struct DecisionLog(Decisions);

impl DecisionLog {
    pub(super) fn new(harness: Arc<Manifest>) -> Self {
        Self(Decisions::new(harness))
    }
}

impl Observer for DecisionLog {
    fn hears(&mut self, _now: Moment, event: &Event) {
        log(self.0.hears(event));
    }

    fn has_heard(&mut self) {}

    fn chooses(&mut self, _: Moment, _: &Delivery, _: &[MessageState], _: &Decision) {}

    fn wants(&mut self, _now: Moment, delivery: &Delivery, effect: &Effect) {
        log(self.0.wants(delivery, effect));
    }

    fn releases_keyboard(&mut self) {}

    fn retries(&mut self, ids: &[MessageId], why: &str) {
        log(Some(self.0.retries(ids, why)));
    }

    fn gives_up(&mut self, ids: &[MessageId], why: &str) {
        log(Some(self.0.gives_up(ids, why)));
    }

    fn ends_nudge(&mut self, outcome: &NudgeOutcome) {
        log(Some(self.0.ends_nudge(outcome)));
    }

    fn refuses_answer(&mut self, reason: &str) {
        log(Some(self.0.refuses_answer(reason)));
    }
}
