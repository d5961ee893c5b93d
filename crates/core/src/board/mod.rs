//! The board: the live picture of all agents, of what waits for a person, and of the mail.
//!
//! Every face renders this board, and none keeps its own picture. The board is updated by
//! [`Board::apply`] and reads nothing itself: `posthaste_client` brings the news.

mod row;
#[cfg(test)]
mod tests;

pub use row::{BoardAsk, BoardRow, BoardState, Need};

use crate::ask::{AskKind, AskState};
use crate::loop_::LoopState;
use crate::mail::MessageState;
use crate::name::AgentName;
use crate::session::{Conversation, Run};
use jiff::Timestamp;
use std::collections::BTreeMap;
use uuid::Uuid;

/// An agent as the journal knows it.
#[derive(Debug, Clone, Default)]
pub struct JournalRow {
    pub run: Option<Run>,
    pub conversation: Option<Conversation>,
    /// Open asks, oldest first.
    pub asks: Vec<AskState>,
    /// Unread mail from the agent to the person, oldest first.
    pub mail_to_person: Vec<MessageState>,
    /// Messages of the person to the agent that have failed or are uncertain, and that nobody has read.
    pub troubled: Vec<MessageState>,
    pub unread: u64,
    pub held: u64,
    pub loop_state: Option<LoopState>,
    /// Derived asks that the person has put aside.
    pub seen: Vec<Uuid>,
}

/// What a session reports of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveSession {
    pub activity: LiveActivity,
    pub since: Timestamp,
    pub evidence: String,
    /// The dialog that blocks the agent, if the session has not opened an ask for it yet.
    pub blocked_on: Option<String>,
    pub paused: Option<String>,
}

/// The activity of a running session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LiveActivity {
    Starting,
    Idle,
    Working,
    Blocked,
}

/// News about one agent.
#[derive(Debug, Clone)]
pub enum BoardUpdate {
    Journal(Box<JournalRow>),
    /// The session has reported its state.
    Session(Box<LiveSession>),
    /// The session is alive and has not answered since this time.
    Silent {
        since: Timestamp,
    },
    /// No session of the agent is running.
    NoSession,
}

/// The state of an agent's session.
#[derive(Debug, Clone, Default)]
enum SessionView {
    #[default]
    None,
    Live(Box<LiveSession>),
    Silent {
        since: Timestamp,
        last: Option<Box<LiveSession>>,
    },
}

#[derive(Debug, Clone, Default)]
struct Entry {
    journal: JournalRow,
    session: SessionView,
}

#[derive(Debug, Clone, Default)]
pub struct Board {
    entries: BTreeMap<AgentName, Entry>,
}

impl Board {
    pub fn apply(&mut self, agent: &AgentName, update: BoardUpdate) {
        let entry = self.entries.entry(agent.clone()).or_default();
        match update {
            BoardUpdate::Journal(row) => entry.journal = *row,
            BoardUpdate::Session(live) => entry.session = SessionView::Live(live),
            BoardUpdate::Silent { since } => {
                let last = match std::mem::take(&mut entry.session) {
                    SessionView::Live(live) => Some(live),
                    SessionView::Silent { last, .. } => last,
                    SessionView::None => None,
                };
                entry.session = SessionView::Silent { since, last };
            }
            BoardUpdate::NoSession => entry.session = SessionView::None,
        }
    }

    /// Remove an agent.
    pub fn remove(&mut self, agent: &AgentName) {
        self.entries.remove(agent);
    }

    /// Return all agents by need, and those of equal need by the time since which they have it.
    pub fn rows(&self) -> Vec<BoardRow> {
        let mut rows: Vec<BoardRow> = self
            .entries
            .iter()
            .map(|(agent, entry)| row::row(agent, entry))
            .collect();
        rows.sort_by(|a, b| (a.need, a.since, &a.agent).cmp(&(b.need, b.since, &b.agent)));
        rows
    }

    /// Return everything that waits for a person, in the order of need, oldest first.
    pub fn asks(&self) -> Vec<BoardAsk> {
        let asks = self.entries.iter();
        let mut asks: Vec<BoardAsk> = asks
            .flat_map(|(agent, entry)| row::asks(agent, entry))
            .collect();
        asks.sort_by_key(|ask| (ask.kind, ask.since, ask.id));
        asks
    }

    /// Return how many agents wait for the person: those that ask, are in trouble or have written.
    pub fn waiting(&self) -> usize {
        let asks = self.asks();
        let mut agents: Vec<&AgentName> = asks.iter().map(|ask| &ask.agent).collect();
        agents.sort_unstable();
        agents.dedup();
        agents.len()
    }
}

/// Return the need of an ask.
fn need_of(kind: AskKind) -> Need {
    match kind {
        AskKind::Permission | AskKind::Question => Need::Asks,
        AskKind::Trouble => Need::Trouble,
        AskKind::Mail => Need::Mail,
    }
}
