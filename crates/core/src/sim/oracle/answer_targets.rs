//! Matches each answer with its question, by the program's own numbers, which delivery never sees.
//!
//! The target of an answer is the question that is open when the answer is stored, if any. The keys
//! of an answer must never enter another question, except if delivery cannot know better:
//! - the question opened after the last look that was reported when delivery requested the keys;
//! - that look showed the same words as a question that was reported before the answer was sent,
//!   and no look between the two showed anything else;
//! - the screen does not show questions, and no other evidence has reported one;
//! - the clock was set back after the answer was sent and has caught up since, so that the times of
//!   question and answer cannot be compared.

use crate::id::MessageId;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::world::terminal::{Piece, TurnNo};
use std::collections::BTreeMap;
use uuid::Uuid;

/// A question of the program: the run, and the question's number in the run.
pub(crate) type QuestionId = (Uuid, u32);

#[derive(Debug, Clone, Copy)]
struct Target {
    question: Option<QuestionId>,
    at: u64,
}

/// The question that was last reported to delivery.
#[derive(Debug, Clone)]
struct ShownQuestion {
    words: String,
    /// Consecutive questions with exactly these words.
    questions: Vec<QuestionId>,
    since: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum AnswerPart {
    Text,
    Enter,
}

#[derive(Debug, Default)]
pub(crate) struct AnswerTargets {
    /// Counts events, so that events of the same instant have an order.
    order: u64,
    targets: BTreeMap<MessageId, Target>,
    shown: Option<ShownQuestion>,
    /// The question that was last reported when delivery requested these keys of an answer.
    wanted: BTreeMap<(TurnNo, AnswerPart), (MessageId, Option<ShownQuestion>)>,
    /// The event at which the clock was last set back.
    set_back: u64,
}

impl AnswerTargets {
    /// Begin a session, which knows of no question.
    pub(crate) fn begin_session(&mut self) {
        self.shown = None;
    }

    /// Note that a message is stored while this question is open.
    pub(crate) fn note_stored(&mut self, id: MessageId, question: Option<QuestionId>) {
        self.order += 1;
        let at = self.order;
        self.targets.insert(id, Target { question, at });
    }

    pub(crate) fn note_clock_set_back(&mut self) {
        self.order += 1;
        self.set_back = self.order;
    }

    /// Note that delivery is about to be told of a question with these words, or of no question.
    pub(crate) fn note_shown(&mut self, words: Option<&str>, question: Option<QuestionId>) {
        self.order += 1;
        match (words, &mut self.shown) {
            (Some(words), Some(shown)) if shown.words == words => {
                shown.questions.extend(question);
                shown.questions.dedup();
            }
            (words, shown) => {
                *shown = words.map(|words| ShownQuestion {
                    words: words.to_owned(),
                    questions: question.into_iter().collect(),
                    since: self.order,
                });
            }
        }
    }

    /// Note that delivery requests these keys of an answer. `has_come` says whether the answer's
    /// time is not in the future.
    pub(crate) fn note_keys_wanted(
        &mut self,
        id: MessageId,
        has_come: bool,
        turn: TurnNo,
        part: AnswerPart,
    ) {
        let sent = self.targets.get(&id).map_or(0, |target| target.at);
        let is_misled = has_come && self.set_back > sent;
        let shown = self.shown.clone().filter(|_| !is_misled);
        self.wanted.insert((turn, part), (id, shown));
    }

    /// Check a piece of input that the program reads while this question is open.
    pub(crate) fn check_piece(&self, piece: Piece, open: QuestionId) -> Checked {
        let (turn, part) = match piece {
            Piece::FirstHalf(turn) | Piece::SecondHalf(turn) => (turn, AnswerPart::Text),
            Piece::Enter(turn) => (turn, AnswerPart::Enter),
            Piece::Interrupt
            | Piece::ClearBox
            | Piece::Key
            | Piece::Submit
            | Piece::Clear
            | Piece::TakeBack => return Ok(()),
        };
        let Some((id, shown)) = self.wanted.get(&(turn, part)) else {
            return Ok(());
        };
        let target = self.targets.get(id);
        if target.and_then(|target| target.question) == Some(open) {
            return Ok(());
        }
        let sent = target.map_or(0, |target| target.at);
        let could_know =
            |shown: &&ShownQuestion| shown.questions.contains(&open) && shown.since > sent;
        let another = shown.as_ref().filter(could_know);
        Law::CannotAct.holds(another.is_none(), || {
            let target = target.and_then(|target| target.question);
            let target = target.map_or("none".to_owned(), |(_, n)| n.to_string());
            format!(
                "an answer ({}) to question {target} goes into question {}, as delivery was shown: \
                 {another:?}",
                id.id8(),
                open.1
            )
        })
    }
}
