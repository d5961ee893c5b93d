//! The error that a failed command prints: its exit code, its message and a hint.
//!
//! Every crate above this one returns it, so it is here, and not at the edge.

use crate::{Denied, Error};
use posthaste_core::{LoopRefusal, MessageId, Refusal, WorkRefusal};
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use std::io::ErrorKind;
use std::process::ExitCode;

const LONG_TEXT_HINT: &str = "put the text into a file or a message, and refer to that";

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

    /// Put text before the message.
    pub fn after(mut self, text: &str) -> Self {
        self.message = format!("{text} {}", self.message);
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
        Self {
            code,
            message: error.to_string(),
            hint: error.hint(),
        }
    }
}

impl From<Denied> for Report {
    fn from(denied: Denied) -> Self {
        match &denied {
            Denied::NotFound(id) => Error::NotFound((*id).into()).into(),
            Denied::NoTask(id) => Error::NoTask((*id).into()).into(),
            Denied::Work(refusal) => work_refused(refusal),
            Denied::Loop(refusal) => loop_refused(refusal),
            Denied::Refused { id, refusal } => refused(*id, refusal),
        }
    }
}

fn refused(id: Option<MessageId>, refusal: &Refusal) -> Report {
    let report = match id {
        Some(id) => Report::refused(format!("message {}: {refusal}", id.id8())),
        None => Report::refused(refusal),
    };
    match (refusal, id) {
        (Refusal::ToSelf(_), _) => {
            report.hint("'ph send --allow-self' sends a message to yourself")
        }
        (Refusal::OutOfReach(_) | Refusal::Ended(_), Some(id)) => {
            report.hint(format!("'ph show {}' shows its receipts", id.id8()))
        }
        (Refusal::RawTooLong, _) => report.hint("send it as a message, without --raw"),
        (Refusal::NotTheirsToClose(_) | Refusal::NothingExpected(_), _) => {
            report.hint("send it without --closes")
        }
        (Refusal::Ask(_), _) => {
            report.hint("'ph asks --all' shows the questions and their answers")
        }
        (Refusal::OutOfReach(_) | Refusal::Ended(_), None)
        | (Refusal::NotYours { .. } | Refusal::NotSender { .. } | Refusal::AlreadyArchived, _)
        | (Refusal::Empty | Refusal::IdTaken, _) => report,
    }
}

fn work_refused(refusal: &WorkRefusal) -> Report {
    match refusal {
        WorkRefusal::Blank { .. } => Report::usage(refusal),
        WorkRefusal::TooLong { .. } => Report::usage(refusal).hint(LONG_TEXT_HINT),
        WorkRefusal::CannotBegin(_) => {
            Report::usage(refusal).hint("'ph task status' changes it later")
        }
        WorkRefusal::NotTheirs { owner, .. } => {
            Report::refused(refusal).hint(format!("write to {owner} about it with 'ph send'"))
        }
        WorkRefusal::NotTheirSession { .. } => Report::refused(refusal),
    }
}

fn loop_refused(refusal: &LoopRefusal) -> Report {
    match refusal {
        LoopRefusal::NoLoop(_) => Report::not_found(refusal),
        LoopRefusal::Blank | LoopRefusal::NothingToDo => Report::usage(refusal),
        LoopRefusal::TooLong(_) => Report::usage(refusal).hint(LONG_TEXT_HINT),
        LoopRefusal::HasEnded { .. }
        | LoopRefusal::NotPaused(_)
        | LoopRefusal::Paused(_)
        | LoopRefusal::Running { .. }
        | LoopRefusal::NotRunning { .. }
        | LoopRefusal::NoPrompt { .. }
        | LoopRefusal::TooMany(_) => Report::refused(refusal),
    }
}
