//! All mail in memory: the model that the journal's views must agree with.
//!
//! [`Mail::apply`] folds in one fact and cannot fail; [`Mail::replay`] folds a whole journal. A
//! property test compares it with the store's tables.

use crate::fact::{Event, Fact, Progress, Record};
use crate::id::{IdPrefix, MessageId};
use crate::mail::pending_replies;
use crate::message::Message;
use crate::name::AgentName;
use crate::priority::Priority;
use crate::promotion;
use crate::receipt::{End, MessageStatus, Proven, Receipt, Step};
use crate::storm::Given;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// A message with its status and receipts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageState {
    pub message: Message,
    pub status: MessageStatus,
    pub receipts: Vec<Receipt>,
}

impl MessageState {
    /// Whether the message is unread at `now`: due, not expired, not ended.
    pub fn is_waiting(&self, now: Timestamp) -> bool {
        self.message.is_due(now) && self.status.at(&self.message, now).is_unread()
    }

    /// Whether the message is in the inbox at `now`, read or not.
    pub fn is_in_inbox(&self, now: Timestamp) -> bool {
        self.message.is_due(now) && self.status.at(&self.message, now).in_inbox()
    }

    /// Whether the message waits at `now` to be delivered, by any route.
    pub fn is_pending(&self, now: Timestamp) -> bool {
        self.is_waiting(now) && !self.status.is_offered_or_shown()
    }

    /// Return the ids of the repeats among `messages`.
    pub fn repeats(messages: &[Self]) -> Vec<MessageId> {
        let repeats = messages.iter().filter(|state| state.is_repeat());
        repeats.map(|state| state.message.id).collect()
    }

    /// Return the number of offers that were begun.
    pub fn offers(&self) -> u32 {
        let is_offer = |state: &str| state == Step::Offering.as_str();
        let offers = self.receipts.iter().filter(|r| is_offer(&r.state));
        u32::try_from(offers.count()).unwrap_or(u32::MAX - 1)
    }

    /// Whether the message has failed and is never delivered.
    pub fn has_failed(&self) -> bool {
        self.status.end == Some(End::Failed)
    }

    /// Whether the agent may have seen the message, so that its next offer must be marked as a
    /// repeat.
    pub fn is_repeat(&self) -> bool {
        self.status.proven == Proven::Uncertain
    }
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Mail {
    messages: BTreeMap<MessageId, MessageState>,
    /// In journal order.
    order: Vec<MessageId>,
    /// Steps that were read before their message.
    early: BTreeMap<MessageId, Vec<Fact>>,
    /// The message that each agent was given last.
    given: BTreeMap<AgentName, Given>,
    /// Sequence numbers of records that this version cannot read.
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
        if let Some(message) = fact.message() {
            self.store(message, fact);
        } else if let Event::Progress(progress) = &fact.event {
            self.progress(progress, fact);
        }
    }

    fn store(&mut self, message: Message, fact: &Fact) {
        let id = message.id;
        if self.messages.contains_key(&id) {
            return;
        }
        let state = MessageState {
            message,
            status: MessageStatus::default(),
            receipts: fact.receipt().into_iter().collect(),
        };
        self.messages.insert(id, state);
        self.order.push(id);
        for step in self.early.remove(&id).unwrap_or_default() {
            self.apply(&step);
        }
    }

    fn progress(&mut self, progress: &Progress, fact: &Fact) {
        let Some(state) = self.messages.get_mut(&progress.message) else {
            let early = self.early.entry(progress.message).or_default();
            early.push(fact.clone());
            return;
        };
        state.status.apply_progress(progress);
        state.receipts.extend(fact.receipt());
        if gives(progress.step) {
            let message = state.message.clone();
            let given = Given {
                message,
                at: fact.at,
            };
            self.given.insert(state.message.to.clone(), given);
        }
    }

    pub fn get(&self, id: MessageId) -> Option<&MessageState> {
        self.messages.get(&id)
    }

    /// Return the messages whose id begins with `prefix`, except deleted ones.
    pub fn find(&self, prefix: &IdPrefix) -> Vec<MessageId> {
        let there = |id: &&MessageId| {
            prefix.fits(**id) && self.messages[id].status.end != Some(End::Deleted)
        };
        self.messages.keys().filter(there).copied().collect()
    }

    pub fn all(&self) -> impl Iterator<Item = &MessageState> {
        self.order.iter().map(|id| &self.messages[id])
    }

    pub fn unread(&self, agent: &AgentName, now: Timestamp) -> impl Iterator<Item = &MessageState> {
        self.all()
            .filter(move |l| l.message.to == *agent && l.is_waiting(now))
    }

    /// Return the messages that wait for delivery to `agent`, in delivery order.
    pub fn pending(&self, agent: &AgentName, now: Timestamp) -> Vec<&MessageState> {
        let is_pending = |l: &&MessageState| l.message.to == *agent && l.is_pending(now);
        let mut pending: Vec<_> = self.all().filter(is_pending).enumerate().collect();
        pending.sort_by_key(|(came, state)| {
            let came = *came as i64;
            match promotion::priority(&state.message, now) {
                p @ Priority::IdleFirst => (p, -came),
                p @ (Priority::Interrupt | Priority::Normal | Priority::Idle) => (p, came),
            }
        });
        pending.into_iter().map(|(_, state)| state).collect()
    }

    /// Return the message that `agent` was given last.
    pub fn given(&self, agent: &AgentName) -> Option<&Given> {
        self.given.get(agent)
    }

    /// Return the messages that `agent` may be reminded of, in journal order.
    pub fn owed(&self, agent: &AgentName, now: Timestamp) -> impl Iterator<Item = &MessageState> {
        self.all()
            .filter(move |l| l.message.to == *agent && pending_replies::may_be_reminded(l, now))
    }

    /// Return the messages of `sender` that still expect a reply, in journal order.
    pub fn awaited(
        &self,
        sender: &AgentName,
        now: Timestamp,
    ) -> impl Iterator<Item = &MessageState> {
        self.all().filter(move |l| {
            l.message.envelope.from == *sender && pending_replies::is_awaited(l, now)
        })
    }

    pub fn inbox(&self, agent: &AgentName, now: Timestamp) -> impl Iterator<Item = &MessageState> {
        self.all()
            .filter(move |l| l.message.to == *agent && l.is_in_inbox(now))
    }

    /// Return the inbox and the failed messages of `agent`.
    pub fn listed(&self, agent: &AgentName, now: Timestamp) -> impl Iterator<Item = &MessageState> {
        self.all()
            .filter(move |l| l.message.to == *agent && (l.is_in_inbox(now) || l.has_failed()))
    }

    /// Return the messages of a thread, except deleted ones.
    pub fn thread(&self, thread: MessageId) -> impl Iterator<Item = &MessageState> {
        self.all().filter(move |l| {
            l.message.envelope.thread_id == thread && l.status.end != Some(End::Deleted)
        })
    }

    pub fn odd(&self) -> &[u64] {
        &self.odd
    }
}

/// Whether `step` delivers a message to its agent.
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
                answers: None,
            },
        }
    }

    /// Return the state of `message` after `steps`.
    pub(crate) fn with_steps(message: &Message, steps: &[Step]) -> MessageState {
        let mut mail = Mail::default();
        mail.apply(&stored(message));
        for (n, one) in (1..).zip(steps) {
            mail.apply(&step(n, message, *one));
        }
        mail.messages[&message.id].clone()
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
    fn a_step_may_precede_its_message() {
        let state = message(1, "alice", "bob");
        let in_order = [
            stored(&state),
            step(2, &state, Step::Offered),
            step(3, &state, Step::Read),
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
    fn the_inbox_has_messages_that_are_due_and_not_ended() {
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
        for state in [&later, &gone, &read, &archived, &plain, &other] {
            mail.apply(&stored(state));
        }
        mail.apply(&step(10, &read, Step::Read));
        mail.apply(&step(11, &archived, Step::Archived));
        let ids = |messages: Vec<&MessageState>| {
            messages.iter().map(|l| l.message.id).collect::<Vec<_>>()
        };
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
    fn an_ambiguous_prefix_finds_all_matches() {
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
