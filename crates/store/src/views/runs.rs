//! The latest run and the latest conversation of each agent.

use super::{Latest, Views, records};
use crate::error::Result;
use crate::journal::Journal;
use posthaste_core::{AgentName, Conversation, Event, Fact, Run};
use rusqlite::params;

impl Journal {
    /// Return the latest run of an agent, with its end if it has one.
    pub fn session(&mut self, agent: &AgentName) -> Result<Option<Run>> {
        self.read(|views| views.latest_run(agent))
    }

    /// Return the latest run of every agent that ever ran, in the order of their names.
    pub fn sessions(&mut self) -> Result<Vec<Run>> {
        self.read(|views| {
            let sql = "SELECT name FROM v#_last WHERE kind = ?1 ORDER BY name";
            let parse = |name: &str| AgentName::parse(name).ok();
            let agents = views.parsed(sql, [Latest::Run as u8], parse)?;
            let runs = agents.iter().map(|agent| views.latest_run(agent));
            runs.filter_map(rusqlite::Result::transpose).collect()
        })
    }

    /// Return the latest conversation of an agent, from any run.
    pub fn conversation(&mut self, agent: &AgentName) -> Result<Option<Conversation>> {
        self.read(|views| views.latest_conversation(agent))
    }
}

impl Views<'_> {
    pub(crate) fn latest_conversation(
        self,
        agent: &AgentName,
    ) -> rusqlite::Result<Option<Conversation>> {
        let fact = self.latest_fact(Latest::Conversation, agent)?;
        Ok(fact.and_then(|fact| match fact.event {
            Event::Conversation(conversation) => Some(conversation),
            _ => None,
        }))
    }

    /// Keep an end, if the core takes it for the end of the latest run.
    pub(super) fn end_run(self, seq: u64, fact: &Fact) -> rusqlite::Result<()> {
        let Some(before) = self.latest_run(&fact.agent)? else {
            return Ok(());
        };
        let mut after = before.clone();
        after.apply(fact);
        if after != before {
            self.execute(
                "UPDATE v#_last SET beside = ?3 WHERE kind = ?1 AND name = ?2",
                params![Latest::Run as u8, fact.agent.as_str(), seq],
            )?;
        }
        Ok(())
    }

    pub(crate) fn latest_run(self, agent: &AgentName) -> rusqlite::Result<Option<Run>> {
        let Some((start, end)) = self.latest(Latest::Run, agent)? else {
            return Ok(None);
        };
        let start = records::fact_at(self.conn, start)?;
        let mut run = start.as_ref().and_then(Run::begun_by);
        if let (Some(run), Some(end)) = (&mut run, end)
            && let Some(end) = records::fact_at(self.conn, end)?
        {
            run.apply(&end);
        }
        Ok(run)
    }
}
