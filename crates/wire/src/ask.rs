//! Asks and the outcomes of answers, in `--json` and on the socket.

use jiff::Timestamp;
use posthaste_core::ask::{AskEnd, AskKind, AskOption, AskState, Claim, Closed};
use posthaste_core::{AgentName, AskId, MessageState, Proven, text};
use serde::{Deserialize, Serialize};

/// Something that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ask {
    pub id: AskId,
    pub agent: String,
    pub kind: AskKind,
    pub since: Timestamp,
    /// One line for lists.
    pub summary: String,
    /// The whole text, without characters that could act on a terminal.
    pub text: String,
    /// The agent has cut the text, so only attaching can allow it.
    #[serde(default)]
    pub partial: bool,
    /// Empty if the ask is not answered by choosing an option.
    #[serde(default)]
    pub options: Vec<AskOption>,
    /// An answer must name it, so that it answers the question that was shown.
    pub fingerprint: String,
    /// The answer that came first, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Given>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<End>,
}

/// An answer that was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Given {
    pub choice: String,
    pub by: String,
    pub via: String,
    pub at: Timestamp,
}

/// The end of an ask.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    pub how: AskEnd,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<String>,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// The question closed after the answer, or the agent's API confirmed it.
    Applied { choice: String, evidence: String },
    /// Another answer came first.
    TooLate(Given),
    /// The question is not the one that was shown. Nothing was answered.
    Changed {
        /// The question that is open now, if any.
        now: Option<Box<Ask>>,
    },
    /// The question is still open.
    NotApplied { reason: String },
    /// The answer was sent, and the session ended before its effect was seen.
    Uncertain { reason: String },
}

impl Outcome {
    /// Return the outcome of an answer to an ask that is closed. `now` is the ask that is open.
    pub fn of_closed(closed: &Closed, now: Option<&AskState>) -> Self {
        let end = &closed.end;
        match (end.how, &end.by) {
            (AskEnd::Answered, Some(by)) => Self::TooLate(Given {
                choice: end.choice.clone().unwrap_or_default(),
                by: by.to_string(),
                via: end.via.clone().unwrap_or_default(),
                at: closed.at,
            }),
            _ => Self::Changed {
                now: now.map(|ask| Box::new(Ask::new(ask))),
            },
        }
    }

    /// Return the outcome that the receipts of an answer prove, if they prove one. `is_alive` says
    /// whether the session that typed it still runs.
    pub fn of(answer: &MessageState, is_alive: bool) -> Option<Self> {
        let last = answer.receipts.last();
        let reason = last.and_then(|last| last.reason.clone().or(last.evidence.clone()));
        if answer.has_failed() {
            let reason = reason.unwrap_or_else(|| "it was not typed".to_owned());
            return Some(Self::NotApplied { reason });
        }
        match answer.status.proven {
            Proven::Accepted => {
                let claim = answer.message.envelope.answers.as_ref();
                Some(Self::Applied {
                    choice: claim.map_or_else(String::new, |claim| claim.choice.clone()),
                    evidence: reason.unwrap_or_default(),
                })
            }
            Proven::Uncertain => Some(Self::Uncertain {
                reason: reason.unwrap_or_default(),
            }),
            Proven::Stored if !is_alive => Some(Self::NotApplied {
                reason: "the session ended before the answer was typed".to_owned(),
            }),
            Proven::Offering | Proven::Offered | Proven::Unproven if !is_alive => {
                Some(Self::Uncertain {
                    reason: "the session ended before the effect was seen".to_owned(),
                })
            }
            Proven::Stored | Proven::Offering | Proven::Offered | Proven::Unproven => None,
        }
    }
}

impl Ask {
    pub fn new(ask: &AskState) -> Self {
        let opened = &ask.opened;
        let options = opened.options.iter().map(|option| AskOption {
            key: text::one_line(&option.key, 16),
            label: text::one_line(&option.label, 400),
            meaning: option.meaning,
        });
        Self {
            id: ask.id,
            agent: ask.agent.to_string(),
            kind: opened.kind,
            since: ask.opened_at,
            summary: text::one_line(&opened.summary, 200),
            text: text::lines(&opened.text).collect::<Vec<_>>().join("\n"),
            partial: opened.is_partial,
            options: options.collect(),
            fingerprint: opened.fingerprint.clone(),
            answer: ask.claim.as_ref().map(Given::new),
            closed: ask.closed.as_ref().map(End::new),
        }
    }
}

impl Ask {
    /// Describe something that waits without being a question of the agent's program.
    pub fn derived(
        id: AskId,
        agent: &AgentName,
        kind: AskKind,
        since: Timestamp,
        summary: &str,
    ) -> Self {
        Self {
            id,
            agent: agent.to_string(),
            kind,
            since,
            summary: text::one_line(summary, 200),
            text: String::new(),
            partial: false,
            options: Vec::new(),
            fingerprint: String::new(),
            answer: None,
            closed: None,
        }
    }
}

impl Given {
    pub fn new(claim: &Claim) -> Self {
        Self {
            choice: text::one_line(&claim.choice, 200),
            by: claim.by.to_string(),
            via: text::one_line(&claim.via, 60),
            at: claim.at,
        }
    }
}

impl End {
    fn new(closed: &Closed) -> Self {
        let end = &closed.end;
        let line = |text: &String| text::one_line(text, 200);
        Self {
            how: end.how,
            at: closed.at,
            by: end.by.as_ref().map(ToString::to_string),
            via: end.via.as_ref().map(line),
            choice: end.choice.as_ref().map(line),
            evidence: end.evidence.as_ref().map(line),
        }
    }
}
