//! Keeping the views: folding facts into tables, by the core's own rules.
//!
//! Runs only inside a writer's transaction. What a step does to a message is the core's to say
//! ([`Standing::apply`]); here it is only kept where an index finds it.

mod loops;
pub(crate) mod marks;
pub(crate) mod messages;
pub(crate) mod replies;
mod runs;
pub(crate) mod schema;
mod threads;
mod work;

use crate::views::marks::{Kind, Mark, Traits};
use crate::views::schema::versioned;
use jiff::Timestamp;
use posthaste_core::mail::gives;
use posthaste_core::receipt::{End, Proven};
use posthaste_core::{
    Envelope, Event, Evidence, Fact, Message, MessageId, Priority, Record, Standing, promotion,
};
use rusqlite::{CachedStatement, Connection, OptionalExtension, Result, Row, params};

/// Of what `v#_last` holds the last that each agent has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Last {
    /// The step that put a message before it, and beside it the message.
    Given = 1,
    /// The begin of a run, and beside it the end.
    Run = 2,
    /// Its word that it is done.
    Completion = 3,
    /// The conversation that its program was in.
    Conversation = 4,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Views {
    pub(crate) version: u32,
}

impl Views {
    pub(crate) fn prepare<'c>(
        self,
        conn: &'c Connection,
        sql: &str,
    ) -> Result<CachedStatement<'c>> {
        conn.prepare_cached(&versioned(sql, self.version))
    }

    /// Folds in up to `limit` facts after `applied`; gives back the last that was folded in.
    pub(crate) fn catch_up(self, conn: &Connection, applied: u64, limit: u32) -> Result<u64> {
        let records = records_after(conn, applied, limit)?;
        for record in &records {
            self.apply(conn, record)?;
        }
        let last = records.last().map_or(applied, |record| record.seq);
        self.have_seen(conn, last - applied)?;
        Ok(last)
    }

    pub(crate) fn apply(self, conn: &Connection, record: &Record) -> Result<()> {
        match record.read() {
            Ok(fact) => self.apply_fact(conn, record.seq, &fact),
            Err(odd) => {
                let (kind, whose, at) = (Kind::Odd, odd.to_string(), 0);
                self.mark(conn, record.seq, &Mark { kind, whose, at })
            }
        }
    }

    pub(crate) fn apply_fact(self, conn: &Connection, seq: u64, fact: &Fact) -> Result<()> {
        match &fact.event {
            Event::Message(_) => self.add_letter(conn, seq, fact),
            Event::Progress(progress) => match self.letter_of(conn, progress.message)? {
                Some(letter) => {
                    self.add_step(conn, &progress.message.to_string(), seq)?;
                    let before = self.standing(conn, letter)?;
                    let mut after = before;
                    after.apply_progress(progress);
                    if gives(progress.step) {
                        self.give(conn, letter, seq)?;
                    }
                    self.move_letter(conn, letter, before, after)
                }
                None => self.add_step(conn, &progress.message.to_string(), seq),
            },
            Event::Started(_) => self.start_run(conn, seq, fact),
            Event::Ended(_) => self.end_run(conn, seq, fact),
            Event::Conversation(_) => {
                self.set_last(conn, Last::Conversation, fact.agent.as_str(), seq, None)
            }
            Event::Work(deed) => self.apply_work(conn, seq, fact, deed),
            Event::Loop(_) => self.apply_to_loop(conn, fact),
        }
    }

    /// Keeps a step of what has this id.
    pub(crate) fn add_step(self, conn: &Connection, id: &str, seq: u64) -> Result<()> {
        let (kind, whose, at) = (Kind::Step, id.to_owned(), 0);
        self.mark(conn, seq, &Mark { kind, whose, at })
    }

    /// The steps of what has this id, in order.
    pub(crate) fn steps(self, conn: &Connection, id: &str) -> Result<Vec<u64>> {
        self.marked(conn, Kind::Step, id)
    }

    pub(crate) fn set_last(
        self,
        conn: &Connection,
        of: Last,
        name: &str,
        seq: u64,
        beside: Option<u64>,
    ) -> Result<()> {
        self.prepare(
            conn,
            "INSERT OR REPLACE INTO v#_last VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![of as u8, name, seq, beside])?;
        Ok(())
    }

    /// The last fact of a kind that an agent has, and what stands beside it.
    pub(crate) fn last(
        self,
        conn: &Connection,
        of: Last,
        name: &str,
    ) -> Result<Option<(u64, Option<u64>)>> {
        self.prepare(
            conn,
            "SELECT seq, beside FROM v#_last WHERE kind = ?1 AND name = ?2",
        )?
        .query_row(params![of as u8, name], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()
    }

    fn add_letter(self, conn: &Connection, seq: u64, fact: &Fact) -> Result<()> {
        let Some(message) = fact.message() else {
            return Ok(());
        };
        let (standing, given) = self.early_steps(conn, message.id)?;
        let envelope = &message.envelope;
        let traits = Traits {
            recipient: message.to.to_string(),
            sender: envelope.from.to_string(),
            not_before: envelope.not_before.map(instant),
            expires_at: envelope.expires_at.map(instant),
            counts_at: is_counted(envelope).then(|| instant(message.created_at)),
            deadline: promotion::promotes_at(envelope).map(instant),
            expects: envelope.expects_reply,
        };
        self.prepare(
            conn,
            "INSERT OR IGNORE INTO v#_letters VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)",
        )?
        .execute(params![
            seq,
            traits.recipient,
            traits.sender,
            envelope.priority.rank(),
            place(envelope.priority, seq),
            proven_code(standing.proven),
            standing.read,
            standing.shown,
            standing.seen,
            standing.cut,
            standing.is_handed(),
            end_code(standing.end),
            traits.not_before,
            traits.expires_at,
            traits.counts_at,
            traits.deadline,
            traits.expects,
            standing.answered,
            standing.reminded,
        ])?;
        for mark in traits.marks(standing).into_iter().chain(lasting(&message)) {
            self.mark(conn, seq, &mark)?;
        }
        if let Some(step) = given {
            self.set_last(conn, Last::Given, &traits.recipient, step, Some(seq))?;
        }
        self.count(conn, &traits.recipient, [0; 3], counted(standing))
    }

    /// A step has put a message before its agent.
    fn give(self, conn: &Connection, letter: u64, step: u64) -> Result<()> {
        let agent: String = self
            .prepare(conn, "SELECT recipient FROM v#_letters WHERE seq = ?1")?
            .query_row([letter], |row| row.get(0))?;
        self.set_last(conn, Last::Given, &agent, step, Some(letter))
    }

    /// What steps that came before their message add up to, and the last that put it before its
    /// agent.
    fn early_steps(self, conn: &Connection, id: MessageId) -> Result<(Standing, Option<u64>)> {
        let (mut standing, mut given) = (Standing::default(), None);
        for seq in self.steps(conn, &id.to_string())? {
            let step = record_at(conn, seq)?.map(|record| record.read());
            if let Some(Ok(Fact {
                event: Event::Progress(progress),
                ..
            })) = step
            {
                standing.apply_progress(&progress);
                given = gives(progress.step).then_some(seq).or(given);
            }
        }
        Ok((standing, given))
    }

    fn move_letter(
        self,
        conn: &Connection,
        letter: u64,
        before: Standing,
        after: Standing,
    ) -> Result<()> {
        if before == after {
            return Ok(());
        }
        let traits = self
            .prepare(
                conn,
                &format!(
                    "UPDATE v#_letters SET proven = ?2, read = ?3, shown = ?4, seen = ?5, cut = ?6, handed = ?7, ended = ?8, answered = ?9, reminded = ?10 WHERE seq = ?1 RETURNING {}",
                    Traits::COLUMNS
                ),
            )?
            .query_row(
                params![letter, proven_code(after.proven), after.read, after.shown, after.seen, after.cut, after.is_handed(), end_code(after.end), after.answered, after.reminded],
                Traits::of,
            )?;
        self.mark_anew(conn, letter, &traits.marks(before), &traits.marks(after))?;
        self.count(conn, &traits.recipient, counted(before), counted(after))
    }

    /// Says that these views have seen so many more facts. They are counted like mail, under no
    /// name: one statement does for both.
    pub(crate) fn have_seen(self, conn: &Connection, facts: u64) -> Result<()> {
        if facts == 0 {
            return Ok(());
        }
        let facts = i64::try_from(facts).unwrap_or(i64::MAX);
        self.count(conn, "", [0; 3], [facts, 0, 0])
    }

    fn count(
        self,
        conn: &Connection,
        agent: &str,
        before: [i64; 3],
        after: [i64; 3],
    ) -> Result<()> {
        let [total, unread, pending] = std::array::from_fn(|n| after[n] - before[n]);
        let counted = self
            .prepare(
                conn,
                "UPDATE v#_counts SET total = total + ?2, unread = unread + ?3, pending = pending + ?4 WHERE name = ?1",
            )?
            .execute(params![agent, total, unread, pending])?;
        if counted == 0 {
            self.prepare(conn, "INSERT INTO v#_counts VALUES (?1, ?2, ?3, ?4)")?
                .execute(params![agent, total, unread, pending])?;
        }
        Ok(())
    }

    /// The seq of the message with this id.
    pub(crate) fn letter_of(self, conn: &Connection, id: MessageId) -> Result<Option<u64>> {
        self.prepare(
            conn,
            "SELECT l.seq FROM facts f JOIN v#_letters l ON l.seq = f.seq WHERE f.id = ?1",
        )?
        .query_row([id.to_string()], |row| row.get(0))
        .optional()
    }

    pub(crate) fn standing(self, conn: &Connection, letter: u64) -> Result<Standing> {
        self.prepare(
            conn,
            "SELECT proven, read, shown, seen, cut, ended, answered, reminded FROM v#_letters WHERE seq = ?1",
        )?
        .query_row([letter], |row| standing_at(row, 0))
    }
}

/// Whether a message counts towards what is too much between agents: not what the person writes,
/// who may write as much as they like, nor what somebody else's system has brought.
fn is_counted(envelope: &Envelope) -> bool {
    !envelope.from.is_human() && envelope.from_evidence != Evidence::Provider
}

/// The marks that a message has for good.
fn lasting(message: &Message) -> impl Iterator<Item = Mark> {
    let envelope = &message.envelope;
    let key = envelope.key.as_ref().map(|key| Mark {
        kind: Kind::Key,
        whose: marks::key(envelope.from.as_str(), message.to.as_str(), key),
        at: 0,
    });
    let is_first = envelope.thread_id == message.id;
    let thread = (!is_first).then(|| Mark {
        kind: Kind::Thread,
        whose: envelope.thread_id.to_string(),
        at: 0,
    });
    key.into_iter().chain(thread)
}

/// What a message adds to the counts of its inbox: in all, unread, still to be delivered.
fn counted(standing: Standing) -> [i64; 3] {
    let is_pending = standing.is_unread() && !standing.is_handed();
    [standing.in_inbox(), standing.is_unread(), is_pending].map(i64::from)
}

/// Where a message stands among those of its priority: behind the others, or before them where
/// the last in is the first out.
pub(crate) fn place(priority: Priority, seq: u64) -> i64 {
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    match priority {
        Priority::Interrupt | Priority::Normal | Priority::Idle => seq,
        Priority::IdleFirst => -seq,
    }
}

/// A time as the views keep and compare it: to the nanosecond, as the core does. What lies
/// outside of 1677 to 2262 counts as the end of that span.
pub(crate) fn instant(time: Timestamp) -> i64 {
    let span = i128::from(i64::MIN)..=i128::from(i64::MAX);
    time.as_nanosecond().clamp(*span.start(), *span.end()) as i64
}

/// Reads `proven, read, shown, seen, cut, ended, answered, reminded` from a row, beginning at one of its columns.
pub(crate) fn standing_at(row: &Row<'_>, first: usize) -> Result<Standing> {
    Ok(Standing {
        proven: proven_of(row.get(first)?),
        read: row.get(first + 1)?,
        shown: row.get(first + 2)?,
        seen: row.get(first + 3)?,
        cut: row.get(first + 4)?,
        end: end_of(row.get(first + 5)?),
        answered: row.get(first + 6)?,
        reminded: row.get(first + 7)?,
    })
}

pub(crate) fn record_of(row: &Row<'_>) -> Result<Record> {
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

/// How many bytes of facts are read at once, however few they are.
const PAGE_BYTES: usize = 8 << 20;

/// The records that follow `seq`, at most `limit`; none only where there are none.
pub(crate) fn records_after(conn: &Connection, seq: u64, limit: u32) -> Result<Vec<Record>> {
    let mut look = conn.prepare_cached(
        "SELECT seq, origin, id, at, agent, kind, data FROM facts WHERE seq > ?1 ORDER BY seq LIMIT ?2",
    )?;
    let mut rows = look.query(params![seq, limit])?;
    let mut records = Vec::new();
    let mut bytes = 0;
    while bytes < PAGE_BYTES
        && let Some(row) = rows.next()?
    {
        let record = record_of(row)?;
        bytes += record.data.len();
        records.push(record);
    }
    Ok(records)
}

pub(crate) fn record_at(conn: &Connection, seq: u64) -> Result<Option<Record>> {
    conn.prepare_cached("SELECT seq, origin, id, at, agent, kind, data FROM facts WHERE seq = ?1")?
        .query_row([seq], record_of)
        .optional()
}

pub(crate) const DELETED: u8 = 2;
const FAILED: u8 = 5;
pub(crate) const OFFERING: u8 = 1;

fn proven_code(proven: Proven) -> u8 {
    match proven {
        Proven::Stored => 0,
        Proven::Offering => OFFERING,
        Proven::Uncertain => 2,
        Proven::Offered => 3,
        Proven::Accepted => 4,
        Proven::Unproven => 5,
    }
}

fn proven_of(code: u8) -> Proven {
    match code {
        OFFERING => Proven::Offering,
        2 => Proven::Uncertain,
        3 => Proven::Offered,
        4 => Proven::Accepted,
        5 => Proven::Unproven,
        // Only `proven_code` writes this column.
        _ => Proven::Stored,
    }
}

fn end_code(end: Option<End>) -> u8 {
    match end {
        None => 0,
        Some(End::Archived) => 1,
        Some(End::Deleted) => DELETED,
        Some(End::Cancelled) => 3,
        Some(End::Expired) => 4,
        Some(End::Failed) => FAILED,
    }
}

fn end_of(code: u8) -> Option<End> {
    match code {
        1 => Some(End::Archived),
        DELETED => Some(End::Deleted),
        3 => Some(End::Cancelled),
        4 => Some(End::Expired),
        FAILED => Some(End::Failed),
        // Only `end_code` writes this column.
        _ => None,
    }
}
