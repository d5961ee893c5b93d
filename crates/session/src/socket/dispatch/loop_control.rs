//! Requests to a loop over its session's socket. The session commits the request before it
//! responds; the runner is woken by the journal's bell and carries it out.

use crate::Shared;
use crate::socket::dispatch::{Sink, confirm_injected, denial, failure};
use crate::socket::peer::{Peer, PeerLookup};
use crate::state::StateRequest;
use posthaste_core::loop_::{LoopOrder, LoopRequest};
use posthaste_core::{AgentName, PromptId};
use posthaste_store::operation::ApplyLoopOrder;
use posthaste_wire::method;
use posthaste_wire::rpc::Failure;
use uuid::Uuid;

const CANNOT_PAUSE: &str = "this is a loop: its mail waits for the next prompt, and a checkpoint \
                        ('ph checkpoint') pauses it after this iteration";

/// Return the agent in whose session the peer runs, or else the person.
fn requester(shared: &Shared, peer: &Peer) -> AgentName {
    let agent = peer.agent(&shared.home, PeerLookup::Ancestry);
    agent.unwrap_or_else(AgentName::human)
}

async fn commit(shared: &Shared, order: LoopOrder) -> Result<(), Failure> {
    let apply = ApplyLoopOrder {
        now: posthaste_store::times::now(),
        agent: shared.agent.clone(),
        order,
    };
    match shared.journal.commit(apply).await {
        Ok(Ok(_)) => Ok(()),
        Ok(Err(denied)) => Err(denial(&denied)),
        Err(error) => Err(failure(&error)),
    }
}

pub(crate) async fn stop(shared: &Shared, peer: &Peer, sink: Sink) {
    let (who, what) = (requester(shared, peer), LoopRequest::Stop);
    match commit(shared, LoopOrder::Ask { who, what }).await {
        Ok(()) => sink.answer::<method::Stop>(&method::Stopping::StopRequested),
        Err(failure) => sink.refuse(failure),
    }
}

pub(crate) async fn checkpoint(shared: &Shared, peer: &Peer, sink: Sink) {
    let (who, what) = (requester(shared, peer), LoopRequest::Checkpoint);
    match commit(shared, LoopOrder::Ask { who, what }).await {
        Ok(()) => {
            sink.answer::<method::Checkpoint>(&method::Checkpointing::CheckpointRequested);
        }
        Err(failure) => sink.refuse(failure),
    }
}

pub(crate) async fn resume(shared: &Shared, peer: &Peer, sink: Sink) {
    let who = requester(shared, peer);
    match commit(shared, LoopOrder::Resume { who }).await {
        Ok(()) => sink.answer::<method::Resume>(&method::Paused {
            paused: false,
            reason: None,
        }),
        Err(failure) => sink.refuse(failure),
    }
}

pub(crate) fn pause(sink: Sink) {
    sink.refuse(Failure::invalid_params(CANNOT_PAUSE));
}

pub(crate) async fn inject(shared: &Shared, peer: &Peer, prompt: String, sink: Sink) {
    let injected = LoopOrder::Inject {
        who: requester(shared, peer),
        id: PromptId(Uuid::new_v4()),
        text: prompt.clone(),
    };
    if let Err(failure) = commit(shared, injected).await {
        return sink.refuse(failure);
    }
    confirm_injected(shared, prompt, sink);
}

pub(crate) async fn interactive(shared: &Shared, peer: &Peer, enabled: bool, sink: Sink) {
    let (who, on) = (requester(shared, peer), enabled);
    match commit(shared, LoopOrder::Interactive { who, on }).await {
        Ok(()) => {
            shared
                .request(StateRequest::Interactive { enabled, sink })
                .await;
        }
        Err(failure) => sink.refuse(failure),
    }
}

/// Whether an agent of the loop can receive keys: none runs between iterations. True if the journal
/// cannot be read.
pub(crate) async fn has_agent(shared: &Shared) -> bool {
    let agent = shared.agent.clone();
    let state = shared
        .journal
        .ask(move |journal| journal.loop_state(&agent));
    let state = state.await.ok().flatten();
    state.is_none_or(|state| state.open.is_some())
}
