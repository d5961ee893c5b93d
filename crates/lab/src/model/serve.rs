//! HTTP server: connections, paths, the log, and timed replies.
//!
//! The content of replies is decided elsewhere.

use super::log::{LogEntry, LogWriter};
use super::plan::{self, plan};
use super::reply::{Beat, Kind, ModelReply};
use super::request::{Dialect, Malformed, ModelRequest};
use super::{anthropic, chat, gemini, responses};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderMap};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::net::TcpListener;
use std::path::Path;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Sleep;

/// Limit for the length of a request.
const MAX_REQUEST_BYTES: usize = 64 << 20;
/// Interval between checks whether a file exists.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Limit for open connections. Others wait.
const MAX_CONNECTIONS: usize = 256;

/// Serve until stopped. Nothing outlives this call.
pub fn serve(
    listener: TcpListener,
    log: &Path,
    stop: impl Future<Output = ()>,
) -> Result<(), Box<dyn Error>> {
    let server = Arc::new(ModelServer {
        writer: LogWriter::open(log)?,
        requests: AtomicU64::new(0),
    });
    listener.set_nonblocking(true)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut stop = pin!(stop);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                () = &mut stop => return Ok(()),
                Some(_) = connections.join_next() => {}
                accepted = listener.accept(), if connections.len() < MAX_CONNECTIONS => {
                    let (stream, _) = accepted?;
                    connections.spawn(connection(stream, Arc::clone(&server)));
                }
            }
        }
    })
}

async fn connection(stream: tokio::net::TcpStream, server: Arc<ModelServer>) {
    let service = hyper::service::service_fn(move |request| {
        let server = Arc::clone(&server);
        async move { Ok::<_, Infallible>(server.respond(request).await) }
    });
    let served =
        hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // A connection that breaks is logged by its incomplete replies.
    let _ = served.await;
}

struct ModelServer {
    writer: LogWriter,
    requests: AtomicU64,
}

/// Purpose of a path.
enum Endpoint {
    Turn(Dialect),
    /// Gemini's path has the model and selects streaming.
    Generate {
        model: String,
        stream: bool,
    },
    Aside(Value),
    Unknown,
}

impl Endpoint {
    fn at(method: &str, path: &str) -> Self {
        let last = path.rsplit('/').next().unwrap_or_default();
        let generate = last.split_once(':');
        match (method, generate, last) {
            ("POST", Some((_, "countTokens")), _) => Self::Aside(json!({"totalTokens": 10})),
            ("POST", _, "count_tokens") => Self::Aside(json!({"input_tokens": 10})),
            ("POST", Some((model, "generateContent")), _) => Self::generate(model, false),
            ("POST", Some((model, "streamGenerateContent")), _) => Self::generate(model, true),
            ("POST", _, "messages") => Self::Turn(Dialect::Claude),
            ("POST", _, "responses") => Self::Turn(Dialect::Codex),
            ("POST", _, "completions") => Self::Turn(Dialect::OpenCode),
            ("GET", _, "models") => Self::Aside(models()),
            // Agents check whether the server responds.
            ("GET" | "HEAD", _, "") => Self::Aside(json!({})),
            _ => Self::Unknown,
        }
    }

    fn generate(model: &str, stream: bool) -> Self {
        let model = model.to_owned();
        Self::Generate { model, stream }
    }
}

fn models() -> Value {
    let model = json!({"id": "lab", "object": "model", "created": 0, "owned_by": "lab"});
    json!({"object": "list", "data": [model], "models": []})
}

impl ModelServer {
    async fn respond(&self, request: Request<Incoming>) -> Response<Beats> {
        let number = self.requests.fetch_add(1, Ordering::Relaxed) + 1;
        let line = format!("{} {}", request.method(), request.uri());
        let door = Endpoint::at(request.method().as_str(), request.uri().path());
        let at = Timestamp::now();
        let conversation = conversation(request.headers());
        match door {
            Endpoint::Aside(value) => self.aside(at, number, line, &ModelReply::json(200, &value)),
            Endpoint::Unknown => {
                let answer =
                    ModelReply::json(404, &json!({"error": {"message": "not in the lab"}}));
                self.aside(at, number, line, &answer)
            }
            Endpoint::Turn(dialect) => {
                let asked = body(request).await.and_then(|body| match dialect {
                    Dialect::Claude => anthropic::read(&body),
                    Dialect::Codex => responses::read(&body),
                    Dialect::OpenCode => chat::read(&body),
                    Dialect::Gemini => gemini::read(&body, "", false),
                });
                let asked = asked.map(|asked| ModelRequest {
                    conversation,
                    ..asked
                });
                self.turn(at, number, dialect, line, asked).await
            }
            Endpoint::Generate { model, stream } => {
                let asked = body(request).await;
                let asked = asked.and_then(|body| gemini::read(&body, &model, stream));
                self.turn(at, number, Dialect::Gemini, line, asked).await
            }
        }
    }

    fn aside(
        &self,
        at: Timestamp,
        number: u64,
        request: String,
        answer: &ModelReply,
    ) -> Response<Beats> {
        let status = answer.status;
        let record = LogEntry::Other {
            at,
            number,
            request,
            status,
        };
        self.noted(&record, answer.clone(), None)
    }

    async fn turn(
        &self,
        at: Timestamp,
        number: u64,
        dialect: Dialect,
        request: String,
        asked: Result<ModelRequest, Malformed>,
    ) -> Response<Beats> {
        let asked = match asked {
            Ok(asked) => asked,
            Err(reason) => {
                let answer = refusal(dialect, 400, &reason);
                let record = LogEntry::Malformed {
                    at,
                    number,
                    request,
                    reason,
                };
                return self.noted(&record, answer, None);
            }
        };
        let plan = plan(&asked);
        let answer = match plan.http {
            Some(status) => refusal(dialect, status, &format!("lab error {status}")),
            None => match dialect {
                Dialect::Claude => anthropic::answer(&asked, &plan, number),
                Dialect::Codex => responses::answer(&asked, &plan, number),
                Dialect::OpenCode => chat::answer(&asked, &plan, number),
                Dialect::Gemini => gemini::answer(&asked, &plan, number),
            },
        };
        let open = Unanswered {
            writer: self.writer.clone(),
            number,
            answered: false,
        };
        let record = LogEntry::Asked { at, number, asked };
        let response = self.noted(&record, answer, Some(open));
        // If the client closes the connection meanwhile, the response is dropped, and its body logs
        // that.
        if let Some(file) = &plan.until {
            appears(file).await;
        }
        tokio::time::sleep(plan.hang).await;
        response
    }

    /// Return the reply after logging its request.
    fn noted(
        &self,
        record: &LogEntry,
        answer: ModelReply,
        open: Option<Unanswered>,
    ) -> Response<Beats> {
        let answer = match self.writer.write(record) {
            Ok(()) => answer,
            Err(error) => refusal(Dialect::Claude, 500, &format!("cannot be noted: {error}")),
        };
        let mut response = Response::new(Beats::new(answer.beats, open));
        *response.status_mut() =
            StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let kind = match answer.kind {
            Kind::Json => "application/json",
            Kind::Events => "text/event-stream",
        };
        let kind = hyper::header::HeaderValue::from_static(kind);
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

/// Wait until a test creates the file. Polls, because nothing signals the creation.
async fn appears(file: &Path) {
    let timeout = Duration::from_secs_f64(plan::MAX_DELAY_SECONDS);
    let there = async {
        while !file.exists() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    // After the timeout delay, reply in any case.
    let _ = tokio::time::timeout(timeout, there).await;
}

fn refusal(dialect: Dialect, status: u16, reason: &str) -> ModelReply {
    match dialect {
        Dialect::Claude => anthropic::refusal(status, reason),
        Dialect::Codex | Dialect::OpenCode => responses::refusal(status, reason),
        Dialect::Gemini => gemini::refusal(status, reason),
    }
}

/// Headers in which an agent names its conversation: Claude Code, Codex, OpenCode.
const CONVERSATION_HEADERS: [&str; 3] = ["x-claude-code-session-id", "session-id", "x-session-id"];

fn conversation(headers: &HeaderMap) -> Option<String> {
    let mut ids = CONVERSATION_HEADERS
        .iter()
        .filter_map(|name| headers.get(*name));
    Some(ids.next()?.to_str().ok()?.to_owned())
}

async fn body(request: Request<Incoming>) -> Result<Value, Malformed> {
    let body = Limited::new(request.into_body(), MAX_REQUEST_BYTES)
        .collect()
        .await;
    let body = body.map_err(|error| format!("the body cannot be read: {error}"))?;
    serde_json::from_slice(&body.to_bytes()).map_err(|error| format!("no JSON: {error}"))
}

/// Logs a request whose reply is incomplete when dropped.
struct Unanswered {
    writer: LogWriter,
    number: u64,
    /// The last byte was sent.
    answered: bool,
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let record = LogEntry::Cut {
            at: Timestamp::now(),
            number: self.number,
        };
        // A failed write cannot be reported.
        let _ = self.writer.write(&record);
    }
}

/// Reply that is being sent.
struct Beats {
    left: VecDeque<Beat>,
    wait: Option<Pin<Box<Sleep>>>,
    open: Option<Unanswered>,
}

impl Beats {
    fn new(beats: Vec<Beat>, open: Option<Unanswered>) -> Self {
        Self {
            left: beats.into(),
            wait: None,
            open,
        }
    }
}

impl Body for Beats {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(next) = self.left.front() else {
            return Poll::Ready(None);
        };
        let after = next.after;
        if after > Duration::ZERO {
            let wait = self
                .wait
                .get_or_insert_with(|| Box::pin(tokio::time::sleep(after)));
            ready!(wait.as_mut().poll(context));
            self.wait = None;
        }
        let beat = self.left.pop_front();
        if self.left.is_empty()
            && let Some(open) = &mut self.open
        {
            open.answered = true;
        }
        Poll::Ready(beat.map(|beat| Ok(Frame::data(Bytes::from(beat.bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        self.left.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        match self.left.len() {
            0 => SizeHint::with_exact(0),
            1 => SizeHint::with_exact(self.left[0].bytes.len() as u64),
            // Chunked, as a real server sends it: the length is unknown in advance.
            _ => SizeHint::default(),
        }
    }
}
