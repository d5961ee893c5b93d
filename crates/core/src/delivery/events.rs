//! The events that delivery handles, the effects that it requests, and its decisions.

use crate::delivery::{LoopWait, PausedBy};
use crate::harness::{Report, Route, Sighting, transcript};
use crate::id::MessageId;
use crate::session::Ending;
use std::time::Duration;

/// Something that happened to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryEvent {
    /// Time has passed, perhaps to [`super::Delivery::next_wakeup`].
    Tick,
    /// The program wrote something.
    Output,
    Exited(Ending),
    /// A question of the program has opened or closed, according to other evidence than the screen.
    DialogChanged(Option<String>),
    /// The screen now shows something else to the manifest.
    ScreenChanged(Sighting),
    /// Result of [`Effect::Look`].
    Looked(Sighting),
    /// One of the agent's hooks was called.
    HookCalled(Box<Report>),
    /// Result of [`super::HookOffer`] or [`Effect::OfferByApi`]: the journal has recorded the offer
    /// of these messages.
    DirectRecorded {
        number: u64,
        ids: Vec<MessageId>,
    },
    /// Result of [`super::HookOffer`] or [`Effect::OfferByApi`]: the hook or the API was given
    /// nothing, although the offer of these messages may be recorded.
    DirectRefused {
        number: u64,
        ids: Vec<MessageId>,
        why: String,
    },
    /// Result of [`Effect::Continue`]: the API did not answer, so it is unknown whether the agent
    /// continues.
    ContinueFailed {
        why: String,
    },
    /// Result of [`Effect::SendDirect`]: the hook has passed the mail on, or the API has it.
    DirectConfirmed(u64),
    /// Result of [`Effect::SendDirect`]: the hook ended without a report, or the API did not answer.
    DirectUnconfirmed(u64),
    /// A part of the agent's transcript was read, and shows this.
    TranscriptRead(transcript::Shown),
    /// Delivery is paused for this reason.
    Paused(PausedBy),
    /// The pause for this reason has ended.
    Unpaused(PausedBy),
    /// A person has typed and not submitted. One event may stand for several keys.
    DraftTyped,
    /// The person has submitted or cleared the draft.
    DraftEnded,
    /// Whether the terminal holds input that the program has not read.
    UnreadInput(bool),
    /// The state of a loop has changed.
    LoopChanged(LoopWait),
    /// The program has turned bracketed paste on or off.
    PasteMode(bool),
    /// Result of [`Effect::Offer`]: the journal has recorded the offer of these messages.
    Recorded(Vec<MessageId>),
    /// Result of [`Effect::Offer`] or [`Effect::Resume`]: a person was typing, and nothing is
    /// recorded.
    KeyboardRefused,
    /// Result of [`Effect::Offer`]: the journal could not be written.
    NotRecorded(String),
    /// Result of [`Effect::Write`]: this text is typed completely.
    Wrote(String),
    /// Result of [`Effect::Enter`].
    Entered,
    /// Result of [`Effect::Key`]: the keyboard's queue was full.
    KeysDropped,
    /// Result of [`Effect::Resume`]: the keyboard is leased again.
    Resumed,
    /// A write to the terminal failed.
    WriteFailed(String),
}

/// Something that the session must do. Its result is a [`DeliveryEvent`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Press the interrupt key, or the key that dismisses a question.
    Key(Vec<u8>),
    /// Press the keys that empty the input box of a restored prompt, unless a person has typed.
    Clear(Vec<u8>),
    /// Interrupt the agent by its API. If the API does not answer, the result is a
    /// [`DeliveryEvent::DirectRefused`] without messages.
    Abort,
    /// Have the agent answer the last message that its API was given, if it has not. If the API does
    /// not answer, the result is a [`DeliveryEvent::ContinueFailed`].
    Continue,
    /// Record that these messages are about to be sent to the agent's API.
    OfferByApi { number: u64, ids: Vec<MessageId> },
    /// Record that these messages are about to be typed.
    Offer { ids: Vec<MessageId> },
    /// Type these messages as one turn, in this order. Nothing else may be typed while
    /// [`super::Delivery::is_writing`].
    Write { ids: Vec<MessageId> },
    /// Press [`super::Delivery::enter_key`].
    Enter,
    /// Look at the screen once all output of the program is on it.
    Look,
    /// Lease the keyboard again, for a text that waits for its Enter.
    Resume,
    /// Send these messages to the hook that waits for them, or to the API.
    SendDirect { number: u64, ids: Vec<MessageId> },
    /// Record that these messages were typed completely, passed on by a hook, or taken by the API.
    Offered {
        ids: Vec<MessageId>,
        evidence: String,
        route: Route,
        /// See [`crate::fact::Progress::proof_awaited`].
        proof_awaited: bool,
    },
    /// Record that the agent's evidence shows these messages.
    Accepted {
        ids: Vec<MessageId>,
        evidence: String,
        route: Route,
    },
    /// Record that the offer of these messages is withdrawn: no part of it was shown to the agent.
    Withdraw { ids: Vec<MessageId>, reason: String },
    /// Record that the offer of these messages was cut off.
    Uncertain { ids: Vec<MessageId>, reason: String },
    /// Record that the agent is about to be reminded of its replies to these messages. The results
    /// are the results of [`Effect::Offer`].
    Remind { ids: Vec<MessageId> },
    /// Type the [reminder](crate::pending_replies::reminder) of these messages as one turn, like
    /// [`Effect::Write`].
    WriteReminder { ids: Vec<MessageId> },
    /// Record that these messages will never be offered, or that an answer had no effect.
    Fail { ids: Vec<MessageId>, reason: String },
}

/// The next thing that is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Offer these messages as one turn. With `interrupt`, interrupt the agent first.
    Offer {
        ids: Vec<MessageId>,
        interrupt: bool,
    },
    /// Nothing is due before this time on the monotonic clock, unless something happens.
    Wait { until: Option<Duration> },
}
