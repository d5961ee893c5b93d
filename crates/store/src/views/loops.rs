//! The latest loop of each agent: the state that its facts add up to.

use super::Views;
use crate::error::Result;
use crate::journal::Journal;
use posthaste_core::{AgentName, Fact, LoopState};
use rusqlite::params;

impl Journal {
    /// Return the latest loop of an agent, if it ever had one.
    pub fn loop_state(&mut self, agent: &AgentName) -> Result<Option<LoopState>> {
        self.read(|views| views.loop_of(agent))
    }

    /// Return the latest loop of every agent that ever had one, in the order of their names.
    pub fn loops(&mut self) -> Result<Vec<LoopState>> {
        self.read(|views| {
            let sql = "SELECT agent FROM v#_loops ORDER BY agent";
            let agents = views.parsed(sql, [], |name| AgentName::parse(name).ok())?;
            let loops = agents.iter().map(|agent| views.loop_of(agent));
            loops.filter_map(rusqlite::Result::transpose).collect()
        })
    }
}

impl Views<'_> {
    /// Apply a fact to its agent's loop, by the core's rules.
    pub(super) fn apply_to_loop(self, fact: &Fact) -> rusqlite::Result<()> {
        let state = match self.loop_of(&fact.agent)? {
            Some(mut state) => {
                state.apply(fact);
                Some(state)
            }
            None => LoopState::begun_by(fact),
        };
        let Some(state) = state else {
            return Ok(());
        };
        let json = serde_json::to_string(&state)
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        self.execute(
            "INSERT OR REPLACE INTO v#_loops VALUES (?1, ?2)",
            params![fact.agent.as_str(), json],
        )
        .map(drop)
    }

    pub(crate) fn loop_of(self, agent: &AgentName) -> rusqlite::Result<Option<LoopState>> {
        let json: Option<String> = self.row(
            "SELECT state FROM v#_loops WHERE agent = ?1",
            [agent.as_str()],
            |row| row.get(0),
        )?;
        // Only `apply_to_loop` of this version writes it. A damaged state counts as no loop, so
        // that it does not keep the agent's mail from being read.
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
    }
}
