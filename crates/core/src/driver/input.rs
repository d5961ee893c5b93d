//! The inputs of the driver: everything that can happen to a session.

use super::{AnswerRequest, CommitId, HookCall, KeyboardUser, MailView};
use crate::delivery::{LoopWait, NudgeRequest, PausedBy};
use crate::harness::{Report, Sighting, transcript};
use crate::id::MessageId;
use crate::session::Ending;

/// Something that happened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Input {
    /// The periodic check, in case a change of the journal went unnoticed.
    PeriodicCheck,
    /// The journal has changed, and its last fact has this number by now.
    JournalChanged { head: u64 },
    /// Result of `Action::ReadMail`.
    MailRead(MailView),
    /// Result of `Action::ReadMail`: the journal could not be read.
    MailUnreadable,
    /// Result of `Action::Commit`: the journal has recorded the operation for these messages.
    /// `head` is the number of its last fact, at least. If the operation `has_more` to record than
    /// one commit takes, it is repeated.
    Committed {
        commit: CommitId,
        ids: Vec<MessageId>,
        head: u64,
        has_more: bool,
    },
    /// Result of `Action::Commit`: nothing was recorded. If `is_final`, a retry cannot succeed.
    NotCommitted {
        commit: CommitId,
        why: String,
        is_final: bool,
    },
    /// Result of `Action::LeaseKeyboard`.
    KeyboardLeased(KeyboardUser),
    /// Result of `Action::LeaseKeyboard`: a person has typed something and not submitted it.
    KeyboardRefused(KeyboardUser),
    /// Result of `Action::LeaseKeyboard`: the terminal is gone.
    KeyboardGone(KeyboardUser),
    /// Result of `Action::Type`: the terminal has all of this text.
    Typed(String),
    /// Result of `Action::TypeLine`: the terminal has all of the line.
    LineTyped,
    /// Result of `Action::PressEnter`.
    EnterPressed(KeyboardUser),
    /// Result of `Action::Type`, `Action::TypeLine`, `Action::PressEnter` or `Action::Look`.
    TerminalFailed { by: KeyboardUser, why: String },
    /// Result of `Action::PressKeys` or `Action::ClearBox`: the keyboard's queue was full.
    KeysDropped,
    /// Result of `Action::Look`.
    Looked {
        by: KeyboardUser,
        sighting: Sighting,
    },
    /// Result of `Action::CheckInput`: whether the program has left input unread.
    InputChecked { is_unread: bool },
    /// The screen now shows something else to the manifest.
    ScreenChanged(Sighting),
    /// A dialog has opened or closed, according to other evidence than the screen.
    DialogChanged(Option<String>),
    /// The program has written something.
    OutputSeen,
    /// A person has pressed keys. `is_draft` says whether they left an unsubmitted draft.
    KeysTyped { is_draft: bool },
    /// Whether the program requests bracketed paste now. This may be repeated.
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
    /// Result of `Action::AnswerHook`: the mail could not be rendered, and was not passed on.
    HookUnanswered {
        offer: u64,
        ids: Vec<MessageId>,
        why: String,
    },
    /// Result of `Action::CheckApi`: the API leads to this conversation.
    ApiConfirmed(u64),
    /// Result of `Action::PutMail`.
    ApiAccepted(u64),
    /// Result of `Action::PutMail`: it is unknown whether the API has the messages.
    ApiSilent(u64),
    /// Result of `Action::CheckApi`, `Action::PutMail` or `Action::ApiInterrupt` (offer 0):
    /// the API was given nothing.
    ApiRefused {
        offer: u64,
        ids: Vec<MessageId>,
        why: String,
    },
    /// Result of `Action::ApiInterrupt` or `Action::ApiContinue`.
    ApiDone,
    /// Result of `Action::ApiContinue`: it is unknown whether the agent continues.
    ApiNotContinued { why: String },
    /// Result of `Action::ReadTranscripts`.
    TranscriptsRead {
        shown: transcript::Shown,
        /// Why no transcript could be read.
        trouble: Option<String>,
        /// Whether every transcript was read to its end.
        is_complete: bool,
    },
    /// Delivery is paused for this reason.
    Paused(PausedBy),
    /// The pause for this reason has ended.
    Unpaused(PausedBy),
    /// The state of a loop has changed.
    LoopChanged(LoopWait),
    /// A client requests a nudge. `Action::EndNudge` follows.
    NudgeRequested(NudgeRequest),
    /// A client wants to answer the question that was open at this time. `Action::EndAnswerCheck`
    /// follows.
    AnswerRequested(AnswerRequest),
    /// A client requests a pause at the end of the current turn.
    CheckpointRequested,
    /// The program has ended, and all its output was read.
    Exited(Ending),
    /// Result of `Action::EndProcesses`: no process of the program is left that could write to the
    /// transcript.
    ProcessesEnded,
}
