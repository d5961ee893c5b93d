//! Look-ups of how messages relate: expected replies, what an agent was shown last, and how often
//! one agent writes to another.

use super::marks::{MarkKind, sender_and_recipient};
use super::messages::nanos;
use super::{Latest, Views, records};
use crate::error::Result;
use crate::journal::Journal;
use jiff::Timestamp;
use posthaste_core::storm::{Given, MINUTE, SENDER_SKEW};
use posthaste_core::{AgentName, MessageState, pending_replies};
use rusqlite::params;

impl Journal {
    /// Return the messages that an agent may be reminded to reply to, oldest first: as many as one
    /// reminder names.
    pub fn owed(&mut self, agent: &AgentName, now: Timestamp) -> Result<Vec<MessageState>> {
        let also = format!(
            " AND l.seen = 1 AND l.reminded < {}",
            pending_replies::REMINDERS
        );
        let limit = format!(" LIMIT {}", pending_replies::AT_ONCE);
        self.expecting_reply(MarkKind::ReplyOwed, agent, now, &also, &limit)
    }

    /// Return the messages whose sender waits for a reply, oldest first.
    pub fn awaited(&mut self, sender: &AgentName, now: Timestamp) -> Result<Vec<MessageState>> {
        self.expecting_reply(MarkKind::ReplyAwaited, sender, now, "", "")
    }

    fn expecting_reply(
        &mut self,
        kind: MarkKind,
        agent: &AgentName,
        now: Timestamp,
        also: &str,
        limit: &str,
    ) -> Result<Vec<MessageState>> {
        let sql = format!(
            "SELECT l.seq FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
             WHERE m.kind = {} AND m.whose = ?1 AND m.at = 0{also}
               AND (l.expires_at IS NULL OR l.expires_at > ?2) ORDER BY m.seq{limit}",
            kind as u8
        );
        let seqs = self.read(|views| views.seqs(&sql, params![agent.as_str(), nanos(now)]))?;
        self.messages(&seqs)
    }

    /// Return the message that an agent was shown last.
    pub fn given(&mut self, agent: &AgentName) -> Result<Option<Given>> {
        self.read(|views| views.shown_last(agent))
    }
}

impl Views<'_> {
    pub(crate) fn shown_last(self, agent: &AgentName) -> rusqlite::Result<Option<Given>> {
        let Some((step, Some(message))) = self.latest(Latest::Shown, agent)? else {
            return Ok(None);
        };
        let message = self.message_at(message)?;
        let step = records::fact_at(self.conn, step)?;
        Ok(message.zip(step).map(|(found, step)| Given {
            message: found.message,
            at: step.at,
        }))
    }

    /// Count the messages from one agent to another in the last minute that count towards the rate
    /// limit, up to `most`. Ignore messages dated well after `now`: the clock was set back since
    /// they were sent. A little after is usual, because senders take the time before they wait for
    /// the writers' lock.
    pub(crate) fn sent_in_last_minute(
        self,
        from: &AgentName,
        to: &AgentName,
        now: Timestamp,
        most: u32,
    ) -> rusqlite::Result<u32> {
        self.prepare(
            "SELECT count(*) FROM (SELECT 1 FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at > ?3 AND at <= ?5 LIMIT ?4)",
        )?
        .query_row(
            params![
                MarkKind::RateLimited as u8,
                sender_and_recipient(from.as_str(), to.as_str()),
                nanos(now - MINUTE),
                most,
                nanos(now + SENDER_SKEW)
            ],
            |row| row.get(0),
        )
    }
}
