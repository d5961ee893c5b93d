//! The protocol of mail providers: an executable that is called with an operation and at most one
//! argument, with JSON on its standard streams. Both sides use these types.
//!
//! Empty output is an empty list; exit status 2 means that the operation is unknown.

use jiff::Timestamp;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;

/// Exit status of a script that does not know the operation.
pub const UNKNOWN_OP_STATUS: i32 = 2;
/// Marker on standard error if an id is unknown.
pub const NOT_FOUND_MARKER: &str = "gc-mail-error:not-found";
/// Marker on standard error if a message is archived twice.
pub const ALREADY_ARCHIVED: &str = "already archived";

/// Operation, by its name on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    EnsureRunning,
    Send,
    Reply,
    Inbox,
    Check,
    All,
    Get,
    Read,
    MarkRead,
    MarkUnread,
    Archive,
    Delete,
    Thread,
    Count,
}

impl Op {
    pub const ALL: [Self; 14] = [
        Self::EnsureRunning,
        Self::Send,
        Self::Reply,
        Self::Inbox,
        Self::Check,
        Self::All,
        Self::Get,
        Self::Read,
        Self::MarkRead,
        Self::MarkUnread,
        Self::Archive,
        Self::Delete,
        Self::Thread,
        Self::Count,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::EnsureRunning => "ensure-running",
            Self::Send => "send",
            Self::Reply => "reply",
            Self::Inbox => "inbox",
            Self::Check => "check",
            Self::All => "all",
            Self::Get => "get",
            Self::Read => "read",
            Self::MarkRead => "mark-read",
            Self::MarkUnread => "mark-unread",
            Self::Archive => "archive",
            Self::Delete => "delete",
            Self::Thread => "thread",
            Self::Count => "count",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|op| op.as_str() == word)
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Standard input of `send` and `reply`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    #[serde(default)]
    pub from: String,
    #[serde(default)]
    pub subject: String,
    pub body: String,
}

/// Message of a provider. Its id is any string.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub id: String,
    pub from: String,
    pub to: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub subject: String,
    #[serde(default, deserialize_with = "or_empty")]
    pub body: String,
    pub created_at: Timestamp,
    #[serde(default)]
    pub read: bool,
    #[serde(
        default,
        skip_serializing_if = "String::is_empty",
        deserialize_with = "or_empty"
    )]
    pub thread_id: String,
    #[serde(
        default,
        skip_serializing_if = "String::is_empty",
        deserialize_with = "or_empty"
    )]
    pub reply_to: String,
}

/// Accept null for a missing value, as some scripts send.
fn or_empty<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl Message {
    /// Convert to the format of `--json`. Data that only a journal has, such as receipts, is empty.
    pub fn shown(&self) -> crate::Message<String> {
        let some = |text: &String| (!text.is_empty()).then(|| text.clone());
        crate::Message {
            id: self.id.clone(),
            from: self.from.clone(),
            from_evidence: posthaste_core::Evidence::Provider.to_string(),
            to: self.to.clone(),
            subject: some(&self.subject),
            body: self.body.clone(),
            created_at: self.created_at,
            read: self.read,
            thread_id: some(&self.thread_id),
            reply_to: some(&self.reply_to),
            priority: posthaste_core::Priority::Normal.to_string(),
            receipt: if self.read { "read" } else { "stored" }.to_owned(),
            reason: None,
            receipts: Vec::new(),
        }
    }
}
