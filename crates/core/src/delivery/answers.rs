//! Which answers can be given: an answer belongs to the question that was open when it was sent.

use super::{Delivery, Reach, Rule};
use crate::activity::Activity;
use crate::driver::Action;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::receipt::Proven;
use jiff::Timestamp;

pub(super) const QUESTION_GONE: &str = "the question that it was to answer is gone";

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
        self.terminal.take_answer_end()
    }

    /// Return whether there is a question that an answer would reach.
    pub fn answerable(&self, now: Moment) -> Answerable {
        let agent = &self.at.agent;
        if self.at.config.reach == Reach::Prompt {
            return Answerable::No(Rule::Loop.reason());
        }
        match agent.activity() {
            Activity::Exited => Answerable::No(Rule::Exited.reason()),
            _ if agent.handed_over.is_some() => Answerable::No(Rule::HandedOver.reason()),
            Activity::Starting | Activity::Idle | Activity::Working | Activity::Blocked(_) => {
                let open = agent.questions.open.as_ref().map(|dialog| OpenQuestion {
                    number: dialog.number,
                    since: dialog.since.wall,
                });
                match open {
                    None if agent.knows_dialogs() => {
                        Answerable::No("the program is not asking a question")
                    }
                    Some(open) if agent.is_question_fresh(now) => Answerable::NotYet(open),
                    None | Some(_) => Answerable::Yes(open),
                }
            }
        }
    }

    /// Fail all answers that can never be typed.
    pub fn fail_lapsed<'a>(
        &mut self,
        now: Moment,
        pending: impl Iterator<Item = &'a MessageState>,
    ) -> Vec<Action> {
        let mut actions = Vec::new();
        for mail in pending.filter(|mail| mail.is_pending(now.wall)) {
            if let Some(reason) = self.lapse(now, mail) {
                actions.push(self.at.failed(vec![mail.message.id], reason));
            }
        }
        actions
    }

    pub(super) fn lapse(&self, now: Moment, mail: &MessageState) -> Option<&'static str> {
        if !mail.message.envelope.raw {
            return None;
        }
        if self.at.config.reach == Reach::Prompt {
            return Some(Rule::Loop.reason());
        }
        let agent = &self.at.agent;
        let dialog = agent.questions.open.as_ref();
        let shown = agent.shown_ask(now);
        let answers = mail.message.envelope.answers.as_ref();
        if let (Some(answers), Some(shown)) = (answers, shown)
            && answers.fingerprint != shown.fingerprint
        {
            return Some(QUESTION_GONE);
        }
        let times = Times {
            now: now.wall,
            started_at: agent.started_at.wall,
            question: dialog.map(|dialog| dialog.since.wall),
        };
        lapse(mail, times, agent.knows_dialogs())
    }
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
        Some(QUESTION_GONE)
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
