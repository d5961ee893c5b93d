//! The driver's vocabulary: an [`Input`] tells it what has happened, and an [`Action`] is what the
//! session must do.

use crate::delivery::{LoopWait, PausedBy};
use crate::harness::{Report, Sighting, transcript};
use crate::id::MessageId;
use crate::mail::Letter;
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
    /// Messages that wait for delivery, in delivery order.
    pub pending: Vec<Letter>,
    /// Messages that the agent owes a reply to.
    pub owed: Vec<Letter>,
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

/// A message, and the form in which a turn presents the message.
pub type ToldLetter = (Letter, Telling);

/// Something that happened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The time from [`super::SessionDriver::next_timeout`] has come.
    Tick,
    /// The periodic check, in case a change of the journal went unnoticed.
    PeriodicCheck,
    /// The journal has changed. With `has_mail`, this session has stored a message.
    JournalChanged {
        has_mail: bool,
    },
    /// Result of [`Action::ReadMail`].
    MailRead(MailView),
    /// Result of [`Action::ReadMail`]: the journal could not be read.
    MailUnreadable,
    /// Result of [`Action::Commit`]: the journal has recorded the operation for these messages.
    Committed {
        commit: CommitId,
        ids: Vec<MessageId>,
    },
    /// Result of [`Action::Commit`]: nothing was recorded. If `is_final`, a retry cannot succeed.
    NotCommitted {
        commit: CommitId,
        why: String,
        is_final: bool,
    },
    /// Result of [`Action::LeaseKeyboard`].
    KeyboardLeased,
    /// Result of [`Action::LeaseKeyboard`]: a person has typed something and not submitted it.
    KeyboardRefused,
    /// Result of [`Action::LeaseKeyboard`]: the terminal is gone.
    KeyboardGone,
    /// Result of [`Action::Type`]: the terminal has all of this text.
    Typed(String),
    /// Result of [`Action::PressEnter`].
    EnterPressed,
    /// Result of [`Action::Type`], [`Action::PressEnter`] or [`Action::Look`].
    TerminalFailed(String),
    /// Result of [`Action::PressKeys`]: the keyboard's queue was full.
    KeysDropped,
    /// Result of [`Action::Look`].
    Looked(Sighting),
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
    /// The program has ended.
    Exited(Ending),
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
    Messages(Vec<ToldLetter>),
    /// A reminder of the replies that the agent owes.
    Reminder(Vec<Letter>),
}

impl Turn {
    pub fn letters(&self) -> Vec<Letter> {
        match self {
            Self::Messages(told) => told.iter().map(|(letter, _)| letter.clone()).collect(),
            Self::Reminder(letters) => letters.clone(),
        }
    }
}

/// Mail for one call of a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookMail {
    /// The number by which [`Input::HookPassedOn`] and [`Input::HookGone`] name this offer.
    pub offer: u64,
    pub letters: Vec<ToldLetter>,
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
    LeaseKeyboard,
    /// Give the keyboard back. No input follows.
    ReleaseKeyboard,
    /// Type the text of a turn, in the given input mode of the program.
    Type {
        turn: Turn,
        mode: turn::Input,
    },
    PressEnter(Vec<u8>),
    /// Press these keys outside a turn. An input follows only if the queue is full.
    PressKeys(Vec<u8>),
    /// Read the screen once all output of the program is on it.
    Look,
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
        letters: Vec<ToldLetter>,
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
}
