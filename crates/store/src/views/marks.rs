//! Marks: index entries for facts that are found by something other than an inbox or a task list.
//!
//! They share one table, with a row only where there is something to find: every process reads the
//! whole schema when it opens the journal, and every message updates every index. The marks of a
//! message follow from its envelope, its state and its steps alone.

use super::Views;
use posthaste_core::receipt::{End, Proven};
use posthaste_core::{Message, MessageStatus};
use rusqlite::{Result, Row, params};

/// Purpose of a mark. Unless stated otherwise its owner is the recipient and it has no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MarkKind {
    /// An offer is open.
    Offering = 1,
    /// The message failed to reach the inbox.
    Failed = 2,
    /// The message is not due before the time of the mark.
    NotDue = 3,
    /// The message was not seen, and expires at the time of the mark.
    Expiring = 4,
    /// The message waits, and is promoted at the time of the mark.
    Deadline = 5,
    /// The owner is expected to reply.
    ReplyOwed = 6,
    /// The owner, which is the sender, waits for a reply.
    ReplyAwaited = 7,
    /// The message counts towards the rate limit at the time of the mark, which is when it was
    /// sent. The owner is [`sender_and_recipient`]. A message that failed does not count.
    RateLimited = 8,
    /// The message was sent with a key. The owner is [`sender_recipient_and_key`].
    Key = 9,
    /// The message belongs to a thread that it did not start. The owner is the thread.
    Thread = 10,
    /// A step of a message, or of a task if it was recorded before its task. The owner is the id of
    /// the message or task, which may not be stored yet.
    Step = 11,
    /// A note of the owner. The time is the code of the note's type.
    Note = 12,
    /// A fact that this version cannot read. The owner is the reason.
    Unknown = 13,
    /// The message was offered, and its proof is awaited.
    Unproven = 14,
    /// A person has put aside what has the id of the owner.
    Seen = 15,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) kind: MarkKind,
    pub(crate) owner: String,
    pub(crate) at: i64,
}

impl Mark {
    pub(super) fn new(kind: MarkKind, owner: impl Into<String>) -> Self {
        let owner = owner.into();
        Self { kind, owner, at: 0 }
    }

    /// Return the marks that a message keeps in every state.
    pub(super) fn lasting(message: &Message) -> impl Iterator<Item = Self> {
        let envelope = &message.envelope;
        let (from, to) = (envelope.from.as_str(), message.to.as_str());
        let key = envelope.key.as_ref();
        let key = key.map(|key| Self::new(MarkKind::Key, sender_recipient_and_key(from, to, key)));
        let thread = envelope.thread_id;
        let thread =
            (thread != message.id).then(|| Self::new(MarkKind::Thread, thread.to_string()));
        key.into_iter().chain(thread)
    }
}

// The parts are unambiguous, because no name contains a space.
pub(crate) fn sender_and_recipient(from: &str, to: &str) -> String {
    format!("{from} {to}")
}

pub(crate) fn sender_recipient_and_key(from: &str, to: &str, key: &str) -> String {
    format!("{from} {to} {key}")
}

/// The properties of a message that decide, together with its state, which marks it has.
#[derive(Debug)]
pub(super) struct IndexedFields {
    pub(super) recipient: String,
    pub(super) sender: String,
    pub(super) not_before: Option<i64>,
    pub(super) expires_at: Option<i64>,
    /// When the message was sent, if it counts towards the rate limit.
    pub(super) counts_at: Option<i64>,
    pub(super) deadline: Option<i64>,
    pub(super) expects: bool,
}

impl IndexedFields {
    /// Columns in the order of [`IndexedFields::read`].
    pub(super) const COLUMNS: &str =
        "recipient, sender, not_before, expires_at, counts_at, deadline, expects";

    pub(super) fn read(row: &Row<'_>) -> Result<Self> {
        Ok(Self {
            recipient: row.get(0)?,
            sender: row.get(1)?,
            not_before: row.get(2)?,
            expires_at: row.get(3)?,
            counts_at: row.get(4)?,
            deadline: row.get(5)?,
            expects: row.get(6)?,
        })
    }

    /// Return the marks that a message has in one state.
    pub(super) fn marks(&self, status: MessageStatus) -> Vec<Mark> {
        let is_open = status.end.is_none();
        let is_pending = is_open && !status.read && !status.is_offered_or_shown();
        let expects_reply = is_open && self.expects && !status.answered;
        let has_failed = status.end == Some(End::Failed);
        let mut marks = Vec::new();
        let mut add = |kind, owner: &str, at| {
            let owner = owner.to_owned();
            marks.push(Mark { kind, owner, at });
        };
        if status.proven == Proven::Offering {
            add(MarkKind::Offering, &self.recipient, 0);
        }
        if status.proven == Proven::Unproven {
            add(MarkKind::Unproven, &self.recipient, 0);
        }
        if has_failed {
            add(MarkKind::Failed, &self.recipient, 0);
        }
        if let Some(at) = self.not_before.filter(|_| is_open) {
            add(MarkKind::NotDue, &self.recipient, at);
        }
        if let Some(at) = self.expires_at.filter(|_| is_open && !status.seen) {
            add(MarkKind::Expiring, &self.recipient, at);
        }
        if let Some(at) = self.deadline.filter(|_| is_pending) {
            add(MarkKind::Deadline, &self.recipient, at);
        }
        if expects_reply {
            add(MarkKind::ReplyOwed, &self.recipient, 0);
            add(MarkKind::ReplyAwaited, &self.sender, 0);
        }
        if let Some(at) = self.counts_at.filter(|_| !has_failed) {
            let owner = sender_and_recipient(&self.sender, &self.recipient);
            add(MarkKind::RateLimited, &owner, at);
        }
        marks
    }
}

impl Views<'_> {
    pub(super) fn mark(self, seq: u64, mark: &Mark) -> Result<()> {
        self.execute(
            "INSERT OR IGNORE INTO v#_marks VALUES (?1, ?2, ?3, ?4)",
            params![mark.kind as u8, mark.owner, mark.at, seq],
        )
        .map(drop)
    }

    /// Replace the marks of one state by those of the next.
    pub(super) fn replace_marks(self, seq: u64, before: &[Mark], after: &[Mark]) -> Result<()> {
        for mark in before.iter().filter(|mark| !after.contains(mark)) {
            self.execute(
                "DELETE FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at = ?3 AND seq = ?4",
                params![mark.kind as u8, mark.owner, mark.at, seq],
            )?;
        }
        for mark in after.iter().filter(|mark| !before.contains(mark)) {
            self.mark(seq, mark)?;
        }
        Ok(())
    }

    /// Keep a step of the message or task with this id.
    pub(super) fn add_step(self, id: &str, seq: u64) -> Result<()> {
        self.mark(seq, &Mark::new(MarkKind::Step, id))
    }

    /// Return the steps of the message or task with this id, oldest first.
    pub(super) fn steps(self, id: &str) -> Result<Vec<u64>> {
        self.marked(MarkKind::Step, id)
    }

    /// Return the facts that have a mark without a time, oldest first.
    pub(super) fn marked(self, kind: MarkKind, owner: &str) -> Result<Vec<u64>> {
        self.seqs(
            "SELECT seq FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at = 0 ORDER BY seq",
            params![kind as u8, owner],
        )
    }

    /// Return the last fact that has a mark without a time.
    pub(crate) fn last_marked(self, kind: MarkKind, owner: &str) -> Result<Option<u64>> {
        self.row(
            "SELECT seq FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at = 0 ORDER BY seq DESC LIMIT 1",
            params![kind as u8, owner],
            |row| row.get(0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_follow_from_times_and_state() {
        let plain = || IndexedFields {
            recipient: "bob".to_owned(),
            sender: "human".to_owned(),
            not_before: None,
            expires_at: None,
            counts_at: None,
            deadline: None,
            expects: false,
        };
        let timed = || IndexedFields {
            not_before: Some(1),
            expires_at: Some(2),
            deadline: Some(3),
            ..plain()
        };
        let asked = || IndexedFields {
            sender: "alice".to_owned(),
            counts_at: Some(4),
            expects: true,
            ..plain()
        };
        let new = MessageStatus::default();
        let ended = |end| MessageStatus {
            end: Some(end),
            ..new
        };
        let read = MessageStatus { read: true, ..new };
        let seen = MessageStatus { seen: true, ..new };
        let offering = MessageStatus {
            proven: Proven::Offering,
            ..new
        };
        let answered = MessageStatus {
            answered: true,
            ..new
        };
        let check = |fields: IndexedFields, status, want: &[(MarkKind, &str, i64)]| {
            let marks = fields.marks(status);
            let marks: Vec<_> = marks
                .iter()
                .map(|mark| (mark.kind, mark.owner.as_str(), mark.at))
                .collect();
            assert_eq!(marks, want, "{fields:?}, {status:?}");
        };
        // An ordinary message of the person has none.
        check(plain(), new, &[]);
        check(plain(), offering, &[(MarkKind::Offering, "bob", 0)]);
        check(plain(), ended(End::Failed), &[(MarkKind::Failed, "bob", 0)]);
        let (due, gone) = ((MarkKind::NotDue, "bob", 1), (MarkKind::Expiring, "bob", 2));
        let late = (MarkKind::Deadline, "bob", 3);
        check(timed(), new, &[due, gone, late]);
        check(timed(), read, &[due, gone]);
        check(timed(), seen, &[due, late]);
        check(timed(), ended(End::Archived), &[]);
        let (owed, awaited) = (
            (MarkKind::ReplyOwed, "bob", 0),
            (MarkKind::ReplyAwaited, "alice", 0),
        );
        let counted = (MarkKind::RateLimited, "alice bob", 4);
        check(asked(), new, &[owed, awaited, counted]);
        check(asked(), answered, &[counted]);
        check(asked(), ended(End::Deleted), &[counted]);
        check(asked(), ended(End::Failed), &[(MarkKind::Failed, "bob", 0)]);
    }
}
