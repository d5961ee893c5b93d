//! Look-ups for delivery: what waits to be shown to an agent, and which offers are open.

use super::Views;
use super::marks::MarkKind;
use super::messages::{PROVEN_OFFERING, nanos};
use crate::error::Result;
use crate::journal::Journal;
use jiff::Timestamp;
use posthaste_core::{AgentName, Body, MessageId, MessageState, Priority, inject};
use rusqlite::params;

/// Messages that wait for an agent: unread, due, and neither shown nor offered by any route.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The first of them, in delivery order: [`Pending::MAX_MESSAGES`] at most. Fewer if their bodies are
    /// long, but at least one if there is any.
    pub due: Vec<MessageState>,
    /// The next time at which a message becomes due, is promoted, or expires.
    pub next: Option<Timestamp>,
    /// All pending messages.
    pub queued: u64,
}

impl Pending {
    pub const MAX_MESSAGES: usize = 64;
}

/// Bodies after which a list of pending messages ends.
const PENDING_BODY_BYTES: u64 = 256 << 10;

impl Journal {
    /// Return the messages that wait for an agent, and the next time at which that changes.
    pub fn pending(&mut self, agent: &AgentName, now: Timestamp) -> Result<Pending> {
        self.read(|views| {
            let _tx = views.conn.unchecked_transaction()?;
            Ok(Pending {
                due: views.pending(agent, now, Pending::MAX_MESSAGES)?,
                next: views.next_change(agent, now)?,
                queued: views.counted(agent, now)?.pending,
            })
        })
    }

    /// Return whether a hook would have anything to print or to close.
    pub fn has_not_shown(&mut self, agent: &AgentName, now: Timestamp) -> Result<bool> {
        self.read(|views| {
            let is_pending = !views.pending(agent, now, 1)?.is_empty();
            Ok(is_pending || !views.injecting(agent)?.is_empty())
        })
    }

    /// Return whether a hook is printing mail of this agent, or was killed while printing.
    pub fn is_injecting(&mut self, agent: &AgentName) -> Result<bool> {
        self.read(|views| Ok(!views.injecting(agent)?.is_empty()))
    }

    /// Return the messages whose offer by a session is open. Offers of hooks are left out.
    pub fn open_offers(&mut self, agent: &AgentName) -> Result<Vec<MessageState>> {
        self.read(|views| views.messages_of(&views.open_offers(agent)?))
    }

    /// Return the messages whose proof is awaited.
    pub fn unproven(&mut self, agent: &AgentName) -> Result<Vec<MessageState>> {
        self.read(|views| {
            let ids = views.marked_ids(MarkKind::Unproven, agent)?;
            views.messages_of(&ids)
        })
    }
}

impl Views<'_> {
    /// Return the most urgent messages that no route has shown to their agent yet.
    pub(crate) fn pending(
        self,
        agent: &AgentName,
        now: Timestamp,
        limit: usize,
    ) -> rusqlite::Result<Vec<MessageState>> {
        let is_open = "read = 0 AND ended = 0 AND handed = 0
             AND (not_before IS NULL OR not_before <= ?2)
             AND (expires_at IS NULL OR expires_at > ?2 OR seen = 1)";
        let ordered = |sql: &str| -> rusqlite::Result<Vec<(u8, i64, u64)>> {
            self.rows(
                sql,
                params![agent.as_str(), nanos(now), limit as u64],
                |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
            )
        };
        let by_priority = ordered(&format!(
            "SELECT priority, place, seq FROM v#_letters INDEXED BY v#_mailbox
             WHERE recipient = ?1 AND {is_open} AND (deadline IS NULL OR deadline > ?2)
             ORDER BY priority, place LIMIT ?3"
        ))?;
        // A promoted message is sorted among the normal ones, by its age.
        let promoted = ordered(&format!(
            "SELECT {}, l.seq, l.seq FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
             WHERE m.kind = {} AND m.whose = ?1 AND m.at <= ?2 AND {is_open} ORDER BY l.seq LIMIT ?3",
            Priority::Normal.rank(),
            MarkKind::Deadline as u8
        ))?;
        let mut all = [by_priority, promoted].concat();
        all.sort_unstable();
        let mut messages = Vec::new();
        let mut bytes = 0;
        for (_, _, seq) in all.into_iter().take(limit) {
            if bytes >= PENDING_BODY_BYTES {
                break;
            }
            let message = self.message_at(seq)?;
            bytes += message.as_ref().map_or(0, body_bytes_in_memory);
            messages.extend(message);
        }
        Ok(messages)
    }

    /// Return the next time at which a waiting message becomes due or is promoted, or an unseen
    /// one expires.
    fn next_change(self, agent: &AgentName, now: Timestamp) -> rusqlite::Result<Option<Timestamp>> {
        let first = |kind: MarkKind, condition: &str| -> rusqlite::Result<Option<i64>> {
            self.row(
                &format!(
                    "SELECT m.at FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
                     WHERE m.kind = {} AND m.whose = ?1 AND m.at > ?2 AND {condition} ORDER BY m.at LIMIT 1",
                    kind as u8
                ),
                params![agent.as_str(), nanos(now)],
                |row| row.get(0),
            )
        };
        let waits = "l.read = 0 AND l.handed = 0";
        let due = first(MarkKind::NotDue, waits)?;
        let expiry = first(
            MarkKind::Expiring,
            &format!("l.proven != {PROVEN_OFFERING}"),
        )?;
        let promotion = first(MarkKind::Deadline, waits)?;
        let next = due.into_iter().chain(expiry).chain(promotion).min();
        Ok(next.and_then(|nanos| Timestamp::from_nanosecond(nanos.into()).ok()))
    }

    /// Return an agent's messages that have a mark without a time, oldest first.
    pub(crate) fn marked_ids(
        self,
        kind: MarkKind,
        agent: &AgentName,
    ) -> rusqlite::Result<Vec<MessageId>> {
        self.parsed(
            "SELECT f.id FROM v#_marks m CROSS JOIN facts f ON f.seq = m.seq
             WHERE m.kind = ?1 AND m.whose = ?2 AND m.at = 0 ORDER BY m.seq",
            params![kind as u8, agent.as_str()],
            |id| id.parse().ok(),
        )
    }

    fn messages_of(self, ids: &[MessageId]) -> rusqlite::Result<Vec<MessageState>> {
        let messages = ids.iter().map(|id| self.message(*id).transpose());
        messages.flatten().collect()
    }

    /// Return the messages of open offers, except those of hooks.
    pub(crate) fn open_offers(self, agent: &AgentName) -> rusqlite::Result<Vec<MessageId>> {
        let injecting = self.injecting(agent)?;
        let mut ids = self.marked_ids(MarkKind::Offering, agent)?;
        ids.retain(|id| !injecting.contains(id));
        Ok(ids)
    }

    /// Return the messages of offers that a hook has begun and not completed.
    pub(crate) fn injecting(self, agent: &AgentName) -> rusqlite::Result<Vec<MessageId>> {
        let mut open = Vec::new();
        for id in self.marked_ids(MarkKind::Offering, agent)? {
            let message = self.message(id)?;
            open.extend(
                message
                    .is_some_and(|m| inject::is_under_way(&m))
                    .then_some(id),
            );
        }
        Ok(open)
    }

    /// Return messages that have expired unseen, `limit` at most. An open offer does not expire.
    pub(crate) fn expired(
        self,
        agent: &AgentName,
        now: Timestamp,
        limit: usize,
    ) -> rusqlite::Result<Vec<MessageId>> {
        self.parsed(
            &format!(
                "SELECT f.id FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
                 CROSS JOIN facts f ON f.seq = m.seq
                 WHERE m.kind = {} AND m.whose = ?1 AND m.at <= ?2 AND l.proven != {PROVEN_OFFERING} LIMIT {limit}",
                MarkKind::Expiring as u8
            ),
            params![agent.as_str(), nanos(now)],
            |id| id.parse().ok(),
        )
    }
}

fn body_bytes_in_memory(message: &MessageState) -> u64 {
    match &message.message.envelope.body {
        Body::Inline(text) => text.len() as u64,
        Body::Filed { .. } => 0,
    }
}
