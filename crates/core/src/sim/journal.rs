//! The journal of the model world: the core's own decisions, around a commit that can fail, be
//! lost with the power, or come back after a crash.

use super::planted::{self, Bug};
use super::script::Disk;
use crate::fact::{Event, Fact};
use crate::id::MessageId;
use crate::mail::{Letter, Mail};
use crate::moment::Moment;
use crate::name::AgentName;
use crate::offer::{self, Said};
use crate::post::{self, Correspondence, Draft, Posting};
use crate::receipt::{self, End, Order};
use crate::session::{self, Ended, Ending, Sessions, Started};
use jiff::Timestamp;
use uuid::Uuid;

/// Whether a commit outlives a power cut; as the store has it for each kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Durability {
    Synced,
    Unsynced,
}

/// Nothing was committed.
#[derive(Debug)]
pub(super) struct DiskFailed;

/// What became of a message that somebody wants stored.
#[derive(Debug)]
pub(super) enum Posted {
    Stands(MessageId),
    /// It stands in the journal already.
    Stood(MessageId),
    Refused,
}

#[derive(Debug)]
pub(super) struct Journal {
    agent: AgentName,
    facts: Vec<Fact>,
    synced: usize,
    mail: Mail,
    sessions: Sessions,
    pub(super) disk: Disk,
    /// Facts that could not be synced: in nobody's view, but a crash may bring them back.
    ghost: Vec<Fact>,
    ids: u128,
}

impl Journal {
    pub(super) fn new(agent: AgentName) -> Self {
        Self {
            agent,
            facts: Vec::new(),
            synced: 0,
            mail: Mail::default(),
            sessions: Sessions::default(),
            disk: Disk::Works,
            ghost: Vec::new(),
            ids: 1 << 64,
        }
    }

    pub(super) fn facts(&self) -> &[Fact] {
        &self.facts
    }

    pub(super) fn mail(&self) -> &Mail {
        &self.mail
    }

    /// Whether a message would outlive a power cut.
    pub(super) fn is_synced(&self, id: MessageId) -> bool {
        let is_it = |fact: &Fact| fact.id == id.0;
        self.facts[..self.synced].iter().any(is_it)
    }

    /// What waits for the agent, and when the next comes due or runs out of time.
    pub(super) fn pending(&self, now: Timestamp) -> (Vec<Letter>, Option<Timestamp>) {
        let due = self.mail.pending(&self.agent, now);
        let next = self.mail.all().flat_map(|letter| {
            let envelope = &letter.message.envelope;
            let standing = letter.standing;
            let waits = standing.is_unread() && !standing.is_handed();
            let runs = standing.end.is_none() && !standing.is_reached();
            let due = envelope.not_before.filter(|due| waits && *due > now);
            let gone = envelope.expires_at.filter(|gone| runs && *gone > now);
            due.into_iter().chain(gone)
        });
        (due.into_iter().cloned().collect(), next.min())
    }

    fn commit(&mut self, facts: Vec<Fact>, durability: Durability) -> Result<(), DiskFailed> {
        if facts.is_empty() {
            return Ok(());
        }
        match self.disk {
            Disk::Works => {}
            Disk::Full => return Err(DiskFailed),
            Disk::FailsToSync if durability == Durability::Unsynced => {}
            Disk::FailsToSync => {
                self.ghost = facts;
                return Err(DiskFailed);
            }
        }
        self.ghost.clear();
        for fact in facts {
            self.mail.apply(&fact);
            self.sessions.apply(&fact);
            self.facts.push(fact);
        }
        if durability == Durability::Synced {
            self.synced = self.facts.len();
        }
        Ok(())
    }

    fn facts_of(&mut self, at: Timestamp, events: Vec<Event>) -> Vec<Fact> {
        let agent = self.agent.clone();
        let events = events.into_iter().map(|event| {
            self.ids += 1;
            Fact {
                id: Uuid::from_u128(self.ids),
                at,
                agent: agent.clone(),
                event,
            }
        });
        events.collect()
    }

    pub(super) fn post(&mut self, now: Moment, draft: &Draft) -> Result<Posted, DiskFailed> {
        let is_same = |letter: &&Letter| {
            let envelope = &letter.message.envelope;
            envelope.key.is_some() && (&envelope.from, &envelope.key) == (&draft.from, &draft.key)
        };
        let known = Correspondence {
            parent: None,
            same_key: self.mail.all().filter(is_same).last().cloned(),
            same_id: self.mail.get(draft.id).map(|letter| letter.message.clone()),
        };
        let event = match post::decide(now.wall, draft, &known) {
            Ok(Posting::New(event)) => event,
            Ok(Posting::Already(id)) => return Ok(Posted::Stood(id)),
            Err(_) => return Ok(Posted::Refused),
        };
        let fact = Fact {
            id: draft.id.0,
            at: now.wall,
            agent: self.agent.clone(),
            event,
        };
        let durability = if planted::is(Bug::AnsweredUnsynced) {
            Durability::Unsynced
        } else {
            Durability::Synced
        };
        self.commit(vec![fact], durability)?;
        Ok(Posted::Stands(draft.id))
    }

    /// Records what is said of these messages; gives back for which of them it can be true.
    pub(super) fn say(
        &mut self,
        now: Moment,
        ids: &[MessageId],
        said: &Said,
    ) -> Result<Vec<MessageId>, DiskFailed> {
        let (mut moved, mut events) = (Vec::new(), Vec::new());
        for id in ids {
            let letter = self.mail.get(*id);
            let decided = letter.map(|l| offer::decide(now.wall, &self.agent, l, said));
            if let Some(Ok(event)) = decided {
                events.push(event);
                moved.push(*id);
            }
        }
        let durability = match said {
            Said::Offering { .. } => Durability::Unsynced,
            Said::Offered { .. }
            | Said::Accepted { .. }
            | Said::Uncertain { .. }
            | Said::Withdrawn { .. } => Durability::Synced,
        };
        let facts = self.facts_of(now.wall, events);
        self.commit(facts, durability)?;
        Ok(moved)
    }

    pub(super) fn order(
        &mut self,
        now: Moment,
        who: &AgentName,
        order: Order,
        id: MessageId,
    ) -> Result<(), DiskFailed> {
        let Some(letter) = self.mail.get(id) else {
            return Ok(());
        };
        let events = receipt::decide(now.wall, order, who, &letter.message, letter.standing);
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

    /// Records what ran out of time.
    pub(super) fn expire(&mut self, now: Moment) -> Result<(), DiskFailed> {
        let has_run_out = |letter: &&Letter| {
            let end = letter.standing.at(&letter.message, now.wall).end;
            letter.standing.end.is_none() && end == Some(End::Expired)
        };
        let gone: Vec<_> = self.mail.all().filter(has_run_out).collect();
        let gone: Vec<_> = gone.iter().map(|letter| letter.message.id).collect();
        let who = self.agent.clone();
        gone.into_iter()
            .try_for_each(|id| self.order(now, &who, Order::Expire, id))
    }

    /// A session begins: what the last one left is put away first.
    pub(super) fn start(&mut self, now: Moment, started: &Started) -> Result<(), DiskFailed> {
        let latest = self.sessions.get(&self.agent);
        let events = session::start(started, latest);
        let is_offering = |letter: &&Letter| letter.standing.proven == receipt::Proven::Offering;
        let cut: Vec<_> = self.mail.all().filter(is_offering).collect();
        let cut: Vec<_> = cut.iter().map(|letter| letter.message.id).collect();
        let reason = "the session ended while it was being offered".to_owned();
        self.say(now, &cut, &Said::Uncertain { reason })?;
        let facts = self.facts_of(now.wall, events);
        self.commit(facts, Durability::Synced)
    }

    pub(super) fn end(&mut self, now: Moment, run: Uuid, how: Ending) -> Result<(), DiskFailed> {
        let events = session::end(&Ended { run, how }, self.sessions.get(&self.agent));
        let facts = self.facts_of(now.wall, events);
        self.commit(facts, Durability::Synced)
    }

    /// All processes die at once. What was not synced survives in part, and what could not be
    /// synced may turn out to be there. Gives back what that changed.
    pub(super) fn lose_power(&mut self, luck: u8) -> &'static str {
        let unsynced = self.facts.len() - self.synced;
        let kept = self.synced + usize::from(luck) % (unsynced + 1);
        let is_whole = kept == self.facts.len();
        self.facts.truncate(kept);
        let ghost = std::mem::take(&mut self.ghost);
        let change = match (is_whole, ghost.is_empty()) {
            (false, _) => "something was lost with the power",
            (true, false) if luck >= 128 => {
                self.facts.extend(ghost);
                "something came back after the crash"
            }
            (true, _) => "all of the journal is there",
        };
        self.synced = self.facts.len();
        self.mail = Mail::default();
        self.sessions = Sessions::default();
        for fact in &self.facts {
            self.mail.apply(fact);
            self.sessions.apply(fact);
        }
        change
    }
}
