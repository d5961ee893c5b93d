//! What is asked over the socket, in either dialect, and who answers it.
//!
//! A request is answered before anything that it causes is told to listeners, so whoever carries
//! it out also hands in the answer.

use crate::Shared;
use crate::pty::keyboard::Typed;
use crate::socket::control;
use crate::socket::hub::Outbox;
use crate::socket::peer::{Look, Peer};
use crate::socket::post;
use crate::state::StateRequest;
use posthaste_core::{IdPrefix, MessageState, Order};
use posthaste_store::operation::ApplyOrder;
use posthaste_store::{Denied, Error, Listing, files};
use posthaste_wire::event::{Event, StateChange};
use posthaste_wire::method::{self, Call, Method, Outcome};
use posthaste_wire::param::Payload;
use posthaste_wire::plain;
use posthaste_wire::rpc::{self, Failure, Id, Request};
use posthaste_wire::topic::{Topic, Topics};
use posthaste_wire::{Detail, Message};
use std::cell::Cell;
use std::rc::Rc;
use tokio::sync::oneshot;

/// How many lines `get_status` tells.
const RECENT: usize = 200;

/// Where the answer to one request goes. One that is dropped without an answer says so.
pub(crate) struct Sink {
    id: Option<Id>,
    to: Target,
    _done: oneshot::Sender<()>,
}

enum Target {
    Outbox(Rc<Outbox>),
    Batch(Rc<Batch>),
    /// Nobody, or nobody any more.
    Nobody,
}

/// The answers to a batch, written as they come: one array on one line, of which no more waits
/// than of anything else.
struct Batch {
    outbox: Rc<Outbox>,
    is_begun: Cell<bool>,
}

impl Batch {
    fn push(&self, reply: &[u8]) {
        let before: &[u8] = if self.is_begun.replace(true) {
            b","
        } else {
            b"["
        };
        self.outbox.push(before);
        self.outbox.push(reply.trim_ascii_end());
    }

    fn end(&self) {
        let end: &[u8] = if self.is_begun.get() { b"]\n" } else { b"" };
        self.outbox.release(end);
    }
}

impl Sink {
    fn new(id: Option<Id>, to: Target) -> (Self, oneshot::Receiver<()>) {
        let (done, given) = oneshot::channel();
        let sink = Self {
            id,
            to,
            _done: done,
        };
        (sink, given)
    }

    pub(crate) fn answer<M: Method>(mut self, answer: &M::Answer) {
        self.give(&M::answer(answer));
    }

    pub(crate) fn refuse(mut self, failure: Failure) {
        self.give(&Err(failure));
    }

    fn outcome<M: Method>(self, outcome: Result<M::Answer, Failure>) {
        match outcome {
            Ok(answer) => self.answer::<M>(&answer),
            Err(failure) => self.refuse(failure),
        }
    }

    fn give(&mut self, outcome: &Outcome) {
        let reply = rpc::respond(self.id.as_ref(), outcome);
        match (std::mem::replace(&mut self.to, Target::Nobody), reply) {
            (Target::Outbox(outbox), Some(reply)) => outbox.push(&reply),
            (Target::Batch(batch), Some(reply)) => batch.push(&reply),
            (Target::Outbox(_) | Target::Batch(_), None) | (Target::Nobody, _) => {}
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.give(&Err(Failure::internal("the session is ending")));
    }
}

pub(crate) async fn one(shared: &Rc<Shared>, outbox: &Rc<Outbox>, peer: &Peer, request: Request) {
    let (sink, given) = Sink::new(request.id, Target::Outbox(outbox.clone()));
    match request.call {
        Ok(call) => carry_out(shared, outbox, peer, call, sink).await,
        Err(failure) => sink.refuse(failure),
    }
    let _ = given.await;
}

pub(crate) async fn batch(
    shared: &Rc<Shared>,
    outbox: &Rc<Outbox>,
    peer: &Peer,
    requests: Vec<Request>,
) {
    let batch = Rc::new(Batch {
        outbox: outbox.clone(),
        is_begun: Cell::new(false),
    });
    outbox.hold();
    for request in requests {
        outbox.room().await;
        if outbox.is_dead() {
            return;
        }
        let (sink, given) = Sink::new(request.id, Target::Batch(batch.clone()));
        match request.call {
            Ok(call) => carry_out(shared, outbox, peer, call, sink).await,
            Err(failure) => sink.refuse(failure),
        }
        let _ = given.await;
    }
    batch.end();
}

async fn carry_out(shared: &Rc<Shared>, outbox: &Rc<Outbox>, peer: &Peer, call: Call, sink: Sink) {
    match call {
        Call::GetStatus(_) => get_status(shared, sink).await,
        Call::Stop(_) if shared.is_loop => control::stop(shared, peer, sink).await,
        Call::Stop(_) => shared.request(StateRequest::Stop(sink)).await,
        Call::Kill(_) => shared.request(StateRequest::Kill(sink)).await,
        Call::Checkpoint(_) if shared.is_loop => control::checkpoint(shared, peer, sink).await,
        Call::Checkpoint(_) => shared.request(StateRequest::Checkpoint(sink)).await,
        Call::InjectPrompt(prompt) if shared.is_loop => {
            control::inject(shared, peer, prompt.prompt.0, sink).await;
        }
        Call::InjectPrompt(prompt) => inject_prompt(shared, prompt.prompt.0, sink).await,
        // A loop's mode outlives the connection: it is turned off by who turns it off.
        Call::SetInteractiveMode(mode) if shared.is_loop => {
            control::interactive(shared, peer, mode.enabled.0, sink).await;
        }
        Call::SetInteractiveMode(mode) => {
            set_interactive(shared, outbox, mode.enabled.0, sink).await;
        }
        Call::WritePty(keys) => write_pty(shared, keys.data.0, sink).await,
        Call::Subscribe(wanted) => {
            let mut topics = outbox.topics();
            topics.subscribe(&wanted.events.0);
            subscribe(shared, outbox, topics, sink);
        }
        Call::Unsubscribe(unwanted) => {
            let mut topics = outbox.topics();
            topics.unsubscribe(&unwanted.events.0);
            subscribe(shared, outbox, topics, sink);
        }
        Call::Send(send) => {
            sink.outcome::<method::Send>(post::send(shared, peer, send).await);
        }
        Call::Show(show) => sink.outcome::<method::Show>(detail(shared, show.id).await),
        Call::Why(asked) => why(shared, asked.id, sink).await,
        Call::Inbox(inbox) => sink.outcome::<method::Inbox>(list(shared, inbox.all).await),
        Call::MarkRead(mark) => {
            sink.outcome::<method::MarkRead>(mark_read(shared, mark.ids).await);
        }
        Call::Nudge(line) => nudge(shared, line, sink).await,
        Call::CheckMail(_) => {
            shared.wakeups.script_check.notify_one();
            sink.answer::<method::CheckMail>(&method::Noted::Noted);
        }
        Call::Pause(_) if shared.is_loop => control::pause(sink),
        Call::Resume(_) if shared.is_loop => control::resume(shared, peer, sink).await,
        Call::Pause(_) => shared.request(StateRequest::Pause { on: true, sink }).await,
        Call::Resume(_) => {
            shared
                .request(StateRequest::Pause { on: false, sink })
                .await
        }
        Call::Session(_) => {
            let tell = move |session| sink.answer::<method::Session>(&session);
            shared
                .request_with_loop(StateRequest::Session(Box::new(tell)))
                .await;
        }
        Call::Peek(peek) => sink.outcome::<method::Peek>(look(shared, &peek).await),
        Call::HookEvent(hook) => hook_event(shared, outbox.clone(), hook, sink).await,
        Call::HookTaken(taken) => hook_taken(shared, outbox, &taken, sink).await,
    }
}

async fn get_status(shared: &Shared, sink: Sink) {
    let recent = shared.terminal.recent(RECENT).await;
    shared
        .request_with_loop(StateRequest::Status { recent, sink })
        .await;
}

/// On a plain session the mode is its connection's, and ends with it.
async fn set_interactive(shared: &Shared, outbox: &Outbox, enabled: bool, sink: Sink) {
    outbox.set_interactive(enabled);
    shared
        .request(StateRequest::Interactive { enabled, sink })
        .await;
}

async fn why(shared: &Shared, id: IdPrefix, sink: Sink) {
    match find(shared, id).await {
        Ok(message_state) => {
            let message_state = Box::new(message_state);
            shared
                .request_with_loop(StateRequest::Why {
                    state: message_state,
                    sink,
                })
                .await;
        }
        Err(failure) => sink.refuse(failure),
    }
}

async fn nudge(shared: &Shared, line: method::Nudge, sink: Sink) {
    let (text, asked_at) = (line.text.0, line.asked_at);
    let request = StateRequest::Nudge {
        text,
        asked_at,
        sink,
    };
    shared.request(request).await;
}

/// What a hook is given is in the hand of its connection until that says that it has passed it on.
async fn hook_event(shared: &Shared, outbox: Rc<Outbox>, hook: method::HookEvent, sink: Sink) {
    let tell = Box::new(move |hooked: method::Hooked| {
        outbox.set_hand(hooked.offer);
        sink.answer::<method::HookEvent>(&hooked);
    });
    shared
        .request(StateRequest::Hook { hook, reply: tell })
        .await;
}

async fn hook_taken(shared: &Shared, outbox: &Outbox, taken: &method::HookTaken, sink: Sink) {
    match outbox.take_hand() {
        Some(hand) if hand == taken.offer => {
            sink.answer::<method::HookTaken>(&method::Noted::Noted);
            shared.request(StateRequest::HookPassedOn(hand)).await;
        }
        other => {
            outbox.set_hand(other);
            sink.refuse(Failure::invalid_params("this connection has no such offer"));
        }
    }
}

fn subscribe(shared: &Shared, outbox: &Outbox, topics: Topics, sink: Sink) {
    outbox.set_topics(topics);
    shared.hub.recount();
    let subscribed = topics.list();
    sink.answer::<method::Subscribe>(&method::Subscribed { subscribed });
}

async fn write_pty(shared: &Shared, keys: String, sink: Sink) {
    let answer = if !*shared.watches.interactive.borrow() {
        method::Written::not_interactive()
    } else if shared.is_loop && !control::has_keys(shared).await {
        method::Written::to_nobody()
    } else {
        let keys = Typed::Text(keys.into_bytes());
        shared.keyboard.type_in(keys).await;
        method::Written::Forwarded
    };
    sink.answer::<method::WritePty>(&answer);
}

async fn look(shared: &Shared, peek: &method::Peek) -> Result<method::Screen, Failure> {
    let lines = peek.lines.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let seen = shared.terminal.peek(lines, peek.ansi).await;
    let seen = seen.ok_or_else(|| Failure::internal("the terminal is gone"))?;
    Ok(method::Screen {
        lines: seen.lines,
        cols: seen.size.cols,
        rows: seen.size.rows,
        title: seen.title,
    })
}

/// Lets go of what a connection had taken. It lasts no longer than the connection.
pub(crate) async fn leave(shared: &Shared, outbox: &Outbox) {
    if outbox.is_interactive() {
        let (sink, _) = Sink::new(None, Target::Nobody);
        let enabled = false;
        shared
            .request(StateRequest::Interactive { enabled, sink })
            .await;
    }
    if let Some(hand) = outbox.take_hand() {
        shared.request(StateRequest::HookGone(hand)).await;
    }
}

/// On a plain session instructions are a message from the person.
async fn inject_prompt(shared: &Shared, prompt: String, sink: Sink) {
    if let Err(failure) = post::from_the_person(shared, prompt.clone()).await {
        return sink.refuse(failure);
    }
    is_injected(shared, prompt, sink);
}

/// Answers that a prompt stands in the journal, and tells who listens.
pub(crate) fn is_injected(shared: &Shared, prompt: String, sink: Sink) {
    sink.answer::<method::InjectPrompt>(&method::Injected::PromptInjected {
        prompt: prompt.clone(),
    });
    let change = StateChange {
        injected_prompt: Some(prompt),
        ..StateChange::default()
    };
    let event = Event::StateChange(change);
    shared.hub.tell(Topic::StateChange, &event);
}

async fn find(shared: &Shared, id: IdPrefix) -> Result<MessageState, Failure> {
    let found = shared.journal.ask(move |journal| journal.find(&id)).await;
    found.map_err(|error| failure(&error))
}

async fn detail(shared: &Shared, id: IdPrefix) -> Result<Detail, Failure> {
    let message_state = find(shared, id).await?;
    let now = posthaste_store::times::now();
    let body =
        files::body(&shared.home, &message_state.message).map_err(|error| failure(&error))?;
    let file = file_of(shared, &message_state);
    Ok(Detail::new(&message_state, body, file, now))
}

/// The message's own file, made again where it is lost.
fn file_of(shared: &Shared, message_state: &MessageState) -> Option<String> {
    let path = files::ensure(&shared.home, &message_state.message).ok()?;
    Some(path.to_string_lossy().into_owned())
}

async fn list(shared: &Shared, all: bool) -> Result<Vec<Message>, Failure> {
    let listing = if all { Listing::All } else { Listing::Unread };
    let (agent, now) = (shared.agent.clone(), posthaste_store::times::now());
    let messages = shared
        .journal
        .ask(move |journal| journal.inbox(&agent, listing, now))
        .await
        .map_err(|error| failure(&error))?;
    messages
        .iter()
        .map(|message_state| {
            let body = match files::body(&shared.home, &message_state.message) {
                Err(error @ Error::BodyLost { .. }) => format!("({error})"),
                body => body.map_err(|error| failure(&error))?,
            };
            Ok(Message::new(message_state, body, now))
        })
        .collect()
}

async fn mark_read(shared: &Shared, ids: Vec<IdPrefix>) -> Result<method::Marked, Failure> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.push(find(shared, id).await?.message.id);
    }
    let apply = ApplyOrder {
        now: posthaste_store::times::now(),
        who: shared.agent.clone(),
        order: Order::MarkRead,
        ids: found,
    };
    match shared
        .journal
        .commit(apply)
        .await
        .map_err(|error| failure(&error))?
    {
        Ok(ordered) => Ok(method::Marked {
            marked: ordered.iter().map(|o| o.message.id).collect(),
        }),
        Err(denied) => Err(denial(&denied)),
    }
}

/// What went wrong in the journal, for somebody who cannot see it.
pub(crate) fn failure(error: &Error) -> Failure {
    match error {
        Error::NotFound(_) | Error::Ambiguous { .. } => Failure::invalid_params(error.to_string()),
        other => Failure::internal(other.to_string()),
    }
}

pub(crate) fn denial(denied: &Denied) -> Failure {
    Failure::invalid_params(denied.to_string())
}

/// What follows a request of the plain dialect.
pub(crate) enum Next {
    Close,
    Attach(plain::Attach),
}

pub(crate) async fn plain(
    shared: &Rc<Shared>,
    outbox: &Outbox,
    peer: &Peer,
    request: Result<plain::Request, plain::Refusal>,
) -> Next {
    let reply = match request {
        Ok(plain::Request::Attach(attach)) => {
            // What it shows would be its own output, and so on without end.
            if peer.agent(&shared.home, Look::Thorough).as_ref() == Some(&shared.agent) {
                plain::Reply::refused("this terminal is in that session")
            } else {
                return Next::Attach(attach);
            }
        }
        Ok(plain::Request::Send(send)) => match post::plain(shared, peer, send).await {
            Ok(id) => plain::Reply::sent(id),
            Err(failure) => plain::Reply::refused(failure.message),
        },
        Ok(plain::Request::Show { message_id }) => show_plainly(shared, message_id).await,
        Ok(plain::Request::Status) => {
            let (tell, told) = oneshot::channel();
            let tell = move |agent| drop(tell.send(agent));
            shared
                .request_with_loop(StateRequest::Agent(Box::new(tell)))
                .await;
            match told.await {
                Ok(agent) => plain::Reply::agent(agent),
                Err(_) => plain::Reply::refused("the session is ending"),
            }
        }
        Ok(plain::Request::HookEvent {
            event_name,
            payload,
        }) => {
            let (tell, told) = oneshot::channel();
            let tell = Box::new(move |_| {
                let _ = tell.send(());
            });
            let hook = method::HookEvent {
                harness: None,
                event_name,
                payload: payload.unwrap_or_else(Payload::null),
                takes_context: false,
                run: None,
            };
            shared
                .request(StateRequest::Hook { hook, reply: tell })
                .await;
            // An agent's hook must not fail because its session is ending.
            let _ = told.await;
            plain::Reply::ok()
        }
        Ok(plain::Request::Stop) => {
            // The reply first; then the child is ended.
            outbox.push(&plain::Reply::ok().line());
            let (sink, _) = Sink::new(None, Target::Nobody);
            shared.request(StateRequest::Stop(sink)).await;
            return Next::Close;
        }
        Err(refusal) => plain::Reply::from(refusal),
    };
    outbox.push(&reply.line());
    Next::Close
}

async fn show_plainly(shared: &Shared, id: String) -> plain::Reply {
    let not_found = || plain::Reply::from(plain::Refusal::NotFound(id.clone()));
    let Ok(prefix) = IdPrefix::parse(&id) else {
        return not_found();
    };
    let found = shared
        .journal
        .ask(move |journal| journal.find(&prefix))
        .await;
    match found {
        Ok(message_state) => {
            let now = posthaste_store::times::now();
            plain::Reply::message(plain::MessageInfo::new(
                &message_state,
                file_of(shared, &message_state).unwrap_or_default(),
                now,
                posthaste_store::times::zone(),
            ))
        }
        Err(Error::NotFound(_)) => not_found(),
        Err(error) => plain::Reply::refused(error.to_string()),
    }
}
