//! A session's socket, from the side of a command: blocking, one question at a time.

use posthaste_core::AgentName;
use posthaste_store::Home;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

use super::place::Place;

/// How long a live session may take to answer before a sender goes its own way.
pub(crate) const PROMPT: Duration = Duration::from_millis(100);
/// How long a question that nothing else can answer may take.
pub(crate) const PATIENT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Client {
    stream: UnixStream,
    rest: Vec<u8>,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// Nobody is there, or not in time: it is not known whether it was done.
    Silence,
    /// The session says no.
    Refused { code: i64, message: String },
}

impl Client {
    pub(crate) fn connect(socket: &Path) -> Option<Self> {
        let stream = UnixStream::connect(socket).ok()?;
        Some(Self {
            stream,
            rest: Vec::new(),
        })
    }

    /// The live session of an agent, if it has one.
    pub(crate) fn of(home: &Home, name: &AgentName) -> Option<Self> {
        let record = Place::of(home, name).record()?;
        Self::connect(&record.socket)
    }

    /// Asks without waiting for the answer.
    pub(crate) fn ask(&mut self, method: &str, params: &impl Serialize) -> std::io::Result<()> {
        #[derive(Serialize)]
        struct Request<'a, P> {
            jsonrpc: &'static str,
            id: u8,
            method: &'a str,
            params: &'a P,
        }
        let mut line = serde_json::to_vec(&Request {
            jsonrpc: "2.0",
            id: 1,
            method,
            params,
        })?;
        line.push(b'\n');
        self.stream.set_write_timeout(Some(PATIENT))?;
        self.stream.write_all(&line)
    }

    /// The answer to the last question.
    pub(crate) fn answer<R: DeserializeOwned>(
        &mut self,
        patience: Duration,
    ) -> std::result::Result<R, NoAnswer> {
        #[derive(serde::Deserialize)]
        struct Answer<R> {
            result: Option<R>,
            error: Option<Failure>,
        }
        #[derive(serde::Deserialize)]
        struct Failure {
            code: i64,
            message: String,
        }
        let line = self.line(Instant::now() + patience).ok_or(NoAnswer::Silence)?;
        let answer: Answer<Value> = serde_json::from_slice(&line).map_err(|_| NoAnswer::Silence)?;
        match (answer.result, answer.error) {
            (_, Some(Failure { code, message })) => Err(NoAnswer::Refused { code, message }),
            (Some(result), None) => serde_json::from_value(result).map_err(|_| NoAnswer::Silence),
            (None, None) => Err(NoAnswer::Silence),
        }
    }

    pub(crate) fn call<R: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &impl Serialize,
        patience: Duration,
    ) -> std::result::Result<R, NoAnswer> {
        self.ask(method, params).map_err(|_| NoAnswer::Silence)?;
        self.answer(patience)
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
            self.stream.set_read_timeout(Some(left.max(Duration::from_millis(1)))).ok()?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.rest.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
