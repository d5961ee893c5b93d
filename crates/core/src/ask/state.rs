//! The state of one ask: the sum of its facts.

use super::{AskClosed, AskFact, AskOpened};
use crate::fact::{Event, Fact};
use crate::id::{AskId, MessageId};
use crate::name::AgentName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AskState {
    pub id: AskId,
    pub agent: AgentName,
    pub opened_at: Timestamp,
    pub opened: AskOpened,
    /// The latest answer that the journal has accepted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub claim: Option<Claim>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Closed>,
}

/// An answer to an ask. No other answer is accepted while this one may take effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The raw message that types the answer.
    pub message: MessageId,
    pub by: AgentName,
    pub via: String,
    pub choice: String,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Closed {
    pub at: Timestamp,
    #[serde(flatten)]
    pub end: AskClosed,
}

impl AskState {
    /// Return the ask that `fact` opens, if any.
    pub fn opened_by(fact: &Fact) -> Option<Self> {
        let Event::Ask(AskFact::Opened(opened)) = &fact.event else {
            return None;
        };
        Some(Self {
            id: AskId(fact.id),
            agent: fact.agent.clone(),
            opened_at: fact.at,
            opened: opened.clone(),
            claim: None,
            closed: None,
        })
    }

    /// Return the ask that a fact changes, if any.
    pub fn changed_by(fact: &Fact) -> Option<AskId> {
        match &fact.event {
            Event::Ask(AskFact::Closed(closed)) => Some(closed.ask),
            Event::Message(envelope) => envelope.answers.as_ref().map(|answer| answer.ask),
            _ => None,
        }
    }

    /// Apply a fact. The first end counts.
    pub fn apply(&mut self, fact: &Fact) {
        if Self::changed_by(fact) != Some(self.id) || self.closed.is_some() {
            return;
        }
        match &fact.event {
            Event::Ask(AskFact::Closed(end)) => {
                self.closed = Some(Closed {
                    at: fact.at,
                    end: end.clone(),
                });
            }
            Event::Message(envelope) => {
                self.claim = envelope.answers.as_ref().map(|answer| Claim {
                    message: MessageId(fact.id),
                    by: envelope.from.clone(),
                    via: answer.via.clone(),
                    choice: answer.choice.clone(),
                    at: fact.at,
                });
            }
            _ => {}
        }
    }

    pub fn is_open(&self) -> bool {
        self.closed.is_none()
    }
}
