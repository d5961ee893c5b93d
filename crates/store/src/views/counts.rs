//! Messages of each inbox, counted when they change. Time alone changes nothing here: a count at
//! a moment subtracts what is not due yet or has expired.

use super::Views;
use super::marks::MarkKind;
use super::messages::{PROVEN_OFFERING, nanos};
use crate::error::Result;
use crate::journal::Journal;
use jiff::Timestamp;
use posthaste_core::{AgentName, MessageStatus};
use rusqlite::{Row, params};

/// Messages of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Count {
    pub total: u64,
    pub unread: u64,
}

impl Journal {
    pub fn count(&mut self, agent: &AgentName, now: Timestamp) -> Result<Count> {
        self.read(|views| views.inbox_count(agent, now))
    }

    /// Return every agent that ever had mail.
    pub fn agents(&mut self) -> Result<Vec<AgentName>> {
        self.read(|views| {
            let sql = "SELECT name FROM v#_counts WHERE name > '' ORDER BY name";
            views.parsed(sql, [], |name| AgentName::parse(name).ok())
        })
    }
}

/// Messages of an inbox: in all, unread, and not delivered yet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counted {
    total: u64,
    unread: u64,
    pub(super) pending: u64,
}

impl Counted {
    /// Count one message.
    pub(super) fn of(status: MessageStatus) -> Self {
        let is_pending = status.is_unread() && !status.is_offered_or_shown();
        Self {
            total: status.in_inbox().into(),
            unread: status.is_unread().into(),
            pending: is_pending.into(),
        }
    }

    /// Read `total, unread, pending`.
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            total: row.get(0)?,
            unread: row.get(1)?,
            pending: row.get(2)?,
        })
    }
}

impl Views<'_> {
    /// Count facts as applied. They are counted like mail, under the empty name, so that one
    /// statement serves both.
    pub(crate) fn count_facts(self, facts: u64) -> rusqlite::Result<()> {
        if facts == 0 {
            return Ok(());
        }
        let applied = Counted {
            total: facts,
            ..Counted::default()
        };
        self.count("", Counted::default(), applied)
    }

    /// Change the counters of an agent by the difference between two states.
    pub(super) fn count(
        self,
        agent: &str,
        before: Counted,
        after: Counted,
    ) -> rusqlite::Result<()> {
        let change = |before: u64, after: u64| after.cast_signed() - before.cast_signed();
        let changes = params![
            agent,
            change(before.total, after.total),
            change(before.unread, after.unread),
            change(before.pending, after.pending)
        ];
        let updated = self.execute(
            "UPDATE v#_counts SET total = total + ?2, unread = unread + ?3, pending = pending + ?4 WHERE name = ?1",
            changes,
        )?;
        if updated == 0 {
            self.execute("INSERT INTO v#_counts VALUES (?1, ?2, ?3, ?4)", changes)?;
        }
        Ok(())
    }

    pub(crate) fn inbox_count(self, agent: &AgentName, now: Timestamp) -> rusqlite::Result<Count> {
        let Counted { total, unread, .. } = self.counted(agent, now)?;
        Ok(Count { total, unread })
    }

    /// Return the kept counters, less the messages that are not in the inbox at `now`.
    pub(super) fn counted(self, agent: &AgentName, now: Timestamp) -> rusqlite::Result<Counted> {
        let kept = self.row(
            "SELECT total, unread, pending FROM v#_counts WHERE name = ?1",
            [agent.as_str()],
            Counted::read,
        )?;
        let Some(kept) = kept else {
            return Ok(Counted::default());
        };
        let at_now = params![agent.as_str(), nanos(now)];
        let not_due = self
            .prepare(&format!(
                "SELECT count(*), coalesce(sum(l.read = 0), 0), coalesce(sum(l.read = 0 AND l.handed = 0), 0)
                 FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
                 WHERE m.kind = {} AND m.whose = ?1 AND m.at > ?2",
                MarkKind::NotDue as u8
            ))?
            .query_row(at_now, Counted::read)?;
        // An expired message was never seen, so it is also unread and not delivered.
        let expired: u64 = self
            .prepare(&format!(
                "SELECT count(*) FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
                 WHERE m.kind = {} AND m.whose = ?1 AND m.at <= ?2 AND l.proven != {PROVEN_OFFERING}
                   AND (l.not_before IS NULL OR l.not_before <= ?2)",
                MarkKind::Expiring as u8
            ))?
            .query_row(at_now, |row| row.get(0))?;
        Ok(Counted {
            total: kept.total.saturating_sub(not_due.total + expired),
            unread: kept.unread.saturating_sub(not_due.unread + expired),
            pending: kept.pending.saturating_sub(not_due.pending + expired),
        })
    }
}
