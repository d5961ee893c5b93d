//! The rules of asks: when one opens and closes, and which answer wins. The journal applies them inside
//! the transaction that records the result.

use super::{AskAnswer, AskClosed, AskEnd, AskFact, AskOpened, AskState};
use crate::fact::Event;
use crate::mail::MessageState;
use crate::name::AgentName;
use crate::receipt::{End, Proven};
use jiff::Timestamp;
use uuid::Uuid;

/// Why an answer is not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AskRefusal {
    #[error("no ask has this id")]
    Unknown,
    /// Another answer came first.
    #[error("'{choice}' by {by} via {via} came first")]
    TooLate {
        by: AgentName,
        via: String,
        choice: String,
        at: Timestamp,
    },
    /// The question that the face showed is not open any more.
    #[error("the question changed; nothing was answered")]
    Changed,
}

/// Why an ask closes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CloseReason {
    /// The accepted answer took effect.
    AnswerApplied {
        evidence: String,
    },
    /// A person typed into the terminal while the question was open, and it closed.
    AnsweredInTerminal,
    Withdrawn {
        evidence: String,
    },
    Superseded,
}

/// Decide whether an answer is the first one. `rival` is the message of the ask's earlier answer.
pub fn accept(
    answer: &AskAnswer,
    ask: Option<&AskState>,
    rival: Option<&MessageState>,
) -> Result<(), AskRefusal> {
    let ask = ask.ok_or(AskRefusal::Unknown)?;
    if let Some(closed) = &ask.closed {
        let end = &closed.end;
        return Err(match (end.how, &end.by) {
            (AskEnd::Answered, Some(by)) => AskRefusal::TooLate {
                by: by.clone(),
                via: end.via.clone().unwrap_or_default(),
                choice: end.choice.clone().unwrap_or_default(),
                at: closed.at,
            },
            (AskEnd::Answered | AskEnd::Withdrawn | AskEnd::Superseded, _) => AskRefusal::Changed,
        });
    }
    if answer.fingerprint != ask.opened.fingerprint {
        return Err(AskRefusal::Changed);
    }
    // An answer that has failed was not applied, so another one may be tried.
    let is_void = rival.is_none_or(|rival| rival.status.end.is_some_and(End::is_without_effect));
    match &ask.claim {
        Some(claim) if !is_void => Err(AskRefusal::TooLate {
            by: claim.by.clone(),
            via: claim.via.clone(),
            choice: claim.choice.clone(),
            at: claim.at,
        }),
        Some(_) | None => Ok(()),
    }
}

/// Return the events that open an ask. `known` are the open asks of the agent: a program shows one
/// dialog at a time, and an earlier run shows none.
pub fn open(opened: AskOpened, known: &[AskState]) -> Vec<Event> {
    let is_replaced = |ask: &&AskState| {
        ask.opened.run != opened.run || ask.opened.kind.is_dialog() == opened.kind.is_dialog()
    };
    let close = |ask: &AskState| {
        let reason = match ask.opened.run == opened.run {
            true => CloseReason::Superseded,
            false => session_ended(),
        };
        closed(ask, &reason)
    };
    let mut events: Vec<_> = known.iter().filter(is_replaced).map(close).collect();
    events.push(Event::Ask(AskFact::Opened(opened)));
    events
}

/// Return the event that closes an ask, unless it is closed.
pub fn close(ask: &AskState, reason: &CloseReason) -> Option<Event> {
    ask.is_open().then(|| closed(ask, reason))
}

/// Return the events that close the open asks of a run that has ended. `answer_of` returns the message
/// of an ask's answer.
pub fn end_run<'a>(
    run: Uuid,
    known: &'a [AskState],
    answer_of: impl Fn(&AskState) -> Option<MessageState> + 'a,
) -> impl Iterator<Item = Event> + 'a {
    let is_of_run = move |ask: &&AskState| ask.opened.run == run && ask.is_open();
    known.iter().filter(is_of_run).map(move |ask| {
        let answer = answer_of(ask);
        let reason = match answer.map(|answer| (answer.status.proven, answer.status.end)) {
            Some((Proven::Accepted, _)) => CloseReason::AnswerApplied {
                evidence: "the answer's receipt; the session ended then".to_owned(),
            },
            Some((Proven::Offering | Proven::Offered | Proven::Uncertain, None)) => {
                CloseReason::Withdrawn {
                    evidence:
                        "an answer was sent, and the session ended before its effect was seen"
                            .to_owned(),
                }
            }
            Some(_) | None => session_ended(),
        };
        closed(ask, &reason)
    })
}

fn session_ended() -> CloseReason {
    CloseReason::Withdrawn {
        evidence: "the session ended".to_owned(),
    }
}

fn closed(ask: &AskState, reason: &CloseReason) -> Event {
    let empty = AskClosed {
        ask: ask.id,
        how: AskEnd::Answered,
        by: None,
        via: None,
        choice: None,
        evidence: None,
    };
    let end = match (reason, &ask.claim) {
        (CloseReason::AnswerApplied { evidence }, Some(claim)) => AskClosed {
            by: Some(claim.by.clone()),
            via: Some(claim.via.clone()),
            choice: Some(claim.choice.clone()),
            evidence: Some(evidence.clone()),
            ..empty
        },
        (CloseReason::AnswerApplied { evidence }, None) => AskClosed {
            evidence: Some(evidence.clone()),
            ..empty
        },
        (CloseReason::AnsweredInTerminal, _) => AskClosed {
            by: Some(AgentName::human()),
            via: Some("the terminal".to_owned()),
            ..empty
        },
        (CloseReason::Withdrawn { evidence }, _) => AskClosed {
            how: AskEnd::Withdrawn,
            evidence: Some(evidence.clone()),
            ..empty
        },
        (CloseReason::Superseded, _) => AskClosed {
            how: AskEnd::Superseded,
            ..empty
        },
    };
    Event::Ask(AskFact::Closed(end))
}
