//! The pieces of work of a session: offers and what becomes of them, expiry, its own begin and
//! end. As everywhere, the core decides, on views at head.

use crate::journal::transaction::Log;
use crate::operation::{Cut, Done, Expired, Moved};
use crate::views::marks::Kind;
use crate::views::messages;
use crate::views::{OFFERING, instant};
use jiff::Timestamp;
use posthaste_core::offer::{self, Kept, Said};
use posthaste_core::receipt::{self, Order};
use posthaste_core::{AgentName, Conversation, Ended, Event, MessageId, Started, session};
use rusqlite::{Result, params};

/// How many messages one piece of work records as expired.
const SWEEP: usize = 100;

impl Log<'_> {
    /// Records what a session says of these messages, as far as it can be true.
    pub(crate) fn say(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        ids: &[MessageId],
        said: &Said,
    ) -> Result<Done> {
        let (mut moved, mut kept) = (Vec::new(), Vec::new());
        for id in ids {
            let decided = match messages::letter(self.conn, self.views, *id)? {
                Some(letter) => offer::decide(now, agent, &letter, said),
                None => Err(Kept::NotFound),
            };
            match decided {
                Ok(event) => {
                    self.append_events(now, agent, vec![event])?;
                    moved.push(*id);
                }
                Err(why) => kept.push((*id, why)),
            }
        }
        let agent = agent.clone();
        Ok(Done::Moved(Moved { agent, moved, kept }))
    }

    pub(crate) fn cut_off(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        cut: &Cut,
        reason: &str,
    ) -> Result<Done> {
        let reason = reason.to_owned();
        match cut {
            Cut::These(ids) => self.say(now, agent, ids, &Said::Uncertain { reason }),
            Cut::All => {
                // A hook that still prints holds the inject lock, which the caller need not have.
                let injecting = messages::injecting(self.conn, self.views, agent)?;
                let mut ids = messages::marked(self.conn, self.views, Kind::Offering, agent)?;
                ids.retain(|id| !injecting.contains(id));
                self.say(now, agent, &ids, &Said::Uncertain { reason })
            }
            Cut::Injected => {
                let ids = messages::injecting(self.conn, self.views, agent)?;
                self.say(now, agent, &ids, &Said::Uncertain { reason })
            }
            Cut::Unproven => {
                let ids = messages::marked(self.conn, self.views, Kind::Unproven, agent)?;
                self.say(now, agent, &ids, &Said::Uncertain { reason })
            }
        }
    }

    pub(crate) fn expire(&mut self, now: Timestamp, agent: &AgentName) -> Result<Done> {
        let ids = self.sweep(now, agent)?;
        Ok(Done::Expired(Expired {
            agent: agent.clone(),
            more: ids.len() == SWEEP,
            ids,
        }))
    }

    /// Records what ran out of time in this inbox, so that its end stands in the journal.
    pub(crate) fn sweep(&mut self, now: Timestamp, agent: &AgentName) -> Result<Vec<MessageId>> {
        let expired = {
            let mut look = self.views.prepare(
                self.conn,
                &format!(
                    "SELECT f.id FROM v#_marks m CROSS JOIN v#_letters l ON l.seq = m.seq
                     CROSS JOIN facts f ON f.seq = m.seq
                     WHERE m.kind = {} AND m.whose = ?1 AND m.at <= ?2 AND l.proven != {OFFERING} LIMIT {SWEEP}",
                    Kind::Expiring as u8
                ),
            )?;
            look.query_map(params![agent.as_str(), instant(now)], |row| {
                row.get::<_, String>(0)
            })?
            .collect::<Result<Vec<_>>>()?
        };
        let expired: Vec<MessageId> = expired.iter().filter_map(|id| id.parse().ok()).collect();
        for id in &expired {
            if let Some(letter) = messages::letter(self.conn, self.views, *id)? {
                let events =
                    receipt::decide(now, Order::Expire, agent, &letter.message, letter.standing);
                self.append_events(now, agent, events.unwrap_or_default())?;
            }
        }
        Ok(expired)
    }

    pub(crate) fn start(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        started: &Started,
    ) -> Result<Done> {
        let latest = self.views.latest_run(self.conn, agent)?;
        let events = session::start(started, latest.as_ref());
        let is_crash = events.iter().any(|event| matches!(event, Event::Ended(_)));
        self.append_events(now, agent, events)?;
        Ok(Done::Started {
            agent: agent.clone(),
            crashed: latest.filter(|_| is_crash),
        })
    }

    pub(crate) fn converse(
        &mut self,
        now: Timestamp,
        agent: &AgentName,
        conversation: &Conversation,
    ) -> Result<Done> {
        let latest = self.views.latest_conversation(self.conn, agent)?;
        let events = session::converse(conversation, latest.as_ref());
        self.append_events(now, agent, events)?;
        let agent = agent.clone();
        Ok(Done::Conversation { agent })
    }

    pub(crate) fn end(&mut self, now: Timestamp, agent: &AgentName, ended: &Ended) -> Result<Done> {
        let latest = self.views.latest_run(self.conn, agent)?;
        let events = session::end(ended, latest.as_ref());
        let is_new = !events.is_empty();
        self.append_events(now, agent, events)?;
        let agent = agent.clone();
        Ok(Done::Ended { agent, is_new })
    }
}
