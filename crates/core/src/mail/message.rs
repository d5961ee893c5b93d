//! What is written in a message, and what stands on its envelope.

use crate::id::MessageId;
use crate::name::AgentName;
use crate::priority::Priority;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Bodies longer than this live in a file of their own; the fact holds length and hash.
pub const INLINE_LIMIT: usize = 1 << 20;

/// On what grounds a sender has its name. None is proof against the same user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The sender's process descends from a session's child.
    Ancestry,
    /// `PH_AGENT` said so.
    Env,
    /// `--from` said so.
    Flag,
    /// Nothing was said: it is taken to be the person.
    Default,
    /// The script that keeps the mail said so.
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

/// The text itself, or where too long for a fact, what proves it.
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

/// What a message fact says. The message's id, time and recipient are the fact's own.
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
    /// Two messages of one sender to one recipient with the same key are one message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// If it was not offered by then, it does not wait for an idle agent any longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Timestamp>,
    /// Its recipient is reminded of it until it has answered.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub expects_reply: bool,
    /// The message to which no answer is expected any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closes: Option<MessageId>,
    /// How many messages led to this one; what cuts a storm between agents.
    #[serde(default)]
    pub hops: u32,
    /// The message that its sender was given last, and did not say that it answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<MessageId>,
    /// Its text goes to the terminal as it is: for answering a prompt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
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
