//! Answers to a program's questions, which are typed unchanged. An answer belongs to the question
//! that was open when the answer was sent, and is typed into nothing else.
//!
//! An answer is accepted once its question has closed or was replaced by another. An answer that the
//! program ignored is typed once more, and then fails.

use super::super::question::OpenDialog;
use super::super::{Delivery, Effect, Reach, Rule};
use super::state::{Before, Lane, State, Submission, TypedTurn};
use crate::activity::Activity;
use crate::harness::Route;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::receipt::Proven;
use jiff::Timestamp;
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

pub(super) const GONE: &str = "the question that it was to answer is gone";

/// Whether an answer can be sent now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerable {
    /// This question is open. `None` if the harness knows no questions.
    Yes(Option<OpenQuestion>),
    /// This question has only just appeared, and keys might be ignored.
    NotYet(OpenQuestion),
    /// There is nothing to answer.
    No(&'static str),
}

/// The end of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerEnd {
    /// The question closed or changed, with this evidence.
    Applied(String),
    /// The answer may have been applied, and the program asks the same.
    Doubtful,
}

/// A question of the program that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Counts the questions of a session.
    pub number: u64,
    pub since: Timestamp,
}

impl Delivery {
    /// Return the end of the last answer, once.
    pub fn take_answer_end(&mut self) -> Option<AnswerEnd> {
        self.answer_end.take()
    }

    /// Return whether there is a question that an answer would reach.
    pub fn answerable(&self, now: Moment) -> Answerable {
        if self.config.reach == Reach::Prompt {
            return Answerable::No(Rule::Loop.reason());
        }
        match self.agent.activity() {
            Activity::Exited => Answerable::No(Rule::Exited.reason()),
            _ if self.agent.handed_over.is_some() => Answerable::No(Rule::HandedOver.reason()),
            Activity::Starting | Activity::Idle | Activity::Working | Activity::Blocked(_) => {
                let dialog = self.agent.questions.open.as_ref();
                let open = dialog.map(|dialog| OpenQuestion {
                    number: dialog.number,
                    since: dialog.since.wall,
                });
                match open {
                    None if self.knows_dialogs() => {
                        Answerable::No("the program is not asking a question")
                    }
                    Some(open) if self.agent.is_question_fresh(now) => Answerable::NotYet(open),
                    None | Some(_) => Answerable::Yes(open),
                }
            }
        }
    }

    fn has_question_changed_since(&self, typed: &TypedTurn) -> bool {
        self.agent
            .has_question_changed(typed.turn.question.as_ref())
    }

    /// Press Enter if the dialog shows the typed keys at the cursor, or if the answer has no keys.
    /// Otherwise only wait: Enter could select the dialog's first option. If the harness knows no
    /// dialogs, press Enter unless the question or the screen has changed.
    pub(super) fn answer_typed(
        &mut self,
        now: Moment,
        typed: TypedTurn,
        has_read: bool,
        at_cursor: Option<&str>,
    ) -> Vec<Effect> {
        if !self.knows_dialogs() {
            let open = self.agent.questions.open.as_ref().map(OpenDialog::question);
            let has_moved_on = self.has_moved_on(&typed, at_cursor);
            return match open == typed.turn.question && !has_moved_on {
                true => self.press_enter(now, typed),
                false => self.finish(now, &typed, CHANGED),
            };
        }
        if let Some(unread) = self.unread_for(now) {
            if unread >= ANSWER_READ_WITHIN {
                return self.answer_unread(&typed);
            }
            return self.look_at_answer_later(now, typed);
        }
        if self.has_question_changed_since(&typed) {
            return self.applied(now, &typed);
        }
        if has_read {
            return self.look_at_answer_later(now, typed);
        }
        match shows_keys(&typed, at_cursor) || self.highlights_choice(&typed) {
            true => self.press_enter(now, typed),
            false => self.await_effect(now, typed),
        }
    }

    /// Whether arrow keys have moved the marker to the option that the answer chooses.
    fn highlights_choice(&self, typed: &TypedTurn) -> bool {
        let open = self.agent.questions.open.as_ref();
        let view = open.and_then(|open| open.view.as_ref());
        let key = typed
            .turn
            .answer
            .as_ref()
            .and_then(|answer| answer.arrows_to.as_deref());
        view.zip(key)
            .is_some_and(|(view, key)| view.is_highlighted(key))
    }

    fn look_at_answer_later(&mut self, now: Moment, typed: TypedTurn) -> Vec<Effect> {
        let enter_at = now.mono + self.enter_after().max(REDRAW_TIME);
        self.terminal.state = State::Submitting(typed, Submission::Delaying { enter_at });
        Vec::new()
    }

    /// Wait for the effect of a fully typed answer: its question closes, changes or stays open.
    pub(super) fn await_effect(&mut self, now: Moment, typed: TypedTurn) -> Vec<Effect> {
        if !self.knows_dialogs() {
            return self.finish(now, &typed, "");
        }
        let until = now.mono + ANSWER_EFFECT_WITHIN;
        self.terminal.state = State::Submitting(typed, Submission::Confirming { until });
        self.confirm(now)
    }

    pub(super) fn await_verdict(
        &mut self,
        now: Moment,
        typed: TypedTurn,
        until: Duration,
    ) -> Vec<Effect> {
        if self.input_box.unread.is_none() && self.has_question_changed_since(&typed) {
            return self.applied(now, &typed);
        }
        match until <= now.mono {
            true => self.check(typed, Before::Verdict),
            false => Vec::new(),
        }
    }

    pub(super) fn judge_answer(
        &mut self,
        now: Moment,
        typed: TypedTurn,
        has_read: bool,
    ) -> Vec<Effect> {
        if self.input_box.unread.is_some() {
            return self.answer_unread(&typed);
        }
        if self.has_question_changed_since(&typed) {
            return self.applied(now, &typed);
        }
        if has_read {
            return self.check(typed, Before::Verdict);
        }
        let answer = typed.turn.answer.as_ref();
        // The program may have accepted the answer and asked again, so do not retype it.
        if self.input_box.output() != answer.and_then(|answer| answer.output) {
            self.answer_end = Some(AnswerEnd::Doubtful);
            return self.end_uncertain(&typed, SAME_AGAIN);
        }
        let attempts = answer.map_or(0, |answer| answer.attempts);
        // The marker may have moved, so arrow keys are not repeated.
        let is_relative = answer.is_some_and(|answer| answer.arrows_to.is_some());
        if attempts < ANSWER_ATTEMPTS && !is_relative && !self.is_paused_for(Lane::Raw) {
            return vec![self.write(typed)];
        }
        self.not_applied(&typed, STILL_OPEN)
    }

    /// End an answer that the program has not read. If its question is gone, the keys may still go to
    /// whatever comes next.
    fn answer_unread(&mut self, typed: &TypedTurn) -> Vec<Effect> {
        if self.has_question_changed_since(typed) {
            return self.end_uncertain(typed, GONE_UNREAD);
        }
        self.not_applied(typed, NOT_READ)
    }

    /// Whether the program has drawn something since an answer was typed, and does not show the
    /// answer at the cursor.
    fn has_moved_on(&self, typed: &TypedTurn, at_cursor: Option<&str>) -> bool {
        let Some(answer) = &typed.turn.answer else {
            return false;
        };
        let keys = answer.trimmed();
        let is_gone = at_cursor.is_some_and(|at| !at.trim_end().ends_with(keys));
        let has_drawn = self.input_box.output() != answer.output;
        is_gone && has_drawn && !keys.is_empty() && !keys.contains(char::is_control)
    }

    fn applied(&mut self, now: Moment, typed: &TypedTurn) -> Vec<Effect> {
        let evidence = match self.agent.is_asking() {
            true => "the question changed after the answer was typed",
            false => "the question closed after the answer was typed",
        };
        self.answer_end = Some(AnswerEnd::Applied(evidence.to_owned()));
        let accepted = Effect::Accepted {
            ids: typed.turn.ids.clone(),
            evidence: evidence.to_owned(),
            route: Route::Terminal,
        };
        let mut effects = self.finish(now, typed, "");
        effects.push(accepted);
        effects.extend(self.proceed(now));
        effects
    }

    fn not_applied(&mut self, typed: &TypedTurn, reason: &str) -> Vec<Effect> {
        self.terminal.state = State::Free;
        let (ids, reason) = (typed.turn.ids.clone(), reason.to_owned());
        vec![Effect::Fail { ids, reason }]
    }

    /// Return the effects that fail all answers that can never be typed.
    pub fn lapsed(&self, now: Moment, pending: &[MessageState]) -> Vec<Effect> {
        let effect = |mail: &MessageState| {
            let reason = self.lapse(now, mail)?.to_owned();
            let ids = vec![mail.message.id];
            mail.is_pending(now.wall)
                .then_some(Effect::Fail { ids, reason })
        };
        pending.iter().filter_map(effect).collect()
    }

    pub(crate) fn lapse(&self, now: Moment, mail: &MessageState) -> Option<&'static str> {
        if !mail.message.envelope.raw {
            return None;
        }
        let dialog = self.agent.questions.open.as_ref();
        let shown = self.agent.shown_ask(now);
        let answers = mail.message.envelope.answers.as_ref();
        if let (Some(answers), Some(shown)) = (answers, shown)
            && answers.fingerprint != shown.fingerprint
        {
            return Some(GONE);
        }
        let times = Times {
            now: now.wall,
            started_at: self.agent.started_at.wall,
            question: dialog.map(|dialog| dialog.since.wall),
        };
        lapse(mail, times, self.knows_dialogs())
    }
}

/// Whether the screen shows the keys of an answer at the cursor, or the answer has none. A hidden
/// cursor may be anywhere: only a text that has grown by the keys shows them.
fn shows_keys(typed: &TypedTurn, at_cursor: Option<&str>) -> bool {
    let Some(answer) = &typed.turn.answer else {
        return true;
    };
    let keys = answer.trimmed();
    let is_text = !keys.contains(char::is_control);
    let before = answer.at_cursor.as_deref().map(str::trim_end);
    let grown = at_cursor.and_then(|at| at.trim_end().strip_suffix(keys));
    let is_at_cursor = before.is_some() && grown.map(str::trim_end) == before;
    keys.is_empty() || (is_text && is_at_cursor)
}

/// The times that decide whether an answer can still be given.
#[derive(Debug, Clone, Copy)]
struct Times {
    now: Timestamp,
    /// When the session began.
    started_at: Timestamp,
    /// When the open question appeared, if one is known.
    question: Option<Timestamp>,
}

/// Return why a raw message can never be typed, if there is a reason.
fn lapse(mail: &MessageState, times: Times, knows: bool) -> Option<&'static str> {
    let Times {
        now,
        started_at,
        question,
    } = times;
    let sent = mail.message.created_at;
    let is_another = question.is_some_and(|since| since > sent);
    if mail.status.proven == Proven::Uncertain {
        // An approval must not be given twice.
        Some("it may have been typed already, and an answer is not given twice")
    } else if sent > now {
        // Only the time of an answer shows to which question it belongs.
        Some("the clock was set back since it was sent, so its question is unknown")
    } else if sent < started_at {
        Some("it was an answer to a program that has ended")
    } else if is_another || (knows && question.is_none()) {
        Some(GONE)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, with_steps};
    use crate::receipt::Step::{self, *};

    #[test]
    fn an_answer_is_for_one_question_of_one_program() {
        let sent = message(1, "alice", "bob").created_at;
        let second = |by: i64| sent + jiff::SignedDuration::from_secs(by);
        let check = |steps: &[Step], started_at: i64, knows, question: Option<i64>, want: bool| {
            let mail = with_steps(&message(1, "alice", "bob"), steps);
            let times = |now| Times {
                now: second(now),
                started_at: second(started_at),
                question: question.map(second),
            };
            let found = lapse(&mail, times(0), knows);
            assert!(lapse(&mail, times(-1), knows).is_some(), "from the future");
            assert_eq!(
                found.is_none(),
                want,
                "{steps:?} {started_at} {knows} {question:?}"
            );
        };
        check(&[], -1, false, None, true);
        check(&[], 1, false, None, false);
        check(&[], -1, true, None, false);
        check(&[], -1, true, Some(-1), true);
        check(&[], -1, true, Some(1), false);
        check(&[Offering, Withdrawn], -1, false, None, true);
        check(&[Offering, Uncertain], -1, false, None, false);
    }
}
