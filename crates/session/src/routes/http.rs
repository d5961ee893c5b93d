//! The program's HTTP API on loopback: chooses its port and credentials, checks that it belongs to this
//! program, and sends requests. Does not decide what is sent, or when.
//!
//! Once its owner has ended, any process can listen on a port. So before the API is sent anything, it
//! must name something that only this program knows: the title on the session's terminal.

use crate::Shared;
use crate::host::log;
use crate::state::actions::tasks::{self, TaskReport};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use posthaste_core::driver::{Input, TurnMessage};
use posthaste_core::harness::{Api, Manifest, Placeholder, Route, Template, gives_flag};
use posthaste_core::{MessageId, turn};
use posthaste_store::live::place::Launch;
use posthaste_store::report::{Report, Result};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tracing::{info, warn};
use uuid::Uuid;

/// Timeout of a request. The delivery gives up one second later.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);
const MAX_RESPONSE_BYTES: usize = 1 << 20;
/// User name, unless the user has set one.
const DEFAULT_USER: &str = "opencode";
/// Prefix of a conversation's title on the terminal.
const TITLE_PREFIX: &str = "OC | ";
/// End of a title that is cut off.
const ELLIPSIS: &str = "...";

/// Address and credentials of the program's HTTP API.
#[derive(Clone)]
pub(crate) struct HttpRoute {
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) secret: String,
    api: Api,
    /// Reserves the port.
    _reservation: Option<Rc<TcpSocket>>,
}

impl std::fmt::Debug for HttpRoute {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HttpRoute({:?}, {})", self.api, self.port)
    }
}

impl HttpRoute {
    /// Prepare the HTTP API of a program, if its harness has one. A user name or password that the user
    /// has set is kept.
    pub(crate) fn for_program(harness: &Manifest, launch: &Launch) -> Result<Option<Self>> {
        let (Some(api), true) = (harness.http.api, harness.routes.contains(&Route::Http)) else {
            return Ok(None);
        };
        // If the user has set the port, the API is the user's.
        let user_args = launch.command.get(1..).unwrap_or_default();
        let start = &harness.start;
        if !start.is_for(user_args) || start.args.iter().any(|arg| sets_port(arg, user_args)) {
            return Ok(None);
        }
        let (port, reservation) = reserve_port().map_err(|error| {
            Report::storage(format!("cannot reserve a port on loopback: {error}"))
        })?;
        let user_value = |name: &String| {
            let variable = launch.env.iter().rfind(|(known, _)| known == name);
            let value = variable.map(|(_, value)| value.clone());
            value.or_else(|| std::env::var(name).ok())
        };
        let user_credential = |placeholder| {
            let mut variables = start.env.iter();
            let variable = variables.find(|(_, template)| template.has(placeholder));
            variable.and_then(|(name, _)| user_value(name))
        };
        let secret = user_credential(Placeholder::Secret).filter(|secret| !secret.is_empty());
        Ok(Some(Self {
            port,
            user: user_credential(Placeholder::User).unwrap_or_else(|| DEFAULT_USER.to_owned()),
            secret: secret.unwrap_or_else(|| Uuid::new_v4().simple().to_string()),
            api,
            _reservation: reservation,
        }))
    }
}

/// Choose a free port, and reserve it by a socket that is bound and does not listen. Linux then gives
/// the port only to a process that asks for this port, as the program does. Other systems would refuse
/// it to the program too, so it is not reserved there.
fn reserve_port() -> std::io::Result<(u16, Option<Rc<TcpSocket>>)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let port = socket.local_addr()?.port();
    let is_reserved = cfg!(target_os = "linux");
    Ok((port, is_reserved.then(|| Rc::new(socket))))
}

/// Whether an argument of the manifest sets the port of the API, and an argument of the user does too.
pub(crate) fn sets_port(arg: &Template, user_args: &[String]) -> bool {
    let filled = arg.fill(|_| String::new());
    let flag = filled.split('=').next().unwrap_or_default();
    arg.has(Placeholder::Port) && gives_flag(user_args, flag)
}

/// Check that the API belongs to this agent and shows this conversation.
pub(crate) async fn check(shared: Rc<Shared>, offer: u64, conversation: String) -> TaskReport {
    TaskReport::Input(match check_conversation(&shared, &conversation).await {
        Ok(()) => Input::ApiConfirmed(offer),
        Err(why) => refused(offer, Vec::new(), why),
    })
}

/// Report that the agent was given nothing.
fn refused(offer: u64, ids: Vec<MessageId>, why: String) -> Input {
    log_unused(&why);
    Input::ApiRefused { offer, ids, why }
}

/// Post mail to the conversation.
pub(crate) async fn put(
    shared: Rc<Shared>,
    offer: u64,
    messages: Vec<TurnMessage>,
    conversation: String,
) -> TaskReport {
    let ids = messages
        .iter()
        .map(|message| message.state.message.id)
        .collect();
    let text = match tasks::render_messages(&shared, &messages, turn::text) {
        Ok(text) => text,
        Err(error) => return TaskReport::Input(refused(offer, ids, error.to_string())),
    };
    let parts = json!({"parts": [{"type": "text", "text": text}]});
    let path = format!("/session/{conversation}/prompt_async");
    let why = match call(&shared, Method::POST, &path, &parts.to_string()).await {
        Ok((204, _)) => return TaskReport::Input(Input::ApiAccepted(offer)),
        Ok((status @ 400..=499, _)) => format!("it refused a message with status {status}"),
        Err(RequestError::NotSent(why)) => why,
        // It is unknown whether the agent has the message.
        Ok(_) | Err(RequestError::NoReply) => {
            log_unused("it did not say whether it has a message");
            return TaskReport::Input(Input::ApiSilent(offer));
        }
    };
    TaskReport::Input(refused(offer, ids, why))
}

fn log_unused(why: &str) {
    info!(target: log::DELIVERY, "the agent's HTTP API is not used: {why}");
}

/// Interrupt the agent.
pub(crate) async fn interrupt(shared: Rc<Shared>, conversation: String) -> TaskReport {
    let failed = |why| TaskReport::Input(refused(0, Vec::new(), why));
    if let Err(why) = check_conversation(&shared, &conversation).await {
        return failed(why);
    }
    let path = format!("/session/{conversation}/abort");
    match call(&shared, Method::POST, &path, "").await {
        Ok((200, body)) if body == "true" => TaskReport::Input(Input::ApiDone),
        Ok(_) | Err(_) => failed("it did not interrupt the agent".to_owned()),
    }
}

/// Have the agent answer the last message of its conversation, if the user wrote it. An empty prompt
/// adds nothing to the conversation.
pub(crate) async fn resume(shared: Rc<Shared>, conversation: String) -> TaskReport {
    TaskReport::Input(match try_resume(&shared, &conversation).await {
        Ok(()) => Input::ApiDone,
        Err(why) => {
            warn!(
                target: log::DELIVERY,
                "the last message may wait in the agent's HTTP API: {why}"
            );
            Input::ApiNotContinued { why }
        }
    })
}

async fn try_resume(shared: &Shared, conversation: &str) -> std::result::Result<(), String> {
    check_conversation(shared, conversation).await?;
    if !ends_with_user_message(shared, conversation).await? {
        return Ok(());
    }
    let path = format!("/session/{conversation}/prompt_async");
    let empty = json!({"parts": []});
    match call(shared, Method::POST, &path, &empty.to_string()).await {
        Ok((204, _)) => Ok(()),
        Ok((status, _)) => Err(format!("it answered with status {status}")),
        Err(RequestError::NotSent(why)) => Err(why),
        Err(RequestError::NoReply) => Err("it did not answer".to_owned()),
    }
}

async fn ends_with_user_message(
    shared: &Shared,
    conversation: &str,
) -> std::result::Result<bool, String> {
    let path = format!("/session/{conversation}/message?limit=2");
    let Ok((200, body)) = call(shared, Method::GET, &path, "").await else {
        return Err("it did not list the conversation's messages".to_owned());
    };
    let messages: Vec<Value> = serde_json::from_str(&body).unwrap_or_default();
    let infos = messages.iter().map(|message| &message["info"]);
    let last = infos.max_by_key(|info| info["id"].as_str().unwrap_or_default().to_owned());
    Ok(last.is_some_and(|info| info["role"] == "user"))
}

/// Check that the API lists the conversation that the terminal shows. The terminal shows only its
/// title, so no other conversation may have that title.
async fn check_conversation(
    shared: &Shared,
    conversation: &str,
) -> std::result::Result<(), String> {
    if !is_path_segment(conversation) {
        return Err("the conversation's id contains invalid characters".to_owned());
    }
    let answer = call(shared, Method::GET, "/session", "").await;
    let all = match answer {
        Ok((200, body)) => serde_json::from_str::<Vec<Value>>(&body).unwrap_or_default(),
        Ok((status, _)) => return Err(format!("it answered with status {status}")),
        Err(RequestError::NotSent(why)) => return Err(why),
        Err(RequestError::NoReply) => return Err("it did not answer".to_owned()),
    };
    let screen = shared.terminal.peek(Some(1), false).await;
    let shown = screen.and_then(|screen| screen.title).unwrap_or_default();
    let is_shown = |one: &&Value| title_matches(&shown, one["title"].as_str().unwrap_or_default());
    match all.iter().filter(is_shown).collect::<Vec<_>>()[..] {
        [one] if one["id"] == conversation => Ok(()),
        [_, _, ..] => {
            Err("several conversations have the title that the terminal shows".to_owned())
        }
        [] | [_] => Err("the terminal shows another conversation".to_owned()),
    }
}

/// Whether a terminal's title shows the title of a conversation.
fn title_matches(terminal: &str, title: &str) -> bool {
    let Some(shown) = terminal.strip_prefix(TITLE_PREFIX) else {
        return false;
    };
    let is_cut = |part: &str| !part.is_empty() && title.starts_with(part);
    !title.is_empty() && (shown == title || shown.strip_suffix(ELLIPSIS).is_some_and(is_cut))
}

/// Whether an id from outside can safely be a segment of a path.
fn is_path_segment(id: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=128).contains(&id.len()) && id.bytes().all(is_allowed)
}

/// Why a request has no response.
enum RequestError {
    /// The request was not sent.
    NotSent(String),
    /// The request may have been carried out.
    NoReply,
}

/// Send a request. Return the status and the body of the response.
async fn call(
    shared: &Shared,
    method: Method,
    path: &str,
    body: &str,
) -> std::result::Result<(u16, String), RequestError> {
    let not_sent =
        |why: &dyn std::fmt::Display| RequestError::NotSent(format!("cannot connect: {why}"));
    let Some(route) = &shared.http else {
        let why = "the user has set its port".to_owned();
        return Err(RequestError::NotSent(why));
    };
    let request = request(route, method, path, body).map_err(|error| not_sent(&error))?;
    let connect = TcpStream::connect((Ipv4Addr::LOCALHOST, route.port));
    let stream = match timeout(REQUEST_TIMEOUT, connect).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(not_sent(&error)),
        Err(_) => return Err(not_sent(&"timed out")),
    };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| not_sent(&error))?;
    let exchange = async move {
        let response = sender.send_request(request).await.ok()?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), MAX_RESPONSE_BYTES)
            .collect()
            .await;
        let body = body.ok()?.to_bytes();
        Some((status, String::from_utf8_lossy(&body).trim().to_owned()))
    };
    // The connection ends with the exchange, which owns its other end.
    let both = async { tokio::join!(exchange, connection).0 };
    timeout(REQUEST_TIMEOUT, both)
        .await
        .ok()
        .flatten()
        .ok_or(RequestError::NoReply)
}

fn request(
    route: &HttpRoute,
    method: Method,
    path: &str,
    body: &str,
) -> hyper::http::Result<Request<Full<Bytes>>> {
    let Api::OpenCode = route.api;
    let token = BASE64_STANDARD.encode(format!("{}:{}", route.user, route.secret));
    Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, format!("127.0.0.1:{}", route.port))
        .header(AUTHORIZATION, format!("Basic {token}"))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(CONNECTION, HeaderValue::from_static("close"))
        .body(Full::new(Bytes::from(body.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_title_matches_a_whole_or_cut_conversation_title() {
        let check = |terminal: &str, title: &str, want: bool| {
            assert_eq!(
                title_matches(terminal, title),
                want,
                "{terminal:?} {title:?}"
            );
        };
        check("OC | Fix the login", "Fix the login", true);
        check("OC | Fix the lo...", "Fix the login", true);
        check("OC | Fix it", "Fix the login", false);
        check("OC | ...", "Fix the login", false);
        check("OpenCode", "OpenCode", false);
        check("OC | ", "", false);
        check("", "", false);
    }

    #[test]
    fn an_id_with_path_characters_is_rejected() {
        assert!(is_path_segment("ses_e1ee18ac0ffeibtmA68MEOVA0o"));
        for bad in ["", "..", "a/b", "a?b", "a b", "é", &"x".repeat(129)] {
            assert!(!is_path_segment(bad), "{bad:?}");
        }
    }
}
