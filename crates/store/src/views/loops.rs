//! The loop of each agent: keeping in a view what its facts add up to, looking it up there, and
//! the piece of work that changes it. As everywhere, the core decides, on views at head.

use crate::error::{Result, sqlite};
use crate::journal::Journal;
use crate::journal::transaction::Log;
use crate::operation::{Answer, Denied, Done};
use crate::views::Views;
use jiff::Timestamp;
use posthaste_core::build::{self, LoopOrder, LoopRefusal};
use posthaste_core::{AgentName, Fact, LoopState};
use rusqlite::{Connection, OptionalExtension, params};
use uuid::Uuid;

impl Journal {
    /// The latest loop of an agent, as its facts say; none where it never had one.
    pub fn loop_state(&mut self, agent: &AgentName) -> Result<Option<LoopState>> {
        self.catch_up()?;
        let state = self.views.loop_of(&self.conn, agent);
        state.map_err(sqlite(&self.home.journal()))
    }

    /// The latest loop of every agent that ever had one, in the order of their names.
    pub fn loops(&mut self) -> Result<Vec<LoopState>> {
        self.catch_up()?;
        let path = self.home.journal();
        let names: Vec<String> = self
            .views
            .prepare(&self.conn, "SELECT agent FROM v#_loops ORDER BY agent")
            .and_then(|mut look| look.query_map([], |row| row.get(0))?.collect())
            .map_err(sqlite(&path))?;
        let names = names.iter().filter_map(|name| AgentName::parse(name).ok());
        let loops = names.map(|name| self.views.loop_of(&self.conn, &name).transpose());
        loops
            .flatten()
            .collect::<rusqlite::Result<_>>()
            .map_err(sqlite(&path))
    }
}

impl Log<'_> {
    pub(crate) fn order_loop(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        order: &LoopOrder,
    ) -> rusqlite::Result<Answer> {
        let before = self.views.loop_of(self.conn, agent)?;
        let events = match build::decide(agent, before.as_ref(), order) {
            Ok(events) => events,
            Err(refusal) => return Ok(Err(Denied::Loop(refusal))),
        };
        let is_changed = !events.is_empty();
        for event in events {
            let id = match order {
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
            self.append_as(id, now, agent, event)?;
        }
        // Only a begin is allowed where there was no loop, and that makes one.
        let state = self.views.loop_of(self.conn, agent)?;
        let none = || Denied::Loop(LoopRefusal::NoLoop(agent.clone()));
        Ok(state.ok_or_else(none).map(|state| Done::Loop {
            state: Box::new(state),
            is_changed,
        }))
    }
}

impl Views {
    /// Folds a fact into its agent's loop, by the core's rules.
    pub(crate) fn apply_to_loop(self, conn: &Connection, fact: &Fact) -> rusqlite::Result<()> {
        let state = match self.loop_of(conn, &fact.agent)? {
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
        self.prepare(conn, "INSERT OR REPLACE INTO v#_loops VALUES (?1, ?2)")?
            .execute(params![fact.agent.as_str(), json])?;
        Ok(())
    }

    fn loop_of(self, conn: &Connection, agent: &AgentName) -> rusqlite::Result<Option<LoopState>> {
        let json: Option<String> = self
            .prepare(conn, "SELECT state FROM v#_loops WHERE agent = ?1")?
            .query_row([agent.as_str()], |row| row.get(0))
            .optional()?;
        // Only `apply_to_loop` of this version writes it; what is spoilt all the same is no loop,
        // and stops nobody.
        Ok(json.and_then(|json| serde_json::from_str(&json).ok()))
    }
}
