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
pub(crate) type Asked = (Uuid, u32);

#[derive(Debug, Clone, Copy)]
struct Meant {
    question: Option<Asked>,
    at: u64,
}

/// What delivery was shown last.
#[derive(Debug, Clone)]
struct Shown {
    words: String,
    /// Those that were really asked, one after another, in words that never changed.
    really: Vec<Asked>,
    since: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Text,
    Enter,
}

#[derive(Debug, Default)]
pub(crate) struct Aims {
    /// Counts what happens, so that one thing is before another also in the same instant.
    order: u64,
    meant: BTreeMap<MessageId, Meant>,
    shown: Option<Shown>,
    /// What delivery was shown when it wanted these keys of an answer.
    wanted: BTreeMap<(TurnNo, Part), (MessageId, Option<Shown>)>,
    /// When the clock was set back last.
    set_back: u64,
}

impl Aims {
    /// A session begins, with nothing known.
    pub(crate) fn begin(&mut self) {
        self.shown = None;
    }

    /// A message is stored while this question stands open.
    pub(crate) fn stored(&mut self, id: MessageId, question: Option<Asked>) {
        self.order += 1;
        let at = self.order;
        self.meant.insert(id, Meant { question, at });
    }

    pub(crate) fn sets_back(&mut self) {
        self.order += 1;
        self.set_back = self.order;
    }

    /// Delivery is about to be told of these words, or of none.
    pub(crate) fn shows(&mut self, words: Option<&str>, question: Option<Asked>) {
        self.order += 1;
        match (words, &mut self.shown) {
            (Some(words), Some(shown)) if shown.words == words => {
                shown.really.extend(question);
                shown.really.dedup();
            }
            (words, shown) => {
                *shown = words.map(|words| Shown {
                    words: words.to_owned(),
                    really: question.into_iter().collect(),
                    since: self.order,
                });
            }
        }
    }

    /// Delivery wants these keys of an answer typed, which was sent at a time that has come by now
    /// or has not.
    pub(crate) fn wants(&mut self, id: MessageId, has_come: bool, turn: TurnNo, part: Part) {
        let sent = self.meant.get(&id).map_or(0, |meant| meant.at);
        let is_misled = has_come && self.set_back > sent;
        let shown = self.shown.clone().filter(|_| !is_misled);
        self.wanted.insert((turn, part), (id, shown));
    }

    /// The program reads a piece of its input, with this question open.
    pub(crate) fn meets(&self, piece: Piece, open: Asked) -> Checked {
        let (turn, part) = match piece {
            Piece::First(turn) | Piece::Rest(turn) => (turn, Part::Text),
            Piece::Enter(turn) => (turn, Part::Enter),
            Piece::Break | Piece::Erase | Piece::Key | Piece::Submit | Piece::Clear => {
                return Ok(());
            }
        };
        let Some((id, shown)) = self.wanted.get(&(turn, part)) else {
            return Ok(());
        };
        let meant = self.meant.get(id);
        if meant.and_then(|meant| meant.question) == Some(open) {
            return Ok(());
        }
        let sent = meant.map_or(0, |meant| meant.at);
        let could_know = |shown: &&Shown| shown.really.contains(&open) && shown.since > sent;
        let another = shown.as_ref().filter(could_know);
        Law::CannotAct.holds(another.is_none(), || {
            let meant = meant.and_then(|meant| meant.question);
            let meant = meant.map_or("none".to_owned(), |(_, n)| n.to_string());
            format!(
                "an answer ({}) to question {meant} goes into question {}, as delivery was shown: \
                 {another:?}",
                id.id8(),
                open.1
            )
        })
    }
}
