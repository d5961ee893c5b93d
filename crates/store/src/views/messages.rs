//! One row per message: its state, kept where the indices of an inbox find it.
//!
//! [`MessageStatus::apply_progress`] decides what a step does to a message; this module only stores
//! the result.

use super::counts::Counted;
use super::marks::{IndexedFields, Mark};
use super::{Latest, Views, records};
use jiff::Timestamp;
use posthaste_core::mail::gives;
use posthaste_core::receipt::{End, Proven};
use posthaste_core::{
    Event, Evidence, Fact, Message, MessageId, MessageState, MessageStatus, Priority, Progress,
    promotion,
};
use rusqlite::{Result, Row, params};

impl Views<'_> {
    pub(super) fn add_message(self, seq: u64, fact: &Fact) -> Result<()> {
        let Some(message) = fact.message() else {
            return Ok(());
        };
        let (status, shown_by) = self.early_steps(message.id)?;
        let fields = IndexedFields::new(&message);
        let priority = message.envelope.priority;
        self.execute(
            "INSERT OR IGNORE INTO v#_letters VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14,?15,?16,?17,?18,?19)",
            params![
                seq,
                fields.recipient,
                fields.sender,
                priority.rank(),
                position(priority, seq),
                proven_code(status.proven),
                status.read,
                status.shown,
                status.seen,
                status.cut,
                status.is_offered_or_shown(),
                end_code(status.end),
                fields.not_before,
                fields.expires_at,
                fields.counts_at,
                fields.deadline,
                fields.expects,
                status.answered,
                status.reminded,
            ],
        )?;
        for mark in fields
            .marks(status)
            .into_iter()
            .chain(Mark::lasting(&message))
        {
            self.mark(seq, &mark)?;
        }
        if let Some(step) = shown_by {
            self.set_latest(Latest::Shown, &fields.recipient, step, Some(seq))?;
        }
        self.count(&fields.recipient, Counted::default(), Counted::of(status))
    }

    pub(super) fn apply_progress(self, seq: u64, progress: &Progress) -> Result<()> {
        self.add_step(&progress.message.to_string(), seq)?;
        let Some(message) = self.message_seq(progress.message)? else {
            return Ok(());
        };
        let before = self.status(message)?;
        let mut after = before;
        after.apply_progress(progress);
        if gives(progress.step) {
            let agent: Option<String> = self.row(
                "SELECT recipient FROM v#_letters WHERE seq = ?1",
                [message],
                |row| row.get(0),
            )?;
            let agent = agent.unwrap_or_default();
            self.set_latest(Latest::Shown, &agent, seq, Some(message))?;
        }
        self.set_status(message, before, after)
    }

    /// Return the state that steps recorded before their message add up to, and the last of them
    /// that showed the message to its agent.
    fn early_steps(self, id: MessageId) -> Result<(MessageStatus, Option<u64>)> {
        let (mut status, mut shown_by) = (MessageStatus::default(), None);
        for seq in self.steps(&id.to_string())? {
            let fact = records::fact_at(self.conn, seq)?;
            if let Some(Event::Progress(progress)) = fact.map(|fact| fact.event) {
                status.apply_progress(&progress);
                shown_by = gives(progress.step).then_some(seq).or(shown_by);
            }
        }
        Ok((status, shown_by))
    }

    fn set_status(self, message: u64, before: MessageStatus, after: MessageStatus) -> Result<()> {
        if before == after {
            return Ok(());
        }
        let fields = self
            .prepare(&format!(
                "UPDATE v#_letters SET proven = ?2, read = ?3, shown = ?4, seen = ?5, cut = ?6, handed = ?7, ended = ?8, answered = ?9, reminded = ?10 WHERE seq = ?1 RETURNING {}",
                IndexedFields::COLUMNS
            ))?
            .query_row(
                params![
                    message,
                    proven_code(after.proven),
                    after.read,
                    after.shown,
                    after.seen,
                    after.cut,
                    after.is_offered_or_shown(),
                    end_code(after.end),
                    after.answered,
                    after.reminded
                ],
                IndexedFields::read,
            )?;
        self.replace_marks(message, &fields.marks(before), &fields.marks(after))?;
        self.count(&fields.recipient, Counted::of(before), Counted::of(after))
    }

    fn status(self, message: u64) -> Result<MessageStatus> {
        self.prepare(
            "SELECT proven, read, shown, seen, cut, ended, answered, reminded FROM v#_letters WHERE seq = ?1",
        )?
        .query_row([message], |row| read_status(row, 0))
    }

    pub(super) fn message_seq(self, id: MessageId) -> Result<Option<u64>> {
        self.row(
            "SELECT l.seq FROM facts f JOIN v#_letters l ON l.seq = f.seq WHERE f.id = ?1",
            [id.to_string()],
            |row| row.get(0),
        )
    }

    pub(crate) fn message(self, id: MessageId) -> Result<Option<MessageState>> {
        match self.message_seq(id)? {
            Some(seq) => self.message_at(seq),
            None => Ok(None),
        }
    }

    pub(crate) fn message_at(self, seq: u64) -> Result<Option<MessageState>> {
        let found = self.row(
            "SELECT f.seq, f.origin, f.id, f.at, f.agent, f.kind, f.data, l.proven, l.read, l.shown, l.seen, l.cut, l.ended, l.answered, l.reminded
             FROM v#_letters l JOIN facts f ON f.seq = l.seq WHERE l.seq = ?1",
            [seq],
            |row| Ok((records::read(row)?, read_status(row, 7)?)),
        )?;
        let Some((record, status)) = found else {
            return Ok(None);
        };
        let fact = record.read().ok();
        let Some((fact, message)) = fact.and_then(|fact| fact.message().map(|m| (fact, m))) else {
            return Ok(None);
        };
        let mut receipts: Vec<_> = fact.receipt().into_iter().collect();
        for step in self.steps(&record.id)? {
            let step = records::fact_at(self.conn, step)?;
            receipts.extend(step.and_then(|fact| fact.receipt()));
        }
        Ok(Some(MessageState {
            message,
            status,
            receipts,
        }))
    }
}

/// Return whether a message counts towards the rate limit between agents. Messages of the person
/// and of another system do not.
fn is_rate_limited(message: &Message) -> bool {
    let envelope = &message.envelope;
    !envelope.from.is_human() && envelope.from_evidence != Evidence::Provider
}

impl IndexedFields {
    fn new(message: &Message) -> Self {
        let envelope = &message.envelope;
        Self {
            recipient: message.to.to_string(),
            sender: envelope.from.to_string(),
            not_before: envelope.not_before.map(nanos),
            expires_at: envelope.expires_at.map(nanos),
            counts_at: is_rate_limited(message).then(|| nanos(message.created_at)),
            deadline: promotion::promotes_at(envelope).map(nanos),
            expects: envelope.expects_reply,
        }
    }
}

/// Return a message's sort key among those of its priority: oldest first, except that the last
/// `IdleFirst` message comes first.
fn position(priority: Priority, seq: u64) -> i64 {
    let seq = i64::try_from(seq).unwrap_or(i64::MAX);
    match priority {
        Priority::Interrupt | Priority::Normal | Priority::Idle => seq,
        Priority::IdleFirst => -seq,
    }
}

/// Return a time in nanoseconds, as the views store and compare it. Times outside of 1677 to 2262
/// become the end of that span.
pub(crate) fn nanos(time: Timestamp) -> i64 {
    let span = i128::from(i64::MIN)..=i128::from(i64::MAX);
    time.as_nanosecond().clamp(*span.start(), *span.end()) as i64
}

/// Read `proven, read, shown, seen, cut, ended, answered, reminded` from column `first` on.
fn read_status(row: &Row<'_>, first: usize) -> Result<MessageStatus> {
    Ok(MessageStatus {
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

pub(crate) const PROVEN_OFFERING: u8 = 1;
pub(super) const ENDED_DELETED: u8 = 2;

fn proven_code(proven: Proven) -> u8 {
    match proven {
        Proven::Stored => 0,
        Proven::Offering => PROVEN_OFFERING,
        Proven::Uncertain => 2,
        Proven::Offered => 3,
        Proven::Accepted => 4,
        Proven::Unproven => 5,
    }
}

fn proven_of(code: u8) -> Proven {
    match code {
        PROVEN_OFFERING => Proven::Offering,
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
        Some(End::Deleted) => ENDED_DELETED,
        Some(End::Cancelled) => 3,
        Some(End::Expired) => 4,
        Some(End::Failed) => 5,
    }
}

fn end_of(code: u8) -> Option<End> {
    match code {
        1 => Some(End::Archived),
        ENDED_DELETED => Some(End::Deleted),
        3 => Some(End::Cancelled),
        4 => Some(End::Expired),
        5 => Some(End::Failed),
        // Only `end_code` writes this column.
        _ => None,
    }
}
