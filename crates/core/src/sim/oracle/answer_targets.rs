//! Which question an answer is meant for, and which one its keys really go into: by the program's
//! own count of its questions, which delivery never sees.
//!
//! An answer is meant for the question that stands open when it is stored; where none does, for
//! none. Its keys never enter another, but where delivery could not know it:
//! - the question came up after the last look that delivery was told of when it wanted the keys;
//! - that look showed a question in the same words as one that delivery was shown before the answer
//!   was sent, and no look between the two showed anything else;
//! - the screen shows nothing, and nobody has told of a question;
//! - the clock was set back after the answer was sent, and has caught up since: the sender's time
//!   is all that tells when it was.

use crate::id::MessageId;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::world::terminal::{Piece, TurnNo};
use std::collections::BTreeMap;
use uuid::Uuid;

/// A question of the program's: the run it belongs to, and its number there.
pub(crate) type QuestionId = (Uuid, u32);

#[derive(Debug, Clone, Copy)]
struct Target {
    question: Option<QuestionId>,
    at: u64,
}

/// What delivery was shown last.
#[derive(Debug, Clone)]
struct ShownQuestion {
    words: String,
    /// Those that were really asked, one after another, in words that never changed.
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
    /// Counts what happens, so that one thing is before another also in the same instant.
    order: u64,
    targets: BTreeMap<MessageId, Target>,
    shown: Option<ShownQuestion>,
    /// What delivery was shown when it wanted these keys of an answer.
    wanted: BTreeMap<(TurnNo, AnswerPart), (MessageId, Option<ShownQuestion>)>,
    /// When the clock was set back last.
    set_back: u64,
}

impl AnswerTargets {
    /// A session begins, with nothing known.
    pub(crate) fn begin_session(&mut self) {
        self.shown = None;
    }

    /// A message is stored while this question stands open.
    pub(crate) fn note_stored(&mut self, id: MessageId, question: Option<QuestionId>) {
        self.order += 1;
        let at = self.order;
        self.targets.insert(id, Target { question, at });
    }

    pub(crate) fn note_clock_set_back(&mut self) {
        self.order += 1;
        self.set_back = self.order;
    }

    /// Delivery is about to be told of these words, or of none.
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

    /// Delivery wants these keys of an answer typed, which was sent at a time that has come by now
    /// or has not.
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

    /// The program reads a piece of its input, with this question open.
    pub(crate) fn check_piece(&self, piece: Piece, open: QuestionId) -> Checked {
        let (turn, part) = match piece {
            Piece::FirstHalf(turn) | Piece::SecondHalf(turn) => (turn, AnswerPart::Text),
            Piece::Enter(turn) => (turn, AnswerPart::Enter),
            Piece::Interrupt | Piece::ClearBox | Piece::Key | Piece::Submit | Piece::Clear => {
                return Ok(());
            }
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
