//! The signs of the program's life, for who judges it: when it last wrote something, and how it
//! wants to be written to.
//!
//! They are there to be looked at any time. Who judges is woken for them at once only while it has
//! something under way, and else a moment later: not between a key and its echo.

use std::cell::Cell;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// How long output may go unheard where nothing waits for it. Several echoes are heard as one.
const MOMENT: Duration = Duration::from_millis(1);

#[derive(Debug, Default)]
pub(crate) struct Pulse {
    last: Cell<Option<Instant>>,
    wants_paste: Cell<bool>,
    /// The first output for which nobody has been woken.
    unheard: Cell<Option<Instant>>,
    is_urgent: Cell<bool>,
    wakes: Notify,
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
        if self.is_urgent() {
            self.wakes.notify_one();
        } else {
            self.unheard.set(self.unheard.get().or(Some(now)));
        }
    }

    /// When somebody is to be woken for the output that was.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.unheard.get().map(|first| first + MOMENT)
    }

    pub(crate) fn tick(&self, now: Instant) {
        if self.due().is_some_and(|due| due <= now) {
            self.unheard.set(None);
            self.wakes.notify_one();
        }
    }

    /// When there was output last. Who asks need not be woken for it.
    pub(crate) fn last(&self) -> Option<Instant> {
        self.unheard.set(None);
        self.last.get()
    }

    /// Whether who judges waits for what happens.
    pub(crate) fn is_urgent(&self) -> bool {
        self.is_urgent.get()
    }

    pub(crate) fn set_urgent(&self, is_urgent: bool) {
        self.is_urgent.set(is_urgent);
    }

    /// Waits until there was output.
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

    /// Whether somebody who waits would be woken.
    fn wakes(pulse: &Pulse) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(pulse.next()).poll(&mut context).is_ready()
    }

    #[test]
    fn output_is_heard_at_once_where_that_is_urgent_and_else_a_moment_later() {
        let pulse = Pulse::default();
        let now = Instant::now();
        pulse.beat(now, false);
        pulse.tick(now);
        assert!(!wakes(&pulse));
        // The first of several counts.
        let later = now + MOMENT / 2;
        pulse.beat(later, false);
        assert_eq!(pulse.due(), Some(now + MOMENT));
        pulse.tick(now + MOMENT);
        assert!(wakes(&pulse));
        assert_eq!((pulse.due(), pulse.last()), (None, Some(later)));

        // Who has looked by itself is not woken for it.
        pulse.beat(later, true);
        assert_eq!(pulse.last(), Some(later));
        pulse.tick(later + MOMENT);
        assert!(!wakes(&pulse) && pulse.wants_paste());

        pulse.set_urgent(true);
        pulse.beat(later, true);
        assert!(wakes(&pulse));
    }
}
