//! Delivery: offers, their outcome, and expiry.

use super::{Decided, Durability, Operation};
use crate::journal::transaction::Transaction;
use crate::views::marks::MarkKind;
use crate::views::pending::Pending;
use jiff::Timestamp;
use posthaste_core::offer::{self, OfferReport, StepRefusal};
pub use posthaste_core::receipt::recovery::OpenOffers;
use posthaste_core::receipt::{self, Order};
use posthaste_core::{AgentName, MessageId, MessageState, inject};

/// Messages that one transaction records as expired at most.
const EXPIRED_PER_TRANSACTION: usize = 100;

/// Record a session's claim about messages, for those of which it can be true.
#[derive(Debug, Clone)]
pub struct RecordDelivery {
    pub now: Timestamp,
    pub agent: AgentName,
    pub ids: Vec<MessageId>,
    pub report: OfferReport,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedDelivery {
    pub moved: Vec<MessageId>,
    /// Messages that stay as they are, and why.
    pub kept: Vec<(MessageId, StepRefusal)>,
}

/// Record that offers were cut off.
#[derive(Debug, Clone)]
pub struct MarkUncertain {
    pub now: Timestamp,
    pub agent: AgentName,
    pub offers: OpenOffers,
    pub reason: String,
}

/// Offer the most urgent messages that no route has shown to their agent yet, through a hook that
/// is about to print them. The caller must hold the agent's inject lock.
#[derive(Debug, Clone)]
pub struct Inject {
    pub now: Timestamp,
    pub agent: AgentName,
}

#[derive(Debug, Clone)]
pub struct Injection {
    pub messages: Vec<MessageState>,
    /// All unread messages of the inbox.
    pub unread: u64,
}

/// Record which messages of an inbox have expired.
#[derive(Debug, Clone)]
pub struct Expire {
    pub now: Timestamp,
    pub agent: AgentName,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    pub ids: Vec<MessageId>,
    /// Whether there may be more to record, by another operation.
    pub more: bool,
}

impl Operation for RecordDelivery {
    type Output = RecordedDelivery;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<RecordedDelivery>> {
        tx.record_delivery(self.now, &self.agent, &self.ids, &self.report)
            .map(Ok)
    }

    /// A commit is not synced if what it announces does not survive a power cut either. Showing a
    /// message again after a power cut is better than delaying every prompt.
    fn durability(&self) -> Durability {
        match &self.report {
            OfferReport::Offering { .. } | OfferReport::Reminded { .. } => Durability::Unsynced,
            OfferReport::Offered { route, .. } if route == inject::ROUTE => Durability::Unsynced,
            OfferReport::Offered { .. }
            | OfferReport::Accepted { .. }
            | OfferReport::Uncertain { .. }
            | OfferReport::Withdrawn { .. }
            | OfferReport::Failed { .. } => Durability::Synced,
        }
    }
}

impl Operation for MarkUncertain {
    type Output = RecordedDelivery;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<RecordedDelivery>> {
        let (now, agent) = (self.now, &self.agent);
        tx.mark_uncertain(now, agent, &self.offers, &self.reason)
            .map(Ok)
    }
}

impl Operation for Inject {
    type Output = Injection;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<Injection>> {
        let (now, agent) = (self.now, &self.agent);
        tx.record_expired(now, agent)?;
        tx.mark_uncertain(now, agent, &OpenOffers::Injected, inject::UNPRINTED)?;
        // Load the messages before the offer is recorded: the offer ends the state `uncertain`,
        // which marks a repeat.
        let pending = tx.views.pending(agent, now, Pending::MAX_MESSAGES)?;
        let messages = inject::choose(pending);
        let ids: Vec<_> = messages
            .iter()
            .map(|message_state| message_state.message.id)
            .collect();
        let route = inject::ROUTE.to_owned();
        let repeats = MessageState::repeats(&messages);
        tx.record_delivery(now, agent, &ids, &OfferReport::Offering { route, repeats })?;
        let unread = tx.views.inbox_count(agent, now)?.unread;
        Ok(Ok(Injection { messages, unread }))
    }

    fn durability(&self) -> Durability {
        Durability::Unsynced
    }
}

impl Operation for Expire {
    type Output = Expired;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<Expired>> {
        let ids = tx.record_expired(self.now, &self.agent)?;
        let more = ids.len() == EXPIRED_PER_TRANSACTION;
        Ok(Ok(Expired { ids, more }))
    }
}

impl Transaction<'_> {
    fn record_delivery(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        ids: &[MessageId],
        report: &OfferReport,
    ) -> rusqlite::Result<RecordedDelivery> {
        let (mut moved, mut kept) = (Vec::new(), Vec::new());
        for id in ids {
            let decided = match self.views.message(*id)? {
                Some(message) => offer::decide(now, agent, &message, report),
                None => Err(StepRefusal::NotFound),
            };
            match decided {
                Ok(event) => {
                    self.append_events(now, agent, vec![event])?;
                    moved.push(*id);
                }
                Err(why) => kept.push((*id, why)),
            }
        }
        Ok(RecordedDelivery { moved, kept })
    }

    fn mark_uncertain(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        offers: &OpenOffers,
        reason: &str,
    ) -> rusqlite::Result<RecordedDelivery> {
        let ids = match offers {
            OpenOffers::These(ids) => ids.clone(),
            OpenOffers::All | OpenOffers::Injected => {
                self.views.marked_ids(MarkKind::Offering, agent)?
            }
            OpenOffers::Unproven => self.views.marked_ids(MarkKind::Unproven, agent)?,
        };
        let mut included = Vec::new();
        for id in ids {
            let message = self.views.message(id)?;
            let is_included = message.is_none_or(|message| offers.include(&message));
            included.extend(is_included.then_some(id));
        }
        let reason = reason.to_owned();
        self.record_delivery(now, agent, &included, &OfferReport::Uncertain { reason })
    }

    /// Record messages of an inbox that have expired, [`EXPIRED_PER_TRANSACTION`] at most.
    pub(super) fn record_expired(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
    ) -> rusqlite::Result<Vec<MessageId>> {
        let expired = self.views.expired(agent, now, EXPIRED_PER_TRANSACTION)?;
        for id in &expired {
            if let Some(found) = self.views.message(*id)? {
                let events =
                    receipt::decide(now, Order::Expire, agent, &found.message, found.status);
                self.append_events(now, agent, events.unwrap_or_default())?;
            }
        }
        Ok(expired)
    }
}
