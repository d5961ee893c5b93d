//! The check for unread input before a decision, and the check whether a person's keys left a draft.

use super::{Action, Input, Observer, SessionDriver};
use crate::moment::Moment;
use std::time::Duration;

/// Interval between checks for unread input during [`INPUT_CHECKED_OFTEN_FOR`].
const INPUT_CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Interval between later checks for unread input.
const SLOW_INPUT_CHECK_INTERVAL: Duration = Duration::from_millis(250);
/// How long unread input is checked at the short interval.
const INPUT_CHECKED_OFTEN_FOR: Duration = Duration::from_secs(1);
/// How long a person's keys may take to show in the input box. Keys that show later left no draft.
const KEYS_SHOWN_WITHIN: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Check {
    /// No check is under way, and no result waits to be used.
    Open,
    Asked,
    Done {
        is_unread: bool,
    },
}

#[derive(Debug)]
pub(super) struct InputCheck {
    check: Check,
    /// When the last key of an unsubmitted draft was typed.
    draft_typed_at: Option<Duration>,
}

impl InputCheck {
    pub(super) fn new() -> Self {
        Self {
            check: Check::Open,
            draft_typed_at: None,
        }
    }

    pub(super) fn finish(&mut self, is_unread: bool) {
        self.check = Check::Done { is_unread };
    }

    pub(super) fn note_keys(&mut self, at: Duration, is_draft: bool) {
        self.draft_typed_at = is_draft.then_some(at);
    }
}

impl SessionDriver {
    /// When unread input is checked again. The driver polls, because no event reports that the
    /// program has read its input.
    pub(super) fn next_input_check(&self, now: Moment) -> Option<Duration> {
        let unread_for = self.delivery.unread_for(now)?;
        let interval = match unread_for < INPUT_CHECKED_OFTEN_FOR {
            true => INPUT_CHECK_INTERVAL,
            false => SLOW_INPUT_CHECK_INTERVAL,
        };
        let is_wanted = self.has_more_to_type() || self.delivery.awaits_reading();
        is_wanted.then_some(now.mono + interval)
    }

    /// When the keys of a draft are next asked about.
    pub(super) fn next_keys_check(&self, now: Moment) -> Option<Duration> {
        let soonest = now.mono + INPUT_CHECK_INTERVAL;
        self.forgets_keys_at().map(|at| at.max(soonest))
    }

    /// Whether mail waits, or a reminder may be due.
    pub fn has_more_to_type(&self) -> bool {
        !self.mail.pending.is_empty() || !self.mail.pending_replies.is_empty()
    }

    fn input_matters(&self) -> bool {
        let has_more = self.has_more_to_type() && !self.delivery.is_writing();
        has_more || self.delivery.awaits_reading()
    }

    /// When the keys of a draft can be forgotten, because the input box has shown no trace of them
    /// for [`KEYS_SHOWN_WITHIN`].
    fn forgets_keys_at(&self) -> Option<Duration> {
        let is_void = self.delivery.keys_missed_box();
        let typed_at = self.input_check.draft_typed_at.filter(|_| is_void);
        typed_at.map(|at| at + KEYS_SHOWN_WITHIN)
    }

    /// Check whether the program has unread input, if that matters now, and act on the result.
    /// Return whether the result is known or not needed.
    pub(super) fn check_input(&mut self, now: Moment, observer: &mut impl Observer) -> bool {
        let forgets = self.forgets_keys_at().is_some_and(|at| at <= now.mono);
        let matters = self.input_matters();
        if !matters && !forgets {
            self.input_check.check = Check::Open;
            return true;
        }
        match std::mem::replace(&mut self.input_check.check, Check::Open) {
            Check::Open => {
                self.input_check.check = Check::Asked;
                self.actions.push_back(Action::CheckInput);
                false
            }
            Check::Asked => {
                self.input_check.check = Check::Asked;
                false
            }
            Check::Done { is_unread } => {
                let is_known_unread = self.delivery.unread_for(now).is_some();
                if matters && is_unread != is_known_unread {
                    self.deliver(now, &Input::InputChecked { is_unread }, observer);
                }
                if forgets && !is_unread {
                    self.actions.push_back(Action::ForgetKeys);
                }
                true
            }
        }
    }
}
