//! A picture of the board at one moment: the journal's rows, and the state of every live session.

use crate::session::sessions::{self, NO_RESPONSE};
use posthaste_core::board::{Board, BoardUpdate, LiveActivity, LiveSession};
use posthaste_core::{AgentName, Timestamp};
use posthaste_store::report::Result;
use posthaste_store::{Home, Journal, Patience};
use posthaste_wire::{Activity, Session};
use std::collections::BTreeSet;

/// Read the journal, ask every live session, and return the board.
pub fn snapshot(home: &Home, patience: Patience, now: Timestamp) -> Result<Board> {
    let mut board = Board::default();
    let live = sessions::running(home, patience, now)?;
    if let Some(mut journal) = Journal::open_existing(home.clone(), patience)? {
        let mut to_person = journal.mail_to_person(now)?;
        let runs = journal.sessions()?.into_iter().map(|run| run.agent);
        let senders = to_person.keys().cloned();
        let agents: BTreeSet<AgentName> = runs.chain(senders).chain(journal.agents()?).collect();
        for agent in agents.iter().filter(|agent| !agent.is_human()) {
            let mut row = journal.board_row(agent, now)?;
            row.mail_to_person = to_person.remove(agent).unwrap_or_default();
            board.apply(agent, BoardUpdate::Journal(Box::new(row)));
        }
    }
    for session in &live {
        if let Ok(agent) = AgentName::parse(&session.name) {
            board.apply(&agent, update_of(session));
        }
    }
    Ok(board)
}

/// Return what a session's description says about the board.
pub fn update_of(session: &Session) -> BoardUpdate {
    let activity = match session.activity {
        Activity::Starting => LiveActivity::Starting,
        Activity::Idle => LiveActivity::Idle,
        Activity::Working => LiveActivity::Working,
        Activity::Blocked if session.blocked_on.as_deref() == Some(NO_RESPONSE) => {
            return BoardUpdate::Silent {
                since: session.since,
            };
        }
        Activity::Blocked => LiveActivity::Blocked,
        Activity::Exited => return BoardUpdate::NoSession,
    };
    BoardUpdate::Session(Box::new(LiveSession {
        activity,
        since: session.since,
        evidence: session.evidence.clone(),
        blocked_on: session.blocked_on.clone(),
        paused: session.paused.clone(),
    }))
}
