//! Mail that is sent over the socket. It is committed before its sender gets an answer.

use super::{asks, failure, find};
use crate::Shared;
use crate::host::clock;
use crate::host::log;
use crate::socket::peer::{Peer, PeerLookup};
use crate::state::StateRequest;
use posthaste_core::why::{self, Why};
use posthaste_core::{
    AgentName, AskId, Body, Draft, Evidence, IdPrefix, MessageId, MessageState, Priority,
    Timestamp, pending_replies,
};
use posthaste_store::operation::{Decided, Post, Posted};
use posthaste_store::{Error, files, times};
use posthaste_wire::method::{Resolved, Send, Sent};
use posthaste_wire::rpc::Failure;
use posthaste_wire::{Message, plain};
use tokio::sync::oneshot;
use tracing::info;
use uuid::Uuid;

/// Determine the sender. A process in an agent's session is that agent. Any other name that the
/// client gives is accepted, because no evidence is proof against the same user.
pub(super) fn sender(
    shared: &Shared,
    peer: &Peer,
    from: Option<AgentName>,
    evidence: Option<Evidence>,
) -> Result<(AgentName, Evidence), Failure> {
    let lookup = match evidence {
        // `ph` has already searched its ancestors.
        Some(Evidence::Env | Evidence::Flag | Evidence::Default) => PeerLookup::ProcessSession,
        Some(Evidence::Ancestry | Evidence::Provider) | None => PeerLookup::Ancestry,
    };
    match (peer.agent(&shared.home, lookup), from, evidence) {
        (Some(agent), Some(from), _) if agent != from => Err(Failure::invalid_params(format!(
            "this is {agent}; it cannot send as {from}"
        ))),
        (Some(agent), _, _) => Ok((agent, Evidence::Ancestry)),
        (None, Some(from), Some(Evidence::Ancestry | Evidence::Provider) | None) => {
            Ok((from, Evidence::Flag))
        }
        (None, Some(from), Some(evidence)) => Ok((from, evidence)),
        (None, None, _) => Ok((AgentName::human(), Evidence::Default)),
    }
}

fn draft(shared: &Shared, from: AgentName, from_evidence: Evidence, body: String) -> Draft {
    let mut draft = Draft::new(new_id(), from, shared.agent.clone(), body);
    draft.from_evidence = from_evidence;
    draft.limits = shared.limits;
    draft
}

/// Store a message from the person.
pub(super) async fn post_from_person(shared: &Shared, text: String) -> Result<(), Failure> {
    let draft = draft(shared, AgentName::human(), Evidence::Flag, text);
    accepted(store(shared, draft, times::now()).await?).map(drop)
}

pub(super) async fn send(shared: &Shared, peer: &Peer, mut send: Send) -> Result<Sent, Failure> {
    let (from, from_evidence) = sender(shared, peer, send.from.take(), send.from_evidence)?;
    let to = send.to.take().unwrap_or_else(|| shared.agent.clone());
    let mut created_at = times::now();
    let mut answers = None;
    if send.raw {
        if clock::has_expired(send.asked_at) {
            let why = format!("{to}: {}", clock::TOO_LATE);
            return Err(Failure::invalid_params(why));
        }
        // The answer is meant for the question that was open at the time of the request.
        created_at = send.asked_at.map_or(created_at, |at| at.min(created_at));
        check_answer(shared, &to, created_at, None).await?;
        answers = asks::open_dialog(shared).await?;
    }
    let resolved = Resolved {
        id: send.id.unwrap_or_else(new_id),
        from,
        from_evidence,
        to,
        reply_to: find_named(shared, send.reply_to.take()).await?,
        closes: find_named(shared, send.closes.take()).await?,
        limits: shared.limits,
    };
    let mut draft = send.into_draft(resolved);
    if let (Some(ask), Body::Inline(text)) = (answers, &draft.body) {
        draft.answers = Some(asks::claim(ask, text));
    }
    let posted = accepted(store(shared, draft, created_at).await?)?;
    let body = files::body(&shared.home, &posted.state.message);
    let body = body.map_err(|error| failure(&error))?;
    Ok(Sent {
        message: Message::new(&posted.state, body, times::now()),
        is_new: posted.is_new,
        unfiled: posted.unfiled,
    })
}

pub(super) fn new_id() -> MessageId {
    MessageId(Uuid::new_v4())
}

/// Find the message that a request names, if it names one.
async fn find_named(
    shared: &Shared,
    prefix: Option<IdPrefix>,
) -> Result<Option<MessageId>, Failure> {
    match prefix {
        Some(prefix) => Ok(Some(find(shared, prefix).await?.message.id)),
        None => Ok(None),
    }
}

/// Check that an answer would reach the question that was open when it was asked for. The driver
/// waits while that question has only just appeared. Return the keys of the chosen option.
pub(super) async fn check_answer(
    shared: &Shared,
    to: &AgentName,
    asked_at: Timestamp,
    choice: Option<(AskId, String)>,
) -> Result<Option<String>, Failure> {
    let refused = |why: &str| Failure::invalid_params(format!("{to}: {why}"));
    if *to != shared.agent {
        let why = "a raw message must be sent to the recipient's own session";
        info!(target: log::DELIVERY, reason = why, "answer refused");
        return Err(refused(why));
    }
    let (reply, checked) = oneshot::channel();
    let reply = Box::new(move |refusal| drop(reply.send(refusal)));
    let request = StateRequest::CheckAnswer {
        asked_at,
        choice,
        reply,
    };
    shared.request(request).await;
    match checked.await {
        Ok(Ok(keys)) => Ok(keys),
        Ok(Err(why)) => Err(refused(&why)),
        Err(_) => Err(refused("the session is ending")),
    }
}

/// Store a message of the plain dialect.
pub(super) async fn send_plain(
    shared: &Shared,
    peer: &Peer,
    send: plain::Send,
) -> Result<MessageId, Failure> {
    let from = match send.from.as_str() {
        "" => None,
        name => Some(
            AgentName::parse(name)
                .map_err(|error| Failure::invalid_params(format!("invalid from: {error}")))?,
        ),
    };
    let (from, evidence) = sender(shared, peer, from, None)?;
    let mut draft = draft(shared, from, evidence, send.body);
    draft.raw = send.raw;
    draft.priority = send.priority;
    if send.raw {
        check_answer(shared, &draft.to, times::now(), None).await?;
        draft.priority = Priority::Interrupt;
        let ask = asks::open_dialog(shared).await?;
        if let (Some(ask), Body::Inline(text)) = (ask, &draft.body) {
            draft.answers = Some(asks::claim(ask, text));
        }
    }
    draft.expects_reply = send.expects_response;
    if !send.expects_response {
        draft.closes = closes(shared, &draft.from, &send.er_trigger_id).await?;
    }
    // In the original program, the client refuses messages to oneself; the session does not.
    draft.allow_self = true;
    let state = accepted(store(shared, draft, times::now()).await?)?.state;
    match why::why(&state, times::now()) {
        // A message that is stored but never delivered is an error in this dialect.
        Why::Arrived {
            reason: Some(reason),
            ..
        } => Err(Failure::invalid_params(format!(
            "message {} was stored but will not be delivered: {reason}",
            state.message.id
        ))),
        Why::Arrived { reason: None, .. } | Why::Held(_) => Ok(state.message.id),
    }
}

/// Find the request that a message of the plain dialect closes. A trigger id that is unknown or not
/// this sender's closes nothing, as in the original program.
async fn closes(
    shared: &Shared,
    from: &AgentName,
    trigger: &str,
) -> Result<Option<MessageId>, Failure> {
    let Ok(prefix) = IdPrefix::parse(trigger) else {
        return Ok(None);
    };
    let found = shared.journal.ask(move |journal| journal.find(&prefix));
    match found.await {
        Ok(MessageState { message, .. }) => {
            let is_open =
                message.envelope.expects_reply && pending_replies::may_close(from, &message);
            Ok(is_open.then_some(message.id))
        }
        Err(Error::NotFound(_) | Error::Ambiguous { .. }) => Ok(None),
        Err(error) => Err(failure(&error)),
    }
}

/// Store a message, and wake the session's state if it was stored.
pub(super) async fn store(
    shared: &Shared,
    draft: Draft,
    now: Timestamp,
) -> Result<Decided<Posted>, Failure> {
    let post = Post {
        now,
        drafts: vec![draft],
    };
    let decided = shared.journal.commit(post).await;
    let mut posted = match decided.map_err(|error| failure(&error))? {
        Ok(posted) => posted,
        Err(denied) => return Ok(Err(denied)),
    };
    shared.wakeups.mail.notify_one();
    let posted = posted.pop();
    posted
        .map(Ok)
        .ok_or_else(|| Failure::internal("the journal stored nothing"))
}

fn accepted(decided: Decided<Posted>) -> Result<Posted, Failure> {
    decided.map_err(|denied| Failure::invalid_params(denied.to_string()))
}
