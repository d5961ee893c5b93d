//! Asks: their opening and their end.

use super::{Decided, Operation};
use crate::journal::transaction::Transaction;
use jiff::Timestamp;
use posthaste_core::ask::{self, AskFact, AskOpened, AskSeen, CloseReason};
use posthaste_core::{AgentName, AskId, Event, Fact};
use uuid::Uuid;

/// Open an ask, and close those that it replaces. Opening an ask again changes nothing.
#[derive(Debug, Clone)]
pub struct OpenAsk {
    pub now: Timestamp,
    pub agent: AgentName,
    pub id: AskId,
    pub opened: AskOpened,
}

/// Close an ask. Returns false if it is closed already.
#[derive(Debug, Clone)]
pub struct CloseAsk {
    pub now: Timestamp,
    pub ask: AskId,
    pub reason: CloseReason,
}

impl Operation for OpenAsk {
    type Output = ();

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<()>> {
        if tx.views.ask(self.id)?.is_some() {
            return Ok(Ok(()));
        }
        let known = tx.views.open_asks_of(&self.agent)?;
        for event in ask::open(self.opened.clone(), &known) {
            match event {
                Event::Ask(AskFact::Opened(_)) => tx.append(&Fact {
                    id: self.id.0,
                    at: self.now,
                    agent: self.agent.clone(),
                    event,
                })?,
                event => tx.append_events(self.now, &self.agent, vec![event])?,
            }
        }
        Ok(Ok(()))
    }
}

impl Operation for CloseAsk {
    type Output = bool;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<bool>> {
        let Some(known) = tx.views.ask(self.ask)? else {
            return Ok(Ok(false));
        };
        let event = ask::close(&known, &self.reason);
        let is_new = event.is_some();
        tx.append_events(self.now, &known.agent, event.into_iter().collect())?;
        Ok(Ok(is_new))
    }
}

/// Put aside something that waits for a person without being an ask.
#[derive(Debug, Clone)]
pub struct MarkSeen {
    pub now: Timestamp,
    /// The agent that it is about.
    pub agent: AgentName,
    pub seen: AskSeen,
}

impl Operation for MarkSeen {
    type Output = ();

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<()>> {
        let event = Event::Ask(AskFact::Seen(self.seen.clone()));
        tx.append_events(self.now, &self.agent, vec![event]).map(Ok)
    }
}

impl Transaction<'_> {
    /// Close the open asks of a run that has ended.
    pub(super) fn close_asks_of_run(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        run: Uuid,
    ) -> rusqlite::Result<()> {
        let known = self.views.open_asks_of(agent)?;
        let mut answers = Vec::new();
        for ask in &known {
            let message = ask
                .claim
                .as_ref()
                .map(|claim| self.views.message(claim.message));
            answers.push((ask.id, message.transpose()?.flatten()));
        }
        let answer_of = |ask: &posthaste_core::AskState| {
            let answer = answers.iter().find(|(id, _)| *id == ask.id);
            answer.and_then(|(_, message)| message.clone())
        };
        let events = ask::end_run(run, &known, answer_of).collect();
        self.append_events(now, agent, events)
    }
}
