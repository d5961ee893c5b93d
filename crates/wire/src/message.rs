//! Messages in `--json` and on the socket. Missing ids are null; lists are arrays.

use posthaste_core::why::{self, Hold};
use posthaste_core::{MessageId, MessageState, Timestamp, pending_replies};
use serde::{Deserialize, Serialize};

/// Its id is a [`MessageId`], or any string if a provider's script keeps the mail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message<Id = MessageId> {
    pub id: Id,
    pub from: String,
    pub from_evidence: String,
    pub to: String,
    pub subject: Option<String>,
    pub body: String,
    pub created_at: Timestamp,
    pub read: bool,
    pub thread_id: Option<Id>,
    pub reply_to: Option<Id>,
    pub priority: String,
    pub receipt: String,
    /// Reason why the message is held or why it failed.
    pub reason: Option<String>,
    pub receipts: Vec<Receipt>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Receipt {
    pub state: String,
    pub at: Timestamp,
    pub route: Option<String>,
    pub evidence: Option<String>,
}

/// All known data of a message: the output of `show`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Detail {
    #[serde(flatten)]
    pub message: Message,
    pub key: Option<String>,
    pub not_before: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
    /// When the message stops waiting for an idle agent.
    #[serde(default)]
    pub deadline: Option<Timestamp>,
    pub hops: u32,
    /// Message that its sender had been given before it wrote this one.
    #[serde(default)]
    pub cause: Option<MessageId>,
    #[serde(default)]
    pub expects_reply: bool,
    /// State of the expected reply.
    #[serde(default)]
    pub reply: Option<String>,
    /// Message whose expected reply this one cancels.
    #[serde(default)]
    pub closes: Option<MessageId>,
    /// Path of the message's file.
    pub file: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Count {
    pub total: u64,
    pub unread: u64,
}

/// Result of `why`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Why {
    pub id: MessageId,
    pub receipt: String,
    pub held: bool,
    pub rule: Option<String>,
    pub reason: Option<String>,
    pub since: Timestamp,
    pub evidence: Option<String>,
    pub release: Option<String>,
    /// State of the expected reply.
    #[serde(default)]
    pub reply: Option<String>,
}

impl Message {
    /// Convert a message state at the time `now`. Its body is an argument because it may be stored
    /// elsewhere.
    pub fn new(message_state: &MessageState, body: String, now: Timestamp) -> Self {
        let message = &message_state.message;
        let envelope = &message.envelope;
        let status = message_state.status.at(message, now);
        Self {
            id: message.id,
            from: envelope.from.to_string(),
            from_evidence: envelope.from_evidence.to_string(),
            to: message.to.to_string(),
            subject: envelope.subject.clone(),
            body,
            created_at: message.created_at,
            read: status.read,
            thread_id: Some(envelope.thread_id),
            reply_to: envelope.reply_to,
            priority: envelope.priority.to_string(),
            receipt: status.receipt().to_string(),
            reason: why::reason(message_state, now),
            receipts: message_state.receipts.iter().map(Receipt::new).collect(),
        }
    }
}

impl Receipt {
    pub fn new(receipt: &posthaste_core::Receipt) -> Self {
        let by = receipt.by.as_ref().map(|name| format!("by {name}"));
        let parts = [receipt.evidence.clone(), by, receipt.reason.clone()];
        let evidence = parts.into_iter().flatten().collect::<Vec<_>>().join("; ");
        Self {
            state: receipt.state.clone(),
            at: receipt.at,
            route: receipt.route.clone(),
            evidence: (!evidence.is_empty()).then_some(evidence),
        }
    }
}

impl Detail {
    pub fn new(
        message_state: &MessageState,
        body: String,
        file: Option<String>,
        now: Timestamp,
    ) -> Self {
        let envelope = &message_state.message.envelope;
        Self {
            key: envelope.key.clone(),
            not_before: envelope.not_before,
            expires_at: envelope.expires_at,
            deadline: envelope.deadline,
            hops: envelope.hops,
            cause: envelope.cause,
            expects_reply: envelope.expects_reply,
            reply: pending_replies::told(message_state, now),
            closes: envelope.closes,
            file,
            message: Message::new(message_state, body, now),
        }
    }
}

impl Why {
    pub fn new(message_state: &MessageState, now: Timestamp) -> Self {
        Self::of(message_state, now, why::why(message_state, now))
    }

    /// Like [`Self::new`], with the reason for which the agent's session holds the message.
    pub fn live(message_state: &MessageState, now: Timestamp, held: Option<Hold>) -> Self {
        Self::of(message_state, now, why::why_live(message_state, now, held))
    }

    fn of(message_state: &MessageState, now: Timestamp, why: why::Why) -> Self {
        let id = message_state.message.id;
        let receipt = message_state
            .status
            .at(&message_state.message, now)
            .receipt()
            .to_string();
        let reply = pending_replies::told(message_state, now);
        let (held, since, reason) = match why {
            why::Why::Held(hold) => (Some(hold.clone()), hold.since, Some(hold.reason)),
            why::Why::Arrived { since, reason, .. } => (None, since, reason),
        };
        Self {
            id,
            receipt,
            held: held.is_some(),
            rule: held.as_ref().map(|hold| hold.rule.to_owned()),
            reason,
            since,
            evidence: held.as_ref().map(|hold| hold.evidence.clone()),
            release: held.map(|hold| hold.release),
            reply,
        }
    }
}
