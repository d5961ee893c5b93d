//! A script that keeps the mail: its operations, what they answer, and what went wrong.
//!
//! Nothing is taken for success that was not: an exit other than 0, an answer that is not whole,
//! or none where one is due is an error that names the script, the operation and what it said.

use super::error::{Trouble, What};
use super::process::{self, Call, Children, Cut, Left, Place, Prepare, Said};
use super::recursion_guard;
use super::signals::Signals;
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
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How much of what a script said stands in an error.
const SHOWN: usize = 300;
/// How much of an id will do for the whole of it.
const BEGINNING: usize = 8;
/// How long a UUID is, as it is mostly written.
const UUID: usize = 36;
/// How a shell ends that misses a command.
const NO_COMMAND: i32 = 127;

#[derive(Debug)]
pub struct Script {
    path: PathBuf,
    timeout: Duration,
    prepare: Prepare,
    /// When all of it must be over, however many calls it takes.
    deadline: Option<Instant>,
    place: Option<Place>,
    /// Which homes ask it.
    asking: Option<String>,
    /// Whether it was asked to see to it that its system runs.
    is_asked: Cell<bool>,
    /// What ends a call, where it is not a signal.
    stop: Option<UnixStream>,
}

type Result<T> = std::result::Result<T, Trouble>;

impl Script {
    pub fn new(path: PathBuf, timeout: Duration, prepare: Prepare) -> Self {
        Self {
            path,
            timeout,
            prepare,
            deadline: None,
            place: None,
            asking: None,
            is_asked: Cell::new(false),
            stop: None,
        }
    }

    /// The same, with calls cut off as soon as there is something to read here, or its end.
    pub fn until(mut self, stop: UnixStream) -> Self {
        self.stop = Some(stop);
        self
    }

    /// The same, asked for the mail of this home.
    pub fn asked_by(mut self, home: &Home) -> Self {
        self.asking = Some(recursion_guard::with(home));
        self
    }

    /// The same in another directory and environment.
    pub fn within(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// The same with so much time for all calls together.
    pub fn in_all(mut self, time: Duration) -> Self {
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

    /// Answers a message. Where it is known, the answer goes to who wrote it.
    pub fn reply(&self, id: &str, text: &Text, answered: Option<&Message>) -> Result<Message> {
        let sent: Message = self.ask(Op::Reply, id, Some(text))?;
        let is_right = is_id(&sent.reply_to, id);
        self.expect(Op::Reply, "reply_to", &sent.reply_to, is_right)?;
        let is_right = answered.is_none_or(|message| is_answer(&sent.to, &text.from, message));
        self.expect(Op::Reply, "recipient", &sent.to, is_right)?;
        self.expect_text(Op::Reply, &sent, text)?;
        Ok(sent)
    }

    /// What was sent is what was to be sent.
    fn expect_text(&self, op: Op, sent: &Message, text: &Text) -> Result<()> {
        self.expect(op, "sender", &sent.from, sent.from == text.from)?;
        let is_right = sent
            .subject
            .split_whitespace()
            .eq(text.subject.split_whitespace());
        self.expect(op, "subject", &sent.subject, is_right)?;
        // Some end lines in their own way, and every text with one.
        let is_right = sent
            .body
            .trim_end()
            .lines()
            .eq(text.body.trim_end().lines());
        self.expect(op, "body", &sent.body, is_right)
    }

    pub(crate) fn inbox(&self, who: &str) -> Result<Vec<Message>> {
        self.list_of(Op::Inbox, who)
    }

    pub(crate) fn check(&self, who: &str) -> Result<Vec<Message>> {
        self.list_of(Op::Check, who)
    }

    /// Mail of this agent as far as it can be understood, and what is wrong with the rest: one bad
    /// message must not keep the others from their agent.
    pub fn each(&self, op: Op, who: &str) -> Result<(Vec<Message>, Vec<String>)> {
        let (listed, said) = self.list(op, who)?;
        let (mut messages, mut odd) = (Vec::with_capacity(listed.len()), Vec::new());
        for value in listed {
            let id = named(&value);
            let message = message(value).map_err(|why| format!("{id}: {why}"));
            match message.and_then(|message| belongs(message, who)) {
                Ok(message) => messages.push(message),
                Err(why) => odd.push(why),
            }
        }
        // Of a list with nothing good in it nobody can say that it is one.
        match odd.first() {
            Some(why) if messages.is_empty() => Err(self.wrong(op, why, &said)),
            Some(_) | None => Ok((messages, odd)),
        }
    }

    pub(crate) fn all(&self, who: &str) -> Result<Vec<Message>> {
        self.list_of(Op::All, who)
    }

    pub fn thread(&self, id: &str) -> Result<Vec<Message>> {
        let (listed, said) = self.list(Op::Thread, id)?;
        let messages = listed.into_iter().map(message);
        let messages: std::result::Result<_, _> = messages.collect();
        messages.map_err(|why| self.wrong(Op::Thread, &why, &said))
    }

    pub fn get(&self, id: &str) -> Result<Message> {
        self.one(Op::Get, id)
    }

    pub fn read(&self, id: &str) -> Result<Message> {
        self.one(Op::Read, id)
    }

    pub fn count(&self, who: &str) -> Result<Count> {
        let said = self.say(Op::Count, who, None)?;
        let value = self.understand(Op::Count, &said)?;
        object(value).map_err(|why| self.wrong(Op::Count, &why, &said))
    }

    /// One of the operations that answer nothing.
    pub fn order(&self, op: Op, id: &str) -> Result<()> {
        self.say(op, id, None).map(drop)
    }

    /// The message that an operation answers with.
    fn ask(&self, op: Op, arg: &str, text: Option<&Text>) -> Result<Message> {
        let said = self.say(op, arg, text)?;
        let value = self.understand(op, &said)?;
        message(value).map_err(|why| self.wrong(op, &why, &said))
    }

    /// The message of this id, and no other.
    fn one(&self, op: Op, id: &str) -> Result<Message> {
        let message = self.ask(op, id, None)?;
        self.expect(op, "id", &message.id, is_id(&message.id, id))?;
        Ok(message)
    }

    /// Mail of this agent, and of no other.
    fn list_of(&self, op: Op, who: &str) -> Result<Vec<Message>> {
        let (listed, said) = self.list(op, who)?;
        let messages = listed.into_iter().map(message);
        let messages = messages.map(|message| belongs(message?, who));
        let messages: std::result::Result<_, _> = messages.collect();
        messages.map_err(|why| self.wrong(op, &why, &said))
    }

    /// A list; no output at all is an empty one, and so is null.
    fn list(&self, op: Op, arg: &str) -> Result<(Vec<Value>, Said)> {
        let said = self.say(op, arg, None)?;
        if said.stdout.trim_ascii().is_empty() {
            return Ok((Vec::new(), said));
        }
        let list: Option<_> = self.understand(op, &said)?;
        Ok((list.unwrap_or_default(), said))
    }

    fn understand<T: DeserializeOwned>(&self, op: Op, said: &Said) -> Result<T> {
        serde_json::from_slice(&said.stdout).map_err(|error| {
            let why = if said.stdout.trim_ascii().is_empty() {
                "nothing".to_owned()
            } else {
                format!("'{}' ({error})", shown(&said.stdout, 80))
            };
            let said = end_of(&said.stderr);
            self.trouble(op.as_str(), What::Wrong { why, said })
        })
    }

    /// An answer of another shape.
    fn wrong(&self, op: Op, why: &str, said: &Said) -> Trouble {
        let why = format!("'{}' ({why})", shown(&said.stdout, 80));
        let said = end_of(&said.stderr);
        self.trouble(op.as_str(), What::Wrong { why, said })
    }

    /// An answer to another question.
    fn expect(&self, op: Op, what: &str, got: &str, is_right: bool) -> Result<()> {
        if is_right {
            return Ok(());
        }
        let why = format!("a message whose {what} is '{}'", text::one_line(got, 80));
        let said = String::new();
        Err(self.trouble(op.as_str(), What::Wrong { why, said }))
    }

    fn say(&self, op: Op, arg: &str, text: Option<&Text>) -> Result<Said> {
        self.wake();
        let stdin = match text {
            Some(text) => serde_json::to_vec(text)
                .map_err(|error| self.trouble(op.as_str(), What::Io(error.into())))?,
            None => Vec::new(),
        };
        let said = self.call(op.as_str(), Some(OsStr::new(arg)), &stdin)?;
        if said.status.success() && said.is_told_all {
            return Ok(said);
        }
        if said.status.success() {
            let said = end_of(&said.stderr);
            return Err(self.trouble(op.as_str(), What::Deaf { said }));
        }
        let complaint = String::from_utf8_lossy(&said.stderr).to_lowercase();
        let words = end_of(&said.stderr);
        let how = process::how(said.status);
        let what = if said.status.code().is_none() {
            What::Killed { how, said: words }
        } else if said.status.code() == Some(UNKNOWN) {
            What::Unknown(words)
        } else if op == Op::Archive && complaint.contains(ALREADY_ARCHIVED) {
            What::AlreadyArchived
        } else if is_not_found(op, said.status, &complaint) {
            What::NotFound(words)
        } else {
            What::Failed { how, said: words }
        };
        Err(self.trouble(op.as_str(), what))
    }

    /// Has it see to it, once, that its system runs, and gives back what runs since. Whether that
    /// works is seen by what follows.
    pub(crate) fn wake(&self) -> Option<Left> {
        if self.is_asked.replace(true) {
            return None;
        }
        let said = self.call(Op::EnsureRunning.as_str(), None, &[]);
        said.ok().and_then(|said| said.left)
    }

    /// Calls it with any words, and gives back whatever it said and however it ended.
    pub(crate) fn call(&self, op: &str, arg: Option<&OsStr>, stdin: &[u8]) -> Result<Said> {
        if let Some(stop) = &self.stop {
            let answer = if is_over(stop) {
                Err(Cut::Stopped)
            } else {
                self.run(op, arg, stdin, Some(stop.as_fd()))
            };
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
        let is_first = op == Op::EnsureRunning.as_str();
        let call = Call {
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
            place: self.place.as_ref(),
            asking: self.asking.as_deref(),
            stop,
        };
        call.run()
    }

    /// How long a call may take. The first leaves half of what there is to what is wanted.
    fn left(&self, is_first: bool) -> Duration {
        let Some(deadline) = self.deadline else {
            return self.timeout;
        };
        let left = deadline.saturating_duration_since(Instant::now());
        self.timeout.min(if is_first { left / 2 } else { left })
    }

    fn cut(&self, op: &str, cut: Cut) -> Trouble {
        let what = match cut {
            Cut::NotStarted(error) => What::NotStarted(error),
            Cut::TooLong { stderr } => What::TooLong {
                timeout: self.timeout,
                said: end_of(&stderr),
            },
            Cut::TooMuch { stderr } => What::TooMuch {
                said: end_of(&stderr),
            },
            Cut::Left {
                status,
                left,
                stderr,
            } => What::Left {
                how: process::how(status),
                left: text::one_line(&left.join(", "), SHOWN),
                said: end_of(&stderr),
            },
            Cut::Stopped => What::Stopped,
            Cut::Io(error) => What::Io(error),
        };
        self.trouble(op, what)
    }

    fn trouble(&self, op: &str, what: What) -> Trouble {
        Trouble::new(self.path.clone(), op, what)
    }
}

/// What is said in braces: a list in the same order would pass for it otherwise.
fn object<T: DeserializeOwned>(value: Value) -> std::result::Result<T, String> {
    if !value.is_object() {
        return Err("it is no object".to_owned());
    }
    serde_json::from_value(value).map_err(|error| text::one_line(&error.to_string(), SHOWN))
}

/// A message, which has an id.
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

/// What an entry of a list is called, whatever it is.
fn named(value: &Value) -> String {
    match value.get("id") {
        Some(Value::String(id)) => format!("message '{}'", text::one_line(id, 80)),
        Some(id) => format!("message {}", text::one_line(&id.to_string(), 80)),
        None => "a message without an id".to_owned(),
    }
}

/// Whether an id is the one that was asked for. Of a UUID some take the beginning; one that merely
/// begins like another is another.
fn is_id(id: &str, asked: &str) -> bool {
    let is_uuid = id.len() == UUID && uuid::Uuid::try_parse(id).is_ok();
    let head = id.as_bytes().get(..asked.len());
    let is_begun = is_uuid
        && asked.len() >= BEGINNING
        && head.is_some_and(|head| head.eq_ignore_ascii_case(asked.as_bytes()));
    id == asked || is_begun
}

/// Whether an answer to this message goes to `to`: to who wrote it, by its name or its address;
/// one's own may be carried on.
fn is_answer(to: &str, from: &str, answered: &Message) -> bool {
    let sender = answered.from.as_str();
    let address = sender.rsplit_once('<').map_or(sender, |(_, end)| end);
    let address = address.trim_end_matches('>');
    let name = address.split('@').next().unwrap_or_default();
    let is_sender = [sender, address, name].contains(&to);
    is_sender || (from == sender && to == answered.to)
}

/// Whether a complaint says that there is no such message. Some use words of their own; so does a
/// shell that misses a command.
fn is_not_found(op: Op, status: ExitStatus, complaint: &str) -> bool {
    let is_of_one = match op {
        Op::Reply | Op::Get | Op::Read | Op::MarkRead | Op::MarkUnread => true,
        Op::Archive | Op::Delete | Op::Thread => true,
        Op::EnsureRunning | Op::Send | Op::Inbox | Op::Check | Op::All | Op::Count => false,
    };
    let is_said = complaint.contains("not found") && status.code() != Some(NO_COMMAND);
    is_of_one && (is_said || complaint.contains(NOT_FOUND))
}

/// The end of what a script complained of, which is where the cause stands.
fn end_of(bytes: &[u8]) -> String {
    let said = text::one_line(&String::from_utf8_lossy(bytes), usize::MAX);
    match said.char_indices().rev().nth(SHOWN) {
        Some((at, c)) => format!("…{}", &said[at + c.len_utf8()..]),
        None => said,
    }
}

/// What a script said, as it can be shown to anybody.
fn shown(bytes: &[u8], most: usize) -> String {
    text::one_line(&String::from_utf8_lossy(bytes), most)
}

/// Whether calls are to be cut off: then none begins.
fn is_over(stop: &UnixStream) -> bool {
    let mut fds = [PollFd::new(stop, PollFlags::IN)];
    let at_once = Timespec::default();
    poll(&mut fds, Some(&at_once)).is_ok_and(|ready| ready > 0)
}
