//! Reply before it is sent: its bytes and the delays between them.

use serde_json::Value;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Json,
    /// Server-sent events.
    Events,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Beat {
    /// Delay after the previous piece.
    pub(super) after: Duration,
    pub(super) bytes: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ModelReply {
    pub(super) status: u16,
    pub(super) kind: Kind,
    pub(super) beats: Vec<Beat>,
}

impl ModelReply {
    pub(super) fn json(status: u16, value: &Value) -> Self {
        Self::json_after(Duration::ZERO, status, value)
    }

    pub(super) fn json_after(after: Duration, status: u16, value: &Value) -> Self {
        let bytes = value.to_string();
        Self {
            status,
            kind: Kind::Json,
            beats: vec![Beat { after, bytes }],
        }
    }
}

/// Builder of events in the order in which they are sent.
#[derive(Debug, Default)]
pub(super) struct Events {
    beats: Vec<Beat>,
    /// Delay before the next event.
    wait: Duration,
}

impl Events {
    pub(super) fn wait(&mut self, wait: Duration) {
        self.wait += wait;
    }

    /// Add an event whose name is its own `type`.
    pub(super) fn named(&mut self, event: &Value) {
        let name = event["type"].as_str().unwrap_or_default();
        self.push(format!("event: {name}\ndata: {event}\n\n"));
    }

    pub(super) fn plain(&mut self, event: &Value) {
        self.push(format!("data: {event}\n\n"));
    }

    /// Add the line that ends a stream of chat completions.
    pub(super) fn done(&mut self) {
        self.push("data: [DONE]\n\n".to_owned());
    }

    fn push(&mut self, bytes: String) {
        let after = std::mem::take(&mut self.wait);
        self.beats.push(Beat { after, bytes });
    }

    pub(super) fn answer(self) -> ModelReply {
        ModelReply {
            status: 200,
            kind: Kind::Events,
            beats: self.beats,
        }
    }
}
