//! Requests to a loop over its session's socket. The session commits the request before it
//! responds; the runner is woken by the journal's bell and carries it out.

use super::{Sink, commit};
use crate::Shared;
use crate::socket::peer::{Peer, PeerLookup};
use posthaste_core::loop_::{LoopOrder, LoopRequest};
use posthaste_core::{AgentName, PromptId};
use posthaste_store::operation::ApplyLoopOrder;
use posthaste_store::times;
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

async fn order(shared: &Shared, order: LoopOrder) -> Result<(), Failure> {
    let apply = ApplyLoopOrder {
        now: times::now(),
        agent: shared.agent.clone(),
        order,
    };
    commit(shared, apply).await.map(drop)
}

async fn ask(shared: &Shared, peer: &Peer, what: LoopRequest) -> Result<(), Failure> {
    let who = requester(shared, peer);
    order(shared, LoopOrder::Ask { who, what }).await
}

pub(super) async fn stop(shared: &Shared, peer: &Peer, sink: Sink) {
    let asked = ask(shared, peer, LoopRequest::Stop).await;
    sink.outcome::<method::Stop>(asked.map(|()| method::Stopping::StopRequested));
}

pub(super) async fn checkpoint(shared: &Shared, peer: &Peer, sink: Sink) {
    let asked = ask(shared, peer, LoopRequest::Checkpoint).await;
    let answer = asked.map(|()| method::Checkpointing::CheckpointRequested);
    sink.outcome::<method::Checkpoint>(answer);
}

pub(super) async fn resume(shared: &Shared, peer: &Peer, sink: Sink) {
    let who = requester(shared, peer);
    let resumed = order(shared, LoopOrder::Resume { who }).await;
    sink.outcome::<method::Resume>(resumed.map(|()| method::Paused {
        paused: false,
        reason: None,
    }));
}

pub(super) fn pause(sink: Sink) {
    sink.refuse(Failure::invalid_params(CANNOT_PAUSE));
}

pub(super) async fn inject(shared: &Shared, peer: &Peer, text: String) -> Result<(), Failure> {
    let who = requester(shared, peer);
    let id = PromptId(Uuid::new_v4());
    order(shared, LoopOrder::Inject { who, id, text }).await
}

pub(super) async fn set_interactive(shared: &Shared, peer: &Peer, on: bool) -> Result<(), Failure> {
    let who = requester(shared, peer);
    order(shared, LoopOrder::Interactive { who, on }).await
}

/// Whether an agent of the loop can receive keys: none runs between iterations. True if the journal
/// cannot be read.
pub(super) async fn has_agent(shared: &Shared) -> bool {
    let agent = shared.agent.clone();
    let state = shared
        .journal
        .ask(move |journal| journal.loop_state(&agent));
    let state = state.await.ok().flatten();
    state.is_none_or(|state| state.open.is_some())
}
