//! How far the messages have come that are on their way to the program.

use super::Effect;
use super::proof::{FoundMessages, Sent};
use super::submit::Before;
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::priority::Priority;
use crate::promotion;
use jiff::Timestamp;
use std::time::Duration;

/// By which rules a message goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lane {
    Raw,
    Interrupt,
    Normal,
    Idle,
}

impl Lane {
    pub(super) fn of(letter: &Letter) -> Self {
        Self::with(letter, letter.message.envelope.priority)
    }

    /// The same at a time, by which it may have been promoted.
    pub(super) fn at(letter: &Letter, now: Timestamp) -> Self {
        Self::with(letter, promotion::priority(&letter.message, now))
    }

    fn with(letter: &Letter, priority: Priority) -> Self {
        match priority {
            _ if letter.message.envelope.raw => Self::Raw,
            Priority::Interrupt => Self::Interrupt,
            Priority::Normal => Self::Normal,
            Priority::IdleFirst | Priority::Idle => Self::Idle,
        }
    }

    pub(super) fn goes_alone(self) -> bool {
        match self {
            Self::Raw | Self::Interrupt => true,
            Self::Normal | Self::Idle => false,
        }
    }
}

/// Messages on their way to the program.
#[derive(Debug, Clone)]
pub(super) struct Flight {
    pub(super) ids: Vec<MessageId>,
    /// Those that were to go, with their senders.
    pub(super) sent: Vec<Sent>,
    pub(super) cargo: Cargo,
    pub(super) lane: Lane,
    pub(super) since: Moment,
    /// The question that a raw message answers.
    pub(super) answers: Option<Question>,
    /// The keys of a raw message.
    pub(super) keys: Option<String>,
    /// The text as it was typed.
    pub(super) text: Option<String>,
    /// Until when Enter waits for the box to show the text.
    pub(super) seen_by: Option<Duration>,
    pub(super) enters: u8,
    /// When Enter was pressed first.
    pub(super) entered: Option<Duration>,
    /// The agent's own word that it was submitted.
    pub(super) proof: Option<FoundMessages>,
    /// What the interrupt key might have done, which was not pressed for that.
    pub(super) spared: Option<&'static str>,
    /// The dialog that the interrupt key has cancelled.
    pub(super) dismissed: Option<String>,
    /// The clear key was pressed, because the program restored a prompt after the interrupt.
    pub(super) has_cleared: bool,
    /// How often the agent's own door was told to stop it.
    pub(super) aborts: u8,
    /// Why it is typed, where it would have gone by the agent's own door.
    pub(super) detour: Option<String>,
    /// The program has read what was typed since a look was asked for, which may be older.
    pub(super) has_read: bool,
    /// It has waited for its Enter.
    pub(super) was_parked: bool,
    /// How often the keys of a raw message were typed.
    pub(super) attempts: u8,
    /// How much output the program had written before that.
    pub(super) output: Option<u64>,
    /// The text before the cursor before that.
    pub(super) at_cursor: Option<String>,
}

/// One question of the program's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) number: u64,
    pub(super) what: String,
}

/// What is typed of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cargo {
    Messages,
    /// That their answers are owed. Its one receipt stands in the journal before it is typed, and
    /// nothing is said of it afterwards.
    Reminders,
}

impl Flight {
    pub(super) fn new(ids: Vec<MessageId>, cargo: Cargo, lane: Lane, since: Moment) -> Self {
        Self {
            ids,
            sent: Vec::new(),
            cargo,
            lane,
            since,
            answers: None,
            keys: None,
            text: None,
            seen_by: None,
            enters: 0,
            entered: None,
            proof: None,
            spared: None,
            dismissed: None,
            has_cleared: false,
            aborts: 0,
            detour: None,
            has_read: false,
            was_parked: false,
            attempts: 0,
            output: None,
            at_cursor: None,
        }
    }

    /// Records that it is about to be typed.
    pub(super) fn offer(&self) -> Effect {
        let ids = self.ids.clone();
        match self.cargo {
            Cargo::Messages => Effect::Offer { ids },
            Cargo::Reminders => Effect::Remind { ids },
        }
    }

    pub(super) fn write(&self) -> Effect {
        let ids = self.ids.clone();
        match self.cargo {
            Cargo::Messages => Effect::Write { ids },
            Cargo::Reminders => Effect::WriteReminder { ids },
        }
    }

    pub(super) fn offered(&self, evidence: String) -> Vec<Effect> {
        let route = Route::Terminal;
        self.receipt(|ids| Effect::Offered {
            ids,
            evidence,
            route,
            // The screen, not a proof, shows whether a raw answer had its effect.
            proof_awaited: self.lane != Lane::Raw,
        })
    }

    pub(super) fn withdrawn(&self, why: &str) -> Vec<Effect> {
        let reason = format!("nothing was written: {why}");
        self.receipt(|ids| Effect::Withdraw { ids, reason })
    }

    pub(super) fn uncertain(&self, reason: &str) -> Vec<Effect> {
        let reason = reason.to_owned();
        self.receipt(|ids| Effect::Uncertain { ids, reason })
    }

    fn receipt(&self, of: impl FnOnce(Vec<MessageId>) -> Effect) -> Vec<Effect> {
        match self.cargo {
            Cargo::Messages => vec![of(self.ids.clone())],
            Cargo::Reminders => Vec::new(),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) enum Phase {
    Free,
    /// The interrupt key was pressed for this message.
    Breaking {
        flight: Flight,
        keys: u8,
        until: Duration,
    },
    /// An interrupt waits until its empty box has been the same for long enough.
    Settling(Flight),
    /// The journal is asked.
    Recording(Flight),
    Writing(Flight),
    /// The text is written; Enter comes at this time.
    Written {
        flight: Flight,
        enter_at: Duration,
    },
    /// The screen is looked at afresh.
    Looking {
        flight: Flight,
        before: Before,
    },
    /// The keyboard is asked for again.
    Resuming(Flight),
    Entering(Flight),
    /// The box should let go of the text by this time.
    Confirming {
        flight: Flight,
        until: Duration,
    },
    /// The journal could not be written.
    Resting {
        since: Moment,
        until: Duration,
        why: String,
    },
}

impl Phase {
    /// The program has read all that was typed.
    pub(super) fn reads(&mut self) {
        if let Self::Looking {
            flight,
            before: Before::Text | Before::Enter | Before::Retry | Before::Verdict,
        } = self
        {
            flight.has_read = true;
        }
    }

    /// The answer that is being typed.
    pub(super) fn answer(&self) -> Option<&str> {
        match self {
            Self::Writing(flight)
            | Self::Written { flight, .. }
            | Self::Looking { flight, .. }
            | Self::Entering(flight)
            | Self::Confirming { flight, .. }
                if flight.lane == Lane::Raw =>
            {
                flight.keys.as_deref()
            }
            Self::Free
            | Self::Breaking { .. }
            | Self::Settling(_)
            | Self::Recording(_)
            | Self::Writing(_)
            | Self::Written { .. }
            | Self::Looking { .. }
            | Self::Resuming(_)
            | Self::Entering(_)
            | Self::Confirming { .. }
            | Self::Resting { .. } => None,
        }
    }

    /// Whether a message is on its way into the terminal.
    pub(super) fn flies(&self, id: MessageId) -> bool {
        self.flight().is_some_and(|flight| flight.ids.contains(&id))
    }

    /// The messages that are on their way into the terminal.
    pub(super) fn flight(&self) -> Option<&Flight> {
        match self {
            Self::Breaking { flight, .. }
            | Self::Settling(flight)
            | Self::Recording(flight)
            | Self::Writing(flight)
            | Self::Written { flight, .. }
            | Self::Looking { flight, .. }
            | Self::Resuming(flight)
            | Self::Entering(flight)
            | Self::Confirming { flight, .. } => Some(flight),
            Self::Free | Self::Resting { .. } => None,
        }
    }
}
