//! Reading the views: index look-ups, whatever the size of the journal.
//!
//! Rows come in stretches of at most a thousand, each a read transaction of its own, so that no
//! reader holds the WAL back for long.

use crate::error::{Error, Result, sqlite};
use crate::journal::Journal;
use crate::views::marks::Kind;
use crate::views::{DELETED, OFFERING, Views, instant, record_at, record_of, standing_at};
use jiff::Timestamp;
use posthaste_core::inject;
use posthaste_core::receipt::End;
use posthaste_core::{AgentName, Body, IdPrefix, Letter, MessageId, Priority, Record};
use rusqlite::{Connection, OptionalExtension, Row, params};

/// How many rows one read transaction may take.
pub(crate) const PAGE: u32 = 1_000;
/// How many messages or tasks an ambiguous prefix names.
pub(crate) const NAMED: u32 = 8;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub total: u64,
    pub unread: u64,
}

/// What waits to be put before an agent: unread, due, and shown or offered by no route.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The first of them, in delivery order: at most [`Pending::MOST`], and fewer where they are
    /// long, but one if there is one.
    pub due: Vec<Letter>,
    /// When the next comes due, is promoted, or runs out of time.
    pub next: Option<Timestamp>,
    /// How many there are in all.
    pub queued: u64,
}

impl Pending {
    pub const MOST: usize = 64;
}

/// How many bytes of bodies are read at once.
const BODIES: u64 = 256 << 10;

/// Which part of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    Unread,
    All,
}

impl Journal {
    /// The message that a prefix means; deleted ones are not found.
    pub fn find(&mut self, prefix: &IdPrefix) -> Result<Letter> {
        self.catch_up()?;
        let path = self.home.journal();
        let fits = find(&self.conn, self.views, prefix).map_err(sqlite(&path))?;
        match fits.as_slice() {
            [] => Err(Error::NotFound(prefix.clone())),
            [id] => letter(&self.conn, self.views, *id)
                .map_err(sqlite(&path))?
                .ok_or_else(|| Error::NotFound(prefix.clone())),
            several => Err(Error::Ambiguous {
                prefix: prefix.clone(),
                fits: several.to_vec(),
            }),
        }
    }

    pub fn letter(&mut self, id: MessageId) -> Result<Option<Letter>> {
        self.catch_up()?;
        letter(&self.conn, self.views, id).map_err(sqlite(&self.home.journal()))
    }

    /// The mail of one agent, in the order in which it came.
    pub fn inbox(
        &mut self,
        agent: &AgentName,
        listing: Listing,
        now: Timestamp,
    ) -> Result<Vec<Letter>> {
        self.catch_up()?;
        let path = self.home.journal();
        let mut seqs = Vec::new();
        for read in match listing {
            Listing::Unread => &[false][..],
            Listing::All => &[false, true][..],
        } {
            seqs.extend(mailbox(&self.conn, self.views, agent, *read).map_err(sqlite(&path))?);
        }
        if listing == Listing::All {
            seqs.extend(failed(&self.conn, self.views, agent).map_err(sqlite(&path))?);
        }
        seqs.sort_unstable();
        // One that was marked between two looks is in both.
        seqs.dedup();
        let letters = self.letters(&seqs)?;
        Ok(match listing {
            Listing::Unread => letters.into_iter().filter(|l| l.is_waiting(now)).collect(),
            Listing::All => {
                let is_listed = |l: &Letter| l.is_in_inbox(now) || l.has_failed();
                letters.into_iter().filter(is_listed).collect()
            }
        })
    }

    /// All messages of a thread, archived ones too, in the order in which they came.
    pub fn thread(&mut self, thread: MessageId) -> Result<Vec<Letter>> {
        self.catch_up()?;
        let seqs = thread_of(&self.conn, self.views, thread);
        let mut letters = self.letters(&seqs.map_err(sqlite(&self.home.journal()))?)?;
        letters.retain(|letter| {
            let is_deleted = letter.standing.end == Some(End::Deleted);
            letter.message.envelope.thread_id == thread && !is_deleted
        });
        Ok(letters)
    }

    /// The letters under these numbers, each stretch of them as of one moment.
    pub(crate) fn letters(&self, seqs: &[u64]) -> Result<Vec<Letter>> {
        let path = self.home.journal();
        let mut letters = Vec::with_capacity(seqs.len());
        for stretch in seqs.chunks(PAGE as usize) {
            let look = || -> rusqlite::Result<Vec<_>> {
                let tx = self.conn.unchecked_transaction()?;
                let found = stretch.iter().map(|seq| letter_at(&tx, self.views, *seq));
                found.collect()
            };
            letters.extend(look().map_err(sqlite(&path))?.into_iter().flatten());
        }
        Ok(letters)
    }

    pub fn count(&mut self, agent: &AgentName, now: Timestamp) -> Result<Count> {
        self.catch_up()?;
        count(&self.conn, self.views, agent, now).map_err(sqlite(&self.home.journal()))
    }

    /// Whether `check --inject` would have anything to show.
    pub fn has_not_shown(&mut self, agent: &AgentName, now: Timestamp) -> Result<bool> {
        self.catch_up()?;
        let found = pending(&self.conn, self.views, agent, now, 1);
        let left = injecting(&self.conn, self.views, agent);
        let path = self.home.journal();
        let found = found.map_err(sqlite(&path))?;
        Ok(!found.is_empty() || !left.map_err(sqlite(&path))?.is_empty())
    }

    /// Return whether a hook is printing mail of this agent, or was killed while printing.
    pub fn is_injecting(&mut self, agent: &AgentName) -> Result<bool> {
        self.catch_up()?;
        let under_way = injecting(&self.conn, self.views, agent);
        Ok(!under_way.map_err(sqlite(&self.home.journal()))?.is_empty())
    }

    /// Return the messages whose proof is awaited.
    pub fn unproven(&mut self, agent: &AgentName) -> Result<Vec<Letter>> {
        self.catch_up()?;
        let look = || -> rusqlite::Result<Vec<Letter>> {
            let ids = marked(&self.conn, self.views, Kind::Unproven, agent)?;
            let letters = ids.iter().map(|id| letter(&self.conn, self.views, *id));
            letters.filter_map(rusqlite::Result::transpose).collect()
        };
        look().map_err(sqlite(&self.home.journal()))
    }

    /// What waits to be put before an agent, and when that changes by the clock alone.
    pub fn pending(&mut self, agent: &AgentName, now: Timestamp) -> Result<Pending> {
        self.catch_up()?;
        let look = || -> rusqlite::Result<_> {
            let tx = self.conn.unchecked_transaction()?;
            Ok(Pending {
                due: pending(&tx, self.views, agent, now, Pending::MOST)?,
                next: next_change(&tx, self.views, agent, now)?,
                queued: tally(&tx, self.views, agent, now)?.pending,
            })
        };
        look().map_err(sqlite(&self.home.journal()))
    }

    /// Every agent that ever had mail.
    pub fn agents(&mut self) -> Result<Vec<AgentName>> {
        self.catch_up()?;
        let names: Vec<String> = self
            .views
            .prepare(
                &self.conn,
                "SELECT name FROM v#_counts WHERE name > '' ORDER BY name",
            )
            .and_then(|mut look| look.query_map([], |row| row.get(0))?.collect())
            .map_err(sqlite(&self.home.journal()))?;
        Ok(names
            .iter()
            .filter_map(|name| AgentName::parse(name).ok())
            .collect())
    }

    /// The facts after `seq`, at most a page of them.
    pub fn facts_after(&self, seq: u64) -> Result<Vec<Record>> {
        crate::views::records_after(&self.conn, seq, PAGE).map_err(sqlite(&self.home.journal()))
    }

    /// The number of the last fact.
    pub fn head(&self) -> Result<u64> {
        self.conn
            .prepare_cached("SELECT coalesce(max(seq), 0) FROM facts")
            .and_then(|mut look| look.query_row([], |row| row.get(0)))
            .map_err(sqlite(&self.home.journal()))
    }
}

fn find(conn: &Connection, views: Views, prefix: &IdPrefix) -> rusqlite::Result<Vec<MessageId>> {
    let mut look = views.prepare(
        conn,
        &format!(
            "SELECT f.id FROM facts f JOIN v#_letters l ON l.seq = f.seq
             WHERE f.id >= ?1 AND f.id < ?2 AND l.ended != {DELETED} ORDER BY f.id LIMIT {NAMED}"
        ),
    )?;
    let ids = look.query_map([prefix.as_str(), &prefix.upper_bound()], |row| {
        row.get::<_, String>(0)
    })?;
    ids.filter_map(|id| id.map(|id| id.parse().ok()).transpose())
        .collect()
}

pub(crate) fn letter(
    conn: &Connection,
    views: Views,
    id: MessageId,
) -> rusqlite::Result<Option<Letter>> {
    match views.letter_of(conn, id)? {
        Some(seq) => letter_at(conn, views, seq),
        None => Ok(None),
    }
}

pub(crate) fn letter_at(
    conn: &Connection,
    views: Views,
    seq: u64,
) -> rusqlite::Result<Option<Letter>> {
    let found = views
        .prepare(
            conn,
            "SELECT f.seq, f.origin, f.id, f.at, f.agent, f.kind, f.data, l.proven, l.read, l.shown, l.seen, l.cut, l.ended, l.answered, l.reminded
             FROM v#_letters l JOIN facts f ON f.seq = l.seq WHERE l.seq = ?1",
        )?
        .query_row([seq], |row| Ok((record_of(row)?, standing_at(row, 7)?)))
        .optional()?;
    let Some((record, standing)) = found else {
        return Ok(None);
    };
    let Ok(fact) = record.read() else {
        return Ok(None);
    };
    let Some(message) = fact.message() else {
        return Ok(None);
    };
    let mut receipts: Vec<_> = fact.receipt().into_iter().collect();
    for step in views.steps(conn, &record.id)? {
        let step = record_at(conn, step)?.and_then(|record| record.read().ok());
        receipts.extend(step.and_then(|fact| fact.receipt()));
    }
    Ok(Some(Letter {
        message,
        standing,
        receipts,
    }))
}

/// The seqs of a thread's messages, in order. The one that it is named after has no mark, and may
/// belong to another.
fn thread_of(conn: &Connection, views: Views, thread: MessageId) -> rusqlite::Result<Vec<u64>> {
    let mut seqs = views.marked(conn, Kind::Thread, &thread.to_string())?;
    seqs.extend(views.letter_of(conn, thread)?);
    seqs.sort_unstable();
    seqs.dedup();
    Ok(seqs)
}

/// The seqs of an inbox's read or unread half, stretch by stretch.
fn mailbox(
    conn: &Connection,
    views: Views,
    agent: &AgentName,
    read: bool,
) -> rusqlite::Result<Vec<u64>> {
    let mut seqs = Vec::new();
    // Before the first: no priority is 0.
    let mut last = (0u8, 0u8, 0i64);
    loop {
        let mut look = views.prepare(
            conn,
            &format!(
                "SELECT handed, priority, place, seq FROM v#_letters
                 WHERE recipient = ?1 AND read = ?2 AND ended = 0 AND (handed, priority, place) > (?3, ?4, ?5)
                 ORDER BY handed, priority, place LIMIT {PAGE}"
            ),
        )?;
        let page = look
            .query_map(
                params![agent.as_str(), read, last.0, last.1, last.2],
                |row| {
                    let place = (row.get(0)?, row.get(1)?, row.get(2)?);
                    Ok((place, row.get::<_, u64>(3)?))
                },
            )?
            .collect::<rusqlite::Result<Vec<_>>>()?;
        seqs.extend(page.iter().map(|(_, seq)| *seq));
        match page.last() {
            Some((end, _)) if page.len() == PAGE as usize => last = *end,
            _ => return Ok(seqs),
        }
    }
}

/// The seqs of what failed to reach an inbox, at most the last thousand.
fn failed(conn: &Connection, views: Views, agent: &AgentName) -> rusqlite::Result<Vec<u64>> {
    let mut look = views.prepare(
        conn,
        &format!(
            "SELECT seq FROM v#_marks WHERE kind = {} AND whose = ?1 AND at = 0
             ORDER BY seq DESC LIMIT {PAGE}",
            Kind::Failed as u8
        ),
    )?;
    let seqs = look.query_map([agent.as_str()], |row| row.get(0))?;
    seqs.collect()
}

/// The most urgent messages that wait and that no route has put before their agent yet.
pub(crate) fn pending(
    conn: &Connection,
    views: Views,
    agent: &AgentName,
    now: Timestamp,
    limit: usize,
) -> rusqlite::Result<Vec<Letter>> {
    let open = "read = 0 AND ended = 0 AND handed = 0
         AND (not_before IS NULL OR not_before <= ?2)
         AND (expires_at IS NULL OR expires_at > ?2 OR seen = 1)";
    let ask = |sql: String| -> rusqlite::Result<Vec<(u8, i64, u64)>> {
        let mut look = views.prepare(conn, &sql)?;
        let rows = look.query_map(params![agent.as_str(), instant(now), limit as u64], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        rows.collect()
    };
    let in_order = ask(format!(
        "SELECT priority, place, seq FROM v#_letters INDEXED BY v#_mailbox
         WHERE recipient = ?1 AND {open} AND (deadline IS NULL OR deadline > ?2)
         ORDER BY priority, place LIMIT ?3"
    ))?;
    // What is promoted stands among the normal ones, by its age.
    let promoted = ask(format!(
        "SELECT {}, l.seq, l.seq FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
         WHERE m.kind = {} AND m.whose = ?1 AND m.at <= ?2 AND {open} ORDER BY l.seq LIMIT ?3",
        Priority::Normal.rank(),
        Kind::Deadline as u8
    ))?;
    let mut all = [in_order, promoted].concat();
    all.sort_unstable();
    let seqs = all.into_iter().map(|(_, _, seq)| seq).take(limit);
    let mut letters = Vec::new();
    let mut bytes = 0;
    for seq in seqs {
        if bytes >= BODIES {
            break;
        }
        let letter = letter_at(conn, views, seq)?;
        bytes += letter.as_ref().map_or(0, in_memory);
        letters.extend(letter);
    }
    Ok(letters)
}

fn in_memory(letter: &Letter) -> u64 {
    match &letter.message.envelope.body {
        Body::Inline(text) => text.len() as u64,
        Body::Filed { .. } => 0,
    }
}

/// When the next message that waits comes due or is promoted, or one that nobody has seen runs out
/// of time.
fn next_change(
    conn: &Connection,
    views: Views,
    agent: &AgentName,
    now: Timestamp,
) -> rusqlite::Result<Option<Timestamp>> {
    let ask = |sql: &str| -> rusqlite::Result<Option<i64>> {
        views
            .prepare(conn, sql)?
            .query_row(params![agent.as_str(), instant(now)], |row| row.get(0))
            .optional()
    };
    let first = |kind: Kind, also: &str| {
        ask(&format!(
            "SELECT m.at FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
             WHERE m.kind = {} AND m.whose = ?1 AND m.at > ?2 AND {also} ORDER BY m.at LIMIT 1",
            kind as u8
        ))
    };
    let waits = "l.read = 0 AND l.handed = 0";
    let due = first(Kind::NotDue, waits)?;
    let gone = first(Kind::Expiring, &format!("l.proven != {OFFERING}"))?;
    let late = first(Kind::Deadline, waits)?;
    let next = due.into_iter().chain(gone).chain(late).min();
    Ok(next.and_then(|nanos| Timestamp::from_nanosecond(nanos.into()).ok()))
}

pub(crate) fn count(
    conn: &Connection,
    views: Views,
    agent: &AgentName,
    now: Timestamp,
) -> rusqlite::Result<Count> {
    let Tally { total, unread, .. } = tally(conn, views, agent, now)?;
    Ok(Count { total, unread })
}

/// How many messages lie in an inbox, of these unread, of these still to be delivered.
struct Tally {
    total: u64,
    unread: u64,
    pending: u64,
}

impl Tally {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            total: row.get(0)?,
            unread: row.get(1)?,
            pending: row.get(2)?,
        })
    }
}

/// The kept counters, less what its own times keep out of the inbox at `now`.
fn tally(
    conn: &Connection,
    views: Views,
    agent: &AgentName,
    now: Timestamp,
) -> rusqlite::Result<Tally> {
    let kept = views
        .prepare(
            conn,
            "SELECT total, unread, pending FROM v#_counts WHERE name = ?1",
        )?
        .query_row([agent.as_str()], Tally::of)
        .optional()?;
    let Some(kept) = kept else {
        return Ok(Tally {
            total: 0,
            unread: 0,
            pending: 0,
        });
    };
    let not_due = views
        .prepare(
            conn,
            &format!(
                "SELECT count(*), coalesce(sum(l.read = 0), 0), coalesce(sum(l.read = 0 AND l.handed = 0), 0)
                 FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
                 WHERE m.kind = {} AND m.whose = ?1 AND m.at > ?2",
                Kind::NotDue as u8
            ),
        )?
        .query_row(params![agent.as_str(), instant(now)], Tally::of)?;
    // What nobody has seen is unread and still to be delivered.
    let expired: u64 = views
        .prepare(
            conn,
            &format!(
                "SELECT count(*) FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
                 WHERE m.kind = {} AND m.whose = ?1 AND m.at <= ?2 AND l.proven != {OFFERING}
                   AND (l.not_before IS NULL OR l.not_before <= ?2)",
                Kind::Expiring as u8
            ),
        )?
        .query_row(params![agent.as_str(), instant(now)], |row| row.get(0))?;
    Ok(Tally {
        total: kept.total.saturating_sub(not_due.total + expired),
        unread: kept.unread.saturating_sub(not_due.unread + expired),
        pending: kept.pending.saturating_sub(not_due.pending + expired),
    })
}

/// Return an agent's messages that have a mark without a time, the oldest first.
pub(crate) fn marked(
    conn: &Connection,
    views: Views,
    kind: Kind,
    agent: &AgentName,
) -> rusqlite::Result<Vec<MessageId>> {
    let mut look = views.prepare(
        conn,
        "SELECT f.id FROM v#_marks m CROSS JOIN facts f ON f.seq = m.seq
         WHERE m.kind = ?1 AND m.whose = ?2 AND m.at = 0 ORDER BY m.seq",
    )?;
    let ids = look.query_map(params![kind as u8, agent.as_str()], |row| {
        row.get::<_, String>(0)
    })?;
    ids.filter_map(|id| id.map(|id| id.parse().ok()).transpose())
        .collect()
}

/// Return the messages of offers that a hook has begun and not completed.
pub(crate) fn injecting(
    conn: &Connection,
    views: Views,
    agent: &AgentName,
) -> rusqlite::Result<Vec<MessageId>> {
    let mut under_way = Vec::new();
    for id in marked(conn, views, Kind::Offering, agent)? {
        let is_ours = letter(conn, views, id)?.is_some_and(|l| inject::is_under_way(&l));
        under_way.extend(is_ours.then_some(id));
    }
    Ok(under_way)
}
