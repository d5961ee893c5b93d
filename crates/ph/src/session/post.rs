//! Mail that comes in over the socket: on disk before its sender is answered.

use super::Shared;
use super::dispatch::{denial, failure};
use super::peer::{Look, Peer};
use jiff::SignedDuration;
use posthaste_core::{AgentName, Body, Draft, Evidence, MessageId, Priority};
use posthaste_store::{Done, Job, Posted, files};
use posthaste_wire::method::{Send, Sent};
use posthaste_wire::rpc::Failure;
use posthaste_wire::{Message, plain};
use uuid::Uuid;

/// Who sends. What a sender says of itself is believed as far as nothing speaks against it: none
/// of it is proof against the same user. But who runs in an agent's session is that agent.
fn sender(
    shared: &Shared,
    peer: &Peer,
    from: Option<AgentName>,
    evidence: Option<Evidence>,
) -> Result<(AgentName, Evidence), Failure> {
    let look = match evidence {
        // `ph` itself has looked, and says what it found.
        Some(Evidence::Env | Evidence::Flag | Evidence::Default) => Look::Quick,
        Some(Evidence::Ancestry | Evidence::Provider) | None => Look::Thorough,
    };
    match (peer.agent(&shared.home, look), from, evidence) {
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
    let id = MessageId(Uuid::new_v4());
    let mut draft = Draft::new(id, from, shared.agent.clone(), body);
    draft.from_evidence = from_evidence;
    draft
}

/// Instructions from the person, as a message.
pub(crate) async fn from_the_person(shared: &Shared, text: String) -> Result<(), Failure> {
    let draft = draft(shared, AgentName::human(), Evidence::Flag, text);
    store(shared, draft).await.map(drop)
}

pub(crate) async fn send(shared: &Shared, peer: &Peer, send: Send) -> Result<Sent, Failure> {
    let (from, evidence) = sender(shared, peer, send.from, send.from_evidence)?;
    let mut draft = draft(shared, from, evidence, send.body);
    draft.id = send.id.unwrap_or(draft.id);
    draft.to = send.to.unwrap_or(draft.to);
    draft.subject = send.subject;
    draft.priority = send.priority.unwrap_or(Priority::Normal);
    draft.key = send.key;
    draft.not_before = send.not_before;
    draft.allow_self = send.allow_self;
    draft.raw = send.raw;
    draft.ttl = send
        .ttl_ms
        .map(|ms| SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX)));
    if let Some(prefix) = send.reply_to {
        let parent = shared.books.ask(move |journal| journal.find(&prefix)).await;
        draft.reply_to = Some(parent.map_err(|error| failure(&error))?.message.id);
    }
    let posted = store(shared, draft).await?;
    let letter = &posted.letter;
    let body = match &letter.message.envelope.body {
        Body::Inline(text) => text.clone(),
        Body::Filed { .. } => {
            files::body(&shared.home, &letter.message).map_err(|error| failure(&error))?
        }
    };
    Ok(Sent {
        message: Message::new(letter, body, crate::times::now()),
        is_new: posted.is_new,
    })
}

/// The same in the plain dialect.
pub(crate) async fn plain(
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
    draft.priority = if send.raw {
        Priority::Interrupt
    } else {
        send.priority
    };
    // Whether an agent may write to itself is for its own command to ask; here it has.
    draft.allow_self = true;
    Ok(store(shared, draft).await?.letter.message.id)
}

async fn store(shared: &Shared, draft: Draft) -> Result<Posted, Failure> {
    let job = Job::Post {
        now: crate::times::now(),
        drafts: vec![draft],
    };
    let answer = shared.books.commit(job).await;
    match answer.map_err(|error| failure(&error))? {
        Ok(Done::Posted(mut posted)) => {
            shared.mail.notify_one();
            posted
                .pop()
                .ok_or_else(|| Failure::internal("the journal stored nothing"))
        }
        Ok(_) => Err(Failure::internal("the journal answered another question")),
        Err(denied) => Err(denial(&denied)),
    }
}
