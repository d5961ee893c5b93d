//! The driver's vocabulary: an [`Input`] tells it what has happened, and an [`Action`] is what the
//! session must do.

use super::nudge::{NudgeOutcome, NudgeRequest, RequestToken};
use crate::delivery::{LoopWait, PausedBy};
use crate::harness::{Report, Sighting, transcript};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::offer::Said;
use crate::session::{Conversation, Ending};
use crate::turn::{self, Telling};
use jiff::Timestamp;
use uuid::Uuid;

/// Number of a commit, unique within one driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitId(pub(super) u64);

/// Number of a hook call, chosen by the session. It tells the calls of one run apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookCall(pub u64);

/// The agent's mail, as of one read of the journal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MailView {
    /// Number of the journal's last fact when the read began.
    pub head: u64,
    /// Messages that wait for delivery, in delivery order.
    pub pending: Vec<MessageState>,
    /// Messages that the agent owes a reply to.
    pub owed: Vec<MessageState>,
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

/// What the keyboard, or a look at the screen, is for. The two are independent of each other: the
/// keyboard has one queue, and each waits there for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyboardUser {
    /// A turn of messages, or a reminder.
    Turn,
    /// A line that is not a message.
    Nudge,
}

/// A message, and the form in which a turn presents the message.
pub type TurnMessage = (MessageState, Telling);

/// Something that happened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The time from [`super::SessionDriver::next_timeout`] has come.
    Tick,
    /// The periodic check, in case a change of the journal went unnoticed.
    PeriodicCheck,
    /// The journal has changed, and its last fact has this number by now.
    JournalChanged {
        head: u64,
    },
    /// Result of [`Action::ReadMail`].
    MailRead(MailView),
    /// Result of [`Action::ReadMail`]: the journal could not be read.
    MailUnreadable,
    /// Result of [`Action::Commit`]: the journal has recorded the operation for these messages.
    /// `head` is the number of its last fact, at least.
    Committed {
        commit: CommitId,
        ids: Vec<MessageId>,
        head: u64,
    },
    /// Result of [`Action::Commit`]: nothing was recorded. If `is_final`, a retry cannot succeed.
    NotCommitted {
        commit: CommitId,
        why: String,
        is_final: bool,
    },
    /// Result of [`Action::LeaseKeyboard`].
    KeyboardLeased(KeyboardUser),
    /// Result of [`Action::LeaseKeyboard`]: a person has typed something and not submitted it.
    KeyboardRefused(KeyboardUser),
    /// Result of [`Action::LeaseKeyboard`]: the terminal is gone.
    KeyboardGone(KeyboardUser),
    /// Result of [`Action::Type`]: the terminal has all of this text.
    Typed(String),
    /// Result of [`Action::TypeLine`]: the terminal has all of the line.
    LineTyped,
    /// Result of [`Action::PressEnter`].
    EnterPressed(KeyboardUser),
    /// Result of [`Action::Type`], [`Action::TypeLine`], [`Action::PressEnter`] or [`Action::Look`].
    TerminalFailed {
        by: KeyboardUser,
        why: String,
    },
    /// Result of [`Action::PressKeys`]: the keyboard's queue was full.
    KeysDropped,
    /// Result of [`Action::Look`].
    Looked {
        by: KeyboardUser,
        sighting: Sighting,
    },
    /// Result of [`Action::CheckInput`]: whether the program has left input unread.
    InputChecked {
        is_unread: bool,
    },
    /// The screen now shows something else to the manifest.
    ScreenChanged(Sighting),
    /// A dialog has opened or closed, according to other evidence than the screen.
    DialogChanged(Option<String>),
    /// The program has written something.
    OutputSeen,
    /// A person has pressed keys. `is_draft` says whether they left an unsubmitted draft.
    KeysTyped {
        is_draft: bool,
    },
    /// The program has turned bracketed paste on or off.
    PasteMode(bool),
    /// One of the agent's hooks was called.
    HookCalled {
        call: HookCall,
        report: Box<Report>,
        /// Whether the hook can pass mail on to the agent.
        takes_mail: bool,
    },
    /// A hook has passed its mail on to the agent.
    HookPassedOn(u64),
    /// A hook has ended without reporting that it passed its mail on.
    HookGone(u64),
    /// Result of [`Action::AnswerHook`]: the mail could not be rendered, and was not handed over.
    HookUnanswered {
        offer: u64,
        ids: Vec<MessageId>,
        why: String,
    },
    /// Result of [`Action::CheckApi`]: the API leads to this conversation.
    ApiConfirmed(u64),
    /// Result of [`Action::PutMail`].
    ApiAccepted(u64),
    /// Result of [`Action::PutMail`]: nobody knows whether the API has the messages.
    ApiSilent(u64),
    /// Result of [`Action::CheckApi`], [`Action::PutMail`] or [`Action::ApiInterrupt`] (offer 0):
    /// the API was given nothing.
    ApiRefused {
        offer: u64,
        ids: Vec<MessageId>,
        why: String,
    },
    /// Result of [`Action::ApiInterrupt`] or [`Action::ApiContinue`].
    ApiDone,
    /// Result of [`Action::ApiContinue`]: nobody knows whether the agent continues.
    ApiNotContinued {
        why: String,
    },
    /// Result of [`Action::ReadTranscripts`].
    TranscriptsRead(transcript::Shown),
    Paused(PausedBy),
    Released(PausedBy),
    /// The state of a loop has changed.
    LoopChanged(LoopWait),
    /// Somebody wants a line typed. [`Action::EndNudge`] follows.
    NudgeRequested(NudgeRequest),
    /// Somebody wants to answer the question that was open at this time. [`Action::EndAnswerCheck`]
    /// follows.
    AnswerRequested {
        token: RequestToken,
        asked_at: Timestamp,
    },
    /// The program has ended.
    Exited(Ending),
}

impl Input {
    /// Whether this is the result of an action that the driver counts. Commits, reads of the mail and
    /// checks for unread input are tracked elsewhere.
    pub(super) fn is_counted_result(&self) -> bool {
        match self {
            Self::KeyboardLeased(_)
            | Self::KeyboardRefused(_)
            | Self::KeyboardGone(_)
            | Self::Typed(_)
            | Self::LineTyped
            | Self::EnterPressed(_)
            | Self::TerminalFailed { .. }
            | Self::Looked { .. }
            | Self::ApiConfirmed(_)
            | Self::ApiAccepted(_)
            | Self::ApiSilent(_)
            | Self::ApiRefused { .. }
            | Self::ApiDone
            | Self::ApiNotContinued { .. }
            | Self::TranscriptsRead(_) => true,
            Self::Tick
            | Self::PeriodicCheck
            | Self::JournalChanged { .. }
            | Self::MailRead(_)
            | Self::MailUnreadable
            | Self::Committed { .. }
            | Self::NotCommitted { .. }
            | Self::KeysDropped
            | Self::InputChecked { .. }
            | Self::ScreenChanged(_)
            | Self::DialogChanged(_)
            | Self::OutputSeen
            | Self::KeysTyped { .. }
            | Self::PasteMode(_)
            | Self::HookCalled { .. }
            | Self::HookPassedOn(_)
            | Self::HookGone(_)
            | Self::HookUnanswered { .. }
            | Self::Paused(_)
            | Self::Released(_)
            | Self::LoopChanged(_)
            | Self::NudgeRequested(_)
            | Self::AnswerRequested { .. }
            | Self::Exited(_) => false,
        }
    }
}

/// What a commit records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// One step in the delivery of these messages.
    Say { ids: Vec<MessageId>, said: Said },
    /// The expiry of all messages whose time has run out.
    Expire,
    /// The conversation that the program is in.
    Converse(Conversation),
    /// The outcome of offers of earlier runs, according to the transcript of the resumed
    /// conversation.
    SettleEarlierOffers(Conversation),
    /// The outcome of mail that a killed hook did not print.
    CloseKilledHooks,
}

/// The text of one turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    Messages(Vec<TurnMessage>),
    /// A reminder of the replies that the agent owes.
    Reminder(Vec<MessageState>),
}

impl Turn {
    pub fn messages(&self) -> Vec<MessageState> {
        match self {
            Self::Messages(told) => told
                .iter()
                .map(|(message_state, _)| message_state.clone())
                .collect(),
            Self::Reminder(messages) => messages.clone(),
        }
    }
}

/// Mail for one call of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookMail {
    /// The number by which [`Input::HookPassedOn`] and [`Input::HookGone`] name this offer.
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
        operation: Operation,
    },
    LeaseKeyboard(KeyboardUser),
    /// Give the keyboard back. No input follows.
    ReleaseKeyboard(KeyboardUser),
    /// Type the text of a turn, in the given input mode of the program.
    Type {
        turn: Turn,
        mode: turn::Input,
    },
    /// Type a line that is not a message.
    TypeLine(String),
    PressEnter {
        by: KeyboardUser,
        keys: Vec<u8>,
    },
    /// Press these keys outside a turn. An input follows only if the queue is full.
    PressKeys(Vec<u8>),
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
    /// Put mail before the agent through its API.
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
    /// Tell the sender of a nudge the outcome. No input follows.
    EndNudge {
        token: RequestToken,
        outcome: NudgeOutcome,
    },
    /// Tell the sender of an answer whether the answer can be recorded now, or why not. No input
    /// follows.
    EndAnswerCheck {
        token: RequestToken,
        refusal: Option<String>,
    },
}
