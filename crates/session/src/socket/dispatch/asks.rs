//! Asks of this session's agent, and answers to them. An answer is committed before it is typed, and
//! its outcome is reported once its effect is known.

use super::incoming_mail::{check_answer, new_id, sender, store};
use super::query;
use crate::Shared;
use crate::host::clock;
use crate::socket::peer::Peer;
use posthaste_core::ask::{AskOption, AskRefusal, Choice};
use posthaste_core::{
    AgentName, AskAnswer, AskState, Body, Draft, Evidence, MessageId, Priority, Refusal, Timestamp,
};
use posthaste_store::operation::Denied;
use posthaste_store::times;
use posthaste_wire::ask::{Ask, Given, Outcome};
use posthaste_wire::method;
use posthaste_wire::rpc::Failure;
use std::time::Duration;

/// Asks that a list contains at most, if it contains closed ones.
const MAX_LISTED: u32 = 1_000;
/// Time for the effect of an answer to be seen.
const EFFECT_TIMEOUT: Duration = Duration::from_secs(8);

pub(super) async fn list(shared: &Shared, all: bool) -> Result<Vec<Ask>, Failure> {
    let agent = shared.agent.clone();
    let asks = query(shared, move |journal| match all {
        true => journal.latest_asks(Some(&agent), MAX_LISTED),
        false => journal.open_asks(Some(&agent)),
    });
    Ok(asks.await?.iter().map(Ask::new).collect())
}

pub(super) async fn answer(
    shared: &Shared,
    peer: &Peer,
    request: method::Answer,
) -> Result<Outcome, Failure> {
    let method::Answer {
        ask,
        fingerprint,
        choice,
        from,
        from_evidence,
        via,
        asked_at,
    } = request;
    let (from, from_evidence) = sender(shared, peer, from, from_evidence)?;
    if clock::has_expired(asked_at) {
        return Ok(not_applied(clock::TOO_LATE));
    }
    let ask = query(shared, move |journal| journal.ask(&ask)).await?;
    if ask.agent != shared.agent {
        let why = format!("ask {} belongs to {}", ask.id.id8(), ask.agent);
        return Err(Failure::invalid_params(why));
    }
    let chosen = ask.opened.choose(&choice);
    let option = match chosen.map_err(|error| Failure::invalid_params(error.to_string()))? {
        Choice::Option(option) => option.clone(),
        Choice::DenyWith(..) => {
            let why = "'choice' is allow, always, deny or the key of an option";
            return Err(Failure::invalid_params(why));
        }
    };
    let answer = AskAnswer {
        ask: ask.id,
        fingerprint,
        key: option.key.clone(),
        choice: option.label.clone(),
        via: via.unwrap_or_else(|| "the socket".to_owned()),
    };
    let now = times::now();
    let asked_at = asked_at.map_or(now, |at| at.min(now));
    let draft = draft(shared, from, from_evidence, &option, answer);
    let message = match post(shared, &ask, draft, option.key, asked_at).await? {
        Ok(message) => message,
        Err(outcome) => return Ok(outcome),
    };
    effect(shared, message).await
}

fn draft(
    shared: &Shared,
    from: AgentName,
    from_evidence: Evidence,
    option: &AskOption,
    answer: AskAnswer,
) -> Draft {
    let mut draft = Draft::new(new_id(), from, shared.agent.clone(), option.key.clone());
    draft.from_evidence = from_evidence;
    draft.raw = true;
    draft.priority = Priority::Interrupt;
    draft.answers = Some(answer);
    draft.limits = shared.limits;
    draft
}

/// Record an answer. Return the outcome if it is not recorded.
async fn post(
    shared: &Shared,
    ask: &AskState,
    mut draft: Draft,
    key: String,
    asked_at: Timestamp,
) -> Result<Result<MessageId, Outcome>, Failure> {
    if ask.is_open() {
        let choice = Some((ask.id, key));
        match check_answer(shared, &shared.agent, asked_at, choice).await {
            Ok(keys) => draft.body = Body::Inline(keys.unwrap_or_default()),
            Err(why) => {
                // Another answer may have closed the ask meanwhile.
                let id = ask.id;
                let now = query(shared, move |journal| journal.ask(&id.into())).await?;
                if now.is_open() {
                    return Ok(Err(not_applied(&why.message)));
                }
            }
        }
    }
    match store(shared, draft, asked_at).await? {
        Ok(posted) => Ok(Ok(posted.state.message.id)),
        Err(Denied::Refused {
            refusal: Refusal::Ask(refusal),
            ..
        }) => Ok(Err(refused(shared, refusal).await?)),
        Err(denied) => Err(Failure::invalid_params(denied.to_string())),
    }
}

async fn refused(shared: &Shared, refusal: AskRefusal) -> Result<Outcome, Failure> {
    Ok(match refusal {
        AskRefusal::TooLate {
            by,
            via,
            choice,
            at,
        } => Outcome::TooLate(Given {
            choice,
            by: by.to_string(),
            via,
            at,
        }),
        AskRefusal::Changed => Outcome::Changed {
            now: open_dialog(shared)
                .await?
                .as_ref()
                .map(|ask| Box::new(Ask::new(ask))),
        },
        AskRefusal::Unknown => return Err(Failure::invalid_params(refusal.to_string())),
    })
}

/// Return the ask of the dialog that is open.
pub(super) async fn open_dialog(shared: &Shared) -> Result<Option<AskState>, Failure> {
    let agent = shared.agent.clone();
    let open = query(shared, move |journal| journal.open_asks(Some(&agent))).await?;
    Ok(open.into_iter().rfind(|ask| ask.opened.kind.is_dialog()))
}

/// Wait until the receipts of an answer show its effect.
async fn effect(shared: &Shared, message: MessageId) -> Result<Outcome, Failure> {
    let deadline = tokio::time::Instant::now() + EFFECT_TIMEOUT;
    loop {
        let has_read = shared.wakeups.read.notified();
        let state = query(shared, move |journal| journal.state(message)).await?;
        if let Some(outcome) = state.as_ref().and_then(|state| Outcome::of(state, true)) {
            return Ok(outcome);
        }
        if tokio::time::timeout_at(deadline, has_read).await.is_err() {
            let why = "its effect has not been seen yet";
            return Ok(Outcome::Uncertain {
                reason: why.to_owned(),
            });
        }
    }
}

fn not_applied(reason: &str) -> Outcome {
    Outcome::NotApplied {
        reason: reason.to_owned(),
    }
}

/// Return the claim of a raw message on the ask of an open dialog.
pub(super) fn claim(ask: AskState, text: &str) -> AskAnswer {
    AskAnswer {
        ask: ask.id,
        fingerprint: ask.opened.fingerprint,
        key: String::new(),
        choice: posthaste_core::text::one_line(text, 60),
        via: "a raw message".to_owned(),
    }
}
