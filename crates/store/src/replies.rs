//! Looking up what messages have to do with each other: answers that are owed, what an agent was
//! given, and how much one writes to another.

use crate::error::{Result, sqlite};
use crate::journal::Journal;
use crate::query;
use crate::views::{FAILED, Views, instant, record_at};
use jiff::Timestamp;
use posthaste_core::storm::{Given, MINUTE};
use posthaste_core::{AgentName, Evidence, Letter, owed};
use rusqlite::{Connection, OptionalExtension, params};

impl Journal {
    /// What an agent may be reminded of at `now`, the oldest first: at most as many as one
    /// reminder names.
    pub fn owed(&mut self, agent: &AgentName, now: Timestamp) -> Result<Vec<Letter>> {
        self.catch_up()?;
        let seqs = self.seqs_of(
            &format!(
                "SELECT seq FROM v#_letters INDEXED BY v#_owed
                 WHERE recipient = ?1 AND expects = 1 AND answered = 0 AND ended = 0
                   AND seen = 1 AND reminded < {} AND (expires_at IS NULL OR expires_at > ?2)
                 ORDER BY seq LIMIT {}",
                owed::REMINDERS,
                owed::AT_ONCE
            ),
            agent,
            now,
        )?;
        self.letters(&seqs)
    }

    /// The messages of a sender whose answer has not come, in the order in which they were sent.
    pub fn awaited(&mut self, sender: &AgentName, now: Timestamp) -> Result<Vec<Letter>> {
        self.catch_up()?;
        let seqs = self.seqs_of(
            "SELECT seq FROM v#_letters INDEXED BY v#_awaited
             WHERE sender = ?1 AND expects = 1 AND answered = 0 AND ended = 0
               AND (expires_at IS NULL OR expires_at > ?2) ORDER BY seq",
            sender,
            now,
        )?;
        self.letters(&seqs)
    }

    fn seqs_of(&self, sql: &str, agent: &AgentName, now: Timestamp) -> Result<Vec<u64>> {
        self.views
            .prepare(&self.conn, sql)
            .and_then(|mut look| {
                let who = params![agent.as_str(), instant(now)];
                let seqs = look.query_map(who, |row| row.get(0))?;
                seqs.collect()
            })
            .map_err(sqlite(&self.home.journal()))
    }

    /// What an agent was given last.
    pub fn given(&mut self, agent: &AgentName) -> Result<Option<Given>> {
        self.catch_up()?;
        given(&self.conn, self.views, agent).map_err(sqlite(&self.home.journal()))
    }
}

pub(crate) fn given(
    conn: &Connection,
    views: Views,
    agent: &AgentName,
) -> rusqlite::Result<Option<Given>> {
    let found: Option<(u64, u64)> = views
        .prepare(conn, "SELECT letter, step FROM v#_given WHERE name = ?1")?
        .query_row([agent.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((letter, step)) = found else {
        return Ok(None);
    };
    let letter = query::letter_at(conn, views, letter)?;
    let step = record_at(conn, step)?.and_then(|record| record.read().ok());
    Ok(letter.zip(step).map(|(letter, fact)| Given {
        message: letter.message,
        at: fact.at,
    }))
}

/// How many messages one has written to another in the last minute, as far as up to `most`.
pub(crate) fn recent(
    conn: &Connection,
    views: Views,
    (from, to): (&AgentName, &AgentName),
    now: Timestamp,
    most: u32,
) -> rusqlite::Result<u32> {
    views
        .prepare(
            conn,
            &format!(
                "SELECT count(*) FROM (SELECT 1 FROM v#_letters l INDEXED BY v#_pairs
                 JOIN facts f ON f.seq = l.seq
                 WHERE l.sender = ?1 AND l.recipient = ?2 AND l.sent_at > ?3 AND l.ended != {FAILED}
                 AND json_extract(f.data, '$.from_evidence') IS NOT '{provider}' LIMIT ?4)",
                provider = Evidence::Provider
            ),
        )?
        .query_row(
            params![from.as_str(), to.as_str(), instant(now - MINUTE), most],
            |row| row.get(0),
        )
}
