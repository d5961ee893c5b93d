//! Looking up what messages have to do with each other: answers that are owed, what an agent was
//! given, and how much one writes to another.

use crate::error::{Result, sqlite};
use crate::journal::Journal;
use crate::views::marks::{Kind, pair};
use crate::views::messages;
use crate::views::{Last, Views, instant, record_at};
use jiff::Timestamp;
use posthaste_core::storm::{Given, MINUTE, SENDER_SKEW};
use posthaste_core::{AgentName, Letter, owed};
use rusqlite::{Connection, params};

impl Journal {
    /// What an agent may be reminded of at `now`, the oldest first: at most as many as one
    /// reminder names.
    pub fn owed(&mut self, agent: &AgentName, now: Timestamp) -> Result<Vec<Letter>> {
        self.catch_up()?;
        let seqs = self.seqs_of(
            &format!(
                "SELECT l.seq FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
                 WHERE m.kind = {} AND m.whose = ?1 AND m.at = 0
                   AND l.seen = 1 AND l.reminded < {} AND (l.expires_at IS NULL OR l.expires_at > ?2)
                 ORDER BY m.seq LIMIT {}",
                Kind::Owed as u8,
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
            &format!(
                "SELECT l.seq FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
                 WHERE m.kind = {} AND m.whose = ?1 AND m.at = 0
                   AND (l.expires_at IS NULL OR l.expires_at > ?2) ORDER BY m.seq",
                Kind::Awaited as u8
            ),
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
    let Some((step, Some(letter))) = views.last(conn, Last::Given, agent.as_str())? else {
        return Ok(None);
    };
    let letter = messages::letter_at(conn, views, letter)?;
    let step = record_at(conn, step)?.and_then(|record| record.read().ok());
    Ok(letter.zip(step).map(|(letter, fact)| Given {
        message: letter.message,
        at: fact.at,
    }))
}

/// Count the messages from one agent to another in the last minute that count towards the rate limit,
/// up to `most`. Ignore messages dated well after `now`: the clock was set back since they were sent.
/// A little after is usual, because senders take the time before they wait for the writers' lock.
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
            "SELECT count(*) FROM (SELECT 1 FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at > ?3 AND at <= ?5 LIMIT ?4)",
        )?
        .query_row(
            params![
                Kind::Pair as u8,
                pair(from.as_str(), to.as_str()),
                instant(now - MINUTE),
                most,
                instant(now + SENDER_SKEW)
            ],
            |row| row.get(0),
        )
}
