//! A script that keeps the mail: its operations, what they answer, and what went wrong.
//!
//! Nothing is taken for success that was not: an exit other than 0, an answer that is not whole,
//! or none where one is due is an error that names the script, the operation and what it said.

use super::asking;
use super::call::{self, Call, Children, Cut, MOST, Place, Said};
use super::stop::Signals;
use crate::report::Report;
use posthaste_core::text;
use posthaste_store::Home;
use posthaste_wire::Count;
use posthaste_wire::provider::{ALREADY_ARCHIVED, Message, NOT_FOUND, Op, Text, UNKNOWN};
use serde::de::DeserializeOwned;
use std::cell::Cell;
use std::ffi::OsStr;
use std::fmt;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How much of what a script said stands in an error.
const SHOWN: usize = 300;

#[derive(Debug)]
pub(crate) struct Script {
    path: PathBuf,
    timeout: Duration,
    place: Option<Place>,
    /// Which homes ask it.
    asking: Option<String>,
    /// Whether it was asked to see to it that its system runs.
    is_asked: Cell<bool>,
    /// What ends a call, where it is not a signal.
    stop: Option<UnixStream>,
}

/// What went wrong at which operation of which script.
#[derive(Debug)]
pub(crate) struct Trouble {
    script: PathBuf,
    op: String,
    what: What,
}

#[derive(Debug)]
pub(crate) enum What {
    NotStarted(std::io::Error),
    /// It does not know the operation.
    Unknown,
    NotFound(String),
    AlreadyArchived,
    Failed {
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
    Stopped,
    Io(std::io::Error),
}

type Result<T> = std::result::Result<T, Trouble>;

impl Script {
    pub(crate) fn new(path: PathBuf, timeout: Duration) -> Self {
        Self {
            path,
            timeout,
            place: None,
            asking: None,
            is_asked: Cell::new(false),
            stop: None,
        }
    }

    /// The same, with calls cut off as soon as there is something to read here, or its end.
    pub(crate) fn until(mut self, stop: UnixStream) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The same, asked for the mail of this home.
    pub(crate) fn asked_by(mut self, home: &Home) -> Self {
        self.asking = Some(asking::with(home));
        self
    }

    /// The same in another directory and environment.
    pub(crate) fn within(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// The same, whose system is known to run.
    pub(crate) fn awake(self) -> Self {
        self.is_asked.set(true);
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn send(&self, to: &str, text: &Text) -> Result<Message> {
        self.ask(Op::Send, to, Some(text))
    }

    pub(crate) fn reply(&self, id: &str, text: &Text) -> Result<Message> {
        self.ask(Op::Reply, id, Some(text))
    }

    pub(crate) fn inbox(&self, who: &str) -> Result<Vec<Message>> {
        self.list(Op::Inbox, who)
    }

    pub(crate) fn check(&self, who: &str) -> Result<Vec<Message>> {
        self.list(Op::Check, who)
    }

    /// The same as far as it can be understood, and what is wrong with the rest: one bad message
    /// must not keep the others from their agent.
    pub(crate) fn check_each(&self, who: &str) -> Result<(Vec<Message>, Option<String>)> {
        let listed: Vec<serde_json::Value> = self.list(Op::Check, who)?;
        let (mut messages, mut odd) = (Vec::with_capacity(listed.len()), None);
        for value in listed {
            match serde_json::from_value(value) {
                Ok(message) => messages.push(message),
                Err(error) => odd = odd.or(Some(text::one_line(&error.to_string(), SHOWN))),
            }
        }
        Ok((messages, odd))
    }

    pub(crate) fn all(&self, who: &str) -> Result<Vec<Message>> {
        self.list(Op::All, who)
    }

    pub(crate) fn thread(&self, id: &str) -> Result<Vec<Message>> {
        self.list(Op::Thread, id)
    }

    pub(crate) fn get(&self, id: &str) -> Result<Message> {
        self.ask(Op::Get, id, None)
    }

    pub(crate) fn read(&self, id: &str) -> Result<Message> {
        self.ask(Op::Read, id, None)
    }

    pub(crate) fn count(&self, who: &str) -> Result<Count> {
        self.ask(Op::Count, who, None)
    }

    /// One of the operations that answer nothing.
    pub(crate) fn order(&self, op: Op, id: &str) -> Result<()> {
        self.say(op, id, None).map(drop)
    }

    fn ask<T: DeserializeOwned>(&self, op: Op, arg: &str, text: Option<&Text>) -> Result<T> {
        let said = self.say(op, arg, text)?;
        self.understand(op, &said)
    }

    /// A list; no output at all is an empty one, and so is null.
    fn list<T: DeserializeOwned>(&self, op: Op, arg: &str) -> Result<Vec<T>> {
        let said = self.say(op, arg, None)?;
        if said.stdout.trim_ascii().is_empty() {
            return Ok(Vec::new());
        }
        let list: Option<_> = self.understand(op, &said)?;
        Ok(list.unwrap_or_default())
    }

    fn understand<T: DeserializeOwned>(&self, op: Op, said: &Said) -> Result<T> {
        serde_json::from_slice(&said.stdout).map_err(|error| {
            let why = if said.stdout.trim_ascii().is_empty() {
                "nothing".to_owned()
            } else {
                format!("'{}' ({error})", shown(&said.stdout, 80))
            };
            let said = shown(&said.stderr, SHOWN);
            self.trouble(op.as_str(), What::Wrong { why, said })
        })
    }

    fn say(&self, op: Op, arg: &str, text: Option<&Text>) -> Result<Said> {
        self.wake();
        let stdin = match text {
            Some(text) => serde_json::to_vec(text)
                .map_err(|error| self.trouble(op.as_str(), What::Io(error.into())))?,
            None => Vec::new(),
        };
        let said = self.call(op.as_str(), Some(OsStr::new(arg)), &stdin)?;
        if said.left > 0 {
            let script = self.path.display();
            crate::output::note(format!(
                "{script} left processes running at '{op}' ({}); they were ended",
                said.left
            ));
        }
        if said.status.success() {
            return Ok(said);
        }
        let complaint = String::from_utf8_lossy(&said.stderr).to_lowercase();
        let words = shown(&said.stderr, SHOWN);
        let what = if said.status.code() == Some(UNKNOWN) {
            What::Unknown
        } else if op == Op::Archive && complaint.contains(ALREADY_ARCHIVED) {
            What::AlreadyArchived
        } else if complaint.contains(NOT_FOUND) || complaint.contains("not found") {
            What::NotFound(words)
        } else {
            let how = call::how(said.status);
            What::Failed { how, said: words }
        };
        Err(self.trouble(op.as_str(), what))
    }

    /// Has it see to it, once, that its system runs. Whether that works is seen by what follows.
    fn wake(&self) {
        if !self.is_asked.replace(true) {
            let _ = self.call(Op::EnsureRunning.as_str(), None, &[]);
        }
    }

    /// Calls it with any words, and gives back whatever it said and however it ended.
    pub(crate) fn call(&self, op: &str, arg: Option<&OsStr>, stdin: &[u8]) -> Result<Said> {
        if let Some(stop) = &self.stop {
            let answer = self.run(op, arg, stdin, Some(stop.as_fd()));
            return answer.map_err(|cut| self.cut(op, cut));
        }
        let signals = Signals::ours();
        let answer = match signals {
            Some(signals) => signals.during(|stop| self.run(op, arg, stdin, Some(stop))),
            None => self.run(op, arg, stdin, None),
        };
        if matches!(answer, Err(Cut::Stopped))
            && let Some(signals) = signals
        {
            signals.obey();
        }
        answer.map_err(|cut| self.cut(op, cut))
    }

    /// The same, until `stop` can be read.
    fn run(
        &self,
        op: &str,
        arg: Option<&OsStr>,
        stdin: &[u8],
        stop: Option<BorrowedFd<'_>>,
    ) -> std::result::Result<Said, Cut> {
        let call = Call {
            script: &self.path,
            op,
            arg,
            stdin,
            timeout: self.timeout,
            children: if op == Op::EnsureRunning.as_str() {
                Children::Leave
            } else {
                Children::End
            },
            place: self.place.as_ref(),
            asking: self.asking.as_deref(),
            stop,
        };
        call.run()
    }

    fn cut(&self, op: &str, cut: Cut) -> Trouble {
        let what = match cut {
            Cut::NotStarted(error) => What::NotStarted(error),
            Cut::TooLong { stderr } => What::TooLong {
                timeout: self.timeout,
                said: shown(&stderr, SHOWN),
            },
            Cut::TooMuch { stderr } => What::TooMuch {
                said: shown(&stderr, SHOWN),
            },
            Cut::Stopped => What::Stopped,
            Cut::Io(error) => What::Io(error),
        };
        self.trouble(op, what)
    }

    fn trouble(&self, op: &str, what: What) -> Trouble {
        Trouble {
            script: self.path.clone(),
            op: op.to_owned(),
            what,
        }
    }
}

/// What a script said, as it can be shown to anybody.
fn shown(bytes: &[u8], most: usize) -> String {
    text::one_line(&String::from_utf8_lossy(bytes), most)
}

impl Trouble {
    pub(crate) fn is_unknown_op(&self) -> bool {
        matches!(self.what, What::Unknown)
    }

    pub(crate) fn is_already_archived(&self) -> bool {
        matches!(self.what, What::AlreadyArchived)
    }

    pub(crate) fn is_time_out(&self) -> bool {
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
            What::Unknown => write!(f, "{script} does not know '{op}' (exit {UNKNOWN})"),
            What::NotFound(said) => write!(
                f,
                "{script} found no such message at '{op}'{}",
                and_said(said)
            ),
            What::AlreadyArchived => write!(f, "{script} says at '{op}': {ALREADY_ARCHIVED}"),
            What::Failed { how, said } => {
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
                    ErrorKind::PermissionDenied => "'chmod +x' makes a script a command",
                    _ => "a script's first line names its interpreter, such as #!/bin/sh",
                };
                Self::usage(&trouble).hint(hint)
            }
            What::Unknown => Self::refused(&trouble)
                .hint("the mail is kept by that script, and it has no such operation"),
            What::NotFound(_) => Self::not_found(&trouble),
            What::AlreadyArchived => Self::refused(&trouble),
            What::TooLong { .. } => {
                Self::storage(&trouble).hint("the setting mail.timeout gives it more time")
            }
            What::Failed { .. }
            | What::TooMuch { .. }
            | What::Wrong { .. }
            | What::Stopped
            | What::Io(_) => Self::storage(&trouble),
        }
    }
}
