//! Client side of the JSON-RPC dialect: writes requests and reads the lines of a session.

use crate::event::{self, Event};
use crate::fields::{self, Fields, RawJson};
use crate::method::{EncodedReply, Method, MethodResult};
use crate::rpc::{self, Failure, Id};
use serde::Serialize;
use serde_json::value::RawValue;

/// Line of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionLine {
    Reply(Reply),
    Event(Notice),
    /// Line of an unknown kind. Clients ignore it.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Id of the request; `None` if the session could not read it.
    pub id: Option<Id>,
    pub outcome: MethodResult,
}

impl Reply {
    pub fn is_to(&self, id: u64) -> bool {
        self.id
            .as_ref()
            .is_some_and(|own| own.get() == id.to_string())
    }

    /// Decode the result of method `M`.
    pub fn read<M: Method>(self) -> Result<M::Reply, Failure> {
        serde_json::from_str(self.outcome?.get()).map_err(|error| {
            Failure::internal(format!(
                "the result of {} is invalid: {}",
                M::NAME,
                fields::error_text(&error)
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
#[error("the session sent an invalid line: {0}")]
pub struct InvalidLine(String);

#[derive(Serialize)]
struct Request<'a, M> {
    jsonrpc: &'static str,
    id: u64,
    method: &'static str,
    params: &'a M,
}

/// Encode a request as a line, including its line break.
pub fn request<M: Method>(id: u64, params: &M) -> Vec<u8> {
    let request = Request {
        jsonrpc: "2.0",
        id,
        method: M::NAME,
        params,
    };
    rpc::line(&request).expect("parameters have no maps with keys that are not strings")
}

/// Parse a line of a session.
pub fn parse_line(line: &[u8]) -> Result<SessionLine, InvalidLine> {
    let garbled = |error: serde_json::Error| InvalidLine(fields::error_text(&error));
    let text = std::str::from_utf8(line).map_err(|error| InvalidLine(error.to_string()))?;
    let fields = Fields::read(text.trim(), &["id", "result", "error", "method", "params"])
        .map_err(garbled)?;
    let id = fields.non_null("id").map(Id::keep);
    if let Some(error) = fields.non_null("error") {
        let failure = serde_json::from_str::<Failure>(error.get()).map_err(garbled)?;
        let outcome = Err(failure);
        return Ok(SessionLine::Reply(Reply { id, outcome }));
    }
    if let Some(result) = fields.raw("result") {
        let outcome = Ok(EncodedReply(RawJson::keep(result)));
        return Ok(SessionLine::Reply(Reply { id, outcome }));
    }
    match (
        fields.raw("method").map(RawValue::get),
        fields.raw("params"),
    ) {
        (Some(r#""event""#), Some(params)) => notice(params.get()).map_err(garbled),
        (_, _) => Ok(SessionLine::Unknown),
    }
}

fn notice(params: &str) -> serde_json::Result<SessionLine> {
    let fields = Fields::read(params, &["type", "timestamp", "data"])?;
    let text = |name| match fields.non_null(name) {
        Some(value) => serde_json::from_str::<String>(value.get()),
        None => Ok(String::new()),
    };
    let (kind, timestamp) = (text("type")?, text("timestamp")?);
    let data = fields.non_null("data").map_or("{}", RawValue::get);
    Ok(match event::parse(&kind, data)? {
        Some(event) => SessionLine::Event(Notice { timestamp, event }),
        None => SessionLine::Unknown,
    })
}
