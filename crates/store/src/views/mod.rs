//! Views: tables derived from the facts, for look-ups by index.
//!
//! Applies every fact by the core's own rules, and only inside a writer's transaction. Never
//! decides anything, and can be thrown away and derived again.

mod asks;
mod board;
pub(crate) mod counts;
pub(crate) mod inbox;
mod loops;
pub(crate) mod marks;
mod messages;
pub(crate) mod pending;
pub(crate) mod records;
mod replies;
mod runs;
pub(crate) mod schema;
mod tasks;

use crate::error::{Error, Result, sqlite};
use crate::journal::Journal;
use marks::{Mark, MarkKind};
use posthaste_core::ask::AskFact;
use posthaste_core::{AgentName, Event, Fact, IdPrefix, Record};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Params, Row, params};
use schema::versioned;

/// Rows that one read transaction returns at most.
pub(crate) const PAGE_ROWS: u32 = 1_000;
/// Messages, threads or tasks that the error for an ambiguous prefix lists.
const AMBIGUOUS_IDS_LISTED: u32 = 8;

/// Kinds of facts whose latest one is kept for each agent, in `v#_last`.
#[derive(Debug, Clone, Copy)]
enum Latest {
    /// The step that showed a message to the agent, and beside it the message.
    Shown = 1,
    /// The start of a run, and beside it the end.
    Run = 2,
    Completion = 3,
    Conversation = 4,
}

/// One version's views, on a connection.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Views<'c> {
    pub(crate) conn: &'c Connection,
    pub(crate) version: u32,
}

impl Journal {
    /// Bring the views to head, then read from them.
    pub(crate) fn read<T>(
        &mut self,
        read: impl FnOnce(Views<'_>) -> rusqlite::Result<T>,
    ) -> Result<T> {
        self.catch_up()?;
        read(self.views()).map_err(sqlite(&self.home.journal()))
    }

    /// Read one value for each seq. Every page of them is read at one moment.
    fn in_pages<'c, T>(
        &'c self,
        seqs: &[u64],
        read: impl Fn(Views<'c>, u64) -> rusqlite::Result<Option<T>>,
    ) -> Result<Vec<T>> {
        let read_page = |page: &[u64]| -> rusqlite::Result<Vec<Option<T>>> {
            let _tx = self.conn.unchecked_transaction()?;
            page.iter().map(|seq| read(self.views(), *seq)).collect()
        };
        let mut all = Vec::with_capacity(seqs.len());
        for page in seqs.chunks(PAGE_ROWS as usize) {
            let page = read_page(page).map_err(sqlite(&self.home.journal()))?;
            all.extend(page.into_iter().flatten());
        }
        Ok(all)
    }
}

impl<'c> Views<'c> {
    /// Prepare a statement in which `v#` stands for the version.
    pub(crate) fn prepare(self, sql: &str) -> rusqlite::Result<CachedStatement<'c>> {
        self.conn.prepare_cached(&versioned(sql, self.version))
    }

    fn execute(self, sql: &str, params: impl Params) -> rusqlite::Result<usize> {
        self.prepare(sql)?.execute(params)
    }

    /// Return the first row, if any.
    fn row<T>(
        self,
        sql: &str,
        params: impl Params,
        read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Option<T>> {
        self.prepare(sql)?.query_row(params, read).optional()
    }

    fn rows<T>(
        self,
        sql: &str,
        params: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> rusqlite::Result<Vec<T>> {
        self.prepare(sql)?.query_map(params, read)?.collect()
    }

    /// Return the first column of all rows, which holds seqs.
    fn seqs(self, sql: &str, params: impl Params) -> rusqlite::Result<Vec<u64>> {
        self.rows(sql, params, |row| row.get(0))
    }

    /// Return the first column of all rows, parsed. A value that cannot be parsed is left out.
    fn parsed<T>(
        self,
        sql: &str,
        params: impl Params,
        parse: impl Fn(&str) -> Option<T>,
    ) -> rusqlite::Result<Vec<T>> {
        let texts: Vec<String> = self.rows(sql, params, |row| row.get(0))?;
        Ok(texts.iter().filter_map(|text| parse(text)).collect())
    }

    /// Apply up to `limit` facts after `applied`, and return the seq of the last one.
    pub(crate) fn catch_up(self, applied: u64, limit: u32) -> rusqlite::Result<u64> {
        let records = records::after(self.conn, applied, limit)?;
        for record in &records {
            self.apply_record(record)?;
        }
        let last = records.last().map_or(applied, |record| record.seq);
        self.count_facts(last - applied)?;
        Ok(last)
    }

    pub(crate) fn apply_record(self, record: &Record) -> rusqlite::Result<()> {
        match record.read() {
            Ok(fact) => self.apply(record.seq, &fact),
            Err(unknown) => self.mark(
                record.seq,
                &Mark::new(MarkKind::Unknown, unknown.to_string()),
            ),
        }
    }

    pub(crate) fn apply(self, seq: u64, fact: &Fact) -> rusqlite::Result<()> {
        let agent = fact.agent.as_str();
        match &fact.event {
            Event::Message(_) => {
                self.add_message(seq, fact)?;
                self.apply_to_ask(seq, fact)
            }
            Event::Ask(AskFact::Seen(seen)) => {
                self.mark(seq, &Mark::new(MarkKind::Seen, seen.what.to_string()))
            }
            Event::Ask(_) => self.apply_to_ask(seq, fact),
            Event::Progress(progress) => self.apply_progress(seq, progress),
            Event::Started(_) => self.set_latest(Latest::Run, agent, seq, None),
            Event::Ended(_) => self.end_run(seq, fact),
            Event::Conversation(_) => self.set_latest(Latest::Conversation, agent, seq, None),
            Event::Work(deed) => self.apply_work(seq, fact, deed),
            Event::Loop(_) => self.apply_to_loop(fact),
        }
    }

    fn set_latest(
        self,
        latest: Latest,
        agent: &str,
        seq: u64,
        beside: Option<u64>,
    ) -> rusqlite::Result<()> {
        self.execute(
            "INSERT OR REPLACE INTO v#_last VALUES (?1, ?2, ?3, ?4)",
            params![latest as u8, agent, seq, beside],
        )
        .map(drop)
    }

    /// Return the latest fact of a kind that an agent has, and the fact beside it.
    fn latest(
        self,
        latest: Latest,
        agent: &AgentName,
    ) -> rusqlite::Result<Option<(u64, Option<u64>)>> {
        self.row(
            "SELECT seq, beside FROM v#_last WHERE kind = ?1 AND name = ?2",
            params![latest as u8, agent.as_str()],
            |row| Ok((row.get(0)?, row.get(1)?)),
        )
    }

    /// Return the latest fact of a kind that an agent has.
    fn latest_fact(self, latest: Latest, agent: &AgentName) -> rusqlite::Result<Option<Fact>> {
        match self.latest(latest, agent)? {
            Some((seq, _)) => records::fact_at(self.conn, seq),
            None => Ok(None),
        }
    }
}

/// Return the one value that a prefix means.
fn only<T>(
    found: Vec<T>,
    prefix: &IdPrefix,
    not_found: fn(IdPrefix) -> Error,
    ambiguous: impl FnOnce(IdPrefix, Vec<T>) -> Error,
) -> Result<T> {
    match <[T; 1]>::try_from(found) {
        Ok([value]) => Ok(value),
        Err(none) if none.is_empty() => Err(not_found(prefix.clone())),
        Err(several) => Err(ambiguous(prefix.clone(), several)),
    }
}
