//! The actions that the driver requests from the session, and the data that they carry.

use crate::ask::{AskOpened, CloseReason};
use crate::delivery::{NudgeOutcome, RequestToken};
use crate::id::{AskId, MessageId};
use crate::mail::MessageState;
use crate::offer::OfferReport;
use crate::session::Conversation;
use crate::turn::{InputMode, TextPlacement};
use jiff::Timestamp;
use uuid::Uuid;

/// Number of a commit, unique within one driver. An offer has the number of its commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitId(pub(crate) u64);

/// Number of a hook call, chosen by the session and unique within one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookCall(pub u64);

/// The agent's mail, as of one read of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailView {
    /// Number of the journal's last fact when the read began.
    pub head: u64,
    /// Messages that wait for delivery, in delivery order.
    pub pending: Vec<MessageState>,
    /// Messages that expect a reply of the agent.
    pub pending_replies: Vec<MessageState>,
    /// When a message next comes due, is promoted or expires.
    pub next_change: Option<Timestamp>,
}

/// The details of a run that are recorded with its conversation.
#[derive(Debug, Clone)]
pub struct RunIdentity {
    pub run: Uuid,
    pub harness: String,
    pub cwd: String,
}

/// The part of the driver that needs the keyboard or a look at the screen. The parts do not know of
/// each other: the keyboard's queue keeps them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyboardUser {
    /// A turn of messages, or a reminder.
    Turn,
    /// A line that is not a message.
    Nudge,
}

/// A message of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnMessage {
    pub state: MessageState,
    pub placement: TextPlacement,
}

/// A change that a commit records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JournalOperation {
    /// One step in the delivery of these messages.
    RecordStep {
        ids: Vec<MessageId>,
        report: OfferReport,
    },
    /// The expiry of all messages whose time has run out.
    Expire,
    /// The conversation that the program is in.
    RecordConversation(Conversation),
    /// The outcome of offers of earlier runs, according to the transcript of the resumed
    /// conversation.
    SettleEarlierOffers(Conversation),
    /// The outcome of mail that a killed hook did not print.
    CloseKilledHooks,
    /// The end of offers whose proof can no longer come, because the program has ended.
    CloseUnproven,
    /// The program's question, as an ask with this id.
    OpenAsk { id: AskId, opened: Box<AskOpened> },
    /// The end of an ask.
    CloseAsk { ask: AskId, reason: CloseReason },
}

impl JournalOperation {
    /// Whether this is a step in the delivery of a message.
    pub fn has(&self, id: MessageId) -> bool {
        matches!(self, Self::RecordStep { ids, .. } if ids.contains(&id))
    }

    /// Whether this records that an offer or a reminder is about to begin.
    pub(crate) fn begins_offer(&self) -> bool {
        use OfferReport::{Offering, Reminded};
        let Self::RecordStep { report, .. } = self else {
            return false;
        };
        matches!(report, Offering { .. } | Reminded { .. })
    }
}

/// The content of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnContent {
    Messages(Vec<TurnMessage>),
    /// A reminder that these messages expect replies.
    Reminder(Vec<MessageState>),
}

impl TurnContent {
    pub fn messages(&self) -> Vec<MessageState> {
        match self {
            Self::Messages(messages) => messages.iter().map(|m| m.state.clone()).collect(),
            Self::Reminder(messages) => messages.clone(),
        }
    }
}

/// Mail for one call of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookMail {
    /// The number by which `Input::HookPassedOn` and `Input::HookGone` name this offer.
    pub offer: u64,
    pub messages: Vec<TurnMessage>,
}

/// Something that the session must do. The result of each action is one input,
/// unless noted otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    ReadMail,
    Commit {
        commit: CommitId,
        operation: JournalOperation,
    },
    LeaseKeyboard(KeyboardUser),
    /// Give the keyboard back. No input follows.
    ReleaseKeyboard(KeyboardUser),
    /// Type the text of a turn, in the given input mode of the program.
    Type {
        turn: TurnContent,
        mode: InputMode,
    },
    /// Type a line that is not a message.
    TypeLine(String),
    PressEnter {
        by: KeyboardUser,
        keys: Vec<u8>,
    },
    /// Press these keys outside a turn. An input follows only if the queue is full.
    PressKeys(Vec<u8>),
    /// Press these keys, which clear the input box. A key of a person that is typed meanwhile goes
    /// first, and then these keys are not pressed: they would clear that key too. An input follows
    /// only if the queue is full.
    ClearBox(Vec<u8>),
    /// Read the screen once all output of the program is on it.
    Look(KeyboardUser),
    /// Check at once whether the program has unread input.
    CheckInput,
    /// Forget the keys that a person has typed: the screen shows that they left no draft. No input
    /// follows.
    ForgetKeys,
    /// Answer a hook call, with mail or with nothing. An input follows only if mail cannot be
    /// rendered, or once the hook has passed it on or is gone.
    AnswerHook {
        call: HookCall,
        mail: Option<HookMail>,
    },
    /// Check that the agent's API leads to this conversation.
    CheckApi {
        offer: u64,
        conversation: String,
    },
    /// Send mail to the agent through its API.
    PutMail {
        offer: u64,
        messages: Vec<TurnMessage>,
        conversation: String,
    },
    /// Interrupt the agent through its API.
    ApiInterrupt {
        conversation: String,
    },
    /// Have the agent answer the last message that its API was given, if it has not.
    ApiContinue {
        conversation: String,
    },
    /// Follow a transcript: from its beginning, or from its present end. No input follows.
    FollowTranscript {
        path: String,
        from_start: bool,
    },
    /// Move the read offsets of all transcripts to their present ends. No input follows.
    SkipTranscripts,
    ReadTranscripts,
    /// Publish that delivery is paused at the requested checkpoint. No input follows.
    ReportCheckpoint,
    /// End the processes that the program has left.
    EndProcesses,
    /// Tell the sender of a nudge the outcome. No input follows.
    EndNudge {
        token: RequestToken,
        outcome: NudgeOutcome,
    },
    /// Tell the sender of an answer that the answer can be recorded now, with the keys that choose its
    /// option, or why not. No input follows.
    EndAnswerCheck {
        token: RequestToken,
        keys: Result<Option<String>, String>,
    },
}
