//! Blocking JSON-RPC client for one session's socket, for short-lived commands.
//!
//! Sends one request at a time. Never reconnects or retries: the caller decides what a timeout
//! means.

use posthaste_core::AgentName;
use posthaste_store::Home;
use posthaste_store::live::{SessionDir, reach};
use posthaste_wire::client::{self, Heard};
use posthaste_wire::method::{self, Method};
use posthaste_wire::rpc::Failure;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Timeout for requests that have a fallback: a sender can write to the journal itself.
pub const FALLBACK_TIMEOUT: Duration = Duration::from_millis(100);
/// Time within which a session that is alive responds.
pub const LIVENESS_TIMEOUT: Duration = Duration::from_secs(2);
/// Timeout for requests after which the session may first have to type.
pub const TYPING_TIMEOUT: Duration = Duration::from_secs(5);
/// Timeout for requests that only the session can answer.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Client {
    stream: UnixStream,
    /// Bytes that were received after the last whole line.
    received: Vec<u8>,
    last_id: u64,
}

/// Why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// No reply arrived in time. The request may still have been carried out.
    NoReply,
    /// The session refused the request.
    Refused(Failure),
}

impl Client {
    pub fn connect(socket: &Path) -> Option<Self> {
        let stream = reach(socket).ok()?;
        Some(Self {
            stream,
            received: Vec::new(),
            last_id: 0,
        })
    }

    /// Connect to the live session of `agent`, if it has one.
    pub fn connect_to(home: &Home, agent: &AgentName) -> Option<Self> {
        let record = SessionDir::of(home, agent).record()?;
        Self::connect(&record.socket)
    }

    /// Connect to the live session of `agent` and check that it responds within
    /// [`LIVENESS_TIMEOUT`].
    pub fn connect_responsive(home: &Home, agent: &AgentName) -> Option<Self> {
        let mut client = Self::connect_to(home, agent)?;
        let is_responsive = client.call(&method::Session {}, LIVENESS_TIMEOUT).is_ok();
        is_responsive.then_some(client)
    }

    /// Send `request`, giving up if it cannot be written within `timeout`.
    pub fn send<M: Method>(&mut self, request: &M, timeout: Duration) -> std::io::Result<()> {
        self.last_id += 1;
        let line = client::request(self.last_id, request);
        let deadline = Instant::now() + timeout;
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

    /// Receive the reply to the last request. Skips events and late replies to earlier requests.
    pub fn receive<M: Method>(&mut self, timeout: Duration) -> Result<M::Reply, CallError> {
        let deadline = Instant::now() + timeout;
        loop {
            let line = self.receive_line(deadline).ok_or(CallError::NoReply)?;
            match client::hear(&line) {
                Ok(Heard::Reply(reply)) if reply.is_to(self.last_id) || reply.id.is_none() => {
                    return reply.read::<M>().map_err(CallError::Refused);
                }
                Ok(Heard::Reply(_) | Heard::Event(_) | Heard::Unknown) => {}
                Err(_) => return Err(CallError::NoReply),
            }
        }
    }

    /// Send `request` and receive its reply within `timeout`.
    pub fn call<M: Method>(
        &mut self,
        request: &M,
        timeout: Duration,
    ) -> Result<M::Reply, CallError> {
        let sent = self.send(request, REQUEST_TIMEOUT);
        sent.map_err(|_| CallError::NoReply)?;
        self.receive::<M>(timeout)
    }

    fn receive_line(&mut self, deadline: Instant) -> Option<Vec<u8>> {
        let mut buffer = [0; 16 * 1024];
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(end + 1);
                return Some(std::mem::replace(&mut self.received, rest));
            }
            let left = deadline.checked_duration_since(Instant::now())?;
            let left = left.max(Duration::from_millis(1));
            self.stream.set_read_timeout(Some(left)).ok()?;
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.received.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }
}
