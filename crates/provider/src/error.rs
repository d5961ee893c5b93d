//! Errors of a script call. Each names the script, the operation and the end of standard error.

use super::process::{CallFailure, MAX_STDOUT_BYTES, describe_exit};
use posthaste_core::text;
use posthaste_store::report::Report;
use posthaste_wire::provider::{ALREADY_ARCHIVED, UNKNOWN};
use std::fmt;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::time::Duration;

/// Maximum length of a quotation from the script in an error.
pub(super) const MAX_QUOTED_CHARS: usize = 300;

/// A failed call of a script.
#[derive(Debug)]
pub struct ScriptError {
    script: PathBuf,
    op: String,
    /// The timeout of the script's calls.
    timeout: Duration,
    kind: ScriptErrorKind,
    /// The end of standard error.
    stderr: String,
}

#[derive(Debug)]
pub(crate) enum ScriptErrorKind {
    /// The call has no result.
    Call(CallFailure),
    UnknownOperation,
    NotFound,
    AlreadyArchived,
    /// The script failed, with this exit status.
    Failed(String),
    /// This signal ended the script.
    Killed(String),
    /// Why the reply is invalid.
    InvalidReply(String),
    /// The script exited with 0 without reading its input.
    InputUnread,
}

impl ScriptError {
    pub(super) fn new(
        script: PathBuf,
        op: &str,
        timeout: Duration,
        kind: ScriptErrorKind,
        stderr: &[u8],
    ) -> Self {
        Self {
            script,
            op: op.to_owned(),
            timeout,
            kind,
            stderr: last_part(stderr),
        }
    }

    pub fn is_unknown_op(&self) -> bool {
        matches!(self.kind, ScriptErrorKind::UnknownOperation)
    }

    pub fn is_not_found(&self) -> bool {
        matches!(self.kind, ScriptErrorKind::NotFound)
    }

    pub fn is_already_archived(&self) -> bool {
        matches!(self.kind, ScriptErrorKind::AlreadyArchived)
    }

    /// Return whether it is certain that the operation had no effect: the script refused it, or
    /// never ran. A script that was cut off, or whose reply is invalid, may have carried it out.
    pub fn is_denial(&self) -> bool {
        match &self.kind {
            ScriptErrorKind::Call(CallFailure::NotStarted(_))
            | ScriptErrorKind::UnknownOperation
            | ScriptErrorKind::NotFound
            | ScriptErrorKind::AlreadyArchived
            | ScriptErrorKind::Failed(_) => true,
            ScriptErrorKind::Call(_)
            | ScriptErrorKind::Killed(_)
            | ScriptErrorKind::InvalidReply(_)
            | ScriptErrorKind::InputUnread => false,
        }
    }

    pub(super) fn is_cancelled(&self) -> bool {
        matches!(self.kind, ScriptErrorKind::Call(CallFailure::Cancelled))
    }

    pub fn is_timeout(&self) -> bool {
        matches!(self.kind, ScriptErrorKind::Call(CallFailure::TimedOut))
    }
}

/// Return the end of standard error, where the cause is.
fn last_part(stderr: &[u8]) -> String {
    let output = text::one_line(&String::from_utf8_lossy(stderr), usize::MAX);
    match output.char_indices().rev().nth(MAX_QUOTED_CHARS) {
        Some((at, c)) => format!("…{}", &output[at + c.len_utf8()..]),
        None => output,
    }
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = text::one_line(&self.op, 40);
        let script = self.script.display();
        match &self.kind {
            ScriptErrorKind::Call(CallFailure::NotStarted(error)) => {
                return write!(f, "cannot run {script} for '{op}': {error}");
            }
            ScriptErrorKind::Call(CallFailure::Cancelled) => {
                return write!(f, "'{op}' of {script} was interrupted");
            }
            ScriptErrorKind::Call(CallFailure::Io(error)) => {
                return write!(f, "'{op}': cannot communicate with {script}: {error}");
            }
            ScriptErrorKind::AlreadyArchived => {
                return write!(f, "'{op}': {script} reports: {ALREADY_ARCHIVED}");
            }
            ScriptErrorKind::UnknownOperation => {
                write!(f, "{script} does not know '{op}' (exit {UNKNOWN})")
            }
            ScriptErrorKind::NotFound => write!(f, "'{op}': {script} did not find the message"),
            ScriptErrorKind::Failed(how) | ScriptErrorKind::Killed(how) => {
                write!(f, "{script} failed at '{op}' ({how})")
            }
            ScriptErrorKind::Call(CallFailure::TimedOut) => {
                let timeout = self.timeout;
                write!(f, "'{op}' timed out after {timeout:?}: {script} was killed")
            }
            ScriptErrorKind::Call(CallFailure::OutputTooLarge) => {
                let max = MAX_STDOUT_BYTES >> 20;
                write!(
                    f,
                    "'{op}' failed: {script} wrote more than {max} MiB and was killed"
                )
            }
            ScriptErrorKind::InvalidReply(why) => {
                write!(f, "invalid reply of {script} to '{op}': {why}")
            }
            ScriptErrorKind::InputUnread => {
                write!(
                    f,
                    "'{op}' failed: {script} exited with 0 without reading its input"
                )
            }
            ScriptErrorKind::Call(CallFailure::LeftProcesses { status, left }) => {
                let how = describe_exit(*status);
                let left = text::one_line(&left.join(", "), MAX_QUOTED_CHARS);
                write!(
                    f,
                    "'{op}' failed: {script} ({how}) left processes running ({left}); they were killed"
                )
            }
        }?;
        match self.stderr.as_str() {
            "" => f.write_str("; standard error was empty"),
            stderr => write!(f, "; standard error: {stderr}"),
        }
    }
}

impl From<ScriptError> for Report {
    fn from(error: ScriptError) -> Self {
        match &error.kind {
            ScriptErrorKind::Call(CallFailure::NotStarted(cause)) => {
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
            ScriptErrorKind::UnknownOperation => Self::refused(&error)
                .hint("that script keeps the mail and does not support this operation"),
            ScriptErrorKind::NotFound => Self::not_found(&error),
            ScriptErrorKind::AlreadyArchived => Self::refused(&error),
            ScriptErrorKind::Call(CallFailure::TimedOut) => {
                Self::storage(&error).hint("the setting mail.timeout gives it more time")
            }
            ScriptErrorKind::Call(CallFailure::LeftProcesses { .. }) => Self::storage(&error).hint(
                "a script must wait for the processes it starts; only 'ensure-running' may leave a server",
            ),
            ScriptErrorKind::Call(_)
            | ScriptErrorKind::Failed(_)
            | ScriptErrorKind::Killed(_)
            | ScriptErrorKind::InvalidReply(_)
            | ScriptErrorKind::InputUnread => Self::storage(&error),
        }
    }
}
