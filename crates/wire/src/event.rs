//! What a session tells those who listen, unasked.
//!
//! Time comes in as [`crate::time::stamp`] writes it: the moments of many lines are written once.

use crate::session::{Activity, Run, Status};
use crate::topic::Topic;
use posthaste_core::MessageId;
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    Output {
        line: String,
    },
    StateChange(StateChange),
    Message(MessageEvent),
    /// Not a topic: told to whoever was too slow for the others.
    Lagged {
        missed: u64,
    },
}

impl Event {
    /// Who hears of it; a notice of lag goes to its own client alone.
    pub fn topic(&self) -> Option<Topic> {
        match self {
            Self::Output { .. } => Some(Topic::Output),
            Self::StateChange(_) => Some(Topic::StateChange),
            Self::Message(_) => Some(Topic::Message),
            Self::Lagged { .. } => None,
        }
    }
}

/// A message has moved on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MessageEvent {
    pub id: MessageId,
    pub receipt: String,
    pub reason: Option<String>,
    pub from: String,
    pub to: String,
}

/// The fields that have changed, and no others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StateChange {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_iterations: Option<u64>,
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub current_story: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<Run>,
    /// The original does not repeat it as `mode_indicator`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interactive_mode: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub injected_prompt: Option<String>,
    /// From here on ours.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub activity: Option<Activity>,
    #[serde(deserialize_with = "said", skip_serializing_if = "Option::is_none")]
    pub blocked_on: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
}

/// A null that is there says something.
fn said<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<String>>, D::Error> {
    Option::deserialize(from).map(Some)
}

impl StateChange {
    /// What has changed from one state to the other. The times and the output do not count: the
    /// one stands in the event, the other has events of its own.
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

const OPEN: &str = r#"{"jsonrpc":"2.0","method":"event","params":{"type":""#;
const STAMP: &str = r#"","timestamp":""#;
const DATA: &str = r#"","data":"#;
const CLOSE: &str = "}}\n";

/// Adds the event of one line of output. This is the hot one: nothing is allocated but `out`.
pub fn append_output(out: &mut Vec<u8>, timestamp: &str, line: &str) {
    open(out, "output", timestamp);
    out.extend_from_slice(br#"{"line":"#);
    write(out, line);
    out.push(b'}');
    out.extend_from_slice(CLOSE.as_bytes());
}

/// Adds an event as a line.
pub fn append(out: &mut Vec<u8>, timestamp: &str, event: &Event) {
    match event {
        Event::Output { line } => return append_output(out, timestamp, line),
        Event::StateChange(change) => {
            open(out, "state_change", timestamp);
            write(out, change);
        }
        Event::Message(message) => {
            open(out, "message", timestamp);
            write(out, message);
        }
        Event::Lagged { missed } => {
            open(out, "lagged", timestamp);
            write(out, &Lagged { missed: *missed });
        }
    }
    out.extend_from_slice(CLOSE.as_bytes());
}

#[derive(Serialize, Deserialize)]
struct Lagged {
    missed: u64,
}

#[derive(Deserialize)]
struct Output {
    line: String,
}

fn open(out: &mut Vec<u8>, kind: &str, timestamp: &str) {
    for part in [OPEN, kind, STAMP, timestamp, DATA] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn write<T: Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("memory takes all, and no map here has odd keys");
}

/// The event of this kind, of which `data` is the JSON; none if the kind is unknown, as that of a
/// newer session may be.
pub(crate) fn parse(kind: &str, data: &str) -> serde_json::Result<Option<Event>> {
    Ok(Some(match kind {
        "output" => Event::Output {
            line: serde_json::from_str::<Output>(data)?.line,
        },
        "state_change" => Event::StateChange(serde_json::from_str(data)?),
        "message" => Event::Message(serde_json::from_str(data)?),
        "lagged" => Event::Lagged {
            missed: serde_json::from_str::<Lagged>(data)?.missed,
        },
        _ => return Ok(None),
    }))
}
