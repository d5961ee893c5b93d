//! The JSON-RPC 2.0 dialect: from a line to what is meant, and from an answer to a line.
//!
//! A line that makes no sense gets an error, never a hang-up, and what is said about it is what
//! the original says. Nothing here panics or recurses, whatever the bytes are.

use crate::fields::{Fields, Items};
use crate::method::{Call, Outcome};
use crate::plain;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;

/// How long a line may be, its end not counted. Whoever reads lines keeps no more than this, and
/// answers [`Failure::line_too_long`].
pub const MAX_LINE: usize = 10 << 20;

/// How many requests a batch may hold: each costs an answer that is much longer than itself.
pub const MAX_BATCH: usize = 1_000;

/// What one line says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// Nothing; nothing is answered.
    Blank,
    One(Request),
    /// Answered with one line, see [`batch`].
    Batch(Vec<Request>),
    /// The other dialect: one reply, and the connection closes.
    Plain(Result<plain::Request, plain::Refusal>),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Whom to answer. Without one it is carried out, and nothing is said.
    pub id: Option<Id>,
    pub call: Result<Call, Failure>,
}

impl Request {
    /// For a line of which not even the id can be told.
    fn refused(failure: Failure) -> Self {
        Self {
            id: Some(Id::null()),
            call: Err(failure),
        }
    }
}

/// A request's id, as it was written: 1 and 1.0 are not the same to every client.
#[derive(Debug, Clone)]
pub struct Id(Box<RawValue>);

impl Id {
    pub fn null() -> Self {
        Self(RawValue::NULL.to_owned())
    }

    pub fn get(&self) -> &str {
        self.0.get()
    }

    pub(crate) fn keep(value: &RawValue) -> Self {
        Self(value.to_owned())
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Id {}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(to)
    }
}

/// Why a call was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: i64,
    pub message: String,
}

impl Failure {
    pub const PARSE: i64 = -32700;
    pub const INVALID_REQUEST: i64 = -32600;
    pub const METHOD_NOT_FOUND: i64 = -32601;
    pub const INVALID_PARAMS: i64 = -32602;
    pub const INTERNAL: i64 = -32603;

    fn new(code: i64, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, message }
    }

    pub fn parse() -> Self {
        Self::new(Self::PARSE, "Parse error")
    }

    pub fn invalid_request() -> Self {
        Self::new(Self::INVALID_REQUEST, "Invalid request")
    }

    pub fn line_too_long() -> Self {
        let text = format!("Line too long: at most {MAX_LINE} bytes");
        Self::new(Self::INVALID_REQUEST, text)
    }

    pub fn unknown_method(name: &str) -> Self {
        Self::new(Self::METHOD_NOT_FOUND, format!("Method not found: {name}"))
    }

    /// Also for what is well written and refused all the same: an id that fits two messages, a
    /// sender who is somebody else.
    pub fn invalid_params(message: impl Into<String>) -> Self {
        Self::new(Self::INVALID_PARAMS, message)
    }

    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Self::INTERNAL, message)
    }
}

/// Reads a connection's first line, which also says which dialect it speaks.
pub fn read(line: &[u8]) -> Said {
    understand(line, Dialects::Both)
}

/// Reads a line of a connection that has begun in JSON-RPC.
pub fn read_on(line: &[u8]) -> Said {
    understand(line, Dialects::RpcOnly)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialects {
    Both,
    RpcOnly,
}

fn understand(line: &[u8], dialects: Dialects) -> Said {
    let Ok(text) = std::str::from_utf8(line) else {
        return Said::One(Request::refused(Failure::parse()));
    };
    let text = text.trim();
    match text.as_bytes().first() {
        None => Said::Blank,
        Some(b'{') => understand_object(text, dialects),
        Some(b'[') => understand_batch(text),
        Some(_) => Said::One(Request::refused(not_an_object(text))),
    }
}

const ENVELOPE: &[&str] = &["jsonrpc", "id", "method", "params", "type"];

fn understand_object(text: &str, dialects: Dialects) -> Said {
    let Ok(envelope) = Fields::read(text, ENVELOPE) else {
        return Said::One(Request::refused(Failure::parse()));
    };
    let is_plain = envelope.raw("type").is_some() && envelope.raw("jsonrpc").is_none();
    if is_plain && dialects == Dialects::Both {
        return Said::Plain(plain::read(text));
    }
    Said::One(request(&envelope))
}

fn understand_batch(text: &str) -> Said {
    let Ok(items) = Items::read(text, MAX_BATCH) else {
        return Said::One(Request::refused(Failure::parse()));
    };
    if items.first.is_empty() {
        return Said::One(Request::refused(Failure::invalid_request()));
    }
    if items.has_more {
        let text = format!("Batch too long: at most {MAX_BATCH} requests");
        let failure = Failure::new(Failure::INVALID_REQUEST, text);
        return Said::One(Request::refused(failure));
    }
    let requests = items.first.into_iter().map(|item| {
        if !item.get().starts_with('{') {
            return Request::refused(Failure::invalid_request());
        }
        match Fields::read(item.get(), ENVELOPE) {
            Ok(envelope) => request(&envelope),
            Err(_) => Request::refused(Failure::parse()),
        }
    });
    Said::Batch(requests.collect())
}

/// What to say of a line that is neither an object nor an array.
fn not_an_object(text: &str) -> Failure {
    match serde_json::from_str::<serde::de::IgnoredAny>(text) {
        Ok(_) => Failure::invalid_request(),
        Err(_) => Failure::parse(),
    }
}

fn request(envelope: &Fields<'_>) -> Request {
    let id = envelope.said("id").map(Id::keep);
    let text = |name| {
        let value = envelope.raw(name)?;
        serde_json::from_str::<String>(value.get()).ok()
    };
    // Of what is no request at all the sender hears even without an id.
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
        Err(failure) if failure.code == Failure::PARSE => Request::refused(failure),
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

/// The answer to one request: a line, its end included.
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

/// The answer to a request that was not carried out.
pub fn refusal(id: &Id, failure: &Failure) -> Vec<u8> {
    let failed = Failed {
        jsonrpc: "2.0",
        id,
        error: failure,
    };
    line(&failed).expect("an id, a number and a text can always be written")
}

/// The answer to a request, if it wants one.
pub fn respond(id: Option<&Id>, outcome: &Outcome) -> Option<Vec<u8>> {
    let id = id?;
    Some(match outcome {
        Ok(answer) => reply(id, answer),
        Err(failure) => refusal(id, failure),
    })
}

/// The answers to a batch as its one line; none if nobody wants one.
pub fn batch(replies: &[Vec<u8>]) -> Option<Vec<u8>> {
    if replies.is_empty() {
        return None;
    }
    let replies: Vec<&[u8]> = replies.iter().map(|reply| reply.trim_ascii_end()).collect();
    Some([b"[", replies.join(&b","[..]).as_slice(), b"]\n"].concat())
}

/// A value as a line.
pub(crate) fn line(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    Ok(line)
}
