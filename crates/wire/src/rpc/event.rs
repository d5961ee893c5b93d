//! Events that a session sends to its subscribers.
//!
//! Times are strings, as [`crate::time::stamp`] writes them, so that a burst of lines formats each
//! time once.

use crate::ask::Ask;
use crate::session::{Activity, RunStatus, Status};
use crate::topic::Topic;
use posthaste_core::MessageId;
use serde::{Deserialize, Deserializer, Serialize};
use std::borrow::Cow;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Output {
        line: String,
    },
    StateChange(StateChange),
    Message(MessageEvent),
    /// An ask as it is now: opened, answered or closed.
    Ask(Box<Ask>),
    /// Has no topic: sent to a subscriber that was too slow for the other events.
    Lagged {
        missed: u64,
    },
}

impl Event {
    /// Return the topic of the event. A lag event goes only to its own client.
    pub fn topic(&self) -> Option<Topic> {
        match self {
            Self::Output { .. } => Some(Topic::Output),
            Self::StateChange(_) => Some(Topic::StateChange),
            Self::Message(_) => Some(Topic::Message),
            Self::Ask(_) => Some(Topic::Ask),
            Self::Lagged { .. } => None,
        }
    }
}

/// A new state of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageEvent {
    pub id: MessageId,
    pub receipt: String,
    pub reason: Option<String>,
    pub from: String,
    pub to: String,
}

/// Changed fields of the session's state.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StateChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    #[serde(deserialize_with = "explicit", skip_serializing_if = "Option::is_none")]
    pub current_story: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<RunStatus>,
    /// Unlike the original, this is not repeated as `mode_indicator`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive_mode: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injected_prompt: Option<String>,
    /// Fields from here on do not exist in the original.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    #[serde(deserialize_with = "explicit", skip_serializing_if = "Option::is_none")]
    pub blocked_on: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// Distinguish an explicit null from a missing field.
fn explicit<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

impl StateChange {
    /// Return the difference between two states. Times and output do not count: the event has its
    /// own time, and output has its own events.
    pub fn between(old: &Status, new: &Status) -> Option<Self> {
        let change = Self {
            iteration: changed(&old.iteration, &new.iteration),
            max_iterations: changed(&old.max_iterations, &new.max_iterations),
            current_story: changed(&old.current_story, &new.current_story),
            agent: changed(&old.agent, &new.agent),
            status: changed(&old.status, &new.status),
            interactive_mode: changed(&old.interactive_mode, &new.interactive_mode),
            ..Self::default()
        };
        (!change.is_empty()).then_some(change)
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

fn changed<T: Clone + PartialEq>(old: &T, new: &T) -> Option<T> {
    (old != new).then(|| new.clone())
}

#[derive(Serialize)]
struct EventLine<'a, T> {
    jsonrpc: &'static str,
    method: &'static str,
    params: EventParams<'a, T>,
}

#[derive(Serialize)]
struct EventParams<'a, T> {
    r#type: &'static str,
    timestamp: &'a str,
    data: &'a T,
}

#[derive(Serialize, Deserialize)]
struct Output<'a> {
    line: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
struct Lagged {
    missed: u64,
}

/// Append the event of one line of output. This is the hot path: only `out` allocates.
pub fn append_output(out: &mut Vec<u8>, timestamp: &str, line: &str) {
    let line = Cow::Borrowed(line);
    append_line(out, "output", timestamp, &Output { line });
}

/// Append an event as a line.
pub fn append(out: &mut Vec<u8>, timestamp: &str, event: &Event) {
    match event {
        Event::Output { line } => append_output(out, timestamp, line),
        Event::StateChange(change) => append_line(out, "state_change", timestamp, change),
        Event::Message(message) => append_line(out, "message", timestamp, message),
        Event::Ask(ask) => append_line(out, "ask", timestamp, ask),
        Event::Lagged { missed } => {
            append_line(out, "lagged", timestamp, &Lagged { missed: *missed });
        }
    }
}

fn append_line<T: Serialize>(out: &mut Vec<u8>, r#type: &'static str, timestamp: &str, data: &T) {
    let line = EventLine {
        jsonrpc: "2.0",
        method: "event",
        params: EventParams {
            r#type,
            timestamp,
            data,
        },
    };
    serde_json::to_writer(&mut *out, &line).expect("memory takes all, and no map has odd keys");
    out.push(b'\n');
}

/// Decode an event of this kind from its JSON. Returns `None` for an unknown kind, which a newer
/// session may send.
pub(crate) fn parse(kind: &str, data: &str) -> serde_json::Result<Option<Event>> {
    Ok(Some(match kind {
        "output" => Event::Output {
            line: serde_json::from_str::<Output<'_>>(data)?.line.into_owned(),
        },
        "state_change" => Event::StateChange(serde_json::from_str(data)?),
        "message" => Event::Message(serde_json::from_str(data)?),
        "ask" => Event::Ask(serde_json::from_str(data)?),
        "lagged" => Event::Lagged {
            missed: serde_json::from_str::<Lagged>(data)?.missed,
        },
        _ => return Ok(None),
    }))
}
