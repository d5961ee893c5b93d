//! All mail, in memory: the model that the journal's views must agree with.
//!
//! [`Mail::apply`] folds one fact in and cannot fail; [`Mail::replay`] folds a whole journal. The
//! journal keeps the same state in tables; a property test holds the two together.

use crate::fact::{Event, Fact, Record};
use crate::id::{IdPrefix, MessageId};
use crate::message::Message;
use crate::name::AgentName;
use crate::owed;
use crate::priority::Priority;
use crate::promotion;
use crate::receipt::{End, Proven, Receipt, Standing, Step};
use crate::storm::Given;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// One message with everything that is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Letter {
    pub message: Message,
    pub standing: Standing,
    pub receipts: Vec<Receipt>,
}

impl Letter {
    /// Whether it lies unread before its agent at `now`: due, not run out, not ended.
    pub fn is_waiting(&self, now: Timestamp) -> bool {
        self.message.is_due(now) && self.standing.at(&self.message, now).is_unread()
    }

    /// Whether it is in the inbox at `now`, read or not.
    pub fn is_in_inbox(&self, now: Timestamp) -> bool {
        self.message.is_due(now) && self.standing.at(&self.message, now).in_inbox()
    }

    /// Whether it waits at `now` to be put before its agent, by whatever route.
    pub fn is_pending(&self, now: Timestamp) -> bool {
        self.is_waiting(now) && !self.standing.is_handed()
    }

    /// Return the ids of the repeats among `letters`.
    pub fn repeats(letters: &[Self]) -> Vec<MessageId> {
        let repeats = letters.iter().filter(|letter| letter.is_repeat());
        repeats.map(|letter| letter.message.id).collect()
    }

    /// Return how many offers of this message were begun.
    pub fn offers(&self) -> u32 {
        let is_offer = |state: &str| state == Step::Offering.as_str();
        let offers = self.receipts.iter().filter(|r| is_offer(&r.state));
        u32::try_from(offers.count()).unwrap_or(u32::MAX - 1)
    }

    /// Whether it will never be put before its agent, by nobody's wish.
    pub fn has_failed(&self) -> bool {
        self.standing.end == Some(End::Failed)
    }

    /// Whether it may have been shown before, so that it must be marked when it is shown again.
    pub fn is_repeat(&self) -> bool {
        self.standing.proven == Proven::Uncertain
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Mail {
    letters: BTreeMap<MessageId, Letter>,
    /// In the order of the journal.
    order: Vec<MessageId>,
    /// Steps that came before their message.
    early: BTreeMap<MessageId, Vec<Fact>>,
    /// What each agent was given last.
    given: BTreeMap<AgentName, Given>,
    /// Sequence numbers of records that mean nothing here.
    odd: Vec<u64>,
}

impl Mail {
    pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut mail = Self::default();
        for record in records {
            match record.read() {
                Ok(fact) => mail.apply(&fact),
                Err(_) => mail.odd.push(record.seq),
            }
        }
        mail
    }

    pub fn apply(&mut self, fact: &Fact) {
        match &fact.event {
            Event::Message(_) => {
                let Some(message) = fact.message() else {
                    return;
                };
                let id = message.id;
                if self.letters.contains_key(&id) {
                    return;
                }
                let letter = Letter {
                    message,
                    standing: Standing::default(),
                    receipts: fact.receipt().into_iter().collect(),
                };
                self.letters.insert(id, letter);
                self.order.push(id);
                for step in self.early.remove(&id).unwrap_or_default() {
                    self.apply(&step);
                }
            }
            Event::Progress(progress) => match self.letters.get_mut(&progress.message) {
                Some(letter) => {
                    letter.standing.apply_progress(progress);
                    letter.receipts.extend(fact.receipt());
                    if gives(progress.step) {
                        let message = letter.message.clone();
                        let given = Given {
                            message,
                            at: fact.at,
                        };
                        self.given.insert(letter.message.to.clone(), given);
                    }
                }
                None => self
                    .early
                    .entry(progress.message)
                    .or_default()
                    .push(fact.clone()),
            },
            // No mail: see [`crate::session::Sessions`] and [`crate::work::Work`].
            Event::Started(_)
            | Event::Ended(_)
            | Event::Conversation(_)
            | Event::Work(_)
            | Event::Loop(_) => {}
        }
    }

    pub fn get(&self, id: MessageId) -> Option<&Letter> {
        self.letters.get(&id)
    }

    /// The messages that a prefix fits; deleted ones are not found.
    pub fn find(&self, prefix: &IdPrefix) -> Vec<MessageId> {
        let there = |id: &&MessageId| {
            prefix.fits(**id) && self.letters[id].standing.end != Some(End::Deleted)
        };
        self.letters.keys().filter(there).copied().collect()
    }

    pub fn all(&self) -> impl Iterator<Item = &Letter> {
        self.order.iter().map(|id| &self.letters[id])
    }

    pub fn unread(&self, agent: &AgentName, now: Timestamp) -> impl Iterator<Item = &Letter> {
        self.all()
            .filter(move |l| l.message.to == *agent && l.is_waiting(now))
    }

    /// What waits to be put before an agent, in delivery order.
    pub fn pending(&self, agent: &AgentName, now: Timestamp) -> Vec<&Letter> {
        let is_pending = |l: &&Letter| l.message.to == *agent && l.is_pending(now);
        let mut pending: Vec<_> = self.all().filter(is_pending).enumerate().collect();
        pending.sort_by_key(|(came, letter)| {
            let came = *came as i64;
            match promotion::priority(&letter.message, now) {
                p @ Priority::IdleFirst => (p, -came),
                p @ (Priority::Interrupt | Priority::Normal | Priority::Idle) => (p, came),
            }
        });
        pending.into_iter().map(|(_, letter)| letter).collect()
    }

    /// What an agent was given last.
    pub fn given(&self, agent: &AgentName) -> Option<&Given> {
        self.given.get(agent)
    }

    /// What an agent may be reminded of, in the order in which it came.
    pub fn owed(&self, agent: &AgentName, now: Timestamp) -> impl Iterator<Item = &Letter> {
        self.all()
            .filter(move |l| l.message.to == *agent && owed::may_be_reminded(l, now))
    }

    /// The messages of a sender whose answer has not come, in the order in which they were sent.
    pub fn awaited(&self, sender: &AgentName, now: Timestamp) -> impl Iterator<Item = &Letter> {
        self.all()
            .filter(move |l| l.message.envelope.from == *sender && owed::is_awaited(l, now))
    }

    pub fn inbox(&self, agent: &AgentName, now: Timestamp) -> impl Iterator<Item = &Letter> {
        self.all()
            .filter(move |l| l.message.to == *agent && l.is_in_inbox(now))
    }

    /// All that a person may want to see of an inbox: what lies in it, and what failed to reach it.
    pub fn listed(&self, agent: &AgentName, now: Timestamp) -> impl Iterator<Item = &Letter> {
        self.all()
            .filter(move |l| l.message.to == *agent && (l.is_in_inbox(now) || l.has_failed()))
    }

    /// All messages of a thread but the deleted ones.
    pub fn thread(&self, thread: MessageId) -> impl Iterator<Item = &Letter> {
        self.all().filter(move |l| {
            l.message.envelope.thread_id == thread && l.standing.end != Some(End::Deleted)
        })
    }

    pub fn odd(&self) -> &[u64] {
        &self.odd
    }
}

/// Whether a step puts a message before its agent.
pub fn gives(step: Step) -> bool {
    match step {
        // An agent may act on a message before its offer is recorded as complete.
        Step::Offering | Step::Offered | Step::Accepted | Step::Shown => true,
        Step::Uncertain
        | Step::Withdrawn
        | Step::Reminded
        | Step::Answered
        | Step::Read
        | Step::Unread
        | Step::Archived
        | Step::Deleted
        | Step::Cancelled
        | Step::Expired
        | Step::Failed => false,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::fact::Progress;
    use crate::message::{Body, Envelope, Evidence};
    use crate::receipt::Step;
    use uuid::Uuid;

    pub(crate) fn name(text: &str) -> AgentName {
        AgentName::parse(text).unwrap()
    }

    pub(crate) fn message(n: u128, from: &str, to: &str) -> Message {
        let id = MessageId(Uuid::from_u128(n));
        Message {
            id,
            to: name(to),
            created_at: Timestamp::from_second(500).unwrap(),
            envelope: Envelope {
                from: name(from),
                from_evidence: Evidence::Default,
                subject: None,
                body: Body::Inline("hello".into()),
                priority: Priority::Normal,
                thread_id: id,
                reply_to: None,
                key: None,
                not_before: None,
                expires_at: None,
                deadline: None,
                expects_reply: false,
                closes: None,
                hops: 0,
                cause: None,
                raw: false,
            },
        }
    }

    /// A letter to which this has happened.
    pub(crate) fn with_steps(message: &Message, steps: &[Step]) -> Letter {
        let mut mail = Mail::default();
        mail.apply(&stored(message));
        for (n, one) in (1..).zip(steps) {
            mail.apply(&step(n, message, *one));
        }
        mail.letters[&message.id].clone()
    }

    fn stored(message: &Message) -> Fact {
        Fact {
            id: message.id.0,
            at: message.created_at,
            agent: message.to.clone(),
            event: Event::Message(message.envelope.clone()),
        }
    }

    fn step(n: u128, of: &Message, step: Step) -> Fact {
        Fact {
            id: Uuid::from_u128(n),
            at: of.created_at,
            agent: of.to.clone(),
            event: Event::Progress(Progress::of(of.id, step)),
        }
    }

    #[test]
    fn a_receipt_may_come_before_its_message() {
        let letter = message(1, "alice", "bob");
        let in_order = [
            stored(&letter),
            step(2, &letter, Step::Offered),
            step(3, &letter, Step::Read),
        ];
        let early = [
            in_order[1].clone(),
            in_order[2].clone(),
            in_order[0].clone(),
        ];
        let fold = |facts: &[Fact]| {
            let mut mail = Mail::default();
            facts.iter().for_each(|fact| mail.apply(fact));
            mail
        };
        assert_eq!(fold(&in_order), fold(&early));
        assert_eq!(fold(&early[..2]).all().count(), 0);
    }

    #[test]
    fn the_inbox_holds_what_is_due_and_not_ended() {
        let now = Timestamp::from_second(1_000).unwrap();
        let mut mail = Mail::default();
        let mut later = message(1, "a", "bob");
        later.envelope.not_before = Some(Timestamp::from_second(2_000).unwrap());
        let mut gone = message(2, "a", "bob");
        gone.envelope.expires_at = Some(now);
        let read = message(3, "a", "bob");
        let archived = message(4, "a", "bob");
        let plain = message(5, "a", "bob");
        let other = message(6, "a", "carol");
        for letter in [&later, &gone, &read, &archived, &plain, &other] {
            mail.apply(&stored(letter));
        }
        mail.apply(&step(10, &read, Step::Read));
        mail.apply(&step(11, &archived, Step::Archived));
        let ids = |letters: Vec<&Letter>| letters.iter().map(|l| l.message.id).collect::<Vec<_>>();
        assert_eq!(ids(mail.unread(&name("bob"), now).collect()), [plain.id]);
        assert_eq!(
            ids(mail.inbox(&name("bob"), now).collect()),
            [read.id, plain.id]
        );
        let then = Timestamp::from_second(2_000).unwrap();
        assert_eq!(
            ids(mail.unread(&name("bob"), then).collect()),
            [later.id, plain.id]
        );
    }

    #[test]
    fn a_prefix_that_fits_two_finds_both() {
        let mut mail = Mail::default();
        let one = message(0x3fa8_0000_0000_0000_0000_0000_0000_0001, "a", "bob");
        let two = message(0x3fa8_0000_0000_0000_0000_0000_0000_0002, "a", "bob");
        mail.apply(&stored(&one));
        mail.apply(&stored(&two));
        let prefix = IdPrefix::parse("3fa8").unwrap();
        assert_eq!(mail.find(&prefix), [one.id, two.id]);
        mail.apply(&step(9, &one, Step::Deleted));
        assert_eq!(mail.find(&prefix), [two.id]);
    }
}
