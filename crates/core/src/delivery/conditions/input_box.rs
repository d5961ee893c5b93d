//! The model of the program's input box: what the screen shows there, what a person has typed, and
//! whether the program reads its input. Keys and screen are each evidence of a draft, and either
//! alone is enough to hold messages.

use crate::harness::{BoxState, Manifest, Mismatch, Sighting};
use crate::moment::Moment;
use crate::turn::InputMode;
use std::sync::Arc;
use std::time::Duration;

/// Minimum time between the two screen checks that must both show an empty box, with no output in
/// between.
const STEADY_AFTER: Duration = Duration::from_millis(100);
/// Maximum time between the checks. The time doubles whenever the second check differs.
const MAX_STEADY_AFTER: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy)]
struct Typing {
    since: Moment,
    /// Every key was typed while a question was open.
    to_question: bool,
}

/// The first look at the screen that showed the present state of the box.
#[derive(Debug, Clone, Copy)]
struct FirstLook {
    at: Moment,
    /// Amount of output that the program had written by then.
    output: u64,
}

/// The looks at an empty box: text is typed only after two equal ones.
#[derive(Debug, Clone, Default)]
struct Looks {
    first: Option<FirstLook>,
    /// Enough time has passed since the first look.
    is_steady: bool,
    /// How often the second look showed another screen.
    changes: u32,
}

/// The input box as the last look at the screen showed it.
#[derive(Debug, Clone, Default)]
struct Screen {
    state: BoxState,
    /// Since when the screen shows this state.
    since: Option<Moment>,
    /// Since when the screen shows the box at all.
    recognised_since: Option<Moment>,
    /// The text before the cursor.
    at_cursor: Option<String>,
    looks: Looks,
}

/// The texts of ours that the box may hold.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct OwnText {
    /// A text is being written or submitted.
    pub(crate) is_writing: bool,
    /// Since when a text waits for its Enter, with the keyboard released.
    pub(crate) awaits_enter_since: Option<Moment>,
}

impl OwnText {
    pub(crate) fn is_awaiting_enter(self) -> bool {
        self.awaits_enter_since.is_some()
    }

    pub(crate) fn is_there(self) -> bool {
        self.is_writing || self.is_awaiting_enter()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct InputBox {
    harness: Arc<Manifest>,
    pub(crate) own: OwnText,
    /// How the program takes text now.
    pub(crate) mode: InputMode,
    /// Since when the terminal holds input that the program has not read.
    pub(crate) unread: Option<Moment>,
    /// The keys of a draft.
    keys: Option<Typing>,
    /// The end of a draft was reported since the keyboard was last requested again.
    pub(crate) is_draft_end_known: bool,
    screen: Screen,
    /// The box was empty when it was last recognised, and nobody has typed since.
    was_empty: bool,
    /// A person has typed, and no look has shown the effect yet: an empty box may be an old picture,
    /// even after keys that clear it, because a dialog can take those.
    has_undrawn_keys: bool,
    /// An interrupt key was pressed while the box was empty, so any text that appears was restored
    /// by the program.
    may_restore: bool,
    /// A text of ours that Enter did not submit.
    unsubmitted: Option<String>,
}

impl InputBox {
    pub(crate) fn new(harness: Arc<Manifest>) -> Self {
        Self {
            harness,
            own: OwnText::default(),
            mode: InputMode::Typed,
            unread: None,
            keys: None,
            is_draft_end_known: false,
            screen: Screen::default(),
            was_empty: false,
            has_undrawn_keys: false,
            may_restore: false,
            unsubmitted: None,
        }
    }

    /// Whether the harness describes the box, so that nothing is typed unless the screen shows it.
    pub(crate) fn is_described(&self) -> bool {
        self.harness.input_box.is_some()
    }

    /// Note that the terminal holds unread input, or none any more.
    pub(crate) fn set_unread(&mut self, now: Moment, is_unread: bool) {
        self.unread = is_unread.then(|| self.unread.unwrap_or(now));
    }

    pub(crate) fn note_keys(&mut self, now: Moment, is_asked: bool) {
        let before = self.keys;
        self.keys = Some(Typing {
            since: before.map_or(now, |typing| typing.since),
            to_question: is_asked && before.is_none_or(|typing| typing.to_question),
        });
        self.was_empty = false;
        self.has_undrawn_keys = true;
        self.may_restore = false;
    }

    /// Note that the person has submitted or cleared the draft.
    pub(crate) fn end_draft(&mut self) {
        self.is_draft_end_known = true;
        self.keys = None;
    }

    /// Note that the keyboard is refused because of a draft. Assume a draft until its end is
    /// reported, unless that report has come already.
    pub(crate) fn refuse_keyboard(&mut self, now: Moment) {
        if !self.is_draft_end_known {
            self.note_keys(now, false);
        }
    }

    /// Update the box from a look at the screen.
    pub(crate) fn look(&mut self, now: Moment, sighting: Sighting) {
        self.screen.at_cursor = sighting.before;
        self.set_state(now, sighting.input_box, sighting.output);
        self.tick(now);
    }

    /// Record the box state from a screen check and the output count at that time.
    fn set_state(&mut self, now: Moment, state: BoxState, output: u64) {
        let is_same = state == self.screen.state;
        if !is_same
            || self
                .screen
                .looks
                .first
                .is_none_or(|look| look.output != output)
        {
            self.screen.looks.first = Some(FirstLook { at: now, output });
            self.screen.looks.is_steady = false;
        }
        if is_same {
            return;
        }
        self.screen.recognised_since = match state.is_recognised() {
            true => self.screen.recognised_since.or(Some(now)),
            false => None,
        };
        if state == BoxState::Empty && matches!(self.screen.state, BoxState::Holds(_)) {
            self.may_restore = false;
        }
        match &state {
            BoxState::Holds(held) if self.unsubmitted.as_ref() == Some(&held.text) => {}
            BoxState::Holds(_) | BoxState::Empty => self.unsubmitted = None,
            BoxState::Unrecognised(_) | BoxState::Undescribed => {}
        }
        self.has_undrawn_keys &= !matches!(state, BoxState::Holds(_));
        self.was_empty = match state {
            BoxState::Empty => self.keys.is_none() && !self.has_undrawn_keys,
            BoxState::Holds(_) => false,
            BoxState::Unrecognised(_) | BoxState::Undescribed => self.was_empty,
        };
        self.screen.state = state;
        self.screen.since = Some(now);
    }

    pub(crate) fn state(&self) -> &BoxState {
        &self.screen.state
    }

    pub(crate) fn at_cursor(&self) -> Option<&str> {
        self.screen.at_cursor.as_deref()
    }

    pub(crate) fn is_typed(&self) -> bool {
        self.keys.is_some()
    }

    /// Whether a person has typed, and only while a question was open.
    pub(crate) fn is_typed_to_question(&self) -> bool {
        self.keys.is_some_and(|typing| typing.to_question)
    }

    /// Whether the box holds this text and nothing else.
    pub(crate) fn holds_only(&self, text: &str) -> bool {
        match (&self.harness.input_box, &self.screen.state) {
            (Some(input_box), BoxState::Holds(held)) => input_box.is_text(held, text),
            (_, _) => false,
        }
    }

    /// Whether the box holds a part of this text, or more than the text.
    pub(crate) fn holds_a_part(&self, text: &str) -> bool {
        match (&self.harness.input_box, &self.screen.state) {
            (Some(input_box), BoxState::Holds(held)) => input_box.overlaps(held, text),
            (_, _) => false,
        }
    }

    /// Note that our text stays in the box, because Enter did not submit it.
    pub(crate) fn mark_unsubmitted(&mut self) {
        self.unsubmitted = match &self.screen.state {
            BoxState::Holds(held) => Some(held.text.clone()),
            BoxState::Empty | BoxState::Unrecognised(_) | BoxState::Undescribed => None,
        };
    }

    /// Whether a text of ours is in the box that Enter did not submit.
    pub(crate) fn has_unsubmitted(&self) -> bool {
        self.unsubmitted.is_some()
    }

    /// Return the keys that clear a prompt that the program restored after an interrupt, if there is
    /// one.
    pub(crate) fn clear_keys(&self) -> Option<Vec<u8>> {
        let keys = self.harness.input_box.as_ref()?.clear.as_ref()?;
        self.is_restored().then(|| keys.bytes().to_vec())
    }

    /// Whether the box holds a prompt that the program restored after an interrupt, and the harness
    /// has keys that clear it.
    pub(crate) fn must_clear(&self) -> bool {
        self.clear_keys().is_some()
    }

    /// Return why nothing is typed into the screen, in one sentence.
    pub(crate) fn mismatch_text(&self) -> String {
        match &self.screen.state {
            BoxState::Unrecognised(mismatch) => Mismatch::to_string(mismatch),
            BoxState::Undescribed | BoxState::Empty | BoxState::Holds(_) => {
                "the screen has not shown the input box yet".to_owned()
            }
        }
    }

    pub(crate) fn shows_text(&self) -> bool {
        matches!(self.screen.state, BoxState::Holds(_))
    }

    /// Whether the box is empty, and has been for two equal looks with no output in between.
    pub(crate) fn is_empty_and_steady(&self) -> bool {
        self.screen.state == BoxState::Empty && self.screen.looks.is_steady
    }

    /// Whether the box holds a draft. While it holds a text of ours, nobody else can type.
    pub(crate) fn has_draft(&self) -> bool {
        self.is_typed() || (self.shows_text() && !self.own.is_there())
    }

    /// Return the beginning of the draft.
    pub(crate) fn since(&self) -> Option<Moment> {
        let typed = self.keys.map(|typing| typing.since);
        typed.or(self.screen.since.filter(|_| self.shows_text()))
    }

    /// Return when the screen first showed the present state of the box.
    pub(crate) fn shown_since(&self) -> Option<Moment> {
        self.screen.since
    }

    pub(crate) fn recognised_since(&self) -> Option<Moment> {
        self.screen.recognised_since
    }

    pub(crate) fn note_interrupt(&mut self) {
        self.may_restore = self.keys.is_none() && self.was_empty;
    }

    /// Note that the second look showed another screen than the first.
    pub(crate) fn note_change(&mut self) {
        self.screen.looks.changes = self.screen.looks.changes.saturating_add(1);
    }

    /// Note that both looks showed an empty box.
    pub(crate) fn note_steady(&mut self) {
        self.screen.looks.changes = 0;
    }

    /// Return the amount of output that the program had written at the last look.
    pub(crate) fn output(&self) -> Option<u64> {
        self.screen.looks.first.map(|look| look.output)
    }

    /// Note that later text in the box is not a restored prompt: our text is being typed, or the
    /// clear key had no effect.
    pub(crate) fn forget_restored(&mut self) {
        self.may_restore = false;
    }

    /// Whether the box holds a prompt that the program restored after an interrupt.
    fn is_restored(&self) -> bool {
        self.may_restore && self.shows_text() && self.keys.is_none()
    }

    fn steady_at(&self) -> Option<Duration> {
        let is_awaited = self.screen.state == BoxState::Empty && !self.screen.looks.is_steady;
        let look = self.screen.looks.first.filter(|_| is_awaited)?;
        let after = STEADY_AFTER * 2_u32.saturating_pow(self.screen.looks.changes.min(8));
        Some(look.at.mono + after.min(MAX_STEADY_AFTER))
    }

    pub(crate) fn tick(&mut self, now: Moment) {
        if self.steady_at().is_some_and(|at| at <= now.mono) {
            self.screen.looks.is_steady = true;
            if self.keys.is_none() && self.unread.is_none() {
                self.has_undrawn_keys = false;
                self.was_empty = true;
            }
        }
    }

    pub(crate) fn next_wakeup(&self) -> Option<Duration> {
        self.steady_at()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::activity::tests::ms;

    fn empty_at(output: u64) -> Sighting {
        Sighting {
            input_box: BoxState::Empty,
            output,
            ..Sighting::default()
        }
    }

    fn input_box() -> InputBox {
        InputBox::new(Arc::new(Manifest::generic()))
    }

    #[test]
    fn an_empty_box_is_steady_after_100_ms_without_output() {
        let check = |looks: &[(u64, u64)], want: &[u64]| {
            let mut input_box = input_box();
            for (at, output) in looks {
                input_box.look(ms(*at), empty_at(*output));
            }
            for (at, is_steady) in want.iter().zip([false, true]) {
                input_box.tick(ms(*at));
                assert_eq!(input_box.is_empty_and_steady(), is_steady, "{looks:?} {at}");
            }
        };
        check(&[(0, 1)], &[99, 100]);
        check(&[(0, 1), (50, 1)], &[99, 100]);
        check(&[(0, 1), (50, 2)], &[149, 150]);
    }

    /// A dialog may have taken the keys that would have cleared the draft.
    #[test]
    fn a_box_is_not_known_to_be_empty_before_a_persons_keys_are_drawn() {
        let mut input_box = input_box();
        input_box.note_keys(ms(1), false);
        input_box.end_draft();
        input_box.look(ms(2), empty_at(1));
        input_box.note_interrupt();
        assert!(!input_box.may_restore);
        input_box.tick(ms(102));
        input_box.note_interrupt();
        assert!(input_box.may_restore);
    }

    #[test]
    fn a_refused_keyboard_is_a_draft_unless_its_end_was_reported() {
        let mut input_box = input_box();
        input_box.refuse_keyboard(ms(1));
        assert!(input_box.is_typed());
        input_box.end_draft();
        input_box.refuse_keyboard(ms(2));
        assert!(!input_box.is_typed());
        input_box.is_draft_end_known = false;
        input_box.refuse_keyboard(ms(3));
        assert_eq!(input_box.since(), Some(ms(3)));
    }
}
