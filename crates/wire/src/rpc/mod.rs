//! The JSON-RPC 2.0 dialect: parses requests and writes replies.
//!
//! An invalid line gets the original's error text and never closes the connection. Never panics or
//! recurses, for any input.

pub mod client;
pub mod event;
pub mod method;
pub mod param;
pub mod topic;

use crate::fields::{Fields, Items, RawJson};
use crate::method::{Call, MethodResult};
use crate::plain;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Maximum length of a line without its line break. Readers keep no more, and reply
/// [`Failure::line_too_long`].
pub const MAX_LINE_BYTES: usize = 10 << 20;

/// Maximum number of requests in a batch: each costs a reply that is much longer than itself.
pub const MAX_BATCH_REQUESTS: usize = 1_000;

/// Content of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientLine {
    /// A blank line, which gets no reply.
    Blank,
    One(Request),
    /// Requests whose replies form one line, see [`batch`].
    Batch(Vec<Request>),
    /// A request in the plain dialect: one reply, then the connection closes.
    Plain(Result<plain::Request, plain::Refusal>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Id for the reply. A request without id gets no reply.
    pub id: Option<Id>,
    pub call: Result<Call, Failure>,
}

impl Request {
    /// A line whose id cannot be read.
    fn refused(failure: Failure) -> Self {
        Self {
            id: Some(Id::null()),
            call: Err(failure),
        }
    }
}

/// Id of a request in its original form: 1 and 1.0 differ for some clients.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Id(RawJson);

impl Id {
    pub fn null() -> Self {
        Self::keep(RawValue::NULL)
    }

    pub fn get(&self) -> &str {
        self.0.get()
    }

    pub(crate) fn keep(value: &RawValue) -> Self {
        Self(RawJson::keep(value))
    }
}

/// Reason why a call failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: i64,
    pub message: String,
}

impl Failure {
    pub const PARSE_ERROR: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;

    fn new(code: i64, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub fn parse() -> Self {
        Self::new(Self::PARSE_ERROR, "Parse error")
    }

    pub fn invalid_request() -> Self {
        Self::new(Self::INVALID_REQUEST, "Invalid request")
    }

    pub fn line_too_long() -> Self {
        let text = format!("Line too long: at most {MAX_LINE_BYTES} bytes");
        Self::new(Self::INVALID_REQUEST, text)
    }

    pub fn unknown_method(name: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("Method not found: {name}"))
    }

    /// Also for valid requests that are refused: an ambiguous id, or a sender's name that is
    /// somebody else's.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, message)
    }
}

/// Parse a connection's first line, which determines the dialect.
pub fn read(line: &[u8]) -> ClientLine {
    understand(line, Dialects::Both)
}

/// Parse a further line of a JSON-RPC connection.
pub fn read_on(line: &[u8]) -> ClientLine {
    understand(line, Dialects::RpcOnly)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialects {
    Both,
    RpcOnly,
}

fn understand(line: &[u8], dialects: Dialects) -> ClientLine {
    let Ok(text) = std::str::from_utf8(line) else {
        return ClientLine::One(Request::refused(Failure::parse()));
    };
    let text = text.trim();
    match text.as_bytes().first() {
        None => ClientLine::Blank,
        Some(b'{') => understand_object(text, dialects),
        Some(b'[') => understand_batch(text),
        Some(_) => ClientLine::One(Request::refused(not_an_object(text))),
    }
}

const ENVELOPE_FIELDS: &[&str] = &["jsonrpc", "id", "method", "params", "type"];

fn understand_object(text: &str, dialects: Dialects) -> ClientLine {
    let Ok(envelope) = Fields::read(text, ENVELOPE_FIELDS) else {
        return ClientLine::One(Request::refused(Failure::parse()));
    };
    let is_plain = envelope.raw("type").is_some() && envelope.raw("jsonrpc").is_none();
    if is_plain && dialects == Dialects::Both {
        return ClientLine::Plain(plain::read(text));
    }
    ClientLine::One(request(&envelope))
}

fn understand_batch(text: &str) -> ClientLine {
    let Ok(items) = Items::read(text, MAX_BATCH_REQUESTS) else {
        return ClientLine::One(Request::refused(Failure::parse()));
    };
    if items.first.is_empty() {
        return ClientLine::One(Request::refused(Failure::invalid_request()));
    }
    if items.has_more {
        let text = format!("Batch too long: at most {MAX_BATCH_REQUESTS} requests");
        let failure = Failure::new(Failure::INVALID_REQUEST, text);
        return ClientLine::One(Request::refused(failure));
    }
    let requests = items.first.into_iter().map(|item| {
        if !item.get().starts_with('{') {
            return Request::refused(Failure::invalid_request());
        }
        match Fields::read(item.get(), ENVELOPE_FIELDS) {
            Ok(envelope) => request(&envelope),
            Err(_) => Request::refused(Failure::parse()),
        }
    });
    ClientLine::Batch(requests.collect())
}

/// Return the error for a line that is neither an object nor an array.
fn not_an_object(text: &str) -> Failure {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Failure::invalid_request(),
        Err(_) => Failure::parse(),
    }
}

fn request(envelope: &Fields<'_>) -> Request {
    let id = envelope.non_null("id").map(Id::keep);
    let text = |name| {
        let value = envelope.raw(name)?;
        serde_json::from_str::<String>(value.get()).ok()
    };
    // An invalid request gets a reply even without an id.
    let invalid = |id: Option<Id>, message| Request {
        id: id.or_else(|| Some(Id::null())),
        call: Err(Failure::new(Failure::INVALID_REQUEST, message)),
    };
    if text("jsonrpc").as_deref() != Some("2.0") {
        return invalid(id, "Invalid JSON-RPC version");
    }
    let Some(method) = text("method") else {
        return invalid(id, "Missing method");
    };
    match Call::read(&method, envelope.raw("params")) {
        Err(failure) if failure.code == Failure::PARSE_ERROR => Request::refused(failure),
        call => Request { id, call },
    }
}

#[derive(Serialize)]
struct Done<'a, T> {
    jsonrpc: &'static str,
    id: &'a Id,
    result: &'a T,
}

#[derive(Serialize)]
struct Failed<'a> {
    jsonrpc: &'static str,
    id: &'a Id,
    error: &'a Failure,
}

/// Encode the reply to one request as a line, including its line break.
pub fn reply(id: &Id, result: &impl Serialize) -> Vec<u8> {
    let done = Done {
        jsonrpc: "2.0",
        id,
        result,
    };
    match line(&done) {
        Ok(line) => line,
        Err(error) => refusal(id, &Failure::internal(error.to_string())),
    }
}

/// Encode the reply to a failed request.
pub fn refusal(id: &Id, failure: &Failure) -> Vec<u8> {
    let failed = Failed {
        jsonrpc: "2.0",
        id,
        error: failure,
    };
    line(&failed).expect("an id, a number and a string are always serializable")
}

/// Encode the reply to a request, if it has an id.
pub fn respond(id: Option<&Id>, outcome: &MethodResult) -> Option<Vec<u8>> {
    let id = id?;
    Some(match outcome {
        Ok(answer) => reply(id, answer),
        Err(failure) => refusal(id, failure),
    })
}

/// Join the replies of a batch to one line; `None` if there are none.
pub fn batch(replies: &[Vec<u8>]) -> Option<Vec<u8>> {
    if replies.is_empty() {
        return None;
    }
    let replies: Vec<&[u8]> = replies.iter().map(|reply| reply.trim_ascii_end()).collect();
    Some([b"[", replies.join(&b","[..]).as_slice(), b"]\n"].concat())
}

/// Encode a value as a line.
pub(crate) fn line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
