//! The signs of the program's life, for who judges it: when it last wrote something, and how it
//! wants to be written to.
//!
//! They are there to be looked at any time. Who judges says from when on it is to be woken for
//! them; what tells it nothing wakes it not, and so stands between no key and its echo.

use std::cell::Cell;
use std::time::Instant;
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Pulse {
    last: Cell<Option<Instant>>,
    /// The last until `until`: what is due then hangs on whether there was output before, and who
    /// wakes for it may wake late.
    last_until: Cell<Option<Instant>>,
    until: Cell<Option<Instant>>,
    wants_paste: Cell<bool>,
    /// From when on output wakes somebody.
    heeded_from: Cell<Option<Instant>>,
    /// Whether every key does.
    heeds_keys: Cell<bool>,
    wakes: Notify,
}

impl Default for Pulse {
    fn default() -> Self {
        Self {
            last: Cell::default(),
            last_until: Cell::default(),
            until: Cell::default(),
            wants_paste: Cell::default(),
            heeded_from: Cell::new(Some(Instant::now())),
            heeds_keys: Cell::new(true),
            wakes: Notify::default(),
        }
    }
}

impl Pulse {
    /// Whether the program wants what is pasted in brackets.
    pub(crate) fn wants_paste(&self) -> bool {
        self.wants_paste.get()
    }

    /// There was output.
    pub(crate) fn beat(&self, now: Instant, wants_paste: bool) {
        self.wants_paste.set(wants_paste);
        self.last.set(Some(now));
        if self.until.get().is_none_or(|until| now <= until) {
            self.last_until.set(Some(now));
        }
        if self.heeded_from.get().is_some_and(|from| from <= now) {
            self.wakes.notify_one();
        }
    }

    /// When there was output last.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.last.get()
    }

    /// When there was output last before what is due was due.
    pub(crate) fn last_until(&self) -> Option<Instant> {
        self.last_until.get()
    }

    pub(crate) fn heeds_keys(&self) -> bool {
        self.heeds_keys.get()
    }

    /// Somebody is to be woken by output from then on, and by every key or not; something is due at
    /// `due`.
    pub(crate) fn heed(&self, output_from: Option<Instant>, keys: bool, due: Option<Instant>) {
        self.heeded_from.set(output_from);
        self.heeds_keys.set(keys);
        self.until.set(due);
    }

    /// Waits until there was output that is heeded.
    pub(crate) async fn next(&self) {
        self.wakes.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    /// Whether somebody who waits would be woken.
    fn wakes(pulse: &Pulse) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(pulse.next()).poll(&mut context).is_ready()
    }

    #[test]
    fn only_output_that_is_heeded_wakes_somebody() {
        let pulse = Pulse::default();
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        pulse.beat(now, false);
        assert!(wakes(&pulse));
        pulse.heed(Some(later), false, None);
        pulse.beat(now, true);
        assert!(!wakes(&pulse));
        assert!(pulse.wants_paste() && pulse.last() == Some(now));
        pulse.beat(later, true);
        assert!(wakes(&pulse));
        pulse.heed(None, false, Some(later));
        pulse.beat(later, true);
        pulse.beat(later + Duration::from_millis(1), true);
        assert!(!wakes(&pulse));
        // Who wakes a little late knows all the same that there was some in time.
        assert_eq!(pulse.last_until(), Some(later));
    }
}
