//! The plain dialect: one `{"type": …}` request and one reply per connection; an attach continues
//! in [`crate::frames`].
//!
//! Field names, their order, times and texts equal the original's, whose clients read them. Null
//! means a missing field, as in the original.

use crate::fields::{self, Fields};
use crate::param::Payload;
use crate::rpc;
use crate::session::{Activity, Session};
use crate::time;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use posthaste_core::priority::PriorityError;
use posthaste_core::{MessageState, Priority, ReceiptState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Request {
    Send(Send),
    Show {
        message_id: String,
    },
    Status,
    HookEvent {
        event_name: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<Payload>,
    },
    Stop,
    Attach(Attach),
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Send {
    pub priority: Priority,
    /// Any text: the original neither checks it nor requires it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub from: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub body: String,
    #[serde(skip_serializing_if = "is_no")]
    pub raw: bool,
    #[serde(skip_serializing_if = "is_no")]
    pub expects_response: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub er_trigger_id: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Attach {
    pub cols: u16,
    pub rows: u16,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub osc_fg: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub osc_bg: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub colorfgbg: String,
    /// Client that attaches, with its mode. The original does not know this field.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client: String,
    #[serde(skip_serializing_if = "is_no")]
    pub read_only: bool,
    #[serde(skip_serializing_if = "is_no")]
    pub take: bool,
}

fn is_no(flag: &bool) -> bool {
    !flag
}

/// Reason why a request is refused, in the original's words where it has any.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("unknown request type: {0}")]
    UnknownType(String),
    #[error(transparent)]
    Priority(#[from] PriorityError),
    #[error("message not found: {0}")]
    NotFound(String),
    #[error("invalid request: {0}")]
    Invalid(String),
}

impl Request {
    /// Encode the request as a line, including its line break.
    pub fn line(&self) -> Vec<u8> {
        rpc::line(self).expect("requests have no maps with keys that are not strings")
    }
}

const FIELDS: &[&str] = &[
    "type",
    "priority",
    "from",
    "body",
    "raw",
    "expects_response",
    "er_trigger_id",
    "message_id",
    "event_name",
    "payload",
    "cols",
    "rows",
    "osc_fg",
    "osc_bg",
    "colorfgbg",
    "client",
    "read_only",
    "take",
];

/// Parse a request.
pub(crate) fn read(text: &str) -> Result<Request, Refusal> {
    let invalid = |error: serde_json::Error| Refusal::Invalid(fields::error_text(&error));
    let fields = Fields::read(text, FIELDS).map_err(invalid)?;
    let kind: String = field(&fields, "type")?;
    Ok(match kind.as_str() {
        "send" => Request::Send(Send {
            priority: priority(&field::<String>(&fields, "priority")?)?,
            from: field(&fields, "from")?,
            body: field(&fields, "body")?,
            raw: field(&fields, "raw")?,
            expects_response: field(&fields, "expects_response")?,
            er_trigger_id: field(&fields, "er_trigger_id")?,
        }),
        "show" => Request::Show {
            message_id: field(&fields, "message_id")?,
        },
        "status" => Request::Status,
        "hook_event" => Request::HookEvent {
            event_name: field(&fields, "event_name")?,
            payload: fields.non_null("payload").map(Payload::keep),
        },
        "stop" => Request::Stop,
        "attach" => Request::Attach(Attach {
            cols: size(&fields, "cols")?,
            rows: size(&fields, "rows")?,
            osc_fg: field(&fields, "osc_fg")?,
            osc_bg: field(&fields, "osc_bg")?,
            colorfgbg: field(&fields, "colorfgbg")?,
            client: field(&fields, "client")?,
            read_only: field(&fields, "read_only")?,
            take: field(&fields, "take")?,
        }),
        _ => return Err(Refusal::UnknownType(kind)),
    })
}

fn field<T: DeserializeOwned + Default>(
    fields: &Fields<'_>,
    name: &'static str,
) -> Result<T, Refusal> {
    let Some(value) = fields.non_null(name) else {
        return Ok(T::default());
    };
    serde_json::from_str(value.get())
        .map_err(|error| Refusal::Invalid(format!("'{name}': {}", fields::error_text(&error))))
}

/// Read a number of cells. The original accepts any number; a number out of range is ignored.
fn size(fields: &Fields<'_>, name: &'static str) -> Result<u16, Refusal> {
    let cells: i64 = field(fields, name)?;
    let cells = cells.clamp(0, i64::from(u16::MAX));
    Ok(u16::try_from(cells).unwrap_or(u16::MAX))
}

/// A missing priority is normal.
fn priority(text: &str) -> Result<Priority, PriorityError> {
    if text.is_empty() {
        Ok(Priority::Normal)
    } else {
        text.parse()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reply {
    pub ok: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<MessageInfo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentInfo>,
}

impl Reply {
    pub fn ok() -> Self {
        Self {
            ok: true,
            ..Self::default()
        }
    }

    pub fn refused(why: impl Into<String>) -> Self {
        Self {
            error: why.into(),
            ..Self::default()
        }
    }

    pub fn sent(id: posthaste_core::MessageId) -> Self {
        Self {
            message_id: id.to_string(),
            ..Self::ok()
        }
    }

    pub fn message(message: MessageInfo) -> Self {
        Self {
            message: Some(message),
            ..Self::ok()
        }
    }

    pub fn agent(agent: AgentInfo) -> Self {
        Self {
            agent: Some(agent),
            ..Self::ok()
        }
    }

    /// Encode the reply as a line, including its line break.
    pub fn line(&self) -> Vec<u8> {
        rpc::line(self).expect("no reply is a map with odd keys")
    }

    pub fn read(line: &[u8]) -> serde_json::Result<Self> {
        serde_json::from_slice(line)
    }
}

impl From<Refusal> for Reply {
    fn from(why: Refusal) -> Self {
        Self::refused(why.to_string())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct MessageInfo {
    pub id: String,
    pub from: String,
    pub priority: String,
    pub status: String,
    pub file_path: String,
    pub created_at: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub delivered_at: String,
}

impl MessageInfo {
    pub fn new(
        message_state: &MessageState,
        file_path: String,
        now: Timestamp,
        zone: &TimeZone,
    ) -> Self {
        let message = &message_state.message;
        let state = message_state.status.at(message, now).receipt();
        let delivered_at = message_state
            .receipts
            .iter()
            .find(|receipt| matches!(receipt.state.as_str(), "offered" | "accepted" | "read"))
            .filter(|_| status(state) == DELIVERED_STATUS)
            .map(|receipt| time::plain(receipt.at, zone));
        Self {
            id: message.id.to_string(),
            from: message.envelope.from.to_string(),
            priority: message.envelope.priority.to_string(),
            status: status(state).to_owned(),
            file_path,
            created_at: time::plain(message.created_at, zone),
            delivered_at: delivered_at.unwrap_or_default(),
        }
    }
}

const ACTIVE_STATE: &str = "active";
const QUEUED_STATUS: &str = "queued";
const DELIVERED_STATUS: &str = "delivered";

/// Return the receipt in the words of this dialect. It has only two, and a message that can no
/// longer arrive needs its own.
pub fn status(state: ReceiptState) -> &'static str {
    match state {
        ReceiptState::Stored | ReceiptState::Offering | ReceiptState::Uncertain => QUEUED_STATUS,
        ReceiptState::Offered
        | ReceiptState::Accepted
        | ReceiptState::Read
        | ReceiptState::Archived => DELIVERED_STATUS,
        ReceiptState::Deleted
        | ReceiptState::Cancelled
        | ReceiptState::Expired
        | ReceiptState::Failed => state.as_str(),
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct AgentInfo {
    pub name: String,
    pub command: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub cwd: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub session_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub role: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub pod: String,
    pub uptime: String,
    pub state: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub sub_state: String,
    pub state_display_text: String,
    pub state_duration: String,
    pub queued_count: u64,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub last_activity: String,
    #[serde(skip_serializing_if = "is_no")]
    pub blocked_on_permission: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub blocked_tool_name: String,
}

/// Activity of an agent in this dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubState {
    Thinking,
    ToolUse,
}

impl AgentInfo {
    /// Return the activity of an active agent that has no open question.
    pub fn works(&mut self, work: Option<SubState>) {
        let is_free = self.state == ACTIVE_STATE && !self.blocked_on_permission;
        if let Some(work) = work.filter(|_| is_free) {
            let (sub_state, label) = match work {
                SubState::Thinking => ("thinking", "Active (thinking)"),
                SubState::ToolUse => ("tool_use", "Active (tool use)"),
            };
            sub_state.clone_into(&mut self.sub_state);
            label.clone_into(&mut self.state_display_text);
        }
    }

    pub fn new(session: &Session, now: Timestamp) -> Self {
        let (state, label) = match session.activity {
            Activity::Starting => ("initialized", "Initialized"),
            Activity::Idle => ("idle", "Idle"),
            Activity::Working => (ACTIVE_STATE, "Active"),
            Activity::Blocked => (ACTIVE_STATE, "Active (permission)"),
            Activity::Exited => ("exited", "Exited"),
        };
        let blocked = session.activity == Activity::Blocked;
        let sub_state = if blocked { "blocked_on_permission" } else { "" };
        let tool = session.blocked_on.clone().filter(|_| blocked);
        let end = session.ended_at.unwrap_or(now);
        Self {
            name: session.name.clone(),
            command: session.command.join(" "),
            cwd: session.cwd.clone(),
            uptime: time::length(end.duration_since(session.started_at)),
            state: state.to_owned(),
            sub_state: sub_state.to_owned(),
            state_display_text: label.to_owned(),
            state_duration: time::length(now.duration_since(session.since)),
            queued_count: session.queued,
            blocked_on_permission: blocked,
            blocked_tool_name: tool.unwrap_or_default(),
            ..Self::default()
        }
    }
}
