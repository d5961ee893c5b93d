//! The sign that the program writes: when it did last, for who judges its activity.

use std::cell::Cell;
use std::time::Instant;
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Pulse {
    last: Cell<Option<Instant>>,
    /// Whether somebody wants to be woken by the next output.
    is_awaited: Cell<bool>,
    beats: Notify,
}

impl Pulse {
    /// There was output. Costs nothing while nobody waits for it.
    pub(crate) fn beat(&self, now: Instant) {
        self.last.set(Some(now));
        if self.is_awaited.replace(false) {
            self.beats.notify_one();
        }
    }

    pub(crate) fn last(&self) -> Option<Instant> {
        self.last.get()
    }

    /// Waits for the next output.
    pub(crate) async fn next(&self) {
        self.is_awaited.set(true);
        self.beats.notified().await;
    }
}
