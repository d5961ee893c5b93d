//! What a desk hears and what it says.

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
    /// The length of the path of a message's file: of every one in this inbox.
    pub path_bytes: usize,
    pub reach: Reach,
    /// Whether the program was started with our hooks, or has them in its own settings.
    pub has_hooks: bool,
}

/// By which way mail comes to an agent at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Reach {
    /// Into its terminal, or by the routes that its harness knows.
    #[default]
    Terminal,
    /// A loop: in its next prompt alone. Nothing is typed, and no hook is handed anything.
    Prompt,
}

impl Manner {
    /// For a program of which nothing is known.
    pub fn generic(path_bytes: usize) -> Self {
        Self {
            harness: Arc::new(Manifest::generic()),
            path_bytes,
            reach: Reach::Terminal,
            has_hooks: false,
        }
    }
}

/// Who holds deliveries back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PausedBy {
    /// A client that asked for it.
    Request,
    /// The end of a turn after which a client wanted a pause.
    Checkpoint,
    /// Interactive mode.
    Interactive,
    /// A person at the keyboard.
    Viewer,
}

impl PausedBy {
    /// What shows it.
    pub fn evidence(self) -> &'static str {
        match self {
            Self::Request => "a client asked for a pause",
            Self::Checkpoint => "a checkpoint was asked for, and reached",
            Self::Interactive => "interactive mode is on",
            Self::Viewer => "a person has taken the keyboard",
        }
    }

    /// What ends it.
    pub fn release(self, agent: &AgentName) -> String {
        match self {
            Self::Request | Self::Checkpoint => format!("'ph unpause {agent}'"),
            Self::Interactive => "interactive mode is turned off".to_owned(),
            Self::Viewer => "the person gives the keyboard back, or detaches".to_owned(),
        }
    }
}

/// What happens to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Time has passed, perhaps to [`super::Desk::next_wakeup`].
    Tick,
    /// The program wrote something.
    Output,
    Exited(Ending),
    /// A question of the program stands open, or none does any more. Nobody says so of a program
    /// of which nothing is known.
    Dialog(Option<String>),
    /// What its screen shows has changed, and means this.
    Seen(Sighting),
    /// Of an [`Effect::Look`]: what it shows in this moment.
    Looked(Sighting),
    /// One of its own hooks has something to say.
    Hook(Box<Report>),
    /// Of a [`super::Handing`]: the offer of these stands in the journal.
    Handed {
        number: u64,
        ids: Vec<MessageId>,
    },
    /// Of a [`super::Handing`]: the hook was given nothing, though the offer of these may stand in
    /// the journal.
    NotHanded {
        number: u64,
        ids: Vec<MessageId>,
        why: String,
    },
    /// Of an [`Effect::GoOn`]: the door did not answer, so nobody knows whether the agent has.
    NotGoneOn {
        why: String,
    },
    /// Of an [`Effect::Give`]: the hook has passed it on.
    Taken(u64),
    /// Of an [`Effect::Give`]: the hook has gone, and did not say so.
    Dropped(u64),
    /// A part of the agent's transcript was read, and shows this.
    Transcribed(transcript::Shown),
    /// Somebody has taken the keyboard, or wants nothing delivered.
    Paused(PausedBy),
    Released(PausedBy),
    /// A person has typed and not submitted. Of several keys, the last may be all that is told.
    Draft,
    /// What was typed is submitted or cleared.
    DraftGone,
    /// The terminal holds input that the program has not read, or none any more.
    Unread(bool),
    /// What the journal has of a loop.
    Loop(super::LoopWait),
    /// The program wants bracketed paste, or does not.
    Paste(bool),
    /// Of an [`Effect::Offer`]: these may be shown, and it stands in the journal.
    Recorded(Vec<MessageId>),
    /// Of an [`Effect::Offer`]: a person was typing, and nothing stands in the journal.
    Barred,
    /// The journal could not be written.
    NotRecorded(String),
    /// An [`Effect::Write`] is complete, and this is the text that was typed.
    Wrote(String),
    /// An [`Effect::Enter`] is.
    Entered,
    /// Of an [`Effect::Key`]: so much waits to be typed that it found no room.
    Unpressed,
    /// Of an [`Effect::Resume`]: the keyboard is ours again. Else [`Event::Barred`] is told.
    Resumed,
    /// A write broke off.
    WriteFailed(String),
}

/// What the session is to do; what comes of it is told as an [`Event`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Press these keys, outside a turn: the interrupt key, or those that empty the input box.
    Key(Vec<u8>),
    /// Interrupt by the agent's own door. Where it does not answer, that is told as an
    /// [`Event::NotHanded`] of no messages.
    Abort,
    /// Have the agent hear what its own door was given last, if it has not. Where the door does not
    /// answer, that is told as an [`Event::NotGoneOn`].
    GoOn,
    /// Record that these are about to be put before the agent by its own door, and tell it as
    /// [`Event::Handed`] or [`Event::NotHanded`], as of a [`super::Handing`].
    Call { number: u64, ids: Vec<MessageId> },
    /// Record that these are about to be shown.
    Offer { ids: Vec<MessageId> },
    /// Write these as one turn, in this order. Until [`super::Desk::is_writing`] says otherwise, nobody
    /// else may write to the program.
    Write { ids: Vec<MessageId> },
    /// Press [`super::Desk::enter_key`].
    Enter,
    /// Look at the screen afresh, once all that the program has written is on it.
    Look,
    /// Take the keyboard again, for a text that waits for its Enter.
    Resume,
    /// Give these to the hook that waits for them, or to the door.
    Give { number: u64, ids: Vec<MessageId> },
    /// Record that these were written whole, or passed on by a hook.
    Offered {
        ids: Vec<MessageId>,
        evidence: String,
        route: Route,
        /// See [`crate::fact::Progress::proof_awaited`].
        proof_awaited: bool,
    },
    /// Record that the agent's own word shows these.
    Accepted {
        ids: Vec<MessageId>,
        evidence: String,
        route: Route,
    },
    /// Record that the offer of these is taken back: nothing of it was written.
    Withdraw { ids: Vec<MessageId>, reason: String },
    /// Record that the offer of these was cut off.
    Uncertain { ids: Vec<MessageId>, reason: String },
    /// Record that the agent is about to be reminded of the answers that it owes to these. What
    /// comes of it is told as of an [`Effect::Offer`].
    Remind { ids: Vec<MessageId> },
    /// Write [`crate::owed::reminder`] of these as one turn. Else as [`Effect::Write`].
    WriteReminder { ids: Vec<MessageId> },
    /// Record that these will never be offered, or that an answer had no effect.
    Fail { ids: Vec<MessageId>, reason: String },
}

/// What is due at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// One turn. With `interrupt` the agent must be interrupted first.
    Offer {
        ids: Vec<MessageId>,
        interrupt: bool,
    },
    /// Nothing before this, on the monotonic clock, unless something happens.
    Wait { until: Option<Duration> },
}
