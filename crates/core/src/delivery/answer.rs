//! Answers to a program's questions: bytes that go in as they are. One answers the question that
//! stood open when it was sent, and is never typed into anything else.
//!
//! An answer is accepted once its question has closed, or another has taken its place. One that the
//! program ignored is typed once more, and has failed after that.

use super::hold::HANDED_OVER;
use super::question::Dialog;
use super::submit::Before;
use super::{Desk, Effect, Flight, Lane, Phase};
use crate::activity::Activity;
use crate::harness::Route;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::receipt::Proven;
use jiff::Timestamp;
use std::time::Duration;

/// How often the keys of an answer are typed at most. Claude Code ignores keys in the first moments
/// of a dialog.
const ATTEMPTS: u8 = 2;
/// How long a program may take to read an answer.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// Time a program needs to redraw after it has read input.
const DRAWN: Duration = Duration::from_millis(50);
/// How long the effect of an answer may take to show.
const EFFECT_WITHIN: Duration = Duration::from_secs(1);

/// How long a question is left alone once the screen shows it, and after each change of its words.
/// Claude Code ignores keys for 200 ms after it has opened a dialog, and a dialog may be drawn in
/// parts.
const QUESTION_SETTLES: Duration = Duration::from_millis(500);

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
    /// This question is open; none where the harness knows no questions.
    Yes(Option<OpenQuestion>),
    /// This question has only just appeared, and keys might be ignored.
    NotYet(OpenQuestion),
    /// There is nothing to answer.
    No(&'static str),
}

/// A question of the program that waits for an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenQuestion {
    /// Counts the questions of a session.
    pub number: u64,
    pub since: Timestamp,
}

impl Desk {
    /// Return whether there is a question that an answer would reach.
    pub fn answerable(&self, now: Moment) -> Answerable {
        if self.manner.reach == super::Reach::Prompt {
            return Answerable::No("this is a loop, and nothing is typed into it");
        }
        match self.activity().activity {
            Activity::Exited => Answerable::No("the program has exited"),
            _ if self.handed_over.is_some() => Answerable::No(HANDED_OVER),
            Activity::Starting | Activity::Idle | Activity::Working | Activity::Blocked(_) => {
                let open = self.dialog.as_ref().map(|dialog| OpenQuestion {
                    number: dialog.number,
                    since: dialog.since.wall,
                });
                match open {
                    None if self.knows_dialogs() => {
                        Answerable::No("the program is not asking a question")
                    }
                    Some(open) if self.is_question_fresh(now) => Answerable::NotYet(open),
                    None | Some(_) => Answerable::Yes(open),
                }
            }
        }
    }

    fn is_question_fresh(&self, now: Moment) -> bool {
        let settled_at = self.shown_at.map(|at| at.mono + QUESTION_SETTLES);
        let is_settled = settled_at.is_some_and(|at| at <= now.mono);
        self.knows_dialogs() && (self.is_unshown() || !is_settled)
    }

    /// Whether a question is told of, by a hook or a title, that the screen does not show yet.
    pub(super) fn is_unshown(&self) -> bool {
        self.knows_dialogs() && (self.shown.is_none() || self.announced)
    }

    /// Whether the question is gone that an answer was begun for, or another has taken its place.
    pub(super) fn asks_another(&self, flight: &Flight) -> bool {
        let asks = self.dialog.as_ref().map(|dialog| dialog.number);
        let answers = flight.answers.as_ref().map(|question| question.number);
        asks != answers && (asks.is_some() || self.knows_dialogs())
    }

    /// Press Enter if the dialog shows the typed keys at the cursor, or if the answer has no keys.
    /// Otherwise only wait: Enter could select the dialog's first option. If the harness knows no
    /// dialogs, press Enter unless the question or the screen has changed.
    pub(super) fn answer_typed(
        &mut self,
        now: Moment,
        flight: Flight,
        at_cursor: Option<&str>,
    ) -> Vec<Effect> {
        if !self.knows_dialogs() {
            let asks = self.dialog.as_ref().map(Dialog::asks);
            let went_on = self.has_gone_on(&flight, at_cursor);
            return match asks == flight.answers && !went_on {
                true => self.press_enter(now, flight),
                false => self.finish(now, &flight, CHANGED),
            };
        }
        if let Some(unread) = self.unread_for(now) {
            if unread >= READ_WITHIN {
                return self.answer_unread(flight);
            }
            return self.look_at_answer_later(now, flight);
        }
        if self.asks_another(&flight) {
            return self.applied(now, &flight);
        }
        if flight.has_read {
            return self.look_at_answer_later(now, flight);
        }
        let keys = flight.keys.as_deref().unwrap_or_default().trim();
        let is_text = !keys.contains(char::is_control);
        // A hidden cursor may be anywhere: only a text that has grown by the keys shows them.
        let before = flight.at_cursor.as_deref().map(str::trim_end);
        let grown = at_cursor.and_then(|at| at.trim_end().strip_suffix(keys));
        let is_at_cursor = before.is_some() && grown.map(str::trim_end) == before;
        if keys.is_empty() || (is_text && is_at_cursor) {
            return self.press_enter(now, flight);
        }
        self.await_effect(now, flight)
    }

    fn look_at_answer_later(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        let enter_at = now.mono + self.enter_after().max(DRAWN);
        self.phase = Phase::Written { flight, enter_at };
        Vec::new()
    }

    /// Wait for the effect of a fully typed answer: its question closes, changes or stays open.
    pub(super) fn await_effect(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        if !self.knows_dialogs() {
            return self.finish(now, &flight, "");
        }
        self.phase = Phase::Confirming {
            flight,
            until: now.mono + EFFECT_WITHIN,
        };
        self.confirm(now)
    }

    pub(super) fn await_verdict(
        &mut self,
        now: Moment,
        flight: Flight,
        until: Duration,
    ) -> Vec<Effect> {
        if self.unread.is_none() && self.asks_another(&flight) {
            return self.applied(now, &flight);
        }
        match until <= now.mono {
            true => self.look(flight, Before::Verdict),
            false => Vec::new(),
        }
    }

    pub(super) fn judge_answer(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        if self.unread.is_some() {
            return self.answer_unread(flight);
        }
        if self.asks_another(&flight) {
            return self.applied(now, &flight);
        }
        if flight.has_read {
            return self.look(flight, Before::Verdict);
        }
        // The program may have accepted the answer and asked again, so do not retype it.
        if self.drafting.output() != flight.output {
            self.phase = Phase::Writing(flight);
            return self.lose(SAME_AGAIN);
        }
        if flight.attempts < ATTEMPTS && !self.is_paused_for(Lane::Raw) {
            return vec![self.write(flight)];
        }
        self.not_applied(&flight, STILL_OPEN)
    }

    /// End an answer that the program has not read. If its question is gone, the keys may still go to
    /// whatever comes next.
    fn answer_unread(&mut self, flight: Flight) -> Vec<Effect> {
        if self.asks_another(&flight) {
            self.phase = Phase::Writing(flight);
            return self.lose(GONE_UNREAD);
        }
        self.not_applied(&flight, NOT_READ)
    }

    /// Whether the program has drawn something since an answer was typed, and does not show the
    /// answer at the cursor.
    fn has_gone_on(&self, flight: &Flight, at_cursor: Option<&str>) -> bool {
        let keys = flight.keys.as_deref().unwrap_or_default().trim();
        let is_gone = at_cursor.is_some_and(|at| !at.trim_end().ends_with(keys));
        let has_drawn = self.drafting.output() != flight.output;
        is_gone && has_drawn && !keys.is_empty() && !keys.contains(char::is_control)
    }

    fn applied(&mut self, now: Moment, flight: &Flight) -> Vec<Effect> {
        let evidence = match &self.dialog {
            Some(_) => "the question changed after the answer was typed",
            None => "the question closed after the answer was typed",
        };
        let accepted = Effect::Accepted {
            ids: flight.ids.clone(),
            evidence: evidence.to_owned(),
            route: Route::Terminal,
        };
        let mut effects = self.finish(now, flight, "");
        effects.push(accepted);
        effects.extend(self.proceed(now));
        effects
    }

    fn not_applied(&mut self, flight: &Flight, reason: &str) -> Vec<Effect> {
        self.phase = Phase::Free;
        let (ids, reason) = (flight.ids.clone(), reason.to_owned());
        vec![Effect::Fail { ids, reason }]
    }

    /// The answers of which it is clear that they will never be given.
    pub fn lapsed(&self, now: Moment, pending: &[Letter]) -> Vec<Effect> {
        let effect = |letter: &Letter| {
            let reason = self.lapse(now, letter)?.to_owned();
            let ids = vec![letter.message.id];
            letter
                .is_pending(now.wall)
                .then_some(Effect::Fail { ids, reason })
        };
        pending.iter().filter_map(effect).collect()
    }

    pub(super) fn lapse(&self, now: Moment, letter: &Letter) -> Option<&'static str> {
        if !letter.message.envelope.raw {
            return None;
        }
        let times = Times {
            now: now.wall,
            begun: self.begun.wall,
            question: self.dialog.as_ref().map(|dialog| dialog.since.wall),
        };
        lapse(letter, times, self.knows_dialogs())
    }
}

/// What the time of an answer is held against.
#[derive(Debug, Clone, Copy)]
struct Times {
    now: Timestamp,
    /// When the session began.
    begun: Timestamp,
    /// Since when a question stands open, as far as that is known.
    question: Option<Timestamp>,
}

/// Why a raw message can never be typed.
fn lapse(letter: &Letter, times: Times, knows: bool) -> Option<&'static str> {
    let Times {
        now,
        begun,
        question,
    } = times;
    let sent = letter.message.created_at;
    let is_another = question.is_some_and(|since| since > sent);
    if letter.standing.proven == Proven::Uncertain {
        // Nobody may say yes twice.
        Some("it may have been typed already, and an answer is not given twice")
    } else if sent > now {
        // By its time alone it can be told which question it is for.
        Some("the clock was set back since it was sent, and nobody can tell what it answers")
    } else if sent < begun {
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
        let check = |steps: &[Step], begun: i64, knows, question: Option<i64>, want: bool| {
            let letter = with_steps(&message(1, "alice", "bob"), steps);
            let times = |now| Times {
                now: second(now),
                begun: second(begun),
                question: question.map(second),
            };
            let found = lapse(&letter, times(0), knows);
            assert!(
                lapse(&letter, times(-1), knows).is_some(),
                "from the future"
            );
            assert_eq!(
                found.is_none(),
                want,
                "{steps:?} {begun} {knows} {question:?}"
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
