//! Messages: body, envelope and the evidence for the sender's name.

use crate::ask::AskAnswer;
use crate::id::MessageId;
use crate::name::AgentName;
use crate::priority::Priority;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Maximum size of a body that is stored in its fact. For a longer body, the fact has only length
/// and hash of the message file.
pub const INLINE_LIMIT: usize = 1 << 20;

/// Evidence for a sender's name. None of it protects against another process of the same user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The sender's process is a descendant of a session's program.
    Ancestry,
    /// The variable `PH_AGENT` names the sender.
    Env,
    /// The option `--from` names the sender.
    Flag,
    /// No sender was named, so it is the person.
    Default,
    /// The mail provider's script named the sender.
    Provider,
}

impl Evidence {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ancestry => "ancestry",
            Self::Env => "env",
            Self::Flag => "flag",
            Self::Default => "default",
            Self::Provider => "provider",
        }
    }
}

impl fmt::Display for Evidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text of a message, or length and hash of the file that has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Body {
    #[serde(rename = "body")]
    Inline(String),
    #[serde(rename = "body_file")]
    Filed { bytes: u64, blake3: String },
}

impl Body {
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Inline(text) => text.len() as u64,
            Self::Filed { bytes, .. } => *bytes,
        }
    }
}

/// Data of a message fact. The message's id, time and recipient are fields of the fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Envelope {
    pub from: AgentName,
    pub from_evidence: Evidence,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    #[serde(flatten)]
    pub body: Body,
    #[serde(default)]
    pub priority: Priority,
    pub thread_id: MessageId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<MessageId>,
    /// Idempotency key: messages with equal sender, recipient and key are one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Time at which an unoffered message stops waiting for an idle agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Whether the recipient is reminded until it replies.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expects_reply: bool,
    /// The message to which no reply is expected any longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closes: Option<MessageId>,
    /// Number of messages that led to this one; limits storms between agents.
    #[serde(default)]
    pub hops: u32,
    /// The message that the sender was given last, if `reply_to` does not name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<MessageId>,
    /// Whether the text is typed unchanged, to answer a prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
    /// The ask that a raw message answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answers: Option<Box<AskAnswer>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    pub to: AgentName,
    pub created_at: Timestamp,
    pub envelope: Envelope,
}

impl Message {
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.envelope.not_before.is_none_or(|t| t <= now)
    }

    pub fn has_run_out(&self, now: Timestamp) -> bool {
        self.envelope.expires_at.is_some_and(|t| t <= now)
    }
}
