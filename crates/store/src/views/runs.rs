//! The latest run of each agent: keeping it in a view, and looking it up there.

use crate::error::{Result, sqlite};
use crate::journal::Journal;
use crate::views::{Last, Views, record_at};
use posthaste_core::{AgentName, Conversation, Event, Fact, Run};
use rusqlite::{Connection, params};

impl Journal {
    /// The latest run of an agent, with its end if it has one.
    pub fn session(&mut self, agent: &AgentName) -> Result<Option<Run>> {
        self.catch_up()?;
        let run = self.views.latest_run(&self.conn, agent);
        run.map_err(sqlite(&self.home.journal()))
    }

    /// The latest run of every agent that ever ran, in the order of their names.
    pub fn sessions(&mut self) -> Result<Vec<Run>> {
        self.catch_up()?;
        let path = self.home.journal();
        let names: Vec<String> = self
            .views
            .prepare(
                &self.conn,
                "SELECT name FROM v#_last WHERE kind = ?1 ORDER BY name",
            )
            .and_then(|mut look| {
                let names = look.query_map([Last::Run as u8], |row| row.get(0))?;
                names.collect()
            })
            .map_err(sqlite(&path))?;
        let names = names.iter().filter_map(|name| AgentName::parse(name).ok());
        let runs = names.map(|name| self.views.latest_run(&self.conn, &name).transpose());
        runs.flatten()
            .collect::<rusqlite::Result<_>>()
            .map_err(sqlite(&path))
    }
}

impl Journal {
    /// Return the latest conversation of an agent, from any run.
    pub fn conversation(&mut self, agent: &AgentName) -> Result<Option<Conversation>> {
        self.catch_up()?;
        let latest = self.views.latest_conversation(&self.conn, agent);
        latest.map_err(sqlite(&self.home.journal()))
    }
}

impl Views {
    pub(crate) fn latest_conversation(
        self,
        conn: &Connection,
        agent: &AgentName,
    ) -> rusqlite::Result<Option<Conversation>> {
        let Some((seq, _)) = self.last(conn, Last::Conversation, agent.as_str())? else {
            return Ok(None);
        };
        let fact = record_at(conn, seq)?.and_then(|record| record.read().ok());
        Ok(fact.and_then(|fact| match fact.event {
            Event::Conversation(conversation) => Some(conversation),
            _ => None,
        }))
    }

    pub(crate) fn start_run(
        self,
        conn: &Connection,
        seq: u64,
        fact: &Fact,
    ) -> rusqlite::Result<()> {
        self.set_last(conn, Last::Run, fact.agent.as_str(), seq, None)
    }

    /// Keeps an end, where the core takes it for that of the latest run.
    pub(crate) fn end_run(self, conn: &Connection, seq: u64, fact: &Fact) -> rusqlite::Result<()> {
        let Some(before) = self.latest_run(conn, &fact.agent)? else {
            return Ok(());
        };
        let mut after = before.clone();
        after.apply(fact);
        if after != before {
            self.prepare(
                conn,
                "UPDATE v#_last SET beside = ?3 WHERE kind = ?1 AND name = ?2",
            )?
            .execute(params![Last::Run as u8, fact.agent.as_str(), seq])?;
        }
        Ok(())
    }

    pub(crate) fn latest_run(
        self,
        conn: &Connection,
        agent: &AgentName,
    ) -> rusqlite::Result<Option<Run>> {
        let Some((started, ended)) = self.last(conn, Last::Run, agent.as_str())? else {
            return Ok(None);
        };
        let fact_at = |seq| -> rusqlite::Result<Option<Fact>> {
            Ok(record_at(conn, seq)?.and_then(|record| record.read().ok()))
        };
        let mut run = fact_at(started)?.as_ref().and_then(Run::begun_by);
        if let (Some(run), Some(ended)) = (&mut run, ended)
            && let Some(fact) = fact_at(ended)?
        {
            run.apply(&fact);
        }
        Ok(run)
    }
}
