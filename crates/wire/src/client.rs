//! The client's side of the JSON-RPC dialect: a call to a line, and what comes back.

use crate::event::{self, Event};
use crate::fields::{self, Fields};
use crate::method::{Answer, Method, Outcome};
use crate::rpc::{self, Failure, Id};
use serde::Serialize;
use serde_json::value::RawValue;

/// What a session says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Heard {
    Reply(Reply),
    Event(Notice),
    /// Of a kind that nobody here knows; to be passed over.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Which call it answers; none if the session could not tell.
    pub id: Option<Id>,
    pub outcome: Outcome,
}

impl Reply {
    pub fn is_to(&self, id: u64) -> bool {
        self.id
            .as_ref()
            .is_some_and(|own| own.get() == id.to_string())
    }

    /// What this method answers.
    pub fn read<M: Method>(self) -> Result<M::Answer, Failure> {
        serde_json::from_str(self.outcome?.get()).map_err(|error| {
            Failure::internal(format!(
                "the answer to {} cannot be read: {}",
                M::NAME,
                fields::complaint(&error)
            ))
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The session's local time.
    pub timestamp: String,
    pub event: Event,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the session said something that cannot be read: {0}")]
pub struct Garbled(String);

#[derive(Serialize)]
struct Request<'a, M> {
    jsonrpc: &'static str,
    id: u64,
    method: &'static str,
    params: &'a M,
}

/// A call as a line, its end included.
pub fn request<M: Method>(id: u64, params: &M) -> Vec<u8> {
    let request = Request {
        jsonrpc: "2.0",
        id,
        method: M::NAME,
        params,
    };
    rpc::line(&request).expect("no parameter is a map with odd keys")
}

/// Reads one line from a session.
pub fn hear(line: &[u8]) -> Result<Heard, Garbled> {
    let garbled = |error: serde_json::Error| Garbled(fields::complaint(&error));
    let text = std::str::from_utf8(line).map_err(|error| Garbled(error.to_string()))?;
    let said = Fields::read(text.trim(), &["id", "result", "error", "method", "params"])
        .map_err(garbled)?;
    let id = said.said("id").map(Id::keep);
    if let Some(error) = said.said("error") {
        let failure = serde_json::from_str::<Failure>(error.get()).map_err(garbled)?;
        let outcome = Err(failure);
        return Ok(Heard::Reply(Reply { id, outcome }));
    }
    if let Some(result) = said.raw("result") {
        let outcome = Ok(Answer(result.to_owned()));
        return Ok(Heard::Reply(Reply { id, outcome }));
    }
    match (said.raw("method").map(RawValue::get), said.raw("params")) {
        (Some(r#""event""#), Some(params)) => notice(params.get()).map_err(garbled),
        (_, _) => Ok(Heard::Unknown),
    }
}

fn notice(params: &str) -> serde_json::Result<Heard> {
    let fields = Fields::read(params, &["type", "timestamp", "data"])?;
    let text = |name| match fields.said(name) {
        Some(value) => serde_json::from_str::<String>(value.get()),
        None => Ok(String::new()),
    };
    let (kind, timestamp) = (text("type")?, text("timestamp")?);
    let data = fields.said("data").map_or("{}", RawValue::get);
    Ok(match event::parse(&kind, data)? {
        Some(event) => Heard::Event(Notice { timestamp, event }),
        None => Heard::Unknown,
    })
}
