//! The program's own HTTP door, on loopback: where it is, whether it is really this program's, and
//! the errands that go there. Nothing here decides what goes, or when.
//!
//! A port is anybody's once its owner is gone. So the door is asked for something that only this
//! program can know before it is given anything: the title that stands on our own terminal.

use crate::Shared;
use crate::host::log;
use crate::state::actions::{self, Report};
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
use posthaste_store::report::{Report as Trouble, Result};
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;
use tracing::{info, warn};
use uuid::Uuid;

/// How long an answer may take; the delivery gives up a second later.
const ANSWER: Duration = Duration::from_secs(4);
/// No answer that we ask for is longer.
const LONGEST: usize = 1 << 20;
/// Who calls, where nobody has named another.
const USER: &str = "opencode";
/// What the program puts before a conversation's title, and behind one that it has cut.
const TITLED: &str = "OC | ";
const CUT: &str = "...";

/// Where a door is, and what opens it.
#[derive(Clone)]
pub(crate) struct Key {
    pub(crate) port: u16,
    pub(crate) user: String,
    pub(crate) secret: String,
    api: Api,
    /// Keeps the port.
    _kept: Option<Rc<TcpSocket>>,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Key({:?}, {})", self.api, self.port)
    }
}

impl Key {
    /// For a program that has one. A person who has given it a name or a secret keeps that.
    pub(crate) fn for_program(harness: &Manifest, launch: &Launch) -> Result<Option<Self>> {
        let (Some(api), true) = (harness.http.api, harness.routes.contains(&Route::Http)) else {
            return Ok(None);
        };
        // Where a person has it on a port of his own, it is his alone.
        let said = launch.command.get(1..).unwrap_or_default();
        let start = &harness.start;
        if !start.is_for(said) || start.args.iter().any(|arg| opens(arg, said)) {
            return Ok(None);
        }
        let (port, kept) = free_port()
            .map_err(|error| Trouble::storage(format!("no port on loopback: {error}")))?;
        let said = |name: &String| {
            let given = launch.env.iter().rfind(|(said, _)| said == name);
            let given = given.map(|(_, value)| value.clone());
            given.or_else(|| std::env::var(name).ok())
        };
        let theirs = |blank| {
            let mut set = start.env.iter();
            let set = set.find(|(_, template)| template.has(blank));
            set.and_then(|(name, _)| said(name))
        };
        let secret = theirs(Placeholder::Secret).filter(|secret| !secret.is_empty());
        Ok(Some(Self {
            port,
            user: theirs(Placeholder::User).unwrap_or_else(|| USER.to_owned()),
            secret: secret.unwrap_or_else(|| Uuid::new_v4().simple().to_string()),
            api,
            _kept: kept,
        }))
    }
}

/// A free port, and what keeps it so: it is bound and not listened on. Linux then gives it to nobody
/// who asks for any port, and to the program, which asks for this one. Elsewhere the program would
/// not get it either.
fn free_port() -> std::io::Result<(u16, Option<Rc<TcpSocket>>)> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::LOCALHOST, 0).into())?;
    let port = socket.local_addr()?.port();
    let is_kept = cfg!(target_os = "linux");
    Ok((port, is_kept.then(|| Rc::new(socket))))
}

/// Whether an argument of ours says on which port the door is, and one of a person's does so too.
pub(crate) fn opens(arg: &Template, said: &[String]) -> bool {
    let filled = arg.fill(|_| String::new());
    let flag = filled.split('=').next().unwrap_or_default();
    arg.has(Placeholder::Port) && gives_flag(said, flag)
}

/// Check that the door is this agent's and leads to this conversation.
pub(crate) async fn check(shared: Rc<Shared>, offer: u64, conversation: String) -> Report {
    Report::Input(match known(&shared, &conversation).await {
        Ok(()) => Input::ApiConfirmed(offer),
        Err(why) => refused(offer, Vec::new(), why),
    })
}

/// Nothing was put before the agent.
fn refused(offer: u64, ids: Vec<MessageId>, why: String) -> Input {
    unused(&why);
    Input::ApiRefused { offer, ids, why }
}

/// Put mail before the agent.
pub(crate) async fn put(
    shared: Rc<Shared>,
    offer: u64,
    messages: Vec<TurnMessage>,
    conversation: String,
) -> Report {
    let ids = messages
        .iter()
        .map(|message| message.state.message.id)
        .collect();
    let text = match actions::told(&shared, &messages, turn::text) {
        Ok(text) => text,
        Err(error) => return Report::Input(refused(offer, ids, error.to_string())),
    };
    let parts = json!({"parts": [{"type": "text", "text": text}]});
    let path = format!("/session/{conversation}/prompt_async");
    let why = match ask(&shared, Method::POST, &path, &parts.to_string()).await {
        Ok((204, _)) => return Report::Input(Input::ApiAccepted(offer)),
        Ok((status @ 400..=499, _)) => format!("it refused a message with status {status}"),
        Err(Failed::Unsent(why)) => why,
        // Whether it has it, nobody can tell.
        Ok(_) | Err(Failed::Lost) => {
            unused("it did not say whether it has a message");
            return Report::Input(Input::ApiSilent(offer));
        }
    };
    Report::Input(refused(offer, ids, why))
}

/// For whoever reads the log; the delivery tells it in receipts.
fn unused(why: &str) {
    info!(target: log::DELIVERY, "its own HTTP door is not used: {why}");
}

/// Interrupt the agent.
pub(crate) async fn interrupt(shared: Rc<Shared>, conversation: String) -> Report {
    let failed = |why| Report::Input(refused(0, Vec::new(), why));
    if let Err(why) = known(&shared, &conversation).await {
        return failed(why);
    }
    let path = format!("/session/{conversation}/abort");
    match ask(&shared, Method::POST, &path, "").await {
        Ok((200, body)) if body == "true" => Report::Input(Input::ApiDone),
        Ok(_) | Err(_) => failed("it did not interrupt the agent".to_owned()),
    }
}

/// Have the agent answer the last message of its conversation, if that is a user's: an empty prompt
/// adds nothing to it.
pub(crate) async fn resume_conversation(shared: Rc<Shared>, conversation: String) -> Report {
    Report::Input(match try_to_go_on(&shared, &conversation).await {
        Ok(()) => Input::ApiDone,
        Err(why) => {
            warn!(
                target: log::DELIVERY,
                "the last message may wait at the agent's own HTTP door: {why}"
            );
            Input::ApiNotContinued { why }
        }
    })
}

async fn try_to_go_on(shared: &Shared, conversation: &str) -> std::result::Result<(), String> {
    known(shared, conversation).await?;
    if !is_unheard(shared, conversation).await? {
        return Ok(());
    }
    let path = format!("/session/{conversation}/prompt_async");
    let empty = json!({"parts": []});
    match ask(shared, Method::POST, &path, &empty.to_string()).await {
        Ok((204, _)) => Ok(()),
        Ok((status, _)) => Err(format!("it answered with status {status}")),
        Err(Failed::Unsent(why)) => Err(why),
        Err(Failed::Lost) => Err("it did not answer".to_owned()),
    }
}

async fn is_unheard(shared: &Shared, conversation: &str) -> std::result::Result<bool, String> {
    let path = format!("/session/{conversation}/message?limit=2");
    let Ok((200, body)) = ask(shared, Method::GET, &path, "").await else {
        return Err("it did not say what stands there".to_owned());
    };
    let said: Vec<Value> = serde_json::from_str(&body).unwrap_or_default();
    let infos = said.iter().map(|message| &message["info"]);
    let last = infos.max_by_key(|info| info["id"].as_str().unwrap_or_default().to_owned());
    Ok(last.is_some_and(|info| info["role"] == "user"))
}

/// Whether the door is this program's, and leads to what stands on its terminal. That shows a title
/// alone, so it must be the only conversation that is called so.
async fn known(shared: &Shared, conversation: &str) -> std::result::Result<(), String> {
    if !is_plain(conversation) {
        return Err("the conversation has no plain name".to_owned());
    }
    let answer = ask(shared, Method::GET, "/session", "").await;
    let all = match answer {
        Ok((200, body)) => serde_json::from_str::<Vec<Value>>(&body).unwrap_or_default(),
        Ok((status, _)) => return Err(format!("it answered with status {status}")),
        Err(Failed::Unsent(why)) => return Err(why),
        Err(Failed::Lost) => return Err("it did not answer".to_owned()),
    };
    let seen = shared.terminal.peek(Some(1), false).await;
    let shown = seen.and_then(|seen| seen.title).unwrap_or_default();
    let is_shown = |one: &&Value| shows(&shown, one["title"].as_str().unwrap_or_default());
    match all.iter().filter(is_shown).collect::<Vec<_>>()[..] {
        [one] if one["id"] == conversation => Ok(()),
        [_, _, ..] => Err("several conversations are called what the terminal shows".to_owned()),
        [] | [_] => Err("it leads to another conversation than the terminal shows".to_owned()),
    }
}

/// Whether a terminal's title is that of a conversation.
fn shows(terminal: &str, title: &str) -> bool {
    let Some(shown) = terminal.strip_prefix(TITLED) else {
        return false;
    };
    let is_cut = |part: &str| !part.is_empty() && title.starts_with(part);
    !title.is_empty() && (shown == title || shown.strip_suffix(CUT).is_some_and(is_cut))
}

/// A name from outside that is to stand in a path.
fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    (1..=128).contains(&name.len()) && name.bytes().all(is_plain)
}

/// Why there is no answer.
enum Failed {
    /// Nobody was given anything.
    Unsent(String),
    /// Whether it was heard is not known.
    Lost,
}

async fn ask(
    shared: &Shared,
    method: Method,
    path: &str,
    body: &str,
) -> std::result::Result<(u16, String), Failed> {
    let unsent = |why: &dyn std::fmt::Display| Failed::Unsent(format!("nobody answers: {why}"));
    let Some(key) = &shared.door else {
        let why = "a person has it on a port of his own".to_owned();
        return Err(Failed::Unsent(why));
    };
    let request = request(key, method, path, body).map_err(|error| unsent(&error))?;
    let connect = TcpStream::connect((Ipv4Addr::LOCALHOST, key.port));
    let stream = match timeout(ANSWER, connect).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return Err(unsent(&error)),
        Err(_) => return Err(unsent(&"no answer")),
    };
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .map_err(|error| unsent(&error))?;
    let exchange = async move {
        let response = sender.send_request(request).await.ok()?;
        let status = response.status().as_u16();
        let body = Limited::new(response.into_body(), LONGEST).collect().await;
        let body = body.ok()?.to_bytes();
        Some((status, String::from_utf8_lossy(&body).trim().to_owned()))
    };
    // The connection ends with the exchange, which owns its other end.
    let both = async { tokio::join!(exchange, connection).0 };
    timeout(ANSWER, both)
        .await
        .ok()
        .flatten()
        .ok_or(Failed::Lost)
}

fn request(
    key: &Key,
    method: Method,
    path: &str,
    body: &str,
) -> hyper::http::Result<Request<Full<Bytes>>> {
    let Api::OpenCode = key.api;
    let token = BASE64_STANDARD.encode(format!("{}:{}", key.user, key.secret));
    Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, format!("127.0.0.1:{}", key.port))
        .header(AUTHORIZATION, format!("Basic {token}"))
        .header(CONTENT_TYPE, HeaderValue::from_static("application/json"))
        .header(CONNECTION, HeaderValue::from_static("close"))
        .body(Full::new(Bytes::from(body.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_known_by_what_stands_on_the_terminal() {
        let check = |terminal: &str, title: &str, want: bool| {
            assert_eq!(shows(terminal, title), want, "{terminal:?} {title:?}");
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
    fn a_name_cannot_lead_elsewhere() {
        assert!(is_plain("ses_e1ee18ac0ffeibtmA68MEOVA0o"));
        for bad in ["", "..", "a/b", "a?b", "a b", "é", &"x".repeat(129)] {
            assert!(!is_plain(bad), "{bad:?}");
        }
    }
}
