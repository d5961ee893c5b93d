//! What went wrong with a script, told so that it names the script, the operation and what it said.

use super::process::MOST;
use posthaste_core::text;
use posthaste_store::report::Report;
use posthaste_wire::provider::{ALREADY_ARCHIVED, UNKNOWN};
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// What went wrong at which operation of which script.
#[derive(Debug)]
pub struct Trouble {
    script: PathBuf,
    op: String,
    what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    NotStarted(std::io::Error),
    /// It does not know the operation.
    Unknown(String),
    NotFound(String),
    AlreadyArchived,
    Failed {
        how: String,
        said: String,
    },
    /// A signal ended it.
    Killed {
        how: String,
        said: String,
    },
    TooLong {
        timeout: Duration,
        said: String,
    },
    TooMuch {
        said: String,
    },
    /// What it answered is not what the protocol asks for.
    Wrong {
        why: String,
        said: String,
    },
    /// It says that it is done, and has not read what it was told.
    Deaf {
        said: String,
    },
    /// It ended, but what it had started did not.
    Left {
        how: String,
        left: String,
        said: String,
    },
    Stopped,
    Io(std::io::Error),
}

impl Trouble {
    pub(super) fn new(script: PathBuf, op: &str, what: What) -> Self {
        Self {
            script,
            op: op.to_owned(),
            what,
        }
    }

    pub fn is_unknown_op(&self) -> bool {
        matches!(self.what, What::Unknown(_))
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self.what, What::NotFound(_))
    }

    pub fn is_already_archived(&self) -> bool {
        matches!(self.what, What::AlreadyArchived)
    }

    /// Whether the script itself has said that it did not do it, or never ran. Of one that was cut
    /// off, or answered what cannot be read, nobody knows what it has done before.
    pub fn is_denial(&self) -> bool {
        match &self.what {
            What::NotStarted(_)
            | What::Unknown(_)
            | What::NotFound(_)
            | What::AlreadyArchived
            | What::Failed { .. } => true,
            What::Killed { .. }
            | What::TooLong { .. }
            | What::TooMuch { .. }
            | What::Wrong { .. }
            | What::Deaf { .. }
            | What::Left { .. }
            | What::Stopped
            | What::Io(_) => false,
        }
    }

    pub fn is_time_out(&self) -> bool {
        matches!(self.what, What::TooLong { .. })
    }
}

/// What a script said on its standard error, where it said something.
fn and_said(said: &str) -> String {
    if said.is_empty() {
        "; it said nothing on standard error".to_owned()
    } else {
        format!("; it said: {said}")
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = text::one_line(&self.op, 40);
        let script = self.script.display();
        match &self.what {
            What::NotStarted(error) => write!(f, "cannot run {script} for '{op}': {error}"),
            What::Unknown(said) => write!(
                f,
                "{script} does not know '{op}' (exit {UNKNOWN}){}",
                and_said(said)
            ),
            What::NotFound(said) => write!(
                f,
                "{script} found no such message at '{op}'{}",
                and_said(said)
            ),
            What::AlreadyArchived => write!(f, "{script} says at '{op}': {ALREADY_ARCHIVED}"),
            What::Failed { how, said } | What::Killed { how, said } => {
                write!(f, "{script} failed at '{op}' ({how}){}", and_said(said))
            }
            What::TooLong { timeout, said } => write!(
                f,
                "{script} did not answer '{op}' within {timeout:?} and was ended{}",
                and_said(said)
            ),
            What::TooMuch { said } => write!(
                f,
                "{script} wrote more than {} MiB at '{op}' and was ended{}",
                MOST >> 20,
                and_said(said)
            ),
            What::Wrong { why, said } => write!(
                f,
                "{script} answered '{op}' with {why}, which is not what was asked for{}",
                and_said(said)
            ),
            What::Deaf { said } => write!(
                f,
                "{script} did not read all of its input at '{op}', and its answer does not count{}",
                and_said(said)
            ),
            What::Left { how, left, said } => write!(
                f,
                "{script} left processes running at '{op}' ({how}): {left}; they were ended, and its \
                 answer does not count{}",
                and_said(said)
            ),
            What::Stopped => write!(f, "the call of {script} for '{op}' was cut off"),
            What::Io(error) => write!(f, "cannot talk to {script} at '{op}': {error}"),
        }
    }
}

impl From<Trouble> for Report {
    fn from(trouble: Trouble) -> Self {
        match &trouble.what {
            What::NotStarted(error) => {
                let hint = match error.kind() {
                    ErrorKind::NotFound if trouble.script.exists() => {
                        "its first line names an interpreter that is not there"
                    }
                    ErrorKind::NotFound => "the setting mail.provider names it",
                    _ if trouble.script.is_dir() => "it is a directory; a script is one file",
                    _ if trouble.script.exists() && !trouble.script.is_file() => {
                        "it is no file; a script is one"
                    }
                    ErrorKind::PermissionDenied => "'chmod +x' makes a script a command",
                    _ => "a script's first line names its interpreter, such as #!/bin/sh",
                };
                Self::usage(&trouble).hint(hint)
            }
            What::Unknown(_) => Self::refused(&trouble)
                .hint("the mail is kept by that script, and it has no such operation"),
            What::NotFound(_) => Self::not_found(&trouble),
            What::AlreadyArchived => Self::refused(&trouble),
            What::TooLong { .. } => {
                Self::storage(&trouble).hint("the setting mail.timeout gives it more time")
            }
            What::Left { .. } => Self::storage(&trouble).hint(
                "a script waits for what it starts; only 'ensure-running' may leave a server",
            ),
            What::Failed { .. }
            | What::Killed { .. }
            | What::TooMuch { .. }
            | What::Wrong { .. }
            | What::Deaf { .. }
            | What::Stopped
            | What::Io(_) => Self::storage(&trouble),
        }
    }
}
