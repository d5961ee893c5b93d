//! Facts as they are stored. Reads the `facts` table alone, never a view.

use crate::error::{Result, sqlite};
use crate::journal::Journal;
use crate::views::PAGE_ROWS;
use posthaste_core::{Fact, Record};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// Data of records after which a page ends, however few they are.
const PAGE_BYTES: usize = 8 << 20;

impl Journal {
    /// Return the facts after `seq`, one page at most.
    pub fn facts_after(&self, seq: u64) -> Result<Vec<Record>> {
        after(&self.conn, seq, PAGE_ROWS).map_err(sqlite(&self.home.journal()))
    }

    /// Return the seq of the last fact.
    pub fn head(&self) -> Result<u64> {
        self.conn
            .prepare_cached("SELECT coalesce(max(seq), 0) FROM facts")
            .and_then(|mut statement| statement.query_row([], |row| row.get(0)))
            .map_err(sqlite(&self.home.journal()))
    }
}

/// Read `seq, origin, id, at, agent, kind, data`.
pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<Record> {
    Ok(Record {
        seq: row.get(0)?,
        origin: row.get(1)?,
        id: row.get(2)?,
        at: row.get(3)?,
        agent: row.get(4)?,
        kind: row.get(5)?,
        data: row.get(6)?,
    })
}

/// Return at most `limit` records after `seq`. The result is empty only if there are none.
pub(super) fn after(conn: &Connection, seq: u64, limit: u32) -> rusqlite::Result<Vec<Record>> {
    let mut statement = conn.prepare_cached(
        "SELECT seq, origin, id, at, agent, kind, data FROM facts WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let mut rows = statement.query(params![seq, limit])?;
    let mut records = Vec::new();
    let mut bytes = 0;
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        let record = read(row)?;
        bytes += record.data.len();
        records.push(record);
    }
    Ok(records)
}

/// Return the fact at `seq`, if this version can read it.
pub(super) fn fact_at(conn: &Connection, seq: u64) -> rusqlite::Result<Option<Fact>> {
    let record = conn
        .prepare_cached("SELECT seq, origin, id, at, agent, kind, data FROM facts WHERE seq = ?1")?
        .query_row([seq], read)
        .optional()?;
    Ok(record.and_then(|record| record.read().ok()))
}

pub(crate) fn with_id(conn: &Connection, id: &str) -> rusqlite::Result<Option<Record>> {
    conn.prepare_cached("SELECT seq, origin, id, at, agent, kind, data FROM facts WHERE id = ?1")?
        .query_row([id], read)
        .optional()
}
