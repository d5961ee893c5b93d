//! A turn on its way to the agent: messages, an answer, a reminder or a line.

use super::conditions::proof::FoundMessages;
use super::nudges::Line;
use crate::driver::{CommitId, JournalOperation, KeyboardUser};
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;
use crate::priority::Priority;
use crate::promotion;
use jiff::Timestamp;

/// A class of messages with common delivery rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lane {
    Raw,
    Interrupt,
    Normal,
    Idle,
}

impl Lane {
    pub(crate) fn of(mail: &MessageState) -> Self {
        Self::with(mail, mail.message.envelope.priority)
    }

    /// Return the lane at `now`, when the message may have been promoted.
    pub(crate) fn at(mail: &MessageState, now: Timestamp) -> Self {
        Self::with(mail, promotion::priority(&mail.message, now))
    }

    fn with(mail: &MessageState, priority: Priority) -> Self {
        match priority {
            _ if mail.message.envelope.raw => Self::Raw,
            Priority::Interrupt => Self::Interrupt,
            Priority::Normal => Self::Normal,
            Priority::IdleFirst | Priority::Idle => Self::Idle,
        }
    }

    pub(crate) fn goes_alone(self) -> bool {
        match self {
            Self::Raw | Self::Interrupt => true,
            Self::Normal | Self::Idle => false,
        }
    }
}

/// A question of the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Question {
    pub(crate) number: u64,
    pub(crate) what: String,
}

/// The keys of an answer, and the state of the screen before they were typed.
#[derive(Debug, Clone)]
pub(crate) struct Answer {
    /// The question that was open when the turn began.
    pub(crate) question: Option<Question>,
    pub(crate) keys: String,
    /// Key of the option to which the keys move the marker. Enter then chooses it.
    pub(crate) arrows_to: Option<String>,
    /// How often the keys were typed.
    pub(crate) attempts: u8,
    /// Amount of output that the program had written.
    pub(crate) output: Option<u64>,
    /// The text before the cursor.
    pub(crate) at_cursor: Option<String>,
}

/// The content of a turn.
#[derive(Debug, Clone)]
pub(crate) enum TurnKind {
    Messages,
    /// A raw message, which answers a question.
    Answer(Answer),
    /// A reminder that these messages expect replies. Its only receipt is recorded before it is
    /// typed.
    Reminder,
    /// A line that is not a message.
    Line(Line),
}

/// A turn on its way to the agent.
#[derive(Debug, Clone)]
pub(crate) struct OutgoingTurn {
    /// Number of the offer, and of the commit that records it.
    pub(crate) number: u64,
    pub(crate) messages: Vec<MessageState>,
    pub(crate) kind: TurnKind,
    pub(crate) lane: Lane,
    pub(crate) since: Moment,
    /// Text appended to the evidence of the receipt, each part after a semicolon.
    pub(crate) notes: String,
    /// The agent's evidence that the text was submitted.
    pub(crate) proof: Option<FoundMessages>,
}

impl OutgoingTurn {
    pub(crate) fn ids(&self) -> Vec<MessageId> {
        self.messages.iter().map(|mail| mail.message.id).collect()
    }

    pub(crate) fn has(&self, id: MessageId) -> bool {
        self.messages.iter().any(|mail| mail.message.id == id)
    }

    /// Whether this message is in the text. A reminder of a message does not carry the message.
    pub(crate) fn carries(&self, id: MessageId) -> bool {
        match self.kind {
            TurnKind::Messages | TurnKind::Answer(_) => self.has(id),
            TurnKind::Reminder | TurnKind::Line(_) => false,
        }
    }

    pub(crate) fn carries_any(&self, ids: &[MessageId]) -> bool {
        ids.iter().any(|id| self.carries(*id))
    }

    /// Keep the messages whose offer the journal has recorded.
    pub(crate) fn retain(&mut self, recorded: &[MessageId]) {
        self.messages
            .retain(|mail| recorded.contains(&mail.message.id));
    }

    pub(crate) fn commit(&self) -> CommitId {
        CommitId(self.number)
    }

    /// Return the operation that records that this turn is about to go by a route.
    pub(crate) fn offering(&self, route: Route) -> JournalOperation {
        let route = route.as_str().to_owned();
        let report = match self.kind {
            TurnKind::Reminder => OfferReport::Reminded { route },
            TurnKind::Messages | TurnKind::Answer(_) | TurnKind::Line(_) => OfferReport::Offering {
                route,
                repeats: MessageState::repeats(&self.messages),
            },
        };
        let ids = self.ids();
        JournalOperation::RecordStep { ids, report }
    }

    pub(crate) fn is_answer(&self) -> bool {
        self.answer().is_some()
    }

    pub(crate) fn answer(&self) -> Option<&Answer> {
        match &self.kind {
            TurnKind::Answer(answer) => Some(answer),
            TurnKind::Messages | TurnKind::Reminder | TurnKind::Line(_) => None,
        }
    }

    pub(crate) fn line(&self) -> Option<&Line> {
        match &self.kind {
            TurnKind::Line(line) => Some(line),
            TurnKind::Messages | TurnKind::Answer(_) | TurnKind::Reminder => None,
        }
    }

    /// Return the part of the driver for which this turn takes the keyboard.
    pub(crate) fn user(&self) -> KeyboardUser {
        match self.kind {
            TurnKind::Messages | TurnKind::Answer(_) | TurnKind::Reminder => KeyboardUser::Turn,
            TurnKind::Line(_) => KeyboardUser::Nudge,
        }
    }
}
