//! When the program last wrote output, and when output or keys wake the owner of the session state.
//!
//! The owner sets when it must be woken. Other output and keys do not wake it, so that it does not
//! delay the echo of a key.

use std::cell::Cell;
use std::time::Instant;
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct OutputActivity {
    last_at: Cell<Option<Instant>>,
    /// The last output until `deadline`. The owner may wake after the deadline, and must know
    /// whether there was output before it.
    last_before_deadline: Cell<Option<Instant>>,
    deadline: Cell<Option<Instant>>,
    wants_paste: Cell<bool>,
    /// Output wakes the owner from this time on, or never.
    wakes_from: Cell<Option<Instant>>,
    /// Whether every key wakes the owner.
    wakes_on_keys: Cell<bool>,
    wakeup: Notify,
}

impl Default for OutputActivity {
    fn default() -> Self {
        Self {
            last_at: Cell::default(),
            last_before_deadline: Cell::default(),
            deadline: Cell::default(),
            wants_paste: Cell::default(),
            wakes_from: Cell::new(Some(Instant::now())),
            wakes_on_keys: Cell::new(true),
            wakeup: Notify::default(),
        }
    }
}

impl OutputActivity {
    /// Whether the program has turned on bracketed paste.
    pub(crate) fn wants_paste(&self) -> bool {
        self.wants_paste.get()
    }

    /// Record that the program has written output.
    pub(crate) fn record(&self, now: Instant, wants_paste: bool) {
        self.wants_paste.set(wants_paste);
        self.last_at.set(Some(now));
        if self.deadline.get().is_none_or(|deadline| now <= deadline) {
            self.last_before_deadline.set(Some(now));
        }
        if self.wakes_from.get().is_some_and(|from| from <= now) {
            self.wakeup.notify_one();
        }
    }

    pub(crate) fn last_at(&self) -> Option<Instant> {
        self.last_at.get()
    }

    /// Return the time of the last output before the deadline of [`Self::wake_on`].
    pub(crate) fn last_before_deadline(&self) -> Option<Instant> {
        self.last_before_deadline.get()
    }

    pub(crate) fn wakes_on_keys(&self) -> bool {
        self.wakes_on_keys.get()
    }

    /// Set when output wakes the owner, whether every key does, and the owner's next deadline.
    pub(crate) fn wake_on(
        &self,
        output_from: Option<Instant>,
        keys: bool,
        deadline: Option<Instant>,
    ) {
        self.wakes_from.set(output_from);
        self.wakes_on_keys.set(keys);
        self.deadline.set(deadline);
    }

    /// Wait for output that wakes the owner.
    pub(crate) async fn next(&self) {
        self.wakeup.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::Future;
    use std::pin::pin;
    use std::task::{Context, Waker};
    use std::time::Duration;

    /// Whether the owner would be woken.
    fn wakes(activity: &OutputActivity) -> bool {
        let mut context = Context::from_waker(Waker::noop());
        pin!(activity.next()).poll(&mut context).is_ready()
    }

    #[test]
    fn only_requested_output_wakes_the_owner() {
        let activity = OutputActivity::default();
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        activity.record(now, false);
        assert!(wakes(&activity));
        activity.wake_on(Some(later), false, None);
        activity.record(now, true);
        assert!(!wakes(&activity));
        assert!(activity.wants_paste() && activity.last_at() == Some(now));
        activity.record(later, true);
        assert!(wakes(&activity));
        activity.wake_on(None, false, Some(later));
        activity.record(later, true);
        activity.record(later + Duration::from_millis(1), true);
        assert!(!wakes(&activity));
        // An owner that wakes late still sees that there was output before the deadline.
        assert_eq!(activity.last_before_deadline(), Some(later));
    }
}
