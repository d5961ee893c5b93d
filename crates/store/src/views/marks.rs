//! Marks: facts that are to be found by something other than an inbox or a list of tasks. One table
//! instead of a table or an index each, with a row only where there is something to find: every
//! process reads all of the schema when it opens the journal, and every message keeps every index.
//!
//! Which marks a message has follows from its envelope, its standing and its steps alone.

use crate::views::Views;
use posthaste_core::Standing;
use posthaste_core::receipt::{End, Proven};
use rusqlite::{Connection, OptionalExtension, Result, Row, params};

/// What a mark is for. `whose` and `at` of each: an agent and no time, unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An offer is under way.
    Offering = 1,
    /// It failed to reach the inbox.
    Failed = 2,
    /// It has a time before which it is not due.
    NotDue = 3,
    /// Nobody has seen it, and it runs out of time then.
    Expiring = 4,
    /// It is promoted then, if it still waits.
    Deadline = 5,
    /// An answer is expected of this agent.
    Owed = 6,
    /// An answer is expected by this agent.
    Awaited = 7,
    /// One agent wrote to another (see [`pair`]) then, and it counts; what failed does not.
    Pair = 8,
    /// It was sent under this key (see [`key`]).
    Key = 9,
    /// It belongs to this thread and did not begin it.
    Thread = 10,
    /// A step of the message with this id, which may come before it. Of a task, only those that
    /// came before it.
    Step = 11,
    /// A note of this agent; instead of a time, of which kind.
    Note = 12,
    /// A fact that means nothing to this version; instead of an agent, why.
    Odd = 13,
    /// It was offered, and the agent's proof is awaited.
    Unproven = 14,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mark {
    pub(crate) kind: Kind,
    pub(crate) whose: String,
    pub(crate) at: i64,
}

/// Who wrote to whom. No name has a space in it.
pub(crate) fn pair(from: &str, to: &str) -> String {
    format!("{from} {to}")
}

/// Who wrote to whom under a key.
pub(crate) fn key(from: &str, to: &str, key: &str) -> String {
    format!("{from} {to} {key}")
}

/// What of a message decides which marks it has, beside its standing.
#[derive(Debug)]
pub(crate) struct Traits {
    pub(crate) recipient: String,
    pub(crate) sender: String,
    pub(crate) not_before: Option<i64>,
    pub(crate) expires_at: Option<i64>,
    /// When it was sent, where it counts towards what is too much between agents.
    pub(crate) counts_at: Option<i64>,
    pub(crate) deadline: Option<i64>,
    pub(crate) expects: bool,
}

impl Traits {
    /// Their columns, in the order in which [`Traits::of`] reads them.
    pub(crate) const COLUMNS: &str =
        "recipient, sender, not_before, expires_at, counts_at, deadline, expects";

    pub(crate) fn of(row: &Row<'_>) -> Result<Self> {
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

    /// The marks that come and go with the standing.
    pub(crate) fn marks(&self, standing: Standing) -> Vec<Mark> {
        let is_open = standing.end.is_none();
        let is_pending = is_open && !standing.read && !standing.is_handed();
        let is_owed = is_open && self.expects && !standing.answered;
        let has_failed = standing.end == Some(End::Failed);
        let mut marks = Vec::new();
        let mut add = |kind, whose: &str, at| {
            let whose = whose.to_owned();
            marks.push(Mark { kind, whose, at });
        };
        if standing.proven == Proven::Offering {
            add(Kind::Offering, &self.recipient, 0);
        }
        if standing.proven == Proven::Unproven {
            add(Kind::Unproven, &self.recipient, 0);
        }
        if has_failed {
            add(Kind::Failed, &self.recipient, 0);
        }
        if let Some(at) = self.not_before.filter(|_| is_open) {
            add(Kind::NotDue, &self.recipient, at);
        }
        if let Some(at) = self.expires_at.filter(|_| is_open && !standing.seen) {
            add(Kind::Expiring, &self.recipient, at);
        }
        if let Some(at) = self.deadline.filter(|_| is_pending) {
            add(Kind::Deadline, &self.recipient, at);
        }
        if is_owed {
            add(Kind::Owed, &self.recipient, 0);
            add(Kind::Awaited, &self.sender, 0);
        }
        if let Some(at) = self.counts_at.filter(|_| !has_failed) {
            add(Kind::Pair, &pair(&self.sender, &self.recipient), at);
        }
        marks
    }
}

impl Views {
    pub(crate) fn mark(self, conn: &Connection, seq: u64, mark: &Mark) -> Result<()> {
        self.prepare(
            conn,
            "INSERT OR IGNORE INTO v#_marks VALUES (?1, ?2, ?3, ?4)",
        )?
        .execute(params![mark.kind as u8, mark.whose, mark.at, seq])?;
        Ok(())
    }

    /// Takes the marks of one standing away and sets those of the next, as far as they differ.
    pub(crate) fn mark_anew(
        self,
        conn: &Connection,
        seq: u64,
        before: &[Mark],
        after: &[Mark],
    ) -> Result<()> {
        for mark in before.iter().filter(|mark| !after.contains(mark)) {
            self.prepare(
                conn,
                "DELETE FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at = ?3 AND seq = ?4",
            )?
            .execute(params![mark.kind as u8, mark.whose, mark.at, seq])?;
        }
        for mark in after.iter().filter(|mark| !before.contains(mark)) {
            self.mark(conn, seq, mark)?;
        }
        Ok(())
    }

    /// The newest seq under a mark that has no time.
    pub(crate) fn last_marked(
        self,
        conn: &Connection,
        kind: Kind,
        whose: &str,
    ) -> Result<Option<u64>> {
        self.prepare(
            conn,
            "SELECT seq FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at = 0 ORDER BY seq DESC LIMIT 1",
        )?
        .query_row(params![kind as u8, whose], |row| row.get(0))
        .optional()
    }

    /// The seqs under a mark that has no time, oldest first.
    pub(crate) fn marked(self, conn: &Connection, kind: Kind, whose: &str) -> Result<Vec<u64>> {
        self.prepare(
            conn,
            "SELECT seq FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at = 0 ORDER BY seq",
        )?
        .query_map(params![kind as u8, whose], |row| row.get(0))?
        .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_and_goes_with_the_standing() {
        let plain = || Traits {
            recipient: "bob".to_owned(),
            sender: "human".to_owned(),
            not_before: None,
            expires_at: None,
            counts_at: None,
            deadline: None,
            expects: false,
        };
        let timed = || Traits {
            not_before: Some(1),
            expires_at: Some(2),
            deadline: Some(3),
            ..plain()
        };
        let asked = || Traits {
            sender: "alice".to_owned(),
            counts_at: Some(4),
            expects: true,
            ..plain()
        };
        let new = Standing::default();
        let ended = |end| Standing {
            end: Some(end),
            ..new
        };
        let read = Standing { read: true, ..new };
        let seen = Standing { seen: true, ..new };
        let offering = Standing {
            proven: Proven::Offering,
            ..new
        };
        let answered = Standing {
            answered: true,
            ..new
        };
        let check = |traits: Traits, standing, want: &[(Kind, &str, i64)]| {
            let marks = traits.marks(standing);
            let marks: Vec<_> = marks
                .iter()
                .map(|mark| (mark.kind, mark.whose.as_str(), mark.at))
                .collect();
            assert_eq!(marks, want, "{traits:?}, {standing:?}");
        };
        // The usual message of a person has none.
        check(plain(), new, &[]);
        check(plain(), offering, &[(Kind::Offering, "bob", 0)]);
        check(plain(), ended(End::Failed), &[(Kind::Failed, "bob", 0)]);
        let (due, gone) = ((Kind::NotDue, "bob", 1), (Kind::Expiring, "bob", 2));
        let late = (Kind::Deadline, "bob", 3);
        check(timed(), new, &[due, gone, late]);
        check(timed(), read, &[due, gone]);
        check(timed(), seen, &[due, late]);
        check(timed(), ended(End::Archived), &[]);
        let (owed, awaited) = ((Kind::Owed, "bob", 0), (Kind::Awaited, "alice", 0));
        let pair = (Kind::Pair, "alice bob", 4);
        check(asked(), new, &[owed, awaited, pair]);
        check(asked(), answered, &[pair]);
        check(asked(), ended(End::Deleted), &[pair]);
        check(asked(), ended(End::Failed), &[(Kind::Failed, "bob", 0)]);
    }
}
