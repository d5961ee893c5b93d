//! Changes of an agent's loop.

use super::{Decided, Denied, Operation};
use crate::journal::transaction::Transaction;
use jiff::Timestamp;
use posthaste_core::loop_::{self, LoopOrder, LoopRefusal};
use posthaste_core::{AgentName, LoopState};
use uuid::Uuid;

/// Apply an order to an agent's loop.
#[derive(Debug, Clone)]
pub struct ApplyLoopOrder {
    pub now: Timestamp,
    pub agent: AgentName,
    pub order: LoopOrder,
}

#[derive(Debug, Clone, PartialEq)]
pub struct LoopChange {
    pub state: LoopState,
    /// False if the loop already had the state that was ordered.
    pub is_changed: bool,
}

impl Operation for ApplyLoopOrder {
    type Output = LoopChange;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<LoopChange>> {
        let before = tx.views.loop_of(&self.agent)?;
        let events = match loop_::decide(&self.agent, before.as_ref(), &self.order) {
            Ok(events) => events,
            Err(refusal) => return Ok(Err(Denied::Loop(refusal))),
        };
        let is_changed = !events.is_empty();
        for event in events {
            let id = match &self.order {
                LoopOrder::Inject { id, .. } => id.0,
                LoopOrder::Begin { .. }
                | LoopOrder::StartIteration { .. }
                | LoopOrder::EndIteration { .. }
                | LoopOrder::Ask { .. }
                | LoopOrder::Checkpoint
                | LoopOrder::Resume { .. }
                | LoopOrder::Interactive { .. }
                | LoopOrder::End { .. } => Uuid::new_v4(),
            };
            tx.append_with_id(id, self.now, &self.agent, event)?;
        }
        // The core allows only `Begin` without a loop, and that creates one.
        let state = tx.views.loop_of(&self.agent)?;
        let no_loop = || Denied::Loop(LoopRefusal::NoLoop(self.agent.clone()));
        Ok(state
            .ok_or_else(no_loop)
            .map(|state| LoopChange { state, is_changed }))
    }
}
