//! A session's socket, from the side of a command: blocking, one question at a time.

use posthaste_core::AgentName;
use posthaste_store::Home;
use posthaste_store::live::place::Place;
use posthaste_store::live::reach;
use posthaste_wire::client::{self, Heard};
use posthaste_wire::method::{self, Method};
use posthaste_wire::rpc::Failure;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long a live session may take to answer before a sender goes its own way.
pub const PROMPT: Duration = Duration::from_millis(100);
/// How long a session may take for what it does at once, unless it hangs.
pub const UNHURRIED: Duration = Duration::from_secs(5);
/// How long a session that lives may take to say so.
pub const AWAKE: Duration = Duration::from_secs(2);
/// How long a question that nothing else can answer may take.
pub const PATIENT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    rest: Vec<u8>,
    asked: u64,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum NoAnswer {
    /// Nobody is there, or not in time: it is not known whether it was done.
    Silence,
    /// The session says no.
    Refused(Failure),
}

impl Client {
    pub fn connect(socket: &Path) -> Option<Self> {
        let stream = reach(socket).ok()?;
        Some(Self {
            stream,
            rest: Vec::new(),
            asked: 0,
        })
    }

    /// The live session of an agent, if it has one.
    pub fn of(home: &Home, name: &AgentName) -> Option<Self> {
        let record = Place::of(home, name).record()?;
        Self::connect(&record.socket)
    }

    /// The same if it answers at all: what hangs is told soon, whatever it was to be asked.
    pub fn awake(home: &Home, name: &AgentName) -> Option<Self> {
        let mut client = Self::of(home, name)?;
        let is_awake = client.call(&method::Session {}, AWAKE).is_ok();
        is_awake.then_some(client)
    }

    /// Asks without waiting for the answer.
    pub(crate) fn ask<M: Method>(&mut self, question: &M) -> std::io::Result<()> {
        self.ask_within(question, PATIENT)
    }

    /// The same for who cannot wait until it is read.
    pub fn ask_within<M: Method>(
        &mut self,
        question: &M,
        patience: Duration,
    ) -> std::io::Result<()> {
        self.asked += 1;
        let line = client::request(self.asked, question);
        let deadline = Instant::now() + patience;
        let mut rest = &line[..];
        while !rest.is_empty() {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(ErrorKind::TimedOut.into());
            }
            self.stream.set_write_timeout(Some(left))?;
            match self.stream.write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// The answer to the last question.
    pub fn answer<M: Method>(&mut self, patience: Duration) -> Result<M::Answer, NoAnswer> {
        let deadline = Instant::now() + patience;
        loop {
            let line = self.line(deadline).ok_or(NoAnswer::Silence)?;
            match client::hear(&line) {
                Ok(Heard::Reply(reply)) if reply.is_to(self.asked) || reply.id.is_none() => {
                    return reply.read::<M>().map_err(NoAnswer::Refused);
                }
                Ok(Heard::Reply(_) | Heard::Event(_) | Heard::Unknown) => {}
                Err(_) => return Err(NoAnswer::Silence),
            }
        }
    }

    pub fn call<M: Method>(
        &mut self,
        question: &M,
        patience: Duration,
    ) -> Result<M::Answer, NoAnswer> {
        self.ask(question).map_err(|_| NoAnswer::Silence)?;
        self.answer::<M>(patience)
    }

    /// The next line, before the deadline.
    fn line(&mut self, deadline: Instant) -> Option<Vec<u8>> {
        let mut buffer = [0; 16 * 1024];
        loop {
            if let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let rest = self.rest.split_off(end + 1);
                return Some(std::mem::replace(&mut self.rest, rest));
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            let left = left.max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(left)).ok()?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.rest.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
