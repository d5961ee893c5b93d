//! A session whose home is gone. Clients cannot find the session, and nothing can be stored.
//!
//! The session notifies its viewers and continues for a while, because a home that was moved may come
//! back. Then it ends. It never creates a home.

use crate::host::log;
use crate::state::SessionState;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// How long the home has been gone, and when the session ends because of it.
#[derive(Debug)]
pub(super) struct LostHome {
    grace: Duration,
    since: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HomeChange {
    Gone,
    Back,
}

impl LostHome {
    pub(super) fn new(grace: Duration) -> Self {
        Self { grace, since: None }
    }

    /// Note whether the home was found. Return the change, if any.
    pub(super) fn note(&mut self, is_there: bool, now: Instant) -> Option<HomeChange> {
        match (self.since, is_there) {
            (None, false) => {
                self.since = Some(now);
                Some(HomeChange::Gone)
            }
            (Some(_), true) => {
                self.since = None;
                Some(HomeChange::Back)
            }
            (None, true) | (Some(_), false) => None,
        }
    }

    pub(super) fn grace(&self) -> Duration {
        self.grace
    }

    /// Return the time at which the session ends, unless its home exists or the session never ends
    /// because of it.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.since.and_then(|since| since.checked_add(self.grace))
    }
}

impl SessionState {
    /// Note whether a read of the journal has found the home, and notify viewers of a change.
    pub(in crate::state) fn note_home(&mut self, is_there: bool) {
        let Some(change) = self.end.note_home(is_there, Instant::now()) else {
            return;
        };
        let text = match change {
            HomeChange::Gone => {
                let left = jiff::SignedDuration::try_from(self.end.grace_without_home());
                let left = left.map_or_else(|_| String::new(), posthaste_wire::time::length);
                format!("the home is gone: nothing can be stored, and this session ends in {left}")
            }
            HomeChange::Back => "the home is back".to_owned(),
        };
        match change {
            HomeChange::Gone => warn!(target: log::SESSION, "{text}"),
            HomeChange::Back => info!(target: log::SESSION, "{text}"),
        }
        // The send fails if nobody watches.
        let _ = self.setup.publishers.notice.send(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_ends_a_fixed_time_after_its_home_was_first_missed() {
        const MINUTE: Duration = Duration::from_secs(60);
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut lost = LostHome::new(MINUTE);
        let mut check = |seconds, is_there, change, ends_at: Option<u64>| {
            assert_eq!(lost.note(is_there, at(seconds)), change, "{seconds}");
            assert_eq!(lost.ends_at(), ends_at.map(at), "{seconds}");
        };
        check(0, true, None, None);
        check(2, false, Some(HomeChange::Gone), Some(62));
        check(4, false, None, Some(62));
        check(50, true, Some(HomeChange::Back), None);
        check(52, false, Some(HomeChange::Gone), Some(112));
        let mut unlimited = LostHome::new(Duration::MAX);
        unlimited.note(false, begin);
        assert_eq!(unlimited.ends_at(), None);
    }
}
