//! Tracks a person's draft in the input box, from the keys typed and from the screen. Either source
//! alone is enough to hold messages.

use crate::harness::BoxState;
use crate::moment::Moment;
use std::time::Duration;

/// Minimum time between the two screen checks that must both show an empty box, with no output in
/// between.
const STEADY_AFTER: Duration = Duration::from_millis(100);
/// Upper limit for the time between the checks, which doubles whenever the second check differs.
const STEADY_AFTER_AT_MOST: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
struct Typing {
    since: Moment,
    /// Every key came while a question was open.
    to_question: bool,
}

/// The first of the looks at the screen that showed the box as it is now.
#[derive(Debug, Clone, Copy)]
struct FirstLook {
    at: Moment,
    /// How much output the program had written by then.
    output: u64,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Drafting {
    keys: Option<Typing>,
    state: BoxState,
    /// Since when the screen shows this state.
    since: Option<Moment>,
    /// Since when the screen shows the box at all.
    recognised_since: Option<Moment>,
    first_look: Option<FirstLook>,
    /// Enough time has passed since the first look.
    is_steady: bool,
    /// How often the second look showed another screen.
    changes: u32,
    /// The box was empty when it was last recognised, and nobody has typed since.
    was_empty: bool,
    /// An interrupt key was pressed while the box was empty, so any text that appears was restored
    /// by the program.
    put_back: bool,
    /// A text of ours that Enter did not submit.
    pub(super) left: Option<String>,
}

impl Drafting {
    pub(super) fn typed(&mut self, now: Moment, is_asked: bool) {
        let before = self.keys;
        self.keys = Some(Typing {
            since: before.map_or(now, |typing| typing.since),
            to_question: is_asked && before.is_none_or(|typing| typing.to_question),
        });
        self.was_empty = false;
        self.put_back = false;
    }

    pub(super) fn gone(&mut self) {
        self.keys = None;
    }

    /// Record the box state from a screen check and the output count at that time.
    pub(super) fn see(&mut self, now: Moment, state: BoxState, output: u64) {
        let is_same = state == self.state;
        if !is_same || self.first_look.is_none_or(|look| look.output != output) {
            self.first_look = Some(FirstLook { at: now, output });
            self.is_steady = false;
        }
        if is_same {
            return;
        }
        self.recognised_since = match state.is_recognised() {
            true => self.recognised_since.or(Some(now)),
            false => None,
        };
        if state == BoxState::Empty && matches!(self.state, BoxState::Holds(_)) {
            self.put_back = false;
        }
        match &state {
            BoxState::Holds(held) if self.left.as_ref() == Some(&held.text) => {}
            BoxState::Holds(_) | BoxState::Empty => self.left = None,
            BoxState::Unrecognised(_) | BoxState::Undescribed => {}
        }
        self.was_empty = match state {
            // With keys under way, the program may not have drawn them yet.
            BoxState::Empty => self.keys.is_none(),
            BoxState::Holds(_) => false,
            BoxState::Unrecognised(_) | BoxState::Undescribed => self.was_empty,
        };
        self.state = state;
        self.since = Some(now);
    }

    pub(super) fn state(&self) -> &BoxState {
        &self.state
    }

    pub(super) fn is_typed(&self) -> bool {
        self.keys.is_some()
    }

    /// Whether a person has typed, and only while a question was open.
    pub(super) fn is_typed_to_question(&self) -> bool {
        self.keys.is_some_and(|typing| typing.to_question)
    }

    pub(super) fn is_shown(&self) -> bool {
        matches!(self.state, BoxState::Holds(_))
    }

    /// Whether the box is empty, and has been for two equal looks with no output in between.
    pub(super) fn is_empty_and_steady(&self) -> bool {
        self.state == BoxState::Empty && self.is_steady
    }

    /// Since when there is a draft.
    pub(super) fn since(&self) -> Option<Moment> {
        let typed = self.keys.map(|typing| typing.since);
        typed.or(self.since.filter(|_| self.is_shown()))
    }

    /// Since when the screen shows the box as it is.
    pub(super) fn shown_since(&self) -> Option<Moment> {
        self.since
    }

    pub(super) fn recognised_since(&self) -> Option<Moment> {
        self.recognised_since
    }

    pub(super) fn interrupted(&mut self) {
        self.put_back = self.keys.is_none() && self.was_empty;
    }

    /// The second look showed another screen than the first.
    pub(super) fn has_changed(&mut self) {
        self.changes = self.changes.saturating_add(1);
    }

    /// Both looks showed an empty box.
    pub(super) fn has_settled(&mut self) {
        self.changes = 0;
    }

    /// How much output the program had written at the last look.
    pub(super) fn output(&self) -> Option<u64> {
        self.first_look.map(|look| look.output)
    }

    /// Note that later text in the box is not a restored prompt: our text is being typed, or the
    /// clear key had no effect.
    pub(super) fn begun(&mut self) {
        self.put_back = false;
    }

    /// Whether the box holds what the program itself has put back after an interrupt.
    pub(super) fn is_put_back(&self) -> bool {
        self.put_back && self.is_shown() && self.keys.is_none()
    }

    fn steady_at(&self) -> Option<Duration> {
        let is_awaited = self.state == BoxState::Empty && !self.is_steady;
        let look = self.first_look.filter(|_| is_awaited)?;
        let after = STEADY_AFTER * 2_u32.saturating_pow(self.changes.min(8));
        Some(look.at.mono + after.min(STEADY_AFTER_AT_MOST))
    }

    pub(super) fn tick(&mut self, now: Moment) {
        if self.steady_at().is_some_and(|at| at <= now.mono) {
            self.is_steady = true;
        }
    }

    pub(super) fn next_wakeup(&self) -> Option<Duration> {
        self.steady_at()
    }
}
