//! The signs of the program's life, for who judges it: when it last wrote something, and how it
//! wants to be written to.

use std::cell::Cell;
use std::time::Instant;
use tokio::sync::Notify;

#[derive(Debug, Default)]
pub(crate) struct Pulse {
    last: Cell<Option<Instant>>,
    /// Whether somebody wants to be woken by the next output.
    is_awaited: Cell<bool>,
    beats: Notify,
    wants_paste: Cell<bool>,
}

impl Pulse {
    /// Whether the program wants what is pasted in brackets.
    pub(crate) fn wants_paste(&self) -> bool {
        self.wants_paste.get()
    }

    /// There was output. Costs nothing while nobody waits for it.
    pub(crate) fn beat(&self, now: Instant, wants_paste: bool) {
        self.wants_paste.set(wants_paste);
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
