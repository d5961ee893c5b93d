//! Carries out the JSON-RPC requests of a connection.
//!
//! A request is answered before its effects are published as events, so the code that carries it
//! out also answers it, through a [`Sink`].

use crate::Shared;
use crate::pty::keyboard::KeyboardInput;
use crate::socket::incoming_mail;
use crate::socket::loop_control;
use crate::socket::outbox::Outbox;
use crate::socket::peer::Peer;
use crate::state::StateRequest;
use posthaste_core::driver::Input;
use posthaste_core::{IdPrefix, MessageState, Order};
use posthaste_store::operation::ApplyOrder;
use posthaste_store::{Denied, Error, Listing, files};
use posthaste_wire::event::{Event, StateChange};
use posthaste_wire::method::{self, Call, Method, MethodResult};
use posthaste_wire::rpc::{self, Failure, Id, Request};
use posthaste_wire::topic::{Topic, Topics};
use posthaste_wire::{Detail, Message};
use std::cell::Cell;
use std::rc::Rc;
use tokio::sync::oneshot;

/// How many lines of output `get_status` returns.
const RECENT_LINES: usize = 200;

/// Receives the answer to one request. A sink that is dropped without an answer sends an error.
pub(crate) struct Sink {
    id: Option<Id>,
    to: Target,
    _done: oneshot::Sender<()>,
}

enum Target {
    Outbox(Rc<Outbox>),
    Batch(Rc<Batch>),
    /// Answers are discarded, or the request is already answered.
    None,
}

/// The answers to a batch: one array on one line, queued answer by answer so that the limit of the
/// outbox applies.
struct Batch {
    outbox: Rc<Outbox>,
    has_answers: Cell<bool>,
}

impl Batch {
    fn push(&self, reply: &[u8]) {
        let separator: &[u8] = if self.has_answers.replace(true) {
            b","
        } else {
            b"["
        };
        self.outbox.push(separator);
        self.outbox.push(reply.trim_ascii_end());
    }

    fn end(&self) {
        let end: &[u8] = if self.has_answers.get() { b"]\n" } else { b"" };
        self.outbox.release(end);
    }
}

impl Sink {
    /// Create a sink, and a receiver that completes once the request is answered.
    fn new(id: Option<Id>, to: Target) -> (Self, oneshot::Receiver<()>) {
        let (done, is_done) = oneshot::channel();
        let sink = Self {
            id,
            to,
            _done: done,
        };
        (sink, is_done)
    }

    /// Create a sink that discards the answer.
    pub(crate) fn discard() -> Self {
        Self::new(None, Target::None).0
    }

    pub(crate) fn answer<M: Method>(mut self, answer: &M::Reply) {
        self.send(&M::answer(answer));
    }

    pub(crate) fn refuse(mut self, failure: Failure) {
        self.send(&Err(failure));
    }

    fn outcome<M: Method>(self, outcome: Result<M::Reply, Failure>) {
        match outcome {
            Ok(answer) => self.answer::<M>(&answer),
            Err(failure) => self.refuse(failure),
        }
    }

    fn send(&mut self, outcome: &MethodResult) {
        let reply = rpc::respond(self.id.as_ref(), outcome);
        match (std::mem::replace(&mut self.to, Target::None), reply) {
            (Target::Outbox(outbox), Some(reply)) => outbox.push(&reply),
            (Target::Batch(batch), Some(reply)) => batch.push(&reply),
            (Target::Outbox(_) | Target::Batch(_), None) | (Target::None, _) => {}
        }
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.send(&Err(Failure::internal("the session is ending")));
    }
}

/// Carry out a single request.
pub(crate) async fn one(shared: &Rc<Shared>, outbox: &Rc<Outbox>, peer: &Peer, request: Request) {
    let (sink, is_done) = Sink::new(request.id, Target::Outbox(outbox.clone()));
    match request.call {
        Ok(call) => carry_out(shared, outbox, peer, call, sink).await,
        Err(failure) => sink.refuse(failure),
    }
    let _ = is_done.await;
}

/// Carry out a batch of requests one after the other.
pub(crate) async fn batch(
    shared: &Rc<Shared>,
    outbox: &Rc<Outbox>,
    peer: &Peer,
    requests: Vec<Request>,
) {
    let batch = Rc::new(Batch {
        outbox: outbox.clone(),
        has_answers: Cell::new(false),
    });
    outbox.hold_events();
    for request in requests {
        outbox.wait_for_room().await;
        if outbox.is_dead() {
            return;
        }
        let (sink, is_done) = Sink::new(request.id, Target::Batch(batch.clone()));
        match request.call {
            Ok(call) => carry_out(shared, outbox, peer, call, sink).await,
            Err(failure) => sink.refuse(failure),
        }
        let _ = is_done.await;
    }
    batch.end();
}

async fn carry_out(shared: &Rc<Shared>, outbox: &Rc<Outbox>, peer: &Peer, call: Call, sink: Sink) {
    match call {
        Call::GetStatus(_) => get_status(shared, sink).await,
        Call::Stop(_) if shared.is_loop => loop_control::stop(shared, peer, sink).await,
        Call::Stop(_) => shared.request(StateRequest::Stop(sink)).await,
        Call::Kill(_) => shared.request(StateRequest::Kill(sink)).await,
        Call::Checkpoint(_) if shared.is_loop => loop_control::checkpoint(shared, peer, sink).await,
        Call::Checkpoint(_) => shared.request(StateRequest::Checkpoint(sink)).await,
        Call::InjectPrompt(prompt) if shared.is_loop => {
            loop_control::inject(shared, peer, prompt.prompt.0, sink).await;
        }
        Call::InjectPrompt(prompt) => inject_prompt(shared, prompt.prompt.0, sink).await,
        // Unlike a plain session's, a loop's interactive mode outlives the connection.
        Call::SetInteractiveMode(mode) if shared.is_loop => {
            loop_control::interactive(shared, peer, mode.enabled.0, sink).await;
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
            sink.outcome::<method::Send>(incoming_mail::send(shared, peer, send).await);
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
        Call::Pause(_) if shared.is_loop => loop_control::pause(sink),
        Call::Resume(_) if shared.is_loop => loop_control::resume(shared, peer, sink).await,
        Call::Pause(_) => shared.request(StateRequest::Pause { on: true, sink }).await,
        Call::Resume(_) => {
            shared
                .request(StateRequest::Pause { on: false, sink })
                .await;
        }
        Call::Session(_) => {
            let tell = move |session| sink.answer::<method::Session>(&session);
            shared
                .request_with_loop(StateRequest::Session(Box::new(tell)))
                .await;
        }
        Call::Peek(peek) => sink.outcome::<method::Peek>(screen(shared, &peek).await),
        Call::HookEvent(hook) => hook_event(shared, outbox.clone(), hook, sink).await,
        Call::HookTaken(taken) => hook_taken(shared, outbox, &taken, sink).await,
    }
}

async fn get_status(shared: &Shared, sink: Sink) {
    let recent = shared.terminal.recent(RECENT_LINES).await;
    shared
        .request_with_loop(StateRequest::Status { recent, sink })
        .await;
}

/// Set the interactive mode of a plain session, which ends with the connection.
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

/// Pass a hook event to the state. The connection keeps the offer that the hook is given, until the
/// hook confirms that it has passed the mail on.
async fn hook_event(shared: &Shared, outbox: Rc<Outbox>, hook: method::HookEvent, sink: Sink) {
    let tell = Box::new(move |hooked: method::Hooked| {
        outbox.set_hook_offer(hooked.offer);
        sink.answer::<method::HookEvent>(&hooked);
    });
    shared
        .request(StateRequest::Hook { hook, reply: tell })
        .await;
}

async fn hook_taken(shared: &Shared, outbox: &Outbox, taken: &method::HookTaken, sink: Sink) {
    match outbox.take_hook_offer() {
        Some(offer) if offer == taken.offer => {
            sink.answer::<method::HookTaken>(&method::Noted::Noted);
            let passed_on = Input::HookPassedOn(offer);
            shared.request(StateRequest::Input(passed_on)).await;
        }
        other => {
            outbox.set_hook_offer(other);
            sink.refuse(Failure::invalid_params("this connection has no such offer"));
        }
    }
}

fn subscribe(shared: &Shared, outbox: &Outbox, topics: Topics, sink: Sink) {
    outbox.set_topics(topics);
    shared.hub.update_subscriptions();
    let subscribed = topics.list();
    sink.answer::<method::Subscribe>(&method::Subscribed { subscribed });
}

async fn write_pty(shared: &Shared, keys: String, sink: Sink) {
    let answer = if !*shared.watches.interactive.borrow() {
        method::Written::not_interactive()
    } else if shared.is_loop && !loop_control::has_agent(shared).await {
        method::Written::to_nobody()
    } else {
        let keys = KeyboardInput::Text(keys.into_bytes());
        shared.keyboard.type_in(keys).await;
        method::Written::Forwarded
    };
    sink.answer::<method::WritePty>(&answer);
}

async fn screen(shared: &Shared, peek: &method::Peek) -> Result<method::Screen, Failure> {
    let lines = peek.lines.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let screen = shared.terminal.peek(lines, peek.ansi).await;
    let screen = screen.ok_or_else(|| Failure::internal("the terminal is closed"))?;
    Ok(method::Screen {
        lines: screen.lines,
        cols: screen.size.cols,
        rows: screen.size.rows,
        title: screen.title,
    })
}

/// End the interactive mode and the hook offer of a connection that has ended.
pub(crate) async fn disconnected(shared: &Shared, outbox: &Outbox) {
    if outbox.is_interactive() {
        let (sink, enabled) = (Sink::discard(), false);
        shared
            .request(StateRequest::Interactive { enabled, sink })
            .await;
    }
    if let Some(offer) = outbox.take_hook_offer() {
        let gone = Input::HookGone(offer);
        shared.request(StateRequest::Input(gone)).await;
    }
}

/// Inject a prompt into a plain session, as a message from the person.
async fn inject_prompt(shared: &Shared, prompt: String, sink: Sink) {
    if let Err(failure) = incoming_mail::post_from_person(shared, prompt.clone()).await {
        return sink.refuse(failure);
    }
    confirm_injected(shared, prompt, sink);
}

/// Answer that a prompt is in the journal, and publish it.
pub(crate) fn confirm_injected(shared: &Shared, prompt: String, sink: Sink) {
    sink.answer::<method::InjectPrompt>(&method::Injected::PromptInjected {
        prompt: prompt.clone(),
    });
    let change = StateChange {
        injected_prompt: Some(prompt),
        ..StateChange::default()
    };
    let event = Event::StateChange(change);
    shared.hub.publish(Topic::StateChange, &event);
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

/// Return the path of the message's own file, and create the file again if it is lost.
pub(super) fn file_of(shared: &Shared, message_state: &MessageState) -> Option<String> {
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

/// Convert an error of the journal for the client.
pub(crate) fn failure(error: &Error) -> Failure {
    match error {
        Error::NotFound(_) | Error::Ambiguous { .. } => Failure::invalid_params(error.to_string()),
        other => Failure::internal(other.to_string()),
    }
}

pub(crate) fn denial(denied: &Denied) -> Failure {
    Failure::invalid_params(denied.to_string())
}
