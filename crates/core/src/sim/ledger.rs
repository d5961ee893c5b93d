//! What really happened to each message, kept beside the journal and by other means: facts are
//! folded here once more, in the plainest way, and everything that reached a terminal is counted.

use super::law::{Checked, Law};
use crate::fact::{Event, Fact};
use crate::id::MessageId;
use crate::name::AgentName;
use crate::priority::Priority;
use crate::receipt::Step;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// One message, as it really is.
#[derive(Debug, Clone)]
pub(super) struct Known {
    came: usize,
    from: AgentName,
    key: Option<String>,
    pub(super) priority: Priority,
    pub(super) raw: bool,
    not_before: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    // What the journal has of it.
    ended: Option<Step>,
    read: bool,
    shown: bool,
    seen: bool,
    pub(super) cut: bool,
    /// An offer is on record, and no word of how it ended.
    pub(super) offering: bool,
    offered: bool,
}

/// What reached a terminal or a prompt. No crash undoes it.
#[derive(Debug, Clone, Copy, Default)]
struct Exposed {
    /// How often something of it was put before an agent.
    times: u32,
    /// An offer stands in the journal, and the session has not said how it ended.
    is_open: bool,
    /// In the offer under way, something was written.
    is_begun: bool,
    /// In the offer under way, text and Enter were written whole to a live program.
    is_whole: bool,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    known: BTreeMap<MessageId, Known>,
    exposed: BTreeMap<MessageId, Exposed>,
    heard: usize,
}

impl Known {
    /// Where it stands in delivery order.
    pub(super) fn place(&self) -> (Priority, Reverse<usize>, usize) {
        match self.priority {
            Priority::IdleFirst => (self.priority, Reverse(self.came), 0),
            Priority::Interrupt | Priority::Normal | Priority::Idle => {
                (self.priority, Reverse(0), self.came)
            }
        }
    }

    pub(super) fn goes_alone(&self) -> bool {
        self.raw || self.priority == Priority::Interrupt
    }

    pub(super) fn has_ended(&self, now: Timestamp) -> bool {
        let runs_out = self.expires_at.is_some_and(|gone| gone <= now);
        self.ended.is_some() || (runs_out && !self.seen && !self.offering)
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.not_before.is_none_or(|due| due <= now)
    }

    /// Whether it has come to where nothing more is to be done for it.
    pub(super) fn is_settled(&self, now: Timestamp) -> bool {
        self.has_ended(now) || self.offered || self.read || self.shown
    }

    /// Why it must not be shown, if it must not.
    fn barred(&self, now: Timestamp) -> Option<&'static str> {
        let reasons = [
            (self.has_ended(now), "it has ended"),
            (!self.is_due(now), "it is not due"),
            (self.read, "it was read"),
            (self.shown, "a hook has shown it"),
            (self.offering, "another offer of it is under way"),
            (self.offered, "it was offered"),
        ];
        reasons
            .into_iter()
            .find_map(|(is_so, why)| is_so.then_some(why))
    }

    fn apply(&mut self, step: Step) {
        match step {
            Step::Offering => self.offering = true,
            Step::Offered | Step::Accepted => {
                self.offering = false;
                self.offered = true;
            }
            Step::Uncertain => {
                self.offering = false;
                self.cut = true;
            }
            Step::Withdrawn => self.offering = false,
            Step::Shown => self.shown = true,
            Step::Read => self.read = true,
            Step::Unread => self.read = false,
            Step::Archived | Step::Deleted | Step::Cancelled | Step::Expired | Step::Failed => {
                self.ended = Some(step);
            }
        }
        self.seen |= self.offered || self.cut || self.shown || self.read;
    }
}

impl Ledger {
    pub(super) fn get(&self, id: MessageId) -> Option<&Known> {
        self.known.get(&id)
    }

    pub(super) fn all(&self) -> impl Iterator<Item = (MessageId, &Known)> {
        self.known.iter().map(|(id, known)| (*id, known))
    }

    /// How many facts it has heard.
    pub(super) fn heard(&self) -> usize {
        self.heard
    }

    /// Hears the facts that are new, and whether each can be true.
    pub(super) fn hear(&mut self, facts: &[Fact]) -> Checked {
        for fact in &facts[self.heard..] {
            self.judge(fact)?;
            self.apply(fact);
        }
        self.heard = facts.len();
        Ok(())
    }

    fn judge(&self, fact: &Fact) -> Checked {
        let progress = match &fact.event {
            Event::Message(envelope) => return self.is_its_keys_first(&envelope.from, fact),
            Event::Progress(progress) => progress,
            Event::Started(_) | Event::Ended(_) => return Ok(()),
        };
        let id = progress.message;
        let Some(known) = self.known.get(&id) else {
            return Law::NoClaimBeyondProof.broken(format!("{} of no message", progress.step));
        };
        let exposed = self.exposed.get(&id).copied().unwrap_or_default();
        let claim = |is_true, what: &str| {
            let what = || format!("{}: '{}', and {what}", id.id8(), progress.step);
            Law::NoClaimBeyondProof.holds(is_true, what)
        };
        match progress.step {
            Step::Offering => match known.barred(fact.at) {
                Some(why) => {
                    Law::TheRightMoment.broken(format!("{} is about to be shown: {why}", id.id8()))
                }
                None => Ok(()),
            },
            Step::Offered => claim(exposed.is_whole, "text and Enter were not both written"),
            Step::Accepted => claim(
                known.offering || known.seen,
                "it was never put before the agent",
            ),
            Step::Withdrawn => claim(!exposed.is_begun, "something of it was written"),
            Step::Uncertain => claim(known.offering, "no offer of it was under way"),
            Step::Cancelled | Step::Expired => {
                claim(exposed.times == 0, "an agent may have seen it")
            }
            Step::Shown
            | Step::Read
            | Step::Unread
            | Step::Archived
            | Step::Deleted
            | Step::Failed => Ok(()),
        }
    }

    /// Of messages with the same key, one at most is on its way or has arrived.
    fn is_its_keys_first(&self, from: &AgentName, fact: &Fact) -> Checked {
        let Event::Message(envelope) = &fact.event else {
            return Ok(());
        };
        let counts = |known: &Known| match known.ended {
            Some(Step::Archived) => true,
            _ => !known.has_ended(fact.at),
        };
        let is_same = |known: &Known| known.key == envelope.key && known.from == *from;
        let is_doubled =
            envelope.key.is_some() && self.known.values().any(|k| is_same(k) && counts(k));
        Law::NothingDoubled.holds(!is_doubled, || "two messages under one key")
    }

    fn apply(&mut self, fact: &Fact) {
        match &fact.event {
            Event::Message(envelope) => {
                let known = Known {
                    came: self.known.len(),
                    from: envelope.from.clone(),
                    key: envelope.key.clone(),
                    priority: envelope.priority,
                    raw: envelope.raw,
                    not_before: envelope.not_before,
                    expires_at: envelope.expires_at,
                    ended: None,
                    read: false,
                    shown: false,
                    seen: false,
                    cut: false,
                    offering: false,
                    offered: false,
                };
                self.known.insert(MessageId(fact.id), known);
            }
            Event::Progress(progress) => {
                if let Some(known) = self.known.get_mut(&progress.message) {
                    known.apply(progress.step);
                }
                let exposed = self.exposed.entry(progress.message).or_default();
                match progress.step {
                    Step::Offering => {
                        *exposed = Exposed {
                            times: exposed.times,
                            is_open: true,
                            ..Exposed::default()
                        };
                    }
                    Step::Offered | Step::Withdrawn | Step::Uncertain => exposed.is_open = false,
                    // The agent's own word may come before the session's, and be untrue.
                    Step::Accepted
                    | Step::Shown
                    | Step::Read
                    | Step::Unread
                    | Step::Archived
                    | Step::Deleted
                    | Step::Cancelled
                    | Step::Expired
                    | Step::Failed => {}
                }
            }
            Event::Started(_) | Event::Ended(_) => {}
        }
    }

    /// After a power cut: what the journal has now is all there is. A message whose last offer went
    /// with it counts as never shown, because the program that may have seen it is gone too, and
    /// the design gives that up for speed.
    pub(super) fn read_again(&mut self, facts: &[Fact]) {
        let before = std::mem::take(&mut self.known);
        facts.iter().for_each(|fact| self.apply(fact));
        self.heard = facts.len();
        for (id, known) in &self.known {
            let was_shown = before.get(id).is_some_and(|was| was.offering || was.shown);
            let is_on_record = known.offering || known.offered || known.cut || known.shown;
            if was_shown && !is_on_record {
                self.exposed.remove(id);
            }
        }
    }

    /// Whether the journal knows that a message is about to be shown.
    pub(super) fn is_open(&self, id: MessageId) -> bool {
        self.exposed.get(&id).is_some_and(|exposed| exposed.is_open)
    }

    /// Something of a message is put before the agent.
    pub(super) fn expose(&mut self, id: MessageId, is_marked: bool) -> Checked {
        let cut = self.known.get(&id).is_some_and(|known| known.cut);
        let exposed = self.exposed.entry(id).or_default();
        Law::NothingDoubled.holds(exposed.times == 0 || is_marked, || {
            format!(
                "{} may have been seen, and is shown again unmarked",
                id.id8()
            )
        })?;
        Law::NoClaimBeyondProof.holds(cut || !is_marked, || {
            format!(
                "{} is marked as a repeat, and no offer of it was cut off",
                id.id8()
            )
        })?;
        exposed.times += 1;
        exposed.is_begun = true;
        Ok(())
    }

    pub(super) fn complete(&mut self, id: MessageId) {
        self.exposed.entry(id).or_default().is_whole = true;
    }
}
