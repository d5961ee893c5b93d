//! The simulated journal: the core's own decisions, with commits that can fail, be lost in a power
//! cut, or reappear after a crash.

use crate::ask::{self, AskOpened, AskState, CloseReason};
use crate::delivery::proven_by;
use crate::driver::MailView;
use crate::fact::{Event, Fact};
use crate::id::AskId;
use crate::id::MessageId;
use crate::inject;
use crate::mail::{Mail, MessageState};
use crate::message::Message;
use crate::moment::Moment;
use crate::name::AgentName;
use crate::offer::{self, OfferReport};
use crate::pending_replies;
use crate::post::{self, Correspondence, Draft, Posting};
use crate::promotion;
use crate::receipt::recovery::{self, CUT_OFF, OpenOffers};
use crate::receipt::{self, End, Order};
use crate::session::{self, Conversation, Ended, Ending, Sessions, Started};
use crate::sim::faults::Fault;
use crate::sim::script::Disk;
use crate::storm::{MINUTE, SENDER_SKEW};
use jiff::Timestamp;
use std::borrow::Cow;
use std::collections::BTreeSet;
use uuid::Uuid;

/// Whether a commit survives a power cut. Each kind of commit is as durable as in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    Synced,
    Unsynced,
}

/// The commit failed, and nothing was written.
#[derive(Debug)]
pub(crate) struct DiskFailed;

/// The result of posting a message.
#[derive(Debug)]
pub(crate) enum Posted {
    Stored(MessageId),
    /// The message is in the journal already.
    AlreadyStored(MessageId),
    Refused,
}

#[derive(Debug)]
pub(crate) struct Journal {
    agent: AgentName,
    fault: Option<Fault>,
    facts: Vec<Fact>,
    synced: usize,
    /// The ids of the synced facts.
    safe: BTreeSet<Uuid>,
    mail: Mail,
    sessions: Sessions,
    pub(crate) disk: Disk,
    /// Facts that could not be synced. No view has them, but they may reappear after a crash.
    failed_facts: Vec<Fact>,
    ids: u128,
    writes: usize,
}

impl Journal {
    pub(crate) fn new(agent: AgentName, fault: Option<Fault>) -> Self {
        Self {
            agent,
            fault,
            facts: Vec::new(),
            synced: 0,
            safe: BTreeSet::new(),
            mail: Mail::default(),
            sessions: Sessions::default(),
            disk: Disk::Works,
            failed_facts: Vec::new(),
            ids: 1 << 64,
            writes: 0,
        }
    }

    pub(crate) fn facts(&self) -> &[Fact] {
        &self.facts
    }

    /// Return the number of the last fact.
    pub(crate) fn head(&self) -> u64 {
        self.facts.len() as u64
    }

    /// Return the number of changes so far.
    pub(crate) fn written(&self) -> usize {
        self.writes
    }

    pub(crate) fn mail(&self) -> &Mail {
        &self.mail
    }

    /// Whether a message would survive a power cut.
    pub(crate) fn is_synced(&self, id: MessageId) -> bool {
        self.safe.contains(&id.0)
    }

    /// Return the agent's mail, like one read of the store.
    pub(crate) fn read_mail(&self, now: Timestamp) -> MailView {
        let due = self.mail.pending(&self.agent, now);
        let ours = self
            .mail
            .all()
            .filter(|state| state.message.to == self.agent);
        let next = ours.flat_map(|state| {
            let envelope = &state.message.envelope;
            let status = state.status;
            let waits = status.is_unread() && !status.is_offered_or_shown();
            let runs = status.end.is_none() && !status.is_reached();
            let due = [envelope.not_before, promotion::promotes_at(envelope)];
            let due = due.into_iter().flatten().filter(move |_| waits);
            due.chain(envelope.expires_at.filter(|_| runs))
                .filter(|time| *time > now)
        });
        MailView {
            head: self.head(),
            next_change: next.min(),
            pending: due.into_iter().cloned().collect(),
            pending_replies: self.owed(now),
        }
    }

    /// Return the messages that the agent may be reminded of.
    fn owed(&self, now: Timestamp) -> Vec<MessageState> {
        if self.fault != Some(Fault::RemindsAnswered) {
            return self.mail.owed(&self.agent, now).cloned().collect();
        }
        let ours = self
            .mail
            .all()
            .filter(|state| state.message.to == self.agent);
        let found = ours.map(|state| self.found(state).into_owned());
        found
            .filter(|state| pending_replies::may_be_reminded(state, now))
            .collect()
    }

    /// Return a message's state for a decision, which a fault may change.
    fn found<'a>(&self, state: &'a MessageState) -> Cow<'a, MessageState> {
        let mut state = Cow::Borrowed(state);
        match self.fault {
            Some(Fault::CancelledShown) => state.to_mut().status.end = None,
            Some(Fault::RemindsAnswered) => state.to_mut().status.answered = false,
            _ => {}
        }
        state
    }

    fn commit(&mut self, facts: Vec<Fact>, durability: Durability) -> Result<(), DiskFailed> {
        if facts.is_empty() {
            return Ok(());
        }
        match self.disk {
            Disk::Works => {}
            Disk::Full | Disk::Broken => return Err(DiskFailed),
            Disk::FailsToSync if durability == Durability::Unsynced => {}
            Disk::FailsToSync => {
                self.failed_facts = facts;
                return Err(DiskFailed);
            }
        }
        self.writes += 1;
        self.failed_facts.clear();
        for fact in facts {
            self.mail.apply(&fact);
            self.sessions.apply(&fact);
            self.facts.push(fact);
        }
        if durability == Durability::Synced {
            self.sync();
        }
        Ok(())
    }

    fn sync(&mut self) {
        let new = self.facts[self.synced..].iter().map(|fact| fact.id);
        self.safe.extend(new);
        self.synced = self.facts.len();
    }

    fn fact(&mut self, at: Timestamp, agent: &AgentName, event: Event) -> Fact {
        self.ids += 1;
        Fact {
            id: Uuid::from_u128(self.ids),
            at,
            agent: agent.clone(),
            event,
        }
    }

    fn facts_of(&mut self, at: Timestamp, events: Vec<Event>) -> Vec<Fact> {
        let agent = self.agent.clone();
        let events = events.into_iter();
        events.map(|event| self.fact(at, &agent, event)).collect()
    }

    /// Return the earlier messages that the decision about a draft needs.
    fn known(&self, now: Timestamp, draft: &Draft) -> Correspondence {
        let pair = |message: &Message| (message.envelope.from.clone(), message.to.clone());
        let is_pair =
            |state: &&MessageState| pair(&state.message) == (draft.from.clone(), draft.to.clone());
        let is_same =
            |state: &&MessageState| draft.key.is_some() && state.message.envelope.key == draft.key;
        let is_recent = |state: &&MessageState| {
            let sent = state.message.created_at;
            sent > now - MINUTE && sent <= now + SENDER_SKEW && !state.has_failed()
        };
        let all = || self.mail.all().filter(is_pair);
        let state = |id: Option<MessageId>| self.mail.get(id?).cloned();
        Correspondence {
            parent: state(draft.reply_to),
            closed: state(draft.closes),
            given: self.mail.given(&draft.from).cloned(),
            recent: all().filter(is_recent).count() as u32,
            same_key: all().filter(is_same).last().cloned(),
            same_id: state(Some(draft.id)).map(|state| state.message),
            ..Correspondence::default()
        }
    }

    pub(crate) fn post(&mut self, now: Moment, draft: &Draft) -> Result<Posted, DiskFailed> {
        let known = self.known(now.wall, draft);
        let is_there = |id: &MessageId| self.mail.get(*id).is_some();
        if !draft.reply_to.iter().chain(&draft.closes).all(is_there) {
            return Ok(Posted::Refused);
        }
        let (envelope, also) = match post::decide(now.wall, draft, &known) {
            Ok(Posting::New { envelope, also }) => (envelope, also),
            Ok(Posting::Already(id)) => return Ok(Posted::AlreadyStored(id)),
            Err(_) => return Ok(Posted::Refused),
        };
        let message = Fact {
            id: draft.id.0,
            at: now.wall,
            agent: draft.to.clone(),
            event: Event::Message(*envelope),
        };
        let mut facts = vec![message];
        for (agent, event) in also {
            facts.push(self.fact(now.wall, &agent, event));
        }
        let durability = match self.fault {
            Some(Fault::AnsweredUnsynced) => Durability::Unsynced,
            _ => Durability::Synced,
        };
        self.commit(facts, durability)?;
        Ok(Posted::Stored(draft.id))
    }

    /// Record a step of these messages. Return the messages that accept the step.
    pub(crate) fn record_step(
        &mut self,
        now: Moment,
        ids: &[MessageId],
        report: &OfferReport,
    ) -> Result<Vec<MessageId>, DiskFailed> {
        let (mut moved, mut events) = (Vec::new(), Vec::new());
        for id in ids {
            let state = self.mail.get(*id);
            let decided =
                state.map(|state| offer::decide(now.wall, &self.agent, &self.found(state), report));
            if let Some(Ok(event)) = decided {
                events.push(event);
                moved.push(*id);
            }
        }
        let durability = match report {
            OfferReport::Offering { .. } | OfferReport::Reminded { .. } => Durability::Unsynced,
            OfferReport::Offered { .. }
            | OfferReport::Accepted { .. }
            | OfferReport::Uncertain { .. }
            | OfferReport::Withdrawn { .. }
            | OfferReport::Failed { .. } => Durability::Synced,
        };
        let facts = self.facts_of(now.wall, events);
        self.commit(facts, durability)?;
        Ok(moved)
    }

    pub(crate) fn order(
        &mut self,
        now: Moment,
        who: &AgentName,
        order: Order,
        id: MessageId,
    ) -> Result<(), DiskFailed> {
        let Some(state) = self.mail.get(id) else {
            return Ok(());
        };
        let events = receipt::decide(now.wall, order, who, &state.message, state.status);
        let durability = match order {
            Order::Show => Durability::Unsynced,
            Order::MarkRead
            | Order::MarkUnread
            | Order::Archive
            | Order::Delete
            | Order::Cancel
            | Order::Expire => Durability::Synced,
        };
        let facts = self.facts_of(now.wall, events.unwrap_or_default());
        self.commit(facts, durability)
    }

    /// Record the expiry of messages whose time has run out.
    pub(crate) fn expire(&mut self, now: Moment) -> Result<(), DiskFailed> {
        let has_run_out = |state: &&MessageState| {
            let end = state.status.at(&state.message, now.wall).end;
            let is_new = state.status.end.is_none() && end == Some(End::Expired);
            is_new && state.message.to == self.agent
        };
        let gone: Vec<_> = self.mail.all().filter(has_run_out).collect();
        let gone: Vec<_> = gone.iter().map(|state| state.message.id).collect();
        let who = self.agent.clone();
        gone.into_iter()
            .try_for_each(|id| self.order(now, &who, Order::Expire, id))
    }

    /// Begin a session. Like `host::run`, first mark the offers that the last session left open as
    /// uncertain.
    pub(crate) fn start(
        &mut self,
        now: Moment,
        started: &Started,
        resumed: Option<&Conversation>,
    ) -> Result<(), DiskFailed> {
        let latest = self.sessions.get(&self.agent);
        let mut events = session::start(started, latest);
        let crashed = latest.filter(|run| run.end.is_none());
        let crashed = crashed.map(|run| run.started.run);
        self.mark_uncertain(now, &OpenOffers::All, CUT_OFF)?;
        if resumed.is_none() {
            self.settle(now, None)?;
        }
        events.extend(crashed.into_iter().flat_map(|run| self.ends_of_asks(run)));
        let facts = self.facts_of(now.wall, events);
        self.commit(facts, Durability::Synced)?;
        resumed.map_or(Ok(()), |resumed| {
            let run = started.run;
            self.record_conversation(
                now,
                &Conversation {
                    run,
                    ..resumed.clone()
                },
            )
        })
    }

    /// Return the conversation of the latest run.
    pub(crate) fn conversation(&self) -> Option<&Conversation> {
        let run = self.sessions.get(&self.agent)?.started.run;
        let latest = self.sessions.conversation(&self.agent);
        latest.filter(|conversation| conversation.run == run)
    }

    pub(crate) fn record_conversation(
        &mut self,
        now: Moment,
        conversation: &Conversation,
    ) -> Result<(), DiskFailed> {
        let latest = self.sessions.conversation(&self.agent);
        let events = session::converse(conversation, latest);
        let facts = self.facts_of(now.wall, events);
        self.commit(facts, Durability::Synced)
    }

    /// Return the asks of the agent: the sum of their facts.
    pub(crate) fn asks(&self) -> Vec<AskState> {
        let mut asks: Vec<AskState> = Vec::new();
        for fact in &self.facts {
            asks.extend(AskState::opened_by(fact));
            let changed = AskState::changed_by(fact);
            let ask = asks.iter_mut().find(|ask| Some(ask.id) == changed);
            if let Some(ask) = ask {
                ask.apply(fact);
            }
        }
        asks
    }

    /// Return the ends of the asks of a run that has ended.
    fn ends_of_asks(&self, run: Uuid) -> Vec<Event> {
        let known = self.asks();
        let answer = |ask: &AskState| {
            let claim = ask.claim.as_ref()?;
            self.mail.get(claim.message).cloned()
        };
        ask::end_run(run, &known, answer).collect()
    }

    pub(crate) fn open_ask(
        &mut self,
        now: Moment,
        id: AskId,
        opened: &AskOpened,
    ) -> Result<(), DiskFailed> {
        let known = self.asks();
        if known.iter().any(|ask| ask.id == id) {
            return Ok(());
        }
        let open: Vec<_> = known.into_iter().filter(AskState::is_open).collect();
        let mut facts = self.facts_of(now.wall, ask::open(opened.clone(), &open));
        if let Some(fact) = facts.last_mut() {
            fact.id = id.0;
        }
        self.commit(facts, Durability::Synced)
    }

    pub(crate) fn close_ask(
        &mut self,
        now: Moment,
        id: AskId,
        reason: &CloseReason,
    ) -> Result<(), DiskFailed> {
        let known = self.asks();
        let ask = known.iter().find(|ask| ask.id == id);
        let events = ask.and_then(|ask| ask::close(ask, reason));
        let facts = self.facts_of(now.wall, events.into_iter().collect());
        self.commit(facts, Durability::Synced)
    }

    fn states(&self, is_one: impl Fn(&MessageState) -> bool) -> Vec<MessageState> {
        let is_ours = |state: &&MessageState| state.message.to == self.agent && is_one(state);
        self.mail.all().filter(is_ours).cloned().collect()
    }

    /// Settle the offers of earlier runs whose proof is awaited.
    pub(crate) fn settle(&mut self, now: Moment, given: Option<&str>) -> Result<(), DiskFailed> {
        let open = self.states(|state| OpenOffers::Unproven.include(state));
        let proven = given.map_or_else(Vec::new, |given| proven_by(given, &open));
        for (id, report) in recovery::settle(&open, &proven) {
            self.record_step(now, &[id], &report)?;
        }
        Ok(())
    }

    /// Mark the offers that killed hooks left open as uncertain. Return whether there were any.
    pub(crate) fn cut_off_injected(&mut self, now: Moment) -> Result<bool, DiskFailed> {
        let before = self.writes;
        self.mark_uncertain(now, &OpenOffers::Injected, inject::UNPRINTED)?;
        Ok(self.writes > before)
    }

    pub(crate) fn mark_uncertain(
        &mut self,
        now: Moment,
        offers: &OpenOffers,
        reason: &str,
    ) -> Result<(), DiskFailed> {
        let open = self.states(|state| offers.include(state));
        let ids: Vec<_> = open.iter().map(|state| state.message.id).collect();
        let reason = reason.to_owned();
        self.record_step(now, &ids, &OfferReport::Uncertain { reason })?;
        Ok(())
    }

    pub(crate) fn end(&mut self, now: Moment, run: Uuid, how: Ending) -> Result<(), DiskFailed> {
        let mut events = session::end(&Ended { run, how }, self.sessions.get(&self.agent));
        events.extend(self.ends_of_asks(run));
        let facts = self.facts_of(now.wall, events);
        self.commit(facts, Durability::Synced)
    }

    /// Cut the power. Some unsynced facts survive, and facts that could not be synced may reappear.
    /// Return a description of the change.
    pub(crate) fn lose_power(&mut self, luck: u8) -> &'static str {
        self.writes += 1;
        let unsynced = self.facts.len() - self.synced;
        let kept = self.synced + usize::from(luck) % (unsynced + 1);
        let is_whole = kept == self.facts.len();
        self.facts.truncate(kept);
        let failed_facts = std::mem::take(&mut self.failed_facts);
        let change = match (is_whole, failed_facts.is_empty()) {
            (false, _) => "something was lost with the power",
            (true, false) if luck >= 128 => {
                self.facts.extend(failed_facts);
                "something came back after the crash"
            }
            (true, _) => "all of the journal is there",
        };
        // All facts that are left count as synced.
        self.synced = self.synced.min(kept);
        self.sync();
        self.mail = Mail::default();
        self.sessions = Sessions::default();
        for fact in &self.facts {
            self.mail.apply(fact);
            self.sessions.apply(fact);
        }
        change
    }
}
