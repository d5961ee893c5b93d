//! The parameters of a delivery, and the reasons for which it is paused.

use crate::harness::Manifest;
use crate::moment::Moment;
use crate::name::AgentName;
use std::sync::Arc;

/// Parameters of one session's delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryConfig {
    pub harness: Arc<Manifest>,
    /// Length of the path of a message's file; it is the same for all messages of an inbox.
    pub path_bytes: usize,
    pub reach: Reach,
    /// Whether the program was started with our hooks, or has them in its own settings.
    pub has_hooks: bool,
}

/// How mail can reach an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// Through its terminal, or by the other routes of its harness.
    #[default]
    Terminal,
    /// The agent is a loop: its mail is in its next prompt only. Nothing is typed, and no hook is
    /// given mail.
    Prompt,
}

impl DeliveryConfig {
    /// Return the parameters for an unknown program.
    pub fn generic(path_bytes: usize) -> Self {
        Self {
            harness: Arc::new(Manifest::generic()),
            path_bytes,
            reach: Reach::Terminal,
            has_hooks: false,
        }
    }
}

/// A reason for delivery to be paused, and since when.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pause {
    pub(crate) by: PausedBy,
    pub(crate) since: Moment,
}

/// The reason for a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PausedBy {
    /// A client asked for it.
    Request,
    /// A turn has ended after which a client wanted a pause.
    Checkpoint,
    /// Interactive mode.
    Interactive,
    /// A person has taken the keyboard.
    Viewer,
}

impl PausedBy {
    /// Return the evidence of the pause.
    pub fn evidence(self) -> &'static str {
        match self {
            Self::Request => "a client asked for a pause",
            Self::Checkpoint => "a checkpoint was asked for, and reached",
            Self::Interactive => "interactive mode is on",
            Self::Viewer => "a person has taken the keyboard",
        }
    }

    /// Return the event that ends the pause, in words.
    pub fn release(self, agent: &AgentName) -> String {
        match self {
            Self::Request | Self::Checkpoint => format!("'ph unpause {agent}'"),
            Self::Interactive => "interactive mode is turned off".to_owned(),
            Self::Viewer => "the person gives the keyboard back, or detaches".to_owned(),
        }
    }
}
