//! One agent on the board: its state in one word, its need, and its asks.

use super::{Entry, JournalRow, LiveActivity, SessionView, need_of};
use crate::ask::{AskKind, AskState};
use crate::loop_::{LoopEnding, LoopPhase};
use crate::mail::MessageState;
use crate::message::Body;
use crate::name::AgentName;
use crate::session::{Ending, Run};
use crate::text;
use jiff::Timestamp;
use uuid::Uuid;

/// Longest summary of an ask.
const SUMMARY_CHARS: usize = 120;

/// What an agent needs from the person, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Need {
    Asks,
    Trouble,
    Mail,
    Working,
    Idle,
    Ended,
}

/// The state of an agent, in one word for every face.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BoardState {
    Asks,
    Failed,
    /// The session is alive and does not answer.
    NoAnswer,
    Working,
    Starting,
    Idle,
    Ended,
}

impl BoardState {
    pub fn word(self) -> &'static str {
        match self {
            Self::Asks => "asks",
            Self::Failed => "failed",
            Self::NoAnswer => "no answer",
            Self::Working => "working",
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Ended => "ended",
        }
    }

    /// Return the mark in front of the agent, in Unicode and in ASCII.
    pub fn glyphs(self) -> (char, char) {
        match self {
            Self::Asks => ('?', '?'),
            Self::Failed => ('✗', 'x'),
            Self::NoAnswer => ('!', '!'),
            Self::Working => ('●', '*'),
            Self::Starting => ('◌', '~'),
            Self::Idle => ('○', '-'),
            Self::Ended => (' ', ' '),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardRow {
    pub agent: AgentName,
    pub state: BoardState,
    pub need: Need,
    /// Since when the agent has this state. `None` if it has never run.
    pub since: Option<Timestamp>,
    /// The reason for the state in a few words.
    pub detail: String,
    pub unread: u64,
    pub held: u64,
    /// Number of unread messages to the person.
    pub mail_to_person: usize,
}

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BoardAsk {
    /// The id of an ask, or of the message or run that is the reason.
    pub id: Uuid,
    pub agent: AgentName,
    pub kind: AskKind,
    pub since: Timestamp,
    pub summary: String,
    /// The recorded ask, if the agent's program asks.
    pub recorded: Option<Box<AskState>>,
}

pub(super) fn row(agent: &AgentName, entry: &Entry) -> BoardRow {
    let asks = asks(agent, entry);
    let first = asks.iter().min_by_key(|ask| (ask.kind, ask.since));
    let journal = &entry.journal;
    let (state, since) = state(entry, first);
    let need = match first.map(|ask| need_of(ask.kind)) {
        Some(need) => need,
        None => match state {
            BoardState::Asks => Need::Asks,
            BoardState::Failed | BoardState::NoAnswer => Need::Trouble,
            BoardState::Working | BoardState::Starting => Need::Working,
            BoardState::Idle => Need::Idle,
            BoardState::Ended => Need::Ended,
        },
    };
    BoardRow {
        agent: agent.clone(),
        state,
        need,
        since,
        detail: detail(entry, first),
        unread: journal.unread,
        held: journal.held,
        mail_to_person: journal.mail_to_person.len(),
    }
}

fn state(entry: &Entry, first: Option<&BoardAsk>) -> (BoardState, Option<Timestamp>) {
    let live = match &entry.session {
        SessionView::Live(live) => live,
        SessionView::Silent { since, .. } => return (BoardState::NoAnswer, Some(*since)),
        SessionView::None => {
            let end = entry.journal.run.as_ref().and_then(|run| run.end.as_ref());
            let is_failed = first.is_some_and(|ask| ask.kind == AskKind::Trouble);
            let state = if is_failed {
                BoardState::Failed
            } else {
                BoardState::Ended
            };
            return (state, end.map(|(at, _)| *at));
        }
    };
    let state = match (first.map(|ask| ask.kind), live.activity) {
        (Some(AskKind::Permission | AskKind::Question), _) | (_, LiveActivity::Blocked) => {
            let since = first.map_or(live.since, |ask| ask.since);
            return (BoardState::Asks, Some(since));
        }
        (_, LiveActivity::Working) => BoardState::Working,
        (_, LiveActivity::Starting) => BoardState::Starting,
        (_, LiveActivity::Idle) => BoardState::Idle,
    };
    (state, Some(live.since))
}

/// Describe the most urgent need, else the mail that is held.
fn detail(entry: &Entry, first: Option<&BoardAsk>) -> String {
    let journal = &entry.journal;
    match first {
        Some(ask) if ask.kind == AskKind::Mail => {
            format!("{} unread for you", journal.mail_to_person.len())
        }
        Some(ask) => ask.summary.clone(),
        None => {
            let paused = match &entry.session {
                SessionView::Live(live) => live.paused.as_deref(),
                SessionView::None | SessionView::Silent { .. } => None,
            };
            match (journal.held, paused) {
                (0, None) => String::new(),
                (0, Some(why)) => format!("paused: {why}"),
                (held, None) => format!("{held} held"),
                (held, Some(why)) => format!("{held} held: {why}"),
            }
        }
    }
}

pub(super) fn asks(agent: &AgentName, entry: &Entry) -> Vec<BoardAsk> {
    let journal = &entry.journal;
    let ask = |id, kind, since, summary: String| BoardAsk {
        id,
        agent: agent.clone(),
        kind,
        since,
        summary: text::one_line(&summary, SUMMARY_CHARS),
        recorded: None,
    };
    let mut asks: Vec<BoardAsk> = Vec::new();
    // A dialog of a session that is gone cannot be answered.
    let has_session = !matches!(entry.session, SessionView::None);
    let recorded = journal.asks.iter().filter(|_| has_session);
    asks.extend(recorded.map(|state| BoardAsk {
        recorded: Some(Box::new(state.clone())),
        ..ask(
            state.id.0,
            state.opened.kind,
            state.opened_at,
            state.opened.summary.clone(),
        )
    }));
    let ended = ended_badly(journal).filter(|_| !has_session);
    let trouble = loop_trouble(journal).into_iter().chain(ended);
    asks.extend(trouble.map(|(id, since, why)| ask(id, AskKind::Trouble, since, why)));
    asks.extend(journal.troubled.iter().map(|mail| {
        let since = mail
            .receipts
            .last()
            .map_or(mail.message.created_at, |receipt| receipt.at);
        let state = mail.status.receipt();
        ask(
            mail.message.id.0,
            AskKind::Trouble,
            since,
            format!("message {} is {state}", mail.message.id.id8()),
        )
    }));
    asks.extend(journal.mail_to_person.iter().map(|mail| {
        ask(
            mail.message.id.0,
            AskKind::Mail,
            mail.message.created_at,
            first_line(mail),
        )
    }));
    asks.retain(|ask| !journal.seen.contains(&ask.id));
    // A loop that gave up has also ended its session.
    asks.dedup_by_key(|ask| (ask.id, ask.kind));
    asks
}

/// Return the end of the latest run if it needs a person.
fn ended_badly(journal: &JournalRow) -> Option<(Uuid, Timestamp, String)> {
    let run: &Run = journal.run.as_ref()?;
    let id = run.started.run;
    let Some((at, how)) = &run.end else {
        return Some((id, run.started_at, "its session has crashed".to_owned()));
    };
    let why = match how {
        Ending::Exit(0) => return None,
        // How shells report the signals by which a person ends a program.
        Ending::Exit(129 | 130 | 143) | Ending::Signal(1 | 2 | 15) => return None,
        Ending::Exit(status) => format!("exited with status {status}"),
        Ending::Signal(_) | Ending::Crashed | Ending::Failed(_) => how.to_string(),
    };
    Some((id, *at, why))
}

fn loop_trouble(journal: &JournalRow) -> Option<(Uuid, Timestamp, String)> {
    let state = journal.loop_state.as_ref()?;
    let run = journal.run.as_ref()?.started.run;
    match &state.phase {
        LoopPhase::Paused { since } => {
            Some((run, *since, "its loop waits at a checkpoint".to_owned()))
        }
        LoopPhase::Ended { at, how } => match how {
            LoopEnding::GaveUp(_) | LoopEnding::Failed(_) => Some((run, *at, how.to_string())),
            LoopEnding::Complete(_) | LoopEnding::UsedUp | LoopEnding::Stopped => None,
        },
        LoopPhase::Running => None,
    }
}

/// Return the subject of a message, else its first line.
fn first_line(mail: &MessageState) -> String {
    let envelope = &mail.message.envelope;
    let body = match &envelope.body {
        Body::Inline(body) => text::head(body, 1_000),
        Body::Filed { .. } => "",
    };
    let line = body.lines().find(|line| !line.trim().is_empty());
    let subject = envelope.subject.as_deref();
    subject.or(line).unwrap_or_default().to_owned()
}
