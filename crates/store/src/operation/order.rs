//! Orders of people and agents about stored messages: read, archive, cancel, delete.

use super::{Decided, Denied, Operation};
use crate::files::{self, Prewrite, StoredBodies};
use crate::home::Home;
use crate::journal::transaction::Transaction;
use jiff::Timestamp;
use posthaste_core::receipt::{self, Order};
use posthaste_core::{AgentName, Message, MessageId, Refusal};

/// Apply one order to messages.
#[derive(Debug, Clone)]
pub struct ApplyOrder {
    pub now: Timestamp,
    pub who: AgentName,
    pub order: Order,
    pub ids: Vec<MessageId>,
}

#[derive(Debug, Clone)]
pub struct Ordered {
    pub message: Message,
    pub outcome: OrderEffect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OrderEffect {
    Changed,
    /// The message already had the state that was ordered.
    Unchanged,
    AlreadyArchived,
}

impl Operation for ApplyOrder {
    type Output = Vec<Ordered>;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<Vec<Ordered>>> {
        tx.undo_if_denied(self.ids.len(), |tx| {
            self.ids.iter().map(|id| self.apply(tx, *id)).collect()
        })
    }

    fn settle_files(
        &self,
        home: &Home,
        _: &StoredBodies,
        _: &Prewrite,
        decided: &mut Decided<Vec<Ordered>>,
    ) {
        if let (Order::Delete, Ok(ordered)) = (self.order, decided) {
            let deleted = ordered.iter().filter(|o| o.outcome == OrderEffect::Changed);
            deleted.for_each(|deleted| files::remove_copy(home, &deleted.message));
        }
    }
}

impl ApplyOrder {
    fn apply(&self, tx: &mut Transaction<'_>, id: MessageId) -> rusqlite::Result<Decided<Ordered>> {
        let Some(found) = tx.views.message(id)? else {
            return Ok(Err(Denied::NotFound(id)));
        };
        let message = found.message;
        let decided = receipt::decide(self.now, self.order, &self.who, &message, found.status);
        let outcome = match decided {
            Ok(events) if events.is_empty() => OrderEffect::Unchanged,
            Ok(events) => {
                tx.append_events(self.now, &message.to, events)?;
                OrderEffect::Changed
            }
            Err(Refusal::AlreadyArchived) => OrderEffect::AlreadyArchived,
            Err(refusal) => {
                let id = Some(id);
                return Ok(Err(Denied::Refused { id, refusal }));
            }
        };
        Ok(Ok(Ordered { message, outcome }))
    }
}
