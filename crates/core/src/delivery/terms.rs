//! The vocabulary of delivery: the events that it hears, and the effects that it wants.

use crate::harness::{Manifest, Report, Route, Sighting, transcript};
use crate::id::MessageId;
use crate::name::AgentName;
use crate::session::Ending;
use std::sync::Arc;
use std::time::Duration;

/// How an agent is written to.
#[derive(Debug, Clone, PartialEq)]
pub struct Manner {
    pub harness: Arc<Manifest>,
    /// Length of the path of a message's file; it is the same for all messages of an inbox.
    pub path_bytes: usize,
    pub reach: Reach,
    /// Whether the program was started with our hooks, or has them in its own settings.
    pub has_hooks: bool,
}

/// How mail can reach an agent at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// Through its terminal, or by the other routes of its harness.
    #[default]
    Terminal,
    /// The agent is a loop: its mail is in its next prompt only. Nothing is typed, and no hook is
    /// given mail.
    Prompt,
}

impl Manner {
    /// Return the manner for an unknown program.
    pub fn generic(path_bytes: usize) -> Self {
        Self {
            harness: Arc::new(Manifest::generic()),
            path_bytes,
            reach: Reach::Terminal,
            has_hooks: false,
        }
    }
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

    /// Say what ends the pause.
    pub fn release(self, agent: &AgentName) -> String {
        match self {
            Self::Request | Self::Checkpoint => format!("'ph unpause {agent}'"),
            Self::Interactive => "interactive mode is turned off".to_owned(),
            Self::Viewer => "the person gives the keyboard back, or detaches".to_owned(),
        }
    }
}

/// Something that happens to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Time has passed, perhaps to [`super::Delivery::next_wakeup`].
    Tick,
    /// The program wrote something.
    Output,
    Exited(Ending),
    /// A question of the program is open, or none is. Nothing tells this of an unknown program.
    Dialog(Option<String>),
    /// The screen now shows something else to the manifest.
    Seen(Sighting),
    /// Result of [`Effect::Look`].
    Looked(Sighting),
    /// One of the agent's hooks was called.
    Hook(Box<Report>),
    /// Result of [`super::HookOffer`] or [`Effect::Call`]: the offer of these messages is recorded.
    Handed {
        number: u64,
        ids: Vec<MessageId>,
    },
    /// Result of [`super::HookOffer`] or [`Effect::Call`]: nothing was handed over, although the
    /// offer of these messages may be recorded.
    NotHanded {
        number: u64,
        ids: Vec<MessageId>,
        why: String,
    },
    /// Result of [`Effect::GoOn`]: the API did not answer, so nobody knows whether the agent
    /// continues.
    NotGoneOn {
        why: String,
    },
    /// Result of [`Effect::Give`]: the hook has passed the mail on, or the API has it.
    Taken(u64),
    /// Result of [`Effect::Give`]: the hook has gone without a report, or the API did not answer.
    Dropped(u64),
    /// A part of the agent's transcript was read, and shows this.
    Transcribed(transcript::Shown),
    /// Delivery is paused for this reason.
    Paused(PausedBy),
    Released(PausedBy),
    /// A person has typed and not submitted. One event may stand for several keys.
    Draft,
    /// The person has submitted or cleared the draft.
    DraftGone,
    /// The terminal holds input that the program has not read, or none any more.
    Unread(bool),
    /// The state of a loop has changed.
    Loop(super::LoopWait),
    /// The program wants bracketed paste, or does not.
    Paste(bool),
    /// Result of [`Effect::Offer`]: the offer of these messages is recorded.
    Recorded(Vec<MessageId>),
    /// Result of [`Effect::Offer`] or [`Effect::Resume`]: a person was typing, and nothing is
    /// recorded.
    Barred,
    /// Result of [`Effect::Offer`]: the journal could not be written.
    NotRecorded(String),
    /// Result of [`Effect::Write`]: this text is typed completely.
    Wrote(String),
    /// Result of [`Effect::Enter`].
    Entered,
    /// Result of [`Effect::Key`]: the keyboard's queue was full.
    Unpressed,
    /// Result of [`Effect::Resume`]: the keyboard is leased again.
    Resumed,
    /// A write broke off.
    WriteFailed(String),
}

/// Something that the session must do. Results are told as an [`Event`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Press these keys, outside a turn: the interrupt key, or those that empty the input box.
    Key(Vec<u8>),
    /// Interrupt the agent by its API. If the API does not answer, that is told as an
    /// [`Event::NotHanded`] of no messages.
    Abort,
    /// Have the agent answer what its API was given last, if it has not. If the API does not answer,
    /// that is told as an [`Event::NotGoneOn`].
    GoOn,
    /// Record that these are about to be put before the agent by its API.
    Call { number: u64, ids: Vec<MessageId> },
    /// Record that these are about to be shown.
    Offer { ids: Vec<MessageId> },
    /// Type these as one turn, in this order. Nothing else may be typed while
    /// [`super::Delivery::is_writing`].
    Write { ids: Vec<MessageId> },
    /// Press [`super::Delivery::enter_key`].
    Enter,
    /// Look at the screen once all output of the program is on it.
    Look,
    /// Lease the keyboard again, for a text that waits for its Enter.
    Resume,
    /// Give these to the hook that waits for them, or to the API.
    Give { number: u64, ids: Vec<MessageId> },
    /// Record that these were typed completely, passed on by a hook, or taken by the API.
    Offered {
        ids: Vec<MessageId>,
        evidence: String,
        route: Route,
        /// See [`crate::fact::Progress::proof_awaited`].
        proof_awaited: bool,
    },
    /// Record that the agent's evidence shows these.
    Accepted {
        ids: Vec<MessageId>,
        evidence: String,
        route: Route,
    },
    /// Record that the offer of these is taken back: nothing of it was typed.
    Withdraw { ids: Vec<MessageId>, reason: String },
    /// Record that the offer of these was cut off.
    Uncertain { ids: Vec<MessageId>, reason: String },
    /// Record that the agent is about to be reminded that it owes replies to these. The results are
    /// those of [`Effect::Offer`].
    Remind { ids: Vec<MessageId> },
    /// Type [`crate::owed::reminder`] of these as one turn, like [`Effect::Write`].
    WriteReminder { ids: Vec<MessageId> },
    /// Record that these will never be offered, or that an answer had no effect.
    Fail { ids: Vec<MessageId>, reason: String },
}

/// The next thing that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Offer these as one turn. With `interrupt`, interrupt the agent first.
    Offer {
        ids: Vec<MessageId>,
        interrupt: bool,
    },
    /// Nothing is due before this time on the monotonic clock, unless something happens.
    Wait { until: Option<Duration> },
}
