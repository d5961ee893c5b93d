//! Answers to asks: finds the agent's session, sends the answer, and reports what became of it.

use crate::session::client::{CallError, Client};
use posthaste_core::ask::{AskOption, Closed};
use posthaste_core::{AgentName, AskState, Evidence, IdPrefix};
use posthaste_store::live::SessionDir;
use posthaste_store::report::{Report, Result};
use posthaste_store::{Home, Journal, Patience, times};
use posthaste_wire::ask::{Given, Outcome};
use posthaste_wire::method;
use std::time::Duration;

/// Time for a session to see the effect of an answer.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(12);

/// The person who answers, and the face through which the answer comes.
#[derive(Debug, Clone)]
pub struct Answerer {
    pub from: AgentName,
    pub from_evidence: Evidence,
    pub via: String,
}

/// Answer an ask, as it was shown, with one of its options.
pub fn answer(
    home: &Home,
    patience: Patience,
    ask: &AskState,
    option: &AskOption,
    answerer: &Answerer,
) -> Result<Outcome> {
    let request = method::Answer {
        ask: IdPrefix::from(ask.id),
        fingerprint: ask.opened.fingerprint.clone(),
        choice: option.key.clone(),
        from: Some(answerer.from.clone()),
        from_evidence: Some(answerer.from_evidence),
        via: Some(answerer.via.clone()),
        asked_at: Some(times::now()),
    };
    let reply = Client::connect_responsive(home, &ask.agent)
        .map(|mut client| client.call(&request, ANSWER_TIMEOUT));
    match reply {
        Some(Ok(outcome)) => Ok(outcome),
        Some(Err(CallError::Refused(failure))) => Err(Report::refused(failure.message)),
        Some(Err(CallError::NoReply)) | None => without_reply(home, patience, ask, answerer),
    }
}

/// Return the outcome of an answer to which the session has not replied, as far as the journal shows it.
fn without_reply(
    home: &Home,
    patience: Patience,
    ask: &AskState,
    answerer: &Answerer,
) -> Result<Outcome> {
    let agent = &ask.agent;
    let is_alive = SessionDir::of(home, agent).is_held()?;
    let mut journal = Journal::open(home.clone(), patience)?;
    let now = journal.ask(&IdPrefix::from(ask.id))?;
    let claim = now.claim.as_ref();
    let own = claim.filter(|claim| claim.by == answerer.from && claim.via == answerer.via);
    let message = match own {
        Some(claim) => journal.state(claim.message)?,
        None => None,
    };
    if let Some(message) = &message
        && let Some(outcome) = Outcome::of(message, is_alive)
    {
        return Ok(outcome);
    }
    if let (Some(claim), true) = (claim, own.is_none()) {
        return Ok(Outcome::TooLate(Given::new(claim)));
    }
    if let Some(closed) = &now.closed {
        return Ok(Outcome::of_closed(
            closed,
            open_dialog(&mut journal, agent)?.as_ref(),
        ));
    }
    Ok(Outcome::NotApplied {
        reason: match is_alive {
            true => "its session does not answer".to_owned(),
            false => "its session has ended".to_owned(),
        },
    })
}

/// Return the outcome of an answer to an ask that is closed.
pub fn to_closed(journal: &mut Journal, ask: &AskState, closed: &Closed) -> Result<Outcome> {
    let now = open_dialog(journal, &ask.agent)?;
    Ok(Outcome::of_closed(closed, now.as_ref()))
}

fn open_dialog(journal: &mut Journal, agent: &AgentName) -> Result<Option<AskState>> {
    let open = journal.open_asks(Some(agent))?;
    Ok(open.into_iter().rfind(|ask| ask.opened.kind.is_dialog()))
}
