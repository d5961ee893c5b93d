//! A mail provider script: its operations with typed results.
//!
//! A result counts only with exit status 0 and a complete reply. Anything else is an error that
//! names the script, the operation and the end of standard error.

use super::error::{MAX_QUOTED_CHARS, ScriptError, ScriptErrorKind};
use super::process::{
    CallFailure, CallOutput, Children, Environment, FailedCall, LeftGroup, Prepare, ScriptCall,
    describe_exit,
};
use super::recursion_guard;
use super::signals::EndSignals;
use posthaste_core::text;
use posthaste_store::Home;
use posthaste_wire::Count;
use posthaste_wire::provider::{ALREADY_ARCHIVED, Message, NOT_FOUND, Op, Text, UNKNOWN};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::cell::Cell;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Minimum length of the prefix of a UUID that stands for the UUID.
const MIN_ID_PREFIX: usize = 8;
/// Length of a UUID with hyphens.
const UUID_CHARS: usize = 36;
/// Exit status of a shell if a command does not exist.
const EXIT_COMMAND_NOT_FOUND: i32 = 127;

#[derive(Debug)]
pub struct Script {
    path: PathBuf,
    timeout: Duration,
    prepare: Prepare,
    /// Deadline of all calls together.
    deadline: Option<Instant>,
    environment: Option<Environment>,
    /// The calling homes, for the recursion guard.
    callers: Option<String>,
    /// Whether `ensure-running` was called.
    is_woken: Cell<bool>,
    /// Cancels calls when it becomes readable; without it, signals do.
    stop: Option<UnixStream>,
}

type Result<T> = std::result::Result<T, ScriptError>;

impl Script {
    pub fn new(path: PathBuf, timeout: Duration, prepare: Prepare) -> Self {
        Self {
            path,
            timeout,
            prepare,
            deadline: None,
            environment: None,
            callers: None,
            is_woken: Cell::new(false),
            stop: None,
        }
    }

    /// Cancel calls once `stop` is readable or closed.
    pub fn until(mut self, stop: UnixStream) -> Self {
        self.stop = Some(stop);
        self
    }

    /// Name `home` to the script as the caller.
    pub fn asked_by(mut self, home: &Home) -> Self {
        self.callers = Some(recursion_guard::callers_with(home));
        self
    }

    /// Run the script in another directory, with additional variables.
    pub fn within(mut self, environment: Environment) -> Self {
        self.environment = Some(environment);
        self
    }

    /// Limit all calls together to `time`.
    pub fn within_total(mut self, time: Duration) -> Self {
        self.deadline = Some(Instant::now() + time);
        self
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn send(&self, to: &str, text: &Text) -> Result<Message> {
        let sent: Message = self.ask(Op::Send, to, Some(text))?;
        self.expect(Op::Send, "recipient", &sent.to, sent.to == to)?;
        self.expect_text(Op::Send, &sent, text)?;
        Ok(sent)
    }

    /// Reply to a message. If `answered` is known, check that the reply goes to its sender.
    pub fn reply(&self, id: &str, text: &Text, answered: Option<&Message>) -> Result<Message> {
        let sent: Message = self.ask(Op::Reply, id, Some(text))?;
        let is_right = is_id(&sent.reply_to, id);
        self.expect(Op::Reply, "reply_to", &sent.reply_to, is_right)?;
        let is_right = answered.is_none_or(|message| is_answer(&sent.to, &text.from, message));
        self.expect(Op::Reply, "recipient", &sent.to, is_right)?;
        self.expect_text(Op::Reply, &sent, text)?;
        Ok(sent)
    }

    /// Check that the script stored the message that was sent.
    fn expect_text(&self, op: Op, sent: &Message, text: &Text) -> Result<()> {
        self.expect(op, "sender", &sent.from, sent.from == text.from)?;
        let is_right = sent
            .subject
            .split_whitespace()
            .eq(text.subject.split_whitespace());
        self.expect(op, "subject", &sent.subject, is_right)?;
        // Some scripts change line ends, or add one at the end of the text.
        let is_right = sent
            .body
            .trim_end()
            .lines()
            .eq(text.body.trim_end().lines());
        self.expect(op, "body", &sent.body, is_right)
    }

    /// Return the valid messages of an agent, and what is wrong with the others: an invalid message
    /// must not hide the others.
    pub fn each(&self, op: Op, who: &str) -> Result<(Vec<Message>, Vec<String>)> {
        let (listed, output) = self.list(op, who)?;
        let (mut messages, mut odd) = (Vec::with_capacity(listed.len()), Vec::new());
        for value in listed {
            let id = named(&value);
            let message = message(value).map_err(|why| format!("{id}: {why}"));
            match message.and_then(|message| belongs(message, who)) {
                Ok(message) => messages.push(message),
                Err(why) => odd.push(why),
            }
        }
        // If no entry is valid, the output is probably not a list of messages.
        match odd.first() {
            Some(why) if messages.is_empty() => Err(self.invalid(op, why, &output)),
            Some(_) | None => Ok((messages, odd)),
        }
    }

    pub fn thread(&self, id: &str) -> Result<Vec<Message>> {
        let (listed, output) = self.list(Op::Thread, id)?;
        let messages = listed.into_iter().map(message);
        let messages: std::result::Result<_, _> = messages.collect();
        messages.map_err(|why| self.invalid(Op::Thread, &why, &output))
    }

    pub fn get(&self, id: &str) -> Result<Message> {
        self.one(Op::Get, id)
    }

    pub fn read(&self, id: &str) -> Result<Message> {
        self.one(Op::Read, id)
    }

    pub fn count(&self, who: &str) -> Result<Count> {
        let output = self.call_operation(Op::Count, who, None)?;
        let value = self.parse(Op::Count, &output)?;
        object(value).map_err(|why| self.invalid(Op::Count, &why, &output))
    }

    /// Call an operation that has no output.
    pub fn order(&self, op: Op, id: &str) -> Result<()> {
        self.call_operation(op, id, None).map(drop)
    }

    /// Call an operation that returns a message.
    fn ask(&self, op: Op, arg: &str, text: Option<&Text>) -> Result<Message> {
        let output = self.call_operation(op, arg, text)?;
        let value = self.parse(op, &output)?;
        message(value).map_err(|why| self.invalid(op, &why, &output))
    }

    /// Call an operation that returns the message with this id.
    pub(crate) fn one(&self, op: Op, id: &str) -> Result<Message> {
        let message = self.ask(op, id, None)?;
        self.expect(op, "id", &message.id, is_id(&message.id, id))?;
        Ok(message)
    }

    /// Return an agent's messages. One invalid message is an error.
    pub(crate) fn list_of(&self, op: Op, who: &str) -> Result<Vec<Message>> {
        let (listed, output) = self.list(op, who)?;
        let messages = listed.into_iter().map(message);
        let messages = messages.map(|message| belongs(message?, who));
        let messages: std::result::Result<_, _> = messages.collect();
        messages.map_err(|why| self.invalid(op, &why, &output))
    }

    /// Return a list. No output is an empty list, and so is null.
    fn list(&self, op: Op, arg: &str) -> Result<(Vec<Value>, CallOutput)> {
        let output = self.call_operation(op, arg, None)?;
        if output.stdout.trim_ascii().is_empty() {
            return Ok((Vec::new(), output));
        }
        let list: Option<_> = self.parse(op, &output)?;
        Ok((list.unwrap_or_default(), output))
    }

    fn parse<T: DeserializeOwned>(&self, op: Op, output: &CallOutput) -> Result<T> {
        serde_json::from_slice(&output.stdout).map_err(|error| {
            if output.stdout.trim_ascii().is_empty() {
                let kind = ScriptErrorKind::InvalidReply("no output".to_owned());
                return self.error(op.as_str(), kind, &output.stderr);
            }
            self.invalid(op, &error.to_string(), output)
        })
    }

    /// Return the error for output of another shape.
    fn invalid(&self, op: Op, why: &str, output: &CallOutput) -> ScriptError {
        let stdout = text::one_line(&String::from_utf8_lossy(&output.stdout), 80);
        let kind = ScriptErrorKind::InvalidReply(format!("'{stdout}' ({why})"));
        self.error(op.as_str(), kind, &output.stderr)
    }

    /// Return an error if a field of the reply has another value than the request implies.
    fn expect(&self, op: Op, what: &str, got: &str, is_right: bool) -> Result<()> {
        if is_right {
            return Ok(());
        }
        let why = format!("a message whose {what} is '{}'", text::one_line(got, 80));
        Err(self.error(op.as_str(), ScriptErrorKind::InvalidReply(why), b""))
    }

    fn call_operation(&self, op: Op, arg: &str, text: Option<&Text>) -> Result<CallOutput> {
        self.wake();
        let stdin = match text {
            Some(text) => serde_json::to_vec(text)
                .map_err(|error| self.failed(op.as_str(), CallFailure::Io(error.into()).into()))?,
            None => Vec::new(),
        };
        let output = self.call(op.as_str(), Some(OsStr::new(arg)), &stdin)?;
        let complaint = String::from_utf8_lossy(&output.stderr).to_lowercase();
        let how = describe_exit(output.status);
        let kind = match output.status.code() {
            Some(0) if output.is_input_sent => return Ok(output),
            Some(0) => ScriptErrorKind::InputUnread,
            None => ScriptErrorKind::Killed(how),
            Some(UNKNOWN) => ScriptErrorKind::UnknownOperation,
            Some(_) if op == Op::Archive && complaint.contains(ALREADY_ARCHIVED) => {
                ScriptErrorKind::AlreadyArchived
            }
            Some(code) if is_not_found(op, code, &complaint) => ScriptErrorKind::NotFound,
            Some(_) => ScriptErrorKind::Failed(how),
        };
        Err(self.error(op.as_str(), kind, &output.stderr))
    }

    /// Call `ensure-running` once, and return the processes that it leaves. Later calls show
    /// whether it worked.
    pub(crate) fn wake(&self) -> Option<LeftGroup> {
        if self.is_woken.replace(true) {
            return None;
        }
        let output = self.call(Op::EnsureRunning.as_str(), None, &[]);
        output.ok().and_then(|output| output.left)
    }

    /// Call the script with any operation and argument, and return its output and exit status.
    pub(crate) fn call(&self, op: &str, arg: Option<&OsStr>, stdin: &[u8]) -> Result<CallOutput> {
        let run = |cancel: Option<BorrowedFd<'_>>| {
            let output = self.run(op, arg, stdin, cancel);
            output.map_err(|failed| self.failed(op, failed))
        };
        match &self.stop {
            Some(stop) if is_cancelled(stop) => Err(self.failed(op, CallFailure::Cancelled.into())),
            Some(stop) => run(Some(stop.as_fd())),
            None => match EndSignals::installed() {
                Some(signals) => {
                    let output = signals.redirect_during(|cancel| run(Some(cancel)));
                    if output.as_ref().is_err_and(ScriptError::is_cancelled) {
                        signals.exit_by_signal();
                    }
                    output
                }
                None => run(None),
            },
        }
    }

    /// Run the script until it exits or `cancel` becomes readable.
    fn run(
        &self,
        op: &str,
        arg: Option<&OsStr>,
        stdin: &[u8],
        cancel: Option<BorrowedFd<'_>>,
    ) -> std::result::Result<CallOutput, FailedCall> {
        let is_first = op == Op::EnsureRunning.as_str();
        let call = ScriptCall {
            script: &self.path,
            op,
            arg,
            stdin,
            timeout: self.left(is_first),
            prepare: self.prepare,
            children: if is_first {
                Children::Leave
            } else {
                Children::End
            },
            environment: self.environment.as_ref(),
            callers: self.callers.as_deref(),
            cancel,
        };
        call.run()
    }

    /// Return the timeout of the next call. `ensure-running` may use half of the remaining time.
    fn left(&self, is_first: bool) -> Duration {
        let Some(deadline) = self.deadline else {
            return self.timeout;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        self.timeout.min(if is_first { left / 2 } else { left })
    }

    fn failed(&self, op: &str, failed: FailedCall) -> ScriptError {
        let FailedCall { failure, stderr } = failed;
        self.error(op, ScriptErrorKind::Call(failure), &stderr)
    }

    fn error(&self, op: &str, kind: ScriptErrorKind, stderr: &[u8]) -> ScriptError {
        ScriptError::new(self.path.clone(), op, self.timeout, kind, stderr)
    }
}

/// Parse a JSON object. serde would also accept an array with the fields in order.
fn object<T: DeserializeOwned>(value: Value) -> std::result::Result<T, String> {
    if !value.is_object() {
        return Err("not a JSON object".to_owned());
    }
    serde_json::from_value(value)
        .map_err(|error| text::one_line(&error.to_string(), MAX_QUOTED_CHARS))
}

/// Parse a message and check that it has an id.
fn message(value: Value) -> std::result::Result<Message, String> {
    let message: Message = object(value)?;
    if message.id.is_empty() {
        return Err("its id is empty".to_owned());
    }
    Ok(message)
}

fn belongs(message: Message, who: &str) -> std::result::Result<Message, String> {
    if message.to == who {
        return Ok(message);
    }
    let [id, to] = [&message.id, &message.to].map(|text| text::one_line(text, 80));
    Err(format!("'{id}' is a message to '{to}', not to {who}"))
}

/// Describe an entry of a list, even an invalid one.
fn named(value: &Value) -> String {
    match value.get("id") {
        Some(Value::String(id)) => format!("message '{}'", text::one_line(id, 80)),
        Some(id) => format!("message {}", text::one_line(&id.to_string(), 80)),
        None => "a message without an id".to_owned(),
    }
}

/// Return whether `id` is `asked`, or a UUID that begins with it. Other ids must be equal.
fn is_id(id: &str, asked: &str) -> bool {
    let is_uuid = id.len() == UUID_CHARS && uuid::Uuid::try_parse(id).is_ok();
    let head = id.as_bytes().get(..asked.len());
    let is_begun = is_uuid
        && asked.len() >= MIN_ID_PREFIX
        && head.is_some_and(|head| head.eq_ignore_ascii_case(asked.as_bytes()));
    id == asked || is_begun
}

/// Return whether `to` is the sender of `answered`, by name or address, or its recipient if the
/// sender replies to itself.
fn is_answer(to: &str, from: &str, answered: &Message) -> bool {
    let sender = answered.from.as_str();
    let address = sender.rsplit_once('<').map_or(sender, |(_, end)| end);
    let address = address.trim_end_matches('>');
    let name = address.split('@').next().unwrap_or_default();
    let is_sender = [sender, address, name].contains(&to);
    is_sender || (from == sender && to == answered.to)
}

/// Return whether standard error reports a missing message. A shell uses similar words for a
/// missing command.
fn is_not_found(op: Op, code: i32, stderr: &str) -> bool {
    let is_of_one = match op {
        Op::Reply | Op::Get | Op::Read | Op::MarkRead | Op::MarkUnread => true,
        Op::Archive | Op::Delete | Op::Thread => true,
        Op::EnsureRunning | Op::Send | Op::Inbox | Op::Check | Op::All | Op::Count => false,
    };
    let is_reported = stderr.contains("not found") && code != EXIT_COMMAND_NOT_FOUND;
    is_of_one && (is_reported || stderr.contains(NOT_FOUND))
}

/// Return whether calls are cancelled; then none is started.
fn is_cancelled(stop: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stop, PollFlags::IN)];
    let at_once = Timespec::default();
    poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0)
}
