//! A session whose home is gone: nobody finds it any more, and nothing it is told can be stored.
//!
//! It says so to those who look at it, goes on for a while, because a home that was moved may come
//! back, and then ends as if it had been asked to. It never makes a home anew.

use super::SessionState;
use crate::host::log;
use std::time::{Duration, Instant};
use tracing::{info, warn};

/// Since when the home is gone, and what follows from that.
#[derive(Debug)]
pub(super) struct LostHome {
    grace: Duration,
    since: Option<Instant>,
}

/// What is worth telling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum HomeNews {
    Gone,
    Back,
}

impl LostHome {
    pub(super) fn new(grace: Duration) -> Self {
        Self { grace, since: None }
    }

    /// The home was looked for.
    pub(super) fn see(&mut self, is_there: bool, now: Instant) -> Option<HomeNews> {
        match (self.since, is_there) {
            (None, false) => {
                self.since = Some(now);
                Some(HomeNews::Gone)
            }
            (Some(_), true) => {
                self.since = None;
                Some(HomeNews::Back)
            }
            (None, true) | (Some(_), false) => None,
        }
    }

    pub(super) fn grace(&self) -> Duration {
        self.grace
    }

    /// When it has gone on for long enough; none where it has its home, or is to go on for ever.
    pub(super) fn ends_at(&self) -> Option<Instant> {
        self.since.and_then(|since| since.checked_add(self.grace))
    }
}

impl SessionState {
    /// A look at the journal has found the home, or that it is gone.
    pub(super) fn see_home(&mut self, is_there: bool) {
        let Some(news) = self.ending.see_home(is_there, Instant::now()) else {
            return;
        };
        let text = match news {
            HomeNews::Gone => {
                let left = jiff::SignedDuration::try_from(self.ending.grace_without_home());
                let left = left.map_or_else(|_| String::new(), posthaste_wire::time::length);
                format!("the home is gone: nothing can be stored, and this ends in {left}")
            }
            HomeNews::Back => "the home is back".to_owned(),
        };
        match news {
            HomeNews::Gone => warn!(target: log::SESSION, "{text}"),
            HomeNews::Back => info!(target: log::SESSION, "{text}"),
        }
        // Where nobody looks there is nobody to tell.
        let _ = self.setup.notice.send(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_ends_so_long_after_the_home_was_first_missed() {
        const MINUTE: Duration = Duration::from_secs(60);
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let mut homeless = LostHome::new(MINUTE);
        let mut check = |seconds, is_there, news, ends_at: Option<u64>| {
            assert_eq!(homeless.see(is_there, at(seconds)), news, "{seconds}");
            assert_eq!(homeless.ends_at(), ends_at.map(at), "{seconds}");
        };
        check(0, true, None, None);
        check(2, false, Some(HomeNews::Gone), Some(62));
        check(4, false, None, Some(62));
        check(50, true, Some(HomeNews::Back), None);
        check(52, false, Some(HomeNews::Gone), Some(112));
        let mut for_ever = LostHome::new(Duration::MAX);
        for_ever.see(false, begin);
        assert_eq!(for_ever.ends_at(), None);
    }
}
