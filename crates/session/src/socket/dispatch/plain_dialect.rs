//! Answers requests of the plain dialect: one request and one reply per connection.

use super::{Sink, file_of, incoming_mail};
use crate::Shared;
use crate::socket::output::outbox::Outbox;
use crate::socket::peer::{Peer, PeerLookup};
use crate::state::StateRequest;
use posthaste_core::IdPrefix;
use posthaste_store::{Error, times};
use posthaste_wire::method;
use posthaste_wire::param::Payload;
use posthaste_wire::plain;
use std::rc::Rc;
use tokio::sync::oneshot;

/// How the connection continues after the request.
pub(crate) enum Next {
    Close,
    Attach(plain::Attach),
}

pub(crate) async fn answer(
    shared: &Rc<Shared>,
    outbox: &Outbox,
    peer: &Peer,
    request: Result<plain::Request, plain::Refusal>,
) -> Next {
    let reply = match request {
        Ok(plain::Request::Attach(attach)) => {
            // A terminal in its own session would show its own output without end.
            if peer.agent(&shared.home, PeerLookup::Ancestry).as_ref() == Some(&shared.agent) {
                plain::Reply::refused("this terminal is in that session")
            } else {
                return Next::Attach(attach);
            }
        }
        Ok(plain::Request::Send(send)) => match incoming_mail::send_plain(shared, peer, send).await
        {
            Ok(id) => plain::Reply::sent(id),
            Err(failure) => plain::Reply::refused(failure.message),
        },
        Ok(plain::Request::Show { message_id }) => show(shared, message_id).await,
        Ok(plain::Request::Status) => status(shared).await,
        Ok(plain::Request::HookEvent {
            event_name,
            payload,
        }) => {
            call_hook(shared, event_name, payload.unwrap_or_else(Payload::null)).await;
            plain::Reply::ok()
        }
        Ok(plain::Request::Stop) => {
            // Reply before the program is stopped, because the session ends with it.
            outbox.push(&plain::Reply::ok().line());
            shared.request(StateRequest::Stop(Sink::discard())).await;
            return Next::Close;
        }
        Err(refusal) => plain::Reply::from(refusal),
    };
    outbox.push(&reply.line());
    Next::Close
}

async fn status(shared: &Shared) -> plain::Reply {
    let (reply, status) = oneshot::channel();
    let reply = move |agent| drop(reply.send(agent));
    let request = StateRequest::Agent(Box::new(reply));
    shared.request_with_loop(request).await;
    match status.await {
        Ok(agent) => plain::Reply::agent(agent),
        Err(_) => plain::Reply::refused("the session is ending"),
    }
}

/// Report a hook event, and wait until it is handled. An agent's hook must not fail because its
/// session is ending.
async fn call_hook(shared: &Shared, event_name: String, payload: Payload) {
    let (done, is_done) = oneshot::channel();
    let reply = Box::new(move |_| {
        let _ = done.send(());
    });
    let hook = method::HookEvent {
        harness: None,
        event_name,
        payload,
        takes_context: false,
        run: None,
    };
    shared.request(StateRequest::Hook { hook, reply }).await;
    let _ = is_done.await;
}

async fn show(shared: &Shared, id: String) -> plain::Reply {
    let not_found = || plain::Reply::from(plain::Refusal::NotFound(id.clone()));
    let Ok(prefix) = IdPrefix::parse(&id) else {
        return not_found();
    };
    let found = shared.journal.ask(move |journal| journal.find(&prefix));
    match found.await {
        Ok(state) => {
            let file = file_of(shared, &state).unwrap_or_default();
            let (now, zone) = (times::now(), times::zone());
            plain::Reply::message(plain::MessageInfo::new(&state, file, now, zone))
        }
        Err(Error::NotFound(_)) => not_found(),
        Err(error) => plain::Reply::refused(error.to_string()),
    }
}
