//! The exit codes of commands, and the error that a failed command prints, with its hint.

use crate::{Denied, Error, Hint};
use posthaste_core::{LoopRefusal, WorkRefusal};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::ErrorKind;
use std::process::ExitCode;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Code {
    Ok,
    /// The answer is no, or nothing was found.
    No,
    Usage,
    NotFound,
    Refused,
    Storage,
}

/// The list of exit codes for `ph help exit-codes` and the man pages.
pub const EXIT_CODES: &str = "\
0  success
1  the answer is no, or nothing was found ('check' without mail, 'doctor' with a problem, 'send --wait' if the state is not reached)
2  usage: the command line, a setting, or a file named on the command line is invalid
3  not found: no such message, task, session or harness, or a prefix that matches more than one
4  refused: the rules do not allow it
5  storage: the home, or the script that keeps the mail, could not be read or written

With 2, 3 and 4 nothing was changed, except that 'import' keeps the facts that it could import, and 'send' stores a message that is part of a storm as failed.
";

impl Code {
    fn number(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Refused => 4,
            Self::Storage => 5,
        }
    }
}

impl From<Code> for ExitCode {
    fn from(code: Code) -> Self {
        Self::from(code.number())
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    code: Code,
    message: String,
    hint: Option<String>,
}

pub type Result<T> = std::result::Result<T, Report>;

impl Report {
    fn new(code: Code, message: impl Display) -> Self {
        Self {
            code,
            message: message.to_string(),
            hint: None,
        }
    }

    pub fn usage(message: impl Display) -> Self {
        Self::new(Code::Usage, message)
    }

    pub fn not_found(message: impl Display) -> Self {
        Self::new(Code::NotFound, message)
    }

    pub fn refused(message: impl Display) -> Self {
        Self::new(Code::Refused, message)
    }

    pub fn storage(message: impl Display) -> Self {
        Self::new(Code::Storage, message)
    }

    /// The reader has closed the output: end silently, as is usual in a pipe.
    pub fn reader_gone() -> Self {
        Self::new(Code::Ok, "the reader has closed the output")
    }

    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Put text before the message, which stays true despite the error.
    pub fn after(mut self, said: &str) -> Self {
        self.message = format!("{said} {}", self.message);
        self
    }

    pub fn code(&self) -> Code {
        self.code
    }

    pub fn message(&self) -> &str {
        &self.message
    }

    pub fn advice(&self) -> Option<&str> {
        self.hint.as_deref()
    }

    /// Return whether the command failed. A closed pipe is not a failure.
    pub fn is_failure(&self) -> bool {
        self.code != Code::Ok
    }
}

impl From<Error> for Report {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::Io { source, .. } | Error::Output(source)
                if source.kind() == ErrorKind::BrokenPipe =>
            {
                return Self::reader_gone();
            }
            Error::NotFound(_)
            | Error::Ambiguous { .. }
            | Error::NoTask(_)
            | Error::AmbiguousTask { .. }
            | Error::NoAsk(_)
            | Error::AmbiguousAsk { .. } => Code::NotFound,
            Error::BadImport { .. } => Code::Usage,
            Error::Unsafe { .. } => Code::Refused,
            Error::Io { .. }
            | Error::Output(_)
            | Error::Full(_)
            | Error::ReadOnly(_)
            | Error::Corrupt { .. }
            | Error::SharedFileSystem { .. }
            | Error::OtherMachine { .. }
            | Error::Displaced(_)
            | Error::Busy { .. }
            | Error::BodyLost { .. }
            | Error::Uncertain(_)
            | Error::WriterGone
            | Error::Overloaded
            | Error::Sqlite(_)
            | Error::Shared(_) => Code::Storage,
        };
        let hint = error.hint();
        Self {
            code,
            message: error.to_string(),
            hint,
        }
    }
}

impl From<Denied> for Report {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::NotFound(id) => Error::NotFound(id.into()).into(),
            Denied::NoTask(id) => Error::NoTask(id.into()).into(),
            Denied::Work(refusal) => work_refused(&refusal),
            Denied::Loop(refusal) => loop_refused(&refusal),
            Denied::Refused { id, refusal } => {
                let hint = match &refusal {
                    posthaste_core::Refusal::ToSelf(_) => {
                        Some("'ph send --allow-self' sends a message to yourself".to_owned())
                    }
                    posthaste_core::Refusal::OutOfReach(_) | posthaste_core::Refusal::Ended(_) => {
                        id.map(|id| format!("'ph show {}' shows its receipts", id.id8()))
                    }
                    posthaste_core::Refusal::NotYours { .. }
                    | posthaste_core::Refusal::NotSender { .. }
                    | posthaste_core::Refusal::AlreadyArchived
                    | posthaste_core::Refusal::Empty
                    | posthaste_core::Refusal::IdTaken => None,
                    posthaste_core::Refusal::RawTooLong => {
                        Some("send it as a message, without --raw".to_owned())
                    }
                    posthaste_core::Refusal::NotTheirsToClose(_)
                    | posthaste_core::Refusal::NothingExpected(_) => {
                        Some("send it without --closes".to_owned())
                    }
                    posthaste_core::Refusal::Ask(_) => {
                        Some("'ph asks --all' shows the questions and their answers".to_owned())
                    }
                };
                let message = match id {
                    Some(id) => format!("message {}: {refusal}", id.id8()),
                    None => refusal.to_string(),
                };
                Self {
                    code: Code::Refused,
                    message,
                    hint,
                }
            }
        }
    }
}

fn work_refused(refusal: &WorkRefusal) -> Report {
    let (code, hint) = match refusal {
        WorkRefusal::Blank { .. } => (Code::Usage, None),
        WorkRefusal::TooLong { .. } => (
            Code::Usage,
            Some("put the text into a file or a message, and refer to that"),
        ),
        WorkRefusal::CannotBegin(_) => (Code::Usage, Some("'ph task status' changes it later")),
        WorkRefusal::NotTheirs { owner, .. } => {
            let hint = format!("write to {owner} about it with 'ph send'");
            return Report::refused(refusal).hint(hint);
        }
        WorkRefusal::NotTheirSession { .. } => (Code::Refused, None),
    };
    Report {
        code,
        message: refusal.to_string(),
        hint: hint.map(str::to_owned),
    }
}

fn loop_refused(refusal: &LoopRefusal) -> Report {
    let (code, hint) = match refusal {
        LoopRefusal::NoLoop(_) => (Code::NotFound, None),
        LoopRefusal::HasEnded { .. }
        | LoopRefusal::NotPaused(_)
        | LoopRefusal::Paused(_)
        | LoopRefusal::Running { .. }
        | LoopRefusal::NotRunning { .. }
        | LoopRefusal::NoPrompt { .. }
        | LoopRefusal::TooMany(_) => (Code::Refused, None),
        LoopRefusal::Blank | LoopRefusal::NothingToDo => (Code::Usage, None),
        LoopRefusal::TooLong(_) => (
            Code::Usage,
            Some("put the text into a file or a message, and refer to that"),
        ),
    };
    Report {
        code,
        message: refusal.to_string(),
        hint: hint.map(str::to_owned),
    }
}
