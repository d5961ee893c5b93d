//! Answers to a program's questions, which are typed unchanged. An answer belongs to the question
//! that was open when the answer was sent, and is typed into nothing else.
//!
//! An answer is accepted once its question has closed or was replaced by another. An answer that the
//! program ignored is typed once more, and then fails.

use super::{Before, State, Submission, TerminalRoute, WrittenTurn};
use crate::delivery::conditions::question::OpenDialog;
use crate::delivery::{Answer, AnswerEnd, Conditions, Lane, OutgoingTurn};
use crate::driver::Action;
use crate::harness::Route;
use std::time::Duration;

/// Maximum number of times that the keys of an answer are typed. Claude Code ignores keys in the
/// first moments of a dialog.
const ANSWER_ATTEMPTS: u8 = 2;
/// How long a program may take to read an answer.
const ANSWER_READ_WITHIN: Duration = Duration::from_secs(2);
/// Time a program needs to redraw after it has read input.
const REDRAW_TIME: Duration = Duration::from_millis(50);
/// How long the screen may take to show the effect of an answer.
const ANSWER_EFFECT_WITHIN: Duration = Duration::from_secs(1);

const CHANGED: &str = "; Enter was not pressed, because the question or the screen changed first";
const NOT_READ: &str = "not applied: the program has not read it";
const SAME_AGAIN: &str =
    "the program wrote output after the answer was typed, but still shows the same question";
const GONE_UNREAD: &str = "the question closed before the program had read the answer";
const STILL_OPEN: &str = "not applied: the question is still open";

impl Answer {
    /// Return the keys without surrounding blanks.
    fn trimmed(&self) -> &str {
        self.keys.trim()
    }

    /// Whether the screen shows the keys at the cursor, or the answer has none. A hidden cursor may be
    /// anywhere: only a text that has grown by the keys shows them.
    fn is_shown(&self, at_cursor: Option<&str>) -> bool {
        let keys = self.trimmed();
        let is_text = !keys.contains(char::is_control);
        let before = self.at_cursor.as_deref().map(str::trim_end);
        let grown = at_cursor.and_then(|at| at.trim_end().strip_suffix(keys));
        let is_at_cursor = before.is_some() && grown.map(str::trim_end) == before;
        keys.is_empty() || (is_text && is_at_cursor)
    }

    /// Whether arrow keys have moved the marker to the option that the answer chooses.
    fn is_highlighted(&self, at: &Conditions) -> bool {
        let open = at.agent.questions.open.as_ref();
        let view = open.and_then(|open| open.view.as_ref());
        view.zip(self.arrows_to.as_deref())
            .is_some_and(|(view, key)| view.is_highlighted(key))
    }

    /// Whether the program has drawn something since the answer was typed, and does not show the
    /// answer at the cursor.
    fn has_moved_on(&self, at: &Conditions) -> bool {
        let keys = self.trimmed();
        let at_cursor = at.input_box.at_cursor();
        let is_gone = at_cursor.is_some_and(|at| !at.trim_end().ends_with(keys));
        let has_drawn = at.input_box.output() != self.output;
        is_gone && has_drawn && !keys.is_empty() && !keys.contains(char::is_control)
    }
}

impl OutgoingTurn {
    /// Whether this is an answer whose question has closed or was replaced by another.
    pub(super) fn is_outdated(&self, at: &Conditions) -> bool {
        self.answer()
            .is_some_and(|answer| at.agent.has_question_changed(answer.question.as_ref()))
    }
}

impl TerminalRoute {
    /// Press Enter if the dialog shows the typed keys at the cursor, or if the answer has no keys.
    /// Otherwise only wait: Enter could select the dialog's first option. If the harness knows no
    /// dialogs, press Enter unless the question or the screen has changed.
    pub(super) fn answer_typed(
        &mut self,
        at: &mut Conditions,
        written: WrittenTurn,
        has_read: bool,
    ) -> Vec<Action> {
        let Some(answer) = written.turn.answer() else {
            return Vec::new();
        };
        if !at.agent.knows_dialogs() {
            let open = at.agent.questions.open.as_ref().map(OpenDialog::question);
            return match open == answer.question && !answer.has_moved_on(at) {
                true => self.press_enter(at, written),
                false => self.finish(at, written, CHANGED),
            };
        }
        if let Some(unread) = at.unread_for(at.now) {
            if unread >= ANSWER_READ_WITHIN {
                return self.answer_unread(at, &written);
            }
            return self.look_at_answer_later(at, written);
        }
        if written.turn.is_outdated(at) {
            return self.applied(at, written);
        }
        if has_read {
            return self.look_at_answer_later(at, written);
        }
        match answer.is_shown(at.input_box.at_cursor()) || answer.is_highlighted(at) {
            true => self.press_enter(at, written),
            false => self.await_effect(at, written),
        }
    }

    fn look_at_answer_later(&mut self, at: &Conditions, written: WrittenTurn) -> Vec<Action> {
        let enter_at = at.now.mono + at.enter_after().max(REDRAW_TIME);
        self.keep(written, Submission::Delaying { enter_at })
    }

    /// Wait for the effect of a fully typed answer: its question closes, changes or stays open.
    pub(super) fn await_effect(
        &mut self,
        at: &mut Conditions,
        written: WrittenTurn,
    ) -> Vec<Action> {
        if !at.agent.knows_dialogs() {
            return self.finish(at, written, "");
        }
        let until = at.now.mono + ANSWER_EFFECT_WITHIN;
        self.keep(written, Submission::Confirming { until })
    }

    pub(super) fn await_verdict(
        &mut self,
        at: &mut Conditions,
        written: WrittenTurn,
        until: Duration,
    ) -> Vec<Action> {
        if at.input_box.unread.is_none() && written.turn.is_outdated(at) {
            return self.applied(at, written);
        }
        match until <= at.now.mono {
            true => self.check(written, Before::Verdict),
            false => self.keep(written, Submission::Confirming { until }),
        }
    }

    pub(super) fn judge_answer(
        &mut self,
        at: &mut Conditions,
        written: WrittenTurn,
        has_read: bool,
    ) -> Vec<Action> {
        if at.input_box.unread.is_some() {
            return self.answer_unread(at, &written);
        }
        if written.turn.is_outdated(at) {
            return self.applied(at, written);
        }
        if has_read {
            return self.check(written, Before::Verdict);
        }
        let answer = written.turn.answer();
        // The program may have accepted the answer and asked again, so do not retype it.
        if answer.is_some_and(|answer| at.input_box.output() != answer.output) {
            self.answer_end = Some(AnswerEnd::Doubtful);
            return self.end_uncertain(at, &written, SAME_AGAIN);
        }
        let attempts = answer.map_or(0, |answer| answer.attempts);
        // The marker may have moved, so arrow keys are not repeated.
        let is_relative = answer.is_some_and(|answer| answer.arrows_to.is_some());
        if attempts < ANSWER_ATTEMPTS && !is_relative && !at.is_paused_for(Lane::Raw) {
            return vec![self.write(at, written.turn)];
        }
        self.not_applied(at, &written, STILL_OPEN)
    }

    /// End an answer that the program has not read. If its question is gone, the keys may still go to
    /// whatever comes next.
    fn answer_unread(&mut self, at: &mut Conditions, written: &WrittenTurn) -> Vec<Action> {
        match written.turn.is_outdated(at) {
            true => self.end_uncertain(at, written, GONE_UNREAD),
            false => self.not_applied(at, written, NOT_READ),
        }
    }

    fn applied(&mut self, at: &mut Conditions, written: WrittenTurn) -> Vec<Action> {
        let evidence = match at.agent.is_asking() {
            true => "the question changed after the answer was typed",
            false => "the question closed after the answer was typed",
        };
        self.answer_end = Some(AnswerEnd::Applied(evidence.to_owned()));
        let ids = written.turn.ids();
        let mut actions = self.finish(at, written, "");
        actions.push(at.accepted(ids, Route::Terminal, evidence.to_owned()));
        actions
    }

    fn not_applied(
        &mut self,
        at: &mut Conditions,
        written: &WrittenTurn,
        reason: &str,
    ) -> Vec<Action> {
        self.state = State::Free;
        vec![at.failed(written.turn.ids(), reason)]
    }
}
