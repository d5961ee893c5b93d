//! Carries out the JSON-RPC requests of a connection.
//!
//! A request is answered before its effects are published as events, so the code that carries it
//! out also answers it, through a [`Sink`].

mod asks;
mod incoming_mail;
mod loop_control;
pub(crate) mod plain_dialect;
mod sink;

pub(crate) use sink::Sink;

use crate::Shared;
use crate::pty::draft::LineFeed;
use crate::pty::keyboard::KeyboardInput;
use crate::socket::output::outbox::Outbox;
use crate::socket::peer::Peer;
use crate::state::StateRequest;
use posthaste_core::driver::Input;
use posthaste_core::{IdPrefix, MessageState, Order};
use posthaste_store::operation::ApplyOrder;
use posthaste_store::{Error, Journal, Listing, Operation, files, times};
use posthaste_wire::event::{Event, StateChange};
use posthaste_wire::method::{self, Call};
use posthaste_wire::rpc::{Failure, Request};
use posthaste_wire::topic::{Topic, Topics};
use posthaste_wire::{Detail, Message};
use sink::Batch;
use std::rc::Rc;

/// How many lines of output `get_status` returns.
const RECENT_OUTPUT_LINES: usize = 200;

/// Carry out a single request.
pub(crate) async fn one(shared: &Rc<Shared>, outbox: &Rc<Outbox>, peer: &Peer, request: Request) {
    let (sink, is_done) = Sink::single(request.id, outbox);
    carry_out(shared, outbox, peer, request.call, sink).await;
    let _ = is_done.await;
}

/// Carry out a batch of requests one after the other.
pub(crate) async fn batch(
    shared: &Rc<Shared>,
    outbox: &Rc<Outbox>,
    peer: &Peer,
    requests: Vec<Request>,
) {
    let batch = Batch::begin(outbox.clone());
    for request in requests {
        outbox.wait_for_room().await;
        if outbox.is_dead() {
            return;
        }
        let (sink, is_done) = Sink::within(request.id, &batch);
        carry_out(shared, outbox, peer, request.call, sink).await;
        let _ = is_done.await;
    }
    batch.end();
}

async fn carry_out(
    shared: &Rc<Shared>,
    outbox: &Rc<Outbox>,
    peer: &Peer,
    call: Result<Call, Failure>,
    sink: Sink,
) {
    let call = match call {
        Ok(call) => call,
        Err(failure) => return sink.refuse(failure),
    };
    let request = match call {
        Call::GetStatus(_) => {
            let recent = shared.terminal.recent(RECENT_OUTPUT_LINES).await;
            let request = StateRequest::Status { recent, sink };
            return shared.request_with_loop(request).await;
        }
        Call::Stop(_) if shared.is_loop => return loop_control::stop(shared, peer, sink).await,
        Call::Stop(_) => StateRequest::Stop(sink),
        Call::Kill(_) => StateRequest::Kill(sink),
        Call::Checkpoint(_) if shared.is_loop => {
            return loop_control::checkpoint(shared, peer, sink).await;
        }
        Call::Checkpoint(_) => StateRequest::Checkpoint(sink),
        Call::InjectPrompt(prompt) => {
            return inject_prompt(shared, peer, prompt.prompt.0, sink).await;
        }
        Call::SetInteractiveMode(mode) => {
            return set_interactive(shared, outbox, peer, mode.enabled.0, sink).await;
        }
        Call::WritePty(keys) => return write_pty(shared, keys.data.0, sink).await,
        Call::Subscribe(wanted) => {
            let mut topics = outbox.topics();
            topics.subscribe(&wanted.events.0);
            return subscribe(shared, outbox, topics, sink);
        }
        Call::Unsubscribe(unwanted) => {
            let mut topics = outbox.topics();
            topics.unsubscribe(&unwanted.events.0);
            return subscribe(shared, outbox, topics, sink);
        }
        Call::Send(send) => {
            return sink.outcome::<method::Send>(incoming_mail::send(shared, peer, send).await);
        }
        Call::Show(show) => return sink.outcome::<method::Show>(detail(shared, show.id).await),
        Call::Why(asked) => return why(shared, asked.id, sink).await,
        Call::Inbox(inbox) => return sink.outcome::<method::Inbox>(list(shared, inbox.all).await),
        Call::Asks(wanted) => {
            return sink.outcome::<method::Asks>(asks::list(shared, wanted.all).await);
        }
        Call::Answer(answer) => {
            return sink.outcome::<method::Answer>(asks::answer(shared, peer, answer).await);
        }
        Call::MarkRead(mark) => {
            return sink.outcome::<method::MarkRead>(mark_read(shared, mark.ids).await);
        }
        Call::Nudge(nudge) => StateRequest::Nudge {
            text: nudge.text.0,
            asked_at: nudge.asked_at,
            sink,
        },
        Call::CheckMail(_) => {
            shared.wakeups.script_check.notify_one();
            return sink.answer::<method::CheckMail>(&method::Noted::Noted);
        }
        Call::Pause(_) if shared.is_loop => return loop_control::pause(sink),
        Call::Resume(_) if shared.is_loop => return loop_control::resume(shared, peer, sink).await,
        Call::Pause(_) => StateRequest::Pause { on: true, sink },
        Call::Resume(_) => StateRequest::Pause { on: false, sink },
        Call::Session(_) => {
            let reply = Box::new(move |session| sink.answer::<method::Session>(&session));
            return shared.request_with_loop(StateRequest::Session(reply)).await;
        }
        Call::Peek(peek) => {
            return sink.outcome::<method::Peek>(screen(shared, &peek).await);
        }
        Call::HookEvent(hook) => hook_event(outbox.clone(), hook, sink),
        Call::HookTaken(taken) => match confirm_hook_offer(outbox, &taken, sink) {
            Some(offer) => StateRequest::Input(Input::HookPassedOn(offer)),
            None => return,
        },
    };
    shared.request(request).await;
}

/// Set the interactive mode. In a plain session it ends with the connection; in a loop it does not.
async fn set_interactive(shared: &Shared, outbox: &Outbox, peer: &Peer, enabled: bool, sink: Sink) {
    if !shared.is_loop {
        outbox.set_interactive(enabled);
    } else if let Err(failure) = loop_control::set_interactive(shared, peer, enabled).await {
        return sink.refuse(failure);
    }
    shared
        .request(StateRequest::Interactive { enabled, sink })
        .await;
}

async fn why(shared: &Shared, id: IdPrefix, sink: Sink) {
    match find(shared, id).await {
        Ok(state) => {
            let state = Box::new(state);
            let request = StateRequest::Why { state, sink };
            shared.request_with_loop(request).await;
        }
        Err(failure) => sink.refuse(failure),
    }
}

/// Return the request for a hook event. The connection keeps the offer that the hook is given,
/// until the hook confirms that it has passed the mail on.
fn hook_event(outbox: Rc<Outbox>, hook: method::HookEvent, sink: Sink) -> StateRequest {
    let reply = Box::new(move |hooked: method::Hooked| {
        outbox.set_hook_offer(hooked.offer);
        sink.answer::<method::HookEvent>(&hooked);
    });
    StateRequest::Hook { hook, reply }
}

/// Answer a hook that has passed its mail on. Return the offer, if this connection has it.
fn confirm_hook_offer(outbox: &Outbox, taken: &method::HookTaken, sink: Sink) -> Option<u64> {
    let offer = outbox.take_hook_offer();
    if offer != Some(taken.offer) {
        outbox.set_hook_offer(offer);
        sink.refuse(Failure::invalid_params("this connection has no such offer"));
        return None;
    }
    sink.answer::<method::HookTaken>(&method::Noted::Noted);
    offer
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
        // A line feed at the end of the text is an Enter.
        let text = KeyboardInput::Typed {
            bytes: keys.into_bytes(),
            line_feed: LineFeed::SubmitsAtEnd,
        };
        shared.keyboard.type_in(text).await;
        method::Written::Forwarded
    };
    sink.answer::<method::WritePty>(&answer);
}

async fn screen(shared: &Shared, peek: &method::Peek) -> Result<method::ScreenText, Failure> {
    let lines = peek.lines.map(|n| usize::try_from(n).unwrap_or(usize::MAX));
    let screen = shared.terminal.peek(lines, peek.ansi).await;
    let screen = screen.ok_or_else(|| Failure::internal("the terminal is closed"))?;
    Ok(method::ScreenText {
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

/// Inject a prompt: into a loop's next iteration, or into a plain session as a message from the
/// person.
async fn inject_prompt(shared: &Shared, peer: &Peer, prompt: String, sink: Sink) {
    let stored = match shared.is_loop {
        true => loop_control::inject(shared, peer, prompt.clone()).await,
        false => incoming_mail::post_from_person(shared, prompt.clone()).await,
    };
    if let Err(failure) = stored {
        return sink.refuse(failure);
    }
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

async fn detail(shared: &Shared, id: IdPrefix) -> Result<Detail, Failure> {
    let state = find(shared, id).await?;
    let body = files::body(&shared.home, &state.message).map_err(|error| failure(&error))?;
    Ok(Detail::new(
        &state,
        body,
        file_of(shared, &state),
        times::now(),
    ))
}

/// Return the path of the message's own file, and create the file again if it is lost.
fn file_of(shared: &Shared, state: &MessageState) -> Option<String> {
    let path = files::ensure(&shared.home, &state.message).ok()?;
    Some(path.to_string_lossy().into_owned())
}

async fn list(shared: &Shared, all: bool) -> Result<Vec<Message>, Failure> {
    let listing = if all { Listing::All } else { Listing::Unread };
    let (agent, now) = (shared.agent.clone(), times::now());
    let messages = query(shared, move |journal| journal.inbox(&agent, listing, now)).await?;
    let with_body = messages.iter().map(|state| {
        let body = files::body_or_loss(&shared.home, &state.message)?;
        Ok(Message::new(state, body, now))
    });
    let with_body: Result<_, Error> = with_body.collect();
    with_body.map_err(|error| failure(&error))
}

async fn mark_read(shared: &Shared, ids: Vec<IdPrefix>) -> Result<method::Marked, Failure> {
    let mut found = Vec::with_capacity(ids.len());
    for id in ids {
        found.push(find(shared, id).await?.message.id);
    }
    let apply = ApplyOrder {
        now: times::now(),
        who: shared.agent.clone(),
        order: Order::MarkRead,
        ids: found,
    };
    let ordered = commit(shared, apply).await?;
    Ok(method::Marked {
        marked: ordered.iter().map(|o| o.message.id).collect(),
    })
}

/// Find the message that a prefix means.
async fn find(shared: &Shared, id: IdPrefix) -> Result<MessageState, Failure> {
    query(shared, move |journal| journal.find(&id)).await
}

/// Query the journal for a client.
async fn query<T: Send + 'static>(
    shared: &Shared,
    query: impl FnOnce(&mut Journal) -> Result<T, Error> + Send + 'static,
) -> Result<T, Failure> {
    let found = shared.journal.ask(query).await;
    found.map_err(|error| failure(&error))
}

/// Commit an operation for a client.
async fn commit<O: Operation>(shared: &Shared, operation: O) -> Result<O::Output, Failure> {
    let decided = shared.journal.commit(operation).await;
    let decided = decided.map_err(|error| failure(&error))?;
    decided.map_err(|denied| Failure::invalid_params(denied.to_string()))
}

/// Convert an error of the journal for the client.
fn failure(error: &Error) -> Failure {
    match error {
        Error::NotFound(_) | Error::Ambiguous { .. } => Failure::invalid_params(error.to_string()),
        other => Failure::internal(other.to_string()),
    }
}
