//! The loop of each agent: keeping its facts where they are found, folding them into what it is,
//! and the piece of work that changes it. As everywhere, the core decides, on views at head.
//!
//! A loop's facts are few (two an iteration), so its state is not kept but replayed from its last
//! base, by the core's own `apply`.

use crate::error::{Result, sqlite};
use crate::job::{Answer, Denied, Done};
use crate::journal::Journal;
use crate::query::PAGE;
use crate::views::Views;
use crate::work::Log;
use crate::worklist::fact_at;
use jiff::Timestamp;
use posthaste_core::build::{self, LoopFact, LoopOrder};
use posthaste_core::{AgentName, Fact, LoopState};
use rusqlite::{Connection, params};
use uuid::Uuid;

impl Journal {
    /// The latest loop of an agent, as its facts say; none where it never had one.
    pub fn loop_state(&mut self, agent: &AgentName) -> Result<Option<LoopState>> {
        self.catch_up()?;
        let path = self.home.journal();
        let mut found = None;
        let mut last = 0;
        loop {
            // No look is longer than a page; a fact that comes meanwhile comes last.
            let look = || -> rusqlite::Result<Vec<(u64, Option<Fact>)>> {
                let tx = self.conn.unchecked_transaction()?;
                self.views.loop_facts(&tx, agent, last, PAGE)
            };
            let page = look().map_err(sqlite(&path))?;
            for (seq, fact) in &page {
                last = *seq;
                fold(&mut found, fact.as_ref());
            }
            if page.len() < PAGE as usize {
                return Ok(found);
            }
        }
    }

    /// The latest loop of every agent that ever had one, in the order of their names.
    pub fn loops(&mut self) -> Result<Vec<LoopState>> {
        self.catch_up()?;
        let path = self.home.journal();
        let names: Vec<String> = self
            .views
            .prepare(
                &self.conn,
                "SELECT DISTINCT agent FROM v#_loops WHERE base = 1 ORDER BY agent",
            )
            .and_then(|mut look| look.query_map([], |row| row.get(0))?.collect())
            .map_err(sqlite(&path))?;
        let mut all = Vec::with_capacity(names.len());
        for name in names.iter().filter_map(|name| AgentName::parse(name).ok()) {
            all.extend(self.loop_state(&name)?);
        }
        Ok(all)
    }
}

impl Log<'_> {
    pub(crate) fn order_loop(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        order: &LoopOrder,
    ) -> rusqlite::Result<Answer> {
        let mut state = None;
        let facts = self.views.loop_facts(self.conn, agent, 0, u32::MAX)?;
        for (_, fact) in &facts {
            fold(&mut state, fact.as_ref());
        }
        let events = match build::decide(agent, state.as_ref(), order) {
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
            let fact = self.append_as(id, now, agent, event)?;
            fold(&mut state, Some(&fact));
        }
        // Only a begin is allowed where there was no loop, and that makes one.
        let none = || Denied::Loop(build::LoopRefusal::NoLoop(agent.clone()));
        Ok(state.ok_or_else(none).map(|state| Done::Loop {
            state: Box::new(state),
            is_changed,
        }))
    }
}

/// Folds in one more fact, the first of which must begin a loop.
fn fold(state: &mut Option<LoopState>, fact: Option<&Fact>) {
    match (state.as_mut(), fact) {
        (Some(state), Some(fact)) => state.apply(fact),
        (None, Some(fact)) => *state = LoopState::begun_by(fact),
        (_, None) => {}
    }
}

impl Views {
    pub(crate) fn keep_loop(
        self,
        conn: &Connection,
        seq: u64,
        fact: &Fact,
        happened: &LoopFact,
    ) -> rusqlite::Result<()> {
        // A begin that came from elsewhere, without what was before it, is all that there is.
        let begins = matches!(happened, LoopFact::Began(_));
        let is_base =
            happened.is_base() || (begins && self.loop_base(conn, &fact.agent)?.is_none());
        self.keep_of_loop(conn, seq, fact, is_base)
    }

    /// Keeps a fact among those of its agent's loops.
    pub(crate) fn keep_of_loop(
        self,
        conn: &Connection,
        seq: u64,
        fact: &Fact,
        is_base: bool,
    ) -> rusqlite::Result<()> {
        self.prepare(conn, "INSERT OR IGNORE INTO v#_loops VALUES (?1, ?2, ?3)")?
            .execute(params![fact.agent.as_str(), seq, is_base])?;
        Ok(())
    }

    fn loop_base(self, conn: &Connection, agent: &AgentName) -> rusqlite::Result<Option<u64>> {
        self.prepare(
            conn,
            "SELECT max(seq) FROM v#_loops WHERE agent = ?1 AND base = 1",
        )?
        .query_row([agent.as_str()], |row| row.get(0))
    }

    /// The facts of an agent's latest loop after `seq`, at most `limit`; all that there are where
    /// it has no base.
    fn loop_facts(
        self,
        conn: &Connection,
        agent: &AgentName,
        seq: u64,
        limit: u32,
    ) -> rusqlite::Result<Vec<(u64, Option<Fact>)>> {
        let base = self.loop_base(conn, agent)?;
        let from = base.unwrap_or(0).max(seq + 1);
        let seqs: Vec<u64> = self
            .prepare(
                conn,
                "SELECT seq FROM v#_loops WHERE agent = ?1 AND seq >= ?2 ORDER BY seq LIMIT ?3",
            )?
            .query_map(params![agent.as_str(), from, limit], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let facts = seqs.into_iter().map(|seq| Ok((seq, fact_at(conn, seq)?)));
        facts.collect()
    }
}
