//! Answers to a program's questions: bytes that go in as they are. One answers the question that
//! stood open when it was sent, and is never typed into anything else.

use super::{Desk, Effect, Flight};
use crate::activity::Activity;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::receipt::Proven;
use jiff::Timestamp;

pub(super) const GONE: &str = "the question that it was to answer is gone";

impl Desk {
    /// Why an answer would answer nothing now.
    pub fn bars_an_answer(&self) -> Option<&'static str> {
        if self.manner.reach == super::Reach::Prompt {
            return Some("this is a loop, and nothing is typed into it");
        }
        match self.activity().activity {
            Activity::Exited => Some("the program has exited"),
            Activity::Starting | Activity::Idle | Activity::Working | Activity::Blocked(_) => self
                .has_no_question()
                .then_some("the program waits for no answer"),
        }
    }

    /// Whether it is known that no question stands open.
    pub(super) fn has_no_question(&self) -> bool {
        self.knows_dialogs() && self.dialog.is_none()
    }

    /// Whether a question is told of, by a hook or a title, that the screen does not show yet.
    pub(super) fn is_unshown(&self) -> bool {
        self.knows_dialogs() && (self.shown.is_none() || self.announced)
    }

    /// Whether the question is gone that an answer was begun for, or another has taken its place.
    pub(super) fn asks_another(&self, flight: &Flight) -> bool {
        planted!(AnswersAnother => return self.has_no_question());
        let asks = self.dialog.as_ref().map(|dialog| dialog.number);
        let answers = flight.answers.as_ref().map(|question| question.number);
        asks != answers && (asks.is_some() || self.knows_dialogs())
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
