//! The route through the terminal: take the keyboard, record the offer, type the text and submit it.
//! Nothing is typed into an unrecognised screen, an open question or a draft.
//!
//! The keyboard is held from the record of an offer until its text is submitted, so that no key of a
//! person gets into the text. A turn that has to wait for its Enter releases the keyboard.
//!
//! ```text
//! Preparing:   Free ─▶ Settling ─▶ Leasing ─▶ Recording ─▶ CheckingBox ─▶ Writing
//! Submitting:  Writing ─▶ Delaying ─▶ Checking(Enter) ─▶ Entering ─▶ Confirming ─▶ Free
//!              Confirming ─▶ Checking(Retry) ─▶ Entering     (the box still holds the text)
//!              Confirming ─▶ Checking(Verdict) ─▶ Writing    (answers only)
//!              any ─▶ awaiting Enter ─▶ Resuming ─▶ Delaying (a question, a draft, work)
//! ```

mod answer;
mod line;
mod offer;
mod submit;

use super::{Route, slow};
use crate::delivery::conditions::input_box::OwnText;
use crate::delivery::conditions::proof::FoundMessages;
use crate::delivery::{AnswerEnd, Conditions, Lane, OutgoingTurn, Rule};
use crate::driver::{Action, Input, KeyboardUser};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::why::Hold;
use std::time::Duration;

const EXITED: &str = "the program exited before it was complete";
const TERMINAL_GONE: &str = "the terminal is gone";
const CUT_OFF: &str = "a person pressed Enter, and the submitted text does not show it";

/// A turn whose text is in the terminal.
#[derive(Debug, Clone)]
pub(crate) struct WrittenTurn {
    turn: OutgoingTurn,
    /// The text as it was typed.
    text: String,
    /// Deadline for the box to show the text before Enter.
    shown_by: Duration,
    enters: u8,
    /// When Enter was first pressed.
    entered_at: Option<Duration>,
}

/// Progress of a turn before its text is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Preparation {
    /// The box is empty, but has just changed.
    Settling,
    /// The keyboard is requested.
    Leasing,
    /// The journal records the offer.
    Recording,
    /// The last look at the box before the text.
    CheckingBox,
}

/// The step that follows a look at the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Before {
    Enter,
    /// Enter once more.
    Retry,
    /// The verdict on an answer: whether its question is still open.
    Verdict,
}

/// Progress of a turn whose text is written.
#[derive(Debug, Clone, Copy)]
enum Submission {
    /// The keyboard is requested again, for a text that has waited for its Enter.
    Resuming,
    /// Enter is pressed at this time.
    Delaying {
        enter_at: Duration,
    },
    /// Look at the screen. If `has_read`, the program has read its input after the look was requested,
    /// so another look follows.
    Checking {
        before: Before,
        has_read: bool,
    },
    Entering,
    /// Deadline for the text to leave the box.
    Confirming {
        until: Duration,
    },
}

#[derive(Debug, Clone, Default)]
enum State {
    #[default]
    Free,
    Preparing(OutgoingTurn, Preparation),
    Writing(OutgoingTurn),
    Submitting(WrittenTurn, Submission),
}

#[derive(Debug, Clone, Default)]
pub(crate) struct TerminalRoute {
    state: State,
    /// A text that is written and waits for its Enter, because the box does not show it alone.
    awaiting_enter: Option<WrittenTurn>,
    /// The end of the last answer, until the driver takes it.
    answer_end: Option<AnswerEnd>,
}

impl TerminalRoute {
    pub(crate) fn is_free(&self) -> bool {
        matches!(self.state, State::Free)
    }

    /// Whether a text waits for its Enter, with the keyboard released.
    pub(crate) fn is_awaiting_enter(&self) -> bool {
        self.awaiting_enter.is_some()
    }

    /// Whether a turn waits for the keyboard, or for the journal.
    pub(crate) fn is_offering(&self) -> bool {
        match &self.state {
            State::Free | State::Writing(_) => false,
            State::Preparing(_, progress) => match progress {
                Preparation::Leasing | Preparation::Recording => true,
                Preparation::Settling | Preparation::CheckingBox => false,
            },
            State::Submitting(_, progress) => matches!(progress, Submission::Resuming),
        }
    }

    /// Whether a turn is partly written, or about to be, so that a person's keys must wait.
    pub(crate) fn is_writing(&self) -> bool {
        match &self.state {
            State::Free => false,
            State::Preparing(_, progress) => *progress == Preparation::CheckingBox,
            State::Writing(_) => true,
            State::Submitting(_, progress) => !matches!(progress, Submission::Resuming),
        }
    }

    /// Return the texts of ours that the input box may hold.
    pub(crate) fn own_text(&self) -> OwnText {
        let is_preparing = matches!(self.state, State::Preparing(..));
        OwnText {
            is_writing: self.is_writing() && !is_preparing,
            awaits_enter_since: self.awaiting_since(),
        }
    }

    /// Return the user that holds the keyboard.
    pub(crate) fn keyboard(&self) -> Option<KeyboardUser> {
        let is_recording = matches!(self.state, State::Preparing(_, Preparation::Recording));
        let turn = self.turn().filter(|_| is_recording || self.is_writing());
        turn.map(OutgoingTurn::user)
    }

    /// Return the turn in flight.
    pub(crate) fn turn(&self) -> Option<&OutgoingTurn> {
        match &self.state {
            State::Free => None,
            State::Preparing(turn, _) | State::Writing(turn) => Some(turn),
            State::Submitting(written, _) => Some(&written.turn),
        }
    }

    /// Return the turn in flight, and the turn that waits for its Enter.
    pub(crate) fn turns(&self) -> impl Iterator<Item = &OutgoingTurn> {
        let waiting = self.awaiting_enter.as_ref().map(|written| &written.turn);
        self.turn().into_iter().chain(waiting)
    }

    /// Return the turn whose text is in the terminal, or is being written.
    fn written_mut(&mut self) -> Option<&mut OutgoingTurn> {
        match &mut self.state {
            State::Free | State::Preparing(..) => None,
            State::Writing(turn) => Some(turn),
            State::Submitting(written, _) => Some(&mut written.turn),
        }
    }

    /// Return how often Enter was pressed for the turn in flight, if its text is written.
    pub(crate) fn enters(&self) -> Option<u8> {
        match &self.state {
            State::Submitting(written, _) => Some(written.enters),
            State::Free | State::Preparing(..) | State::Writing(_) => None,
        }
    }

    /// Return the text that waits for its Enter.
    pub(crate) fn awaiting_text(&self) -> Option<&str> {
        let waiting = self.awaiting_enter.as_ref();
        waiting.map(|written| written.text.as_str())
    }

    /// Return when the turn began whose text waits for its Enter.
    fn awaiting_since(&self) -> Option<Moment> {
        let waiting = self.awaiting_enter.as_ref();
        waiting.map(|written| written.turn.since)
    }

    /// Return the end of the last answer, once.
    pub(crate) fn take_answer_end(&mut self) -> Option<AnswerEnd> {
        self.answer_end.take()
    }

    /// Return the answer that is being typed.
    pub(crate) fn answer(&self) -> Option<&str> {
        let turn = self.turn().filter(|_| self.is_writing())?;
        Some(&turn.answer()?.keys)
    }

    /// Handle an input that does not lead from this state to another one.
    fn on_other(&mut self, at: &mut Conditions, state: State, input: &Input) -> Vec<Action> {
        self.state = state;
        match input {
            // The turn has ended meanwhile.
            Input::KeyboardLeased(by) => vec![Action::ReleaseKeyboard(*by)],
            Input::KeyboardGone(by) if self.is_of(*by) => self.cut_off(at, TERMINAL_GONE),
            Input::TerminalFailed { by, why } if self.is_of(*by) => self.cut_off(at, why),
            _ => Vec::new(),
        }
    }

    /// Whether the turn in flight belongs to this user of the keyboard.
    fn is_of(&self, by: KeyboardUser) -> bool {
        self.turn().is_some_and(|turn| turn.user() == by)
    }

    /// Handle the proof of a text. The proof of a turn in flight ends it at the next step.
    pub(crate) fn prove(&mut self, at: &mut Conditions, found: FoundMessages) -> Vec<Action> {
        let waiting = &mut self.awaiting_enter;
        if let Some(mut written) = waiting.take_if(|written| written.turn.carries_any(&found.ids)) {
            // A person has pressed Enter, or our Enter took effect behind a dialog.
            let evidence = written.evidence(at, submit::SUBMITTED);
            written.turn.prove(found);
            return written.receipts(at, evidence);
        }
        let has_it = |turn: &&mut OutgoingTurn| !turn.is_answer() && turn.carries_any(&found.ids);
        match self.written_mut().filter(has_it) {
            Some(turn) => {
                turn.prove(found);
                Vec::new()
            }
            None => found.accept(at).into_iter().collect(),
        }
    }
}

impl Route for TerminalRoute {
    fn rule(&self, at: &Conditions, lane: Lane) -> Option<Rule> {
        at.terminal_rule(lane)
    }

    fn carry(&mut self, at: &mut Conditions, turn: OutgoingTurn) -> Vec<Action> {
        match turn.line() {
            Some(_) => self.settle_line(at, turn),
            None => self.lease_when_steady(at, turn),
        }
    }

    fn on(&mut self, at: &mut Conditions, input: &Input) -> Vec<Action> {
        match (std::mem::take(&mut self.state), input) {
            (State::Preparing(turn, progress), input) => self.on_offer(at, turn, progress, input),
            (State::Writing(turn), Input::Typed(text)) => self.typed(at, turn, text.clone()),
            (State::Writing(turn), Input::LineTyped) => self.line_typed(at, turn),
            (State::Submitting(written, progress), input) => {
                self.on_submission(at, written, progress, input)
            }
            (state, input) => self.on_other(at, state, input),
        }
    }

    fn proceed(&mut self, at: &mut Conditions) -> Vec<Action> {
        let is_over = at.agent.has_exited();
        let told = self.tick_line(at.now);
        if !told.is_empty() {
            return told;
        }
        match std::mem::take(&mut self.state) {
            State::Preparing(turn, Preparation::Settling) => self.settle(at, turn),
            State::Free if is_over => self.end_waiting(at),
            State::Free if self.can_resume(at) => self.resume(at),
            State::Submitting(written, progress) if !is_over => {
                self.continue_submission(at, written, progress)
            }
            state => {
                self.state = state;
                match is_over {
                    true => self.cut_off(at, EXITED),
                    false => Vec::new(),
                }
            }
        }
    }

    fn next_wakeup(&self, at: &Conditions) -> Option<Duration> {
        let step = match &self.state {
            State::Submitting(_, Submission::Confirming { until }) => Some(*until),
            State::Submitting(written, Submission::Delaying { enter_at }) => {
                let is_held = !written.is_line() && at.enter_rule(written.turn.lane).is_some();
                (!is_held).then_some(*enter_at)
            }
            // Resume at once.
            State::Free if self.can_resume(at) => self.awaiting_since().map(|since| since.mono),
            State::Free | State::Preparing(..) | State::Writing(_) | State::Submitting(..) => None,
        };
        step.into_iter().chain(self.line_timeout()).min()
    }

    fn has(&self, id: MessageId) -> bool {
        self.turns().any(|turn| turn.carries(id))
    }

    fn explain(&self, now: Moment, at: &Conditions, mail: &MessageState) -> Option<Hold> {
        let waiting = self.awaiting_enter.as_ref();
        if let Some(waiting) = waiting.filter(|written| written.turn.carries(mail.message.id)) {
            return Some(match at.enter_rule(waiting.turn.lane) {
                Some(rule) => at.describe(now, rule, mail),
                None => waiting.awaits_box(at),
            });
        }
        let slowly = |what: &str| {
            let reason = format!("it is on its way into the terminal, and {what}");
            let release = "the program reads its input, or ends";
            slow(now, self.turn()?, "not-reading", reason, release)
        };
        match &self.state {
            State::Free => None,
            State::Preparing(_, Preparation::Settling) => {
                Some(at.describe(now, Rule::Settling, mail))
            }
            State::Preparing(_, Preparation::Leasing | Preparation::Recording) => {
                slowly("the text before it is not written, or its offer is not recorded")
            }
            State::Submitting(written, Submission::Delaying { .. }) => {
                let withheld = at.enter_rule(written.turn.lane);
                withheld.map(|rule| at.describe(now, rule, mail))
            }
            State::Submitting(_, Submission::Confirming { .. }) => {
                slowly("Enter was pressed, and the input box still holds it")
            }
            State::Preparing(_, Preparation::CheckingBox)
            | State::Writing(_)
            | State::Submitting(..) => slowly("the program has not taken all of it"),
        }
    }
}
