//! Errors of a script call. Each names the script, the operation and the end of standard error.

use super::process::MAX_STDOUT_BYTES;
use posthaste_core::text;
use posthaste_store::report::Report;
use posthaste_wire::provider::{ALREADY_ARCHIVED, UNKNOWN_OP_STATUS};
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// A failed call of a script.
#[derive(Debug)]
pub struct ScriptError {
    script: PathBuf,
    op: String,
    kind: ScriptErrorKind,
}

#[derive(Debug)]
pub(crate) enum ScriptErrorKind {
    NotStarted(std::io::Error),
    UnknownOperation(String),
    NotFound(String),
    AlreadyArchived,
    Failed {
        how: String,
        stderr: String,
    },
    /// A signal ended the script.
    Killed {
        how: String,
        stderr: String,
    },
    TimedOut {
        timeout: Duration,
        stderr: String,
    },
    OutputTooLarge {
        stderr: String,
    },
    InvalidReply {
        why: String,
        stderr: String,
    },
    /// The script exited with 0 without reading its input.
    InputUnread {
        stderr: String,
    },
    /// The script exited, and processes that it had started did not.
    LeftProcesses {
        how: String,
        left: String,
        stderr: String,
    },
    Cancelled,
    Io(std::io::Error),
}

impl ScriptError {
    pub(super) fn new(script: PathBuf, op: &str, kind: ScriptErrorKind) -> Self {
        Self {
            script,
            op: op.to_owned(),
            kind,
        }
    }

    pub fn is_unknown_op(&self) -> bool {
        matches!(self.kind, ScriptErrorKind::UnknownOperation(_))
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, ScriptErrorKind::NotFound(_))
    }

    pub fn is_already_archived(&self) -> bool {
        matches!(self.kind, ScriptErrorKind::AlreadyArchived)
    }

    /// Return whether it is certain that the operation had no effect: the script refused it, or never
    /// ran. A script that was cut off, or whose reply is invalid, may have carried it out.
    pub fn is_denial(&self) -> bool {
        match &self.kind {
            ScriptErrorKind::NotStarted(_)
            | ScriptErrorKind::UnknownOperation(_)
            | ScriptErrorKind::NotFound(_)
            | ScriptErrorKind::AlreadyArchived
            | ScriptErrorKind::Failed { .. } => true,
            ScriptErrorKind::Killed { .. }
            | ScriptErrorKind::TimedOut { .. }
            | ScriptErrorKind::OutputTooLarge { .. }
            | ScriptErrorKind::InvalidReply { .. }
            | ScriptErrorKind::InputUnread { .. }
            | ScriptErrorKind::LeftProcesses { .. }
            | ScriptErrorKind::Cancelled
            | ScriptErrorKind::Io(_) => false,
        }
    }

    pub fn is_timeout(&self) -> bool {
        matches!(self.kind, ScriptErrorKind::TimedOut { .. })
    }
}

/// Return the end of standard error as the end of an error message.
fn stderr_suffix(stderr: &str) -> String {
    if stderr.is_empty() {
        "; standard error was empty".to_owned()
    } else {
        format!("; standard error: {stderr}")
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = text::one_line(&self.op, 40);
        let script = self.script.display();
        match &self.kind {
            ScriptErrorKind::NotStarted(error) => {
                write!(f, "cannot run {script} for '{op}': {error}")
            }
            ScriptErrorKind::UnknownOperation(stderr) => write!(
                f,
                "{script} does not know '{op}' (exit {UNKNOWN_OP_STATUS}){}",
                stderr_suffix(stderr)
            ),
            ScriptErrorKind::NotFound(stderr) => write!(
                f,
                "'{op}': {script} did not find the message{}",
                stderr_suffix(stderr)
            ),
            ScriptErrorKind::AlreadyArchived => {
                write!(f, "'{op}': {script} reports: {ALREADY_ARCHIVED}")
            }
            ScriptErrorKind::Failed { how, stderr } | ScriptErrorKind::Killed { how, stderr } => {
                write!(
                    f,
                    "{script} failed at '{op}' ({how}){}",
                    stderr_suffix(stderr)
                )
            }
            ScriptErrorKind::TimedOut { timeout, stderr } => write!(
                f,
                "'{op}' timed out after {timeout:?}: {script} was killed{}",
                stderr_suffix(stderr)
            ),
            ScriptErrorKind::OutputTooLarge { stderr } => write!(
                f,
                "'{op}' failed: {script} wrote more than {} MiB and was killed{}",
                MAX_STDOUT_BYTES >> 20,
                stderr_suffix(stderr)
            ),
            ScriptErrorKind::InvalidReply { why, stderr } => write!(
                f,
                "invalid reply of {script} to '{op}': {why}{}",
                stderr_suffix(stderr)
            ),
            ScriptErrorKind::InputUnread { stderr } => write!(
                f,
                "'{op}' failed: {script} exited with 0 without reading its input{}",
                stderr_suffix(stderr)
            ),
            ScriptErrorKind::LeftProcesses { how, left, stderr } => write!(
                f,
                "'{op}' failed: {script} ({how}) left processes running ({left}); they were killed{}",
                stderr_suffix(stderr)
            ),
            ScriptErrorKind::Cancelled => write!(f, "'{op}' of {script} was interrupted"),
            ScriptErrorKind::Io(error) => {
                write!(f, "'{op}': cannot communicate with {script}: {error}")
            }
        }
    }
}

impl From<ScriptError> for Report {
    fn from(error: ScriptError) -> Self {
        match &error.kind {
            ScriptErrorKind::NotStarted(cause) => {
                let hint = match cause.kind() {
                    ErrorKind::NotFound if error.script.exists() => {
                        "the interpreter in its first line does not exist"
                    }
                    ErrorKind::NotFound => "the setting mail.provider names the script",
                    _ if error.script.is_dir() => "it is a directory; a script must be a file",
                    _ if error.script.exists() && !error.script.is_file() => {
                        "the script must be a regular file"
                    }
                    ErrorKind::PermissionDenied => "'chmod +x' makes a file executable",
                    _ => "a script's first line names its interpreter, such as #!/bin/sh",
                };
                Self::usage(&error).hint(hint)
            }
            ScriptErrorKind::UnknownOperation(_) => Self::refused(&error)
                .hint("that script keeps the mail and does not support this operation"),
            ScriptErrorKind::NotFound(_) => Self::not_found(&error),
            ScriptErrorKind::AlreadyArchived => Self::refused(&error),
            ScriptErrorKind::TimedOut { .. } => {
                Self::storage(&error).hint("the setting mail.timeout gives it more time")
            }
            ScriptErrorKind::LeftProcesses { .. } => Self::storage(&error).hint(
                "a script must wait for the processes it starts; only 'ensure-running' may leave a server",
            ),
            ScriptErrorKind::Failed { .. }
            | ScriptErrorKind::Killed { .. }
            | ScriptErrorKind::OutputTooLarge { .. }
            | ScriptErrorKind::InvalidReply { .. }
            | ScriptErrorKind::InputUnread { .. }
            | ScriptErrorKind::Cancelled
            | ScriptErrorKind::Io(_) => Self::storage(&error),
        }
    }
}
