//! What is asked of a loop over its session's socket. The session records it, and only then says
//! ok; the runner hears the journal's bell and does it.

use crate::Shared;
use crate::socket::dispatch::{Sink, denial, failure, is_injected};
use crate::socket::peer::{Look, Peer};
use crate::state::StateRequest;
use posthaste_core::build::{LoopOrder, Request};
use posthaste_core::{AgentName, PromptId};
use posthaste_store::operation::ApplyLoopOrder;
use posthaste_wire::method;
use posthaste_wire::rpc::Failure;
use uuid::Uuid;

const NO_PAUSE: &str = "this is a loop: its mail waits for the next prompt, and a checkpoint \
                        ('ph checkpoint') pauses it after this iteration";

/// Who asks: the agent in whose session it runs, else the person.
fn asker(shared: &Shared, peer: &Peer) -> AgentName {
    let agent = peer.agent(&shared.home, Look::Thorough);
    agent.unwrap_or_else(AgentName::human)
}

async fn order(shared: &Shared, order: LoopOrder) -> Result<(), Failure> {
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
    let (who, what) = (asker(shared, peer), Request::Stop);
    match order(shared, LoopOrder::Ask { who, what }).await {
        Ok(()) => sink.answer::<method::Stop>(&method::Stopping::StopRequested),
        Err(failure) => sink.refuse(failure),
    }
}

pub(crate) async fn checkpoint(shared: &Shared, peer: &Peer, sink: Sink) {
    let (who, what) = (asker(shared, peer), Request::Checkpoint);
    match order(shared, LoopOrder::Ask { who, what }).await {
        Ok(()) => {
            sink.answer::<method::Checkpoint>(&method::Checkpointing::CheckpointRequested);
        }
        Err(failure) => sink.refuse(failure),
    }
}

pub(crate) async fn resume(shared: &Shared, peer: &Peer, sink: Sink) {
    let who = asker(shared, peer);
    match order(shared, LoopOrder::Resume { who }).await {
        Ok(()) => sink.answer::<method::Resume>(&method::Paused {
            paused: false,
            reason: None,
        }),
        Err(failure) => sink.refuse(failure),
    }
}

pub(crate) fn pause(sink: Sink) {
    sink.refuse(Failure::invalid_params(NO_PAUSE));
}

pub(crate) async fn inject(shared: &Shared, peer: &Peer, prompt: String, sink: Sink) {
    let injected = LoopOrder::Inject {
        who: asker(shared, peer),
        id: PromptId(Uuid::new_v4()),
        text: prompt.clone(),
    };
    if let Err(failure) = order(shared, injected).await {
        return sink.refuse(failure);
    }
    is_injected(shared, prompt, sink);
}

pub(crate) async fn interactive(shared: &Shared, peer: &Peer, enabled: bool, sink: Sink) {
    let (who, on) = (asker(shared, peer), enabled);
    match order(shared, LoopOrder::Interactive { who, on }).await {
        Ok(()) => {
            shared
                .request(StateRequest::Interactive { enabled, sink })
                .await
        }
        Err(failure) => sink.refuse(failure),
    }
}

/// Whether somebody has the keys of a loop: between iterations nobody does. Where the journal cannot
/// say, they are not held back.
pub(crate) async fn has_keys(shared: &Shared) -> bool {
    let agent = shared.agent.clone();
    let state = shared
        .journal
        .ask(move |journal| journal.loop_state(&agent));
    let state = state.await.ok().flatten();
    state.is_none_or(|state| state.open.is_some())
}
