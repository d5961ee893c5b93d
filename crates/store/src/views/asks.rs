//! Asks: the state that the facts of each one add up to.

use super::{AMBIGUOUS_IDS_LISTED, Views, only};
use crate::error::{Error, Result};
use crate::journal::Journal;
use posthaste_core::{AgentName, AskId, AskState, Fact, IdPrefix};
use rusqlite::params;

impl Journal {
    /// Return the ask that a prefix means, open or closed.
    pub fn ask(&mut self, prefix: &IdPrefix) -> Result<AskState> {
        let found = self.read(|views| views.asks_with(prefix))?;
        let ambiguous = |prefix, fits: Vec<AskState>| Error::AmbiguousAsk {
            prefix,
            fits: fits.into_iter().map(|ask| ask.id).collect(),
        };
        only(found, prefix, Error::NoAsk, ambiguous)
    }

    /// Return the open asks of all agents, or of one, oldest first.
    pub fn open_asks(&mut self, agent: Option<&AgentName>) -> Result<Vec<AskState>> {
        self.read(|views| match agent {
            Some(agent) => views.open_asks_of(agent),
            None => {
                let sql = "SELECT state FROM v#_asks WHERE open = 1 ORDER BY seq";
                views.parsed(sql, [], ask_of)
            }
        })
    }

    /// Return the latest asks of all agents or of one, open and closed, oldest first.
    pub fn latest_asks(&mut self, agent: Option<&AgentName>, limit: u32) -> Result<Vec<AskState>> {
        let mut asks = self.read(|views| {
            let sql = "SELECT state FROM v#_asks WHERE ?1 IS NULL OR agent = ?1 ORDER BY seq DESC LIMIT ?2";
            views.parsed(sql, params![agent.map(AgentName::as_str), limit], ask_of)
        })?;
        asks.reverse();
        Ok(asks)
    }
}

impl Views<'_> {
    /// Apply a fact that opens, answers or closes an ask, by the core's rules.
    pub(super) fn apply_to_ask(self, seq: u64, fact: &Fact) -> rusqlite::Result<()> {
        if let Some(ask) = AskState::opened_by(fact) {
            return self
                .execute(
                    "INSERT OR IGNORE INTO v#_asks VALUES (?1, ?2, ?3, 1, ?4)",
                    params![seq, ask.id.to_string(), ask.agent.as_str(), json_of(&ask)?],
                )
                .map(drop);
        }
        let changed = AskState::changed_by(fact);
        let Some(mut ask) = changed.map(|id| self.ask(id)).transpose()?.flatten() else {
            return Ok(());
        };
        ask.apply(fact);
        self.execute(
            "UPDATE v#_asks SET open = ?2, state = ?3 WHERE id = ?1",
            params![ask.id.to_string(), ask.is_open(), json_of(&ask)?],
        )
        .map(drop)
    }

    pub(crate) fn ask(self, id: AskId) -> rusqlite::Result<Option<AskState>> {
        let sql = "SELECT state FROM v#_asks WHERE id = ?1";
        let json: Option<String> = self.row(sql, [id.to_string()], |row| row.get(0))?;
        Ok(json.as_deref().and_then(ask_of))
    }

    pub(crate) fn open_asks_of(self, agent: &AgentName) -> rusqlite::Result<Vec<AskState>> {
        let sql = "SELECT state FROM v#_asks WHERE open = 1 AND agent = ?1 ORDER BY seq";
        self.parsed(sql, [agent.as_str()], ask_of)
    }

    fn asks_with(self, prefix: &IdPrefix) -> rusqlite::Result<Vec<AskState>> {
        let sql = format!(
            "SELECT state FROM v#_asks WHERE id >= ?1 AND id < ?2 ORDER BY id LIMIT {AMBIGUOUS_IDS_LISTED}"
        );
        self.parsed(&sql, [prefix.as_str(), &prefix.upper_bound()], ask_of)
    }
}

fn json_of(ask: &AskState) -> rusqlite::Result<String> {
    serde_json::to_string(ask)
        .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// Parse a state. Only this version writes this table; a damaged row counts as absent.
fn ask_of(json: &str) -> Option<AskState> {
    serde_json::from_str(json).ok()
}
