//! Look-ups of messages: by id, by inbox, by thread.
//!
//! Long lists are read in pages, each in a read transaction of its own, so that no reader keeps
//! the WAL from being checkpointed for long.

use super::marks::MarkKind;
use super::messages::ENDED_DELETED;
use super::{AMBIGUOUS_IDS_LISTED, PAGE_ROWS, Views, only};
use crate::error::{Error, Result, sqlite};
use crate::journal::Journal;
use jiff::Timestamp;
use posthaste_core::receipt::End;
use posthaste_core::{AgentName, IdPrefix, MessageId, MessageState};
use rusqlite::params;

/// Part of an inbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    Unread,
    All,
}

impl Journal {
    /// Return the message that a prefix means. Deleted messages are not found.
    pub fn find(&mut self, prefix: &IdPrefix) -> Result<MessageState> {
        let found = self.read(|views| views.messages_with(prefix))?;
        let ambiguous = |prefix, fits| Error::Ambiguous { prefix, fits };
        let id = only(found, prefix, Error::NotFound, ambiguous)?;
        self.state(id)?
            .ok_or_else(|| Error::NotFound(prefix.clone()))
    }

    pub fn state(&mut self, id: MessageId) -> Result<Option<MessageState>> {
        self.read(|views| views.message(id))
    }

    /// Return the mail of one agent, oldest first.
    pub fn inbox(
        &mut self,
        agent: &AgentName,
        listing: Listing,
        now: Timestamp,
    ) -> Result<Vec<MessageState>> {
        let mut seqs = self.read(|views| {
            let unread = views.inbox_half(agent, false)?;
            Ok(match listing {
                Listing::Unread => unread,
                Listing::All => {
                    [unread, views.inbox_half(agent, true)?, views.failed(agent)?].concat()
                }
            })
        })?;
        seqs.sort_unstable();
        // A message that was marked as read between the two queries is in both halves.
        seqs.dedup();
        let mut messages = self.messages(&seqs)?;
        messages.retain(|message| match listing {
            Listing::Unread => message.is_waiting(now),
            Listing::All => message.is_in_inbox(now) || message.has_failed(),
        });
        Ok(messages)
    }

    /// Return all messages of a thread, archived ones too, oldest first.
    pub fn thread(&mut self, thread: MessageId) -> Result<Vec<MessageState>> {
        let seqs = self.read(|views| views.thread(thread))?;
        let mut messages = self.messages(&seqs)?;
        messages.retain(|found| {
            let is_deleted = found.status.end == Some(End::Deleted);
            found.message.envelope.thread_id == thread && !is_deleted
        });
        Ok(messages)
    }

    /// Return the thread that a prefix means: the thread of a message, or a thread named after a
    /// message that is deleted or was never stored here.
    pub fn find_thread(&mut self, prefix: &IdPrefix) -> Result<MessageId> {
        match self.find(prefix) {
            Ok(found) => return Ok(found.message.envelope.thread_id),
            Err(Error::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        let named = self.views().threads_with(prefix);
        let mut threads = Vec::new();
        for thread in named.map_err(sqlite(&self.home.journal()))? {
            if !self.thread(thread)?.is_empty() {
                threads.push(thread);
            }
        }
        let ambiguous = |prefix, fits| Error::Ambiguous { prefix, fits };
        only(threads, prefix, Error::NotFound, ambiguous)
    }

    pub(crate) fn messages(&self, seqs: &[u64]) -> Result<Vec<MessageState>> {
        self.in_pages(seqs, Views::message_at)
    }
}

impl Views<'_> {
    fn messages_with(self, prefix: &IdPrefix) -> rusqlite::Result<Vec<MessageId>> {
        self.parsed(
            &format!(
                "SELECT f.id FROM facts f JOIN v#_letters l ON l.seq = f.seq
                 WHERE f.id >= ?1 AND f.id < ?2 AND l.ended != {ENDED_DELETED} ORDER BY f.id LIMIT {AMBIGUOUS_IDS_LISTED}"
            ),
            [prefix.as_str(), &prefix.upper_bound()],
            |id| id.parse().ok(),
        )
    }

    /// Return the read or the unread messages of an inbox.
    fn inbox_half(self, agent: &AgentName, read: bool) -> rusqlite::Result<Vec<u64>> {
        let mut seqs = Vec::new();
        // Every position is behind this one, because no priority is 0.
        let mut last = (0u8, 0u8, 0i64);
        loop {
            let page = self.rows(
                &format!(
                    "SELECT handed, priority, place, seq FROM v#_letters
                     WHERE recipient = ?1 AND read = ?2 AND ended = 0 AND (handed, priority, place) > (?3, ?4, ?5)
                     ORDER BY handed, priority, place LIMIT {PAGE_ROWS}"
                ),
                params![agent.as_str(), read, last.0, last.1, last.2],
                |row| Ok(((row.get(0)?, row.get(1)?, row.get(2)?), row.get(3)?)),
            )?;
            seqs.extend(page.iter().map(|(_, seq): &(_, u64)| *seq));
            match page.last() {
                Some((end, _)) if page.len() == PAGE_ROWS as usize => last = *end,
                _ => return Ok(seqs),
            }
        }
    }

    /// Return the last messages that failed to reach an inbox, a page at most.
    fn failed(self, agent: &AgentName) -> rusqlite::Result<Vec<u64>> {
        self.seqs(
            &format!(
                "SELECT seq FROM v#_marks WHERE kind = {} AND whose = ?1 AND at = 0
                 ORDER BY seq DESC LIMIT {PAGE_ROWS}",
                MarkKind::Failed as u8
            ),
            [agent.as_str()],
        )
    }

    /// Return the messages that may belong to a thread, oldest first. The message that the thread
    /// is named after has no mark, and may belong to another thread.
    fn thread(self, thread: MessageId) -> rusqlite::Result<Vec<u64>> {
        let mut seqs = self.marked(MarkKind::Thread, &thread.to_string())?;
        seqs.extend(self.message_seq(thread)?);
        seqs.sort_unstable();
        seqs.dedup();
        Ok(seqs)
    }

    /// Return the threads that have more than the message they are named after.
    fn threads_with(self, prefix: &IdPrefix) -> rusqlite::Result<Vec<MessageId>> {
        self.parsed(
            &format!(
                "SELECT DISTINCT whose FROM v#_marks
                 WHERE kind = ?1 AND whose >= ?2 AND whose < ?3 ORDER BY whose LIMIT {AMBIGUOUS_IDS_LISTED}"
            ),
            params![MarkKind::Thread as u8, prefix.as_str(), prefix.upper_bound()],
            |id| id.parse().ok(),
        )
    }
}
