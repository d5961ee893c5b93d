//! Runs of agents: their start, their conversation, their end.

use super::{Decided, Operation};
use crate::journal::transaction::Transaction;
use jiff::Timestamp;
use posthaste_core::{AgentName, Conversation, Ended, Event, Run, Started, session};

/// Record that a session has started. The caller must hold the agent's name. Returns the run before
/// it if that has no end, and so has crashed.
#[derive(Debug, Clone)]
pub struct StartRun {
    pub now: Timestamp,
    pub agent: AgentName,
    pub started: Started,
}

/// Record the conversation that a session's program is in.
#[derive(Debug, Clone)]
pub struct RecordConversation {
    pub now: Timestamp,
    pub agent: AgentName,
    pub conversation: Conversation,
}

/// Record how a session ended. Returns false if the run already has an end, or another run has
/// started since.
#[derive(Debug, Clone)]
pub struct EndRun {
    pub now: Timestamp,
    pub agent: AgentName,
    pub ended: Ended,
}

impl Operation for StartRun {
    type Output = Option<Run>;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<Option<Run>>> {
        let latest = tx.views.latest_run(&self.agent)?;
        let events = session::start(&self.started, latest.as_ref());
        let is_crash = events.iter().any(|event| matches!(event, Event::Ended(_)));
        tx.append_events(self.now, &self.agent, events)?;
        let crashed = latest.filter(|_| is_crash);
        if let Some(crashed) = &crashed {
            tx.close_asks_of_run(self.now, &self.agent, crashed.started.run)?;
        }
        Ok(Ok(crashed))
    }
}

impl Operation for RecordConversation {
    type Output = ();

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<()>> {
        let latest = tx.views.latest_conversation(&self.agent)?;
        let events = session::converse(&self.conversation, latest.as_ref());
        tx.append_events(self.now, &self.agent, events).map(Ok)
    }
}

impl Operation for EndRun {
    type Output = bool;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<bool>> {
        let latest = tx.views.latest_run(&self.agent)?;
        let events = session::end(&self.ended, latest.as_ref());
        let is_new = !events.is_empty();
        tx.append_events(self.now, &self.agent, events)?;
        tx.close_asks_of_run(self.now, &self.agent, self.ended.run)?;
        Ok(Ok(is_new))
    }
}
