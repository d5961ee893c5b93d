//! The journal's part of a board.

use super::Views;
use super::marks::MarkKind;
use crate::error::Result;
use crate::journal::Journal;
use crate::views::inbox::Listing;
use jiff::{SignedDuration, Timestamp};
use posthaste_core::board::JournalRow;
use posthaste_core::receipt::Proven;
use posthaste_core::{AgentName, MessageState};
use rusqlite::params;
use std::collections::BTreeMap;
use uuid::Uuid;

/// For how long a failed message waits for the person.
const FAILURE_SHOWN_FOR: SignedDuration = SignedDuration::from_hours(24);
/// Messages that have failed most recently, of which the person's are shown.
const MAX_FAILED: u32 = 100;

impl Journal {
    /// Return the unread mail of the person, by its sender, oldest first.
    pub fn mail_to_person(
        &mut self,
        now: Timestamp,
    ) -> Result<BTreeMap<AgentName, Vec<MessageState>>> {
        let mut by_sender: BTreeMap<_, Vec<MessageState>> = BTreeMap::new();
        for mail in self.inbox(&AgentName::human(), Listing::Unread, now)? {
            let sender = mail.message.envelope.from.clone();
            by_sender.entry(sender).or_default().push(mail);
        }
        Ok(by_sender)
    }

    /// Return an agent's row of a board, without the mail to the person.
    pub fn board_row(&mut self, agent: &AgentName, now: Timestamp) -> Result<JournalRow> {
        let count = self.count(agent, now)?;
        let pending = self.pending(agent, now)?;
        let mut row = self.read(|views| {
            Ok(JournalRow {
                run: views.latest_run(agent)?,
                conversation: views.latest_conversation(agent)?,
                asks: views.open_asks_of(agent)?,
                mail_to_person: Vec::new(),
                troubled: views.failed_mail(agent)?,
                unread: count.unread,
                held: pending.queued,
                loop_state: views.loop_of(agent)?,
                seen: Vec::new(),
            })
        })?;
        let since = now - FAILURE_SHOWN_FOR;
        let is_uncertain = |mail: &&MessageState| mail.status.proven == Proven::Uncertain;
        row.troubled
            .extend(pending.due.iter().filter(is_uncertain).cloned());
        row.troubled.retain(|mail| {
            let is_recent = mail.receipts.last().is_some_and(|last| last.at >= since);
            is_recent && mail.message.envelope.from.is_human() && !mail.message.envelope.raw
        });
        let run = row.run.iter().map(|run| run.started.run);
        let messages = row.troubled.iter().map(|mail| mail.message.id.0);
        let ids: Vec<Uuid> = run.chain(messages).collect();
        row.seen = self.read(|views| views.seen(&ids))?;
        Ok(row)
    }
}

impl Views<'_> {
    /// Return the messages to an agent that have failed most recently.
    fn failed_mail(self, agent: &AgentName) -> rusqlite::Result<Vec<MessageState>> {
        let sql = "SELECT seq FROM v#_marks WHERE kind = ?1 AND whose = ?2 AND at = 0
                   ORDER BY seq DESC LIMIT ?3";
        let seqs = self.seqs(
            sql,
            params![MarkKind::Failed as u8, agent.as_str(), MAX_FAILED],
        )?;
        let messages = seqs.iter().map(|seq| self.message_at(*seq));
        messages.filter_map(rusqlite::Result::transpose).collect()
    }

    /// Return those of `ids` that the person has put aside.
    fn seen(self, ids: &[Uuid]) -> rusqlite::Result<Vec<Uuid>> {
        let mut seen = Vec::new();
        for id in ids {
            if self.last_marked(MarkKind::Seen, &id.to_string())?.is_some() {
                seen.push(*id);
            }
        }
        Ok(seen)
    }
}
