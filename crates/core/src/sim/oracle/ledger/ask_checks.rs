//! Laws of asks: one is open at a time, each closes once, and one answer counts.

use super::Ledger;
use crate::ask::{AskAnswer, AskFact};
use crate::id::{AskId, MessageId};
use crate::sim::oracle::law::{Checked, Law};
use std::collections::BTreeMap;

/// An ask, according to its facts.
#[derive(Debug, Clone, Default)]
struct KnownAsk {
    is_closed: bool,
    fingerprint: String,
    /// The messages that answer it, in the order of the journal.
    answers: Vec<MessageId>,
}

#[derive(Debug, Default)]
pub(super) struct KnownAsks(BTreeMap<AskId, KnownAsk>);

impl KnownAsks {
    pub(super) fn open(&self) -> Option<AskId> {
        let mut open = self.0.iter().filter(|(_, ask)| !ask.is_closed);
        open.next().map(|(id, _)| *id)
    }

    pub(super) fn apply(&mut self, id: AskId, fact: &AskFact) {
        match fact {
            AskFact::Opened(opened) => {
                let fingerprint = opened.fingerprint.clone();
                let ask = KnownAsk {
                    fingerprint,
                    ..KnownAsk::default()
                };
                self.0.insert(id, ask);
            }
            AskFact::Closed(closed) => {
                if let Some(ask) = self.0.get_mut(&closed.ask) {
                    ask.is_closed = true;
                }
            }
            AskFact::Seen(_) => {}
        }
    }

    pub(super) fn answer(&mut self, id: MessageId, answer: &AskAnswer) {
        if let Some(ask) = self.0.get_mut(&answer.ask) {
            ask.answers.push(id);
        }
    }
}

impl Ledger {
    pub(super) fn check_ask(&self, fact: &AskFact) -> Checked {
        match fact {
            AskFact::Opened(opened) => {
                let other = self.asks.open();
                Law::OneAnswer.holds(other.is_none(), || {
                    format!("'{}' opens while {other:?} is open", opened.summary)
                })
            }
            AskFact::Closed(closed) => {
                let ask = self.asks.0.get(&closed.ask);
                Law::OneAnswer.holds(ask.is_some_and(|ask| !ask.is_closed), || {
                    format!("{:?} is closed, and is not open", closed.ask)
                })
            }
            AskFact::Seen(_) => Ok(()),
        }
    }

    /// Check that an answer is for an open question, as it was shown, and that no earlier answer can
    /// still take effect.
    pub(super) fn check_answer(&self, answer: &AskAnswer) -> Checked {
        let ask = self.asks.0.get(&answer.ask);
        let is_open =
            ask.is_some_and(|ask| !ask.is_closed && ask.fingerprint == answer.fingerprint);
        Law::OneAnswer.holds(
            is_open,
            || "an answer is stored, and its question is not open",
        )?;
        let earlier = ask.into_iter().flat_map(|ask| &ask.answers);
        let counts = |id: &&MessageId| self.get(**id).is_some_and(|known| known.ended.is_none());
        let rival = earlier.rev().find(counts);
        Law::OneAnswer.holds(rival.is_none(), || {
            format!("a second answer is stored, and {rival:?} may be applied")
        })
    }

    /// Check, at the end of a run, that no ask is left open. No question is open then.
    pub(crate) fn check_asks_closed(&self) -> Checked {
        let open = self.asks.open();
        Law::OneAnswer.holds(open.is_none(), || {
            format!("{open:?} is open, and its question is gone")
        })
    }
}
