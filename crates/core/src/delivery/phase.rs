//! How far the messages have come that are on their way to the program.

use super::Effect;
use super::proof::{Proof, Sent};
use super::submit::Before;
use crate::harness::Route;
use crate::id::MessageId;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::priority::Priority;
use crate::promotion;
use crate::turn::Shape;
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
    /// How a box would show all of it, where it is one message.
    pub(super) shape: Option<Shape>,
    /// How the input box showed it, where that was seen.
    pub(super) shown: Option<String>,
    /// That was seen first while it waited for its Enter, and a person could type.
    pub(super) is_learnt: bool,
    /// Until when Enter waits for it to be seen there.
    pub(super) seen_by: Option<Duration>,
    pub(super) enters: u8,
    /// When Enter was pressed first.
    pub(super) entered: Option<Duration>,
    /// The agent's own word that it was submitted.
    pub(super) proof: Option<Proof>,
    /// What the interrupt key might have done, which was not pressed for that.
    pub(super) spared: Option<&'static str>,
    /// How often the agent's own door was told to stop it.
    pub(super) aborts: u8,
    /// Why it is typed, where it would have gone by the agent's own door.
    pub(super) detour: Option<String>,
    /// The program has written something since this was typed.
    pub(super) is_stirred: bool,
    /// The program has read what was typed since a look was asked for, which may be older.
    pub(super) has_read: bool,
    /// It has waited for its Enter.
    pub(super) was_parked: bool,
    /// While it did, somebody else has typed.
    pub(super) is_touched: bool,
    /// While it did, a person has typed.
    pub(super) is_typed_on: bool,
    /// How the box has shown more of it since, and nobody else has typed.
    pub(super) grown: Option<String>,
    /// A draft was put aside for it.
    pub(super) clears_way: bool,
}

/// Who types behind a text that waits for its Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Hand {
    Person,
    /// An answer, or what else goes before it.
    Ours,
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
            shape: None,
            shown: None,
            is_learnt: false,
            seen_by: None,
            enters: 0,
            entered: None,
            proof: None,
            spared: None,
            aborts: 0,
            detour: None,
            is_stirred: false,
            has_read: false,
            was_parked: false,
            is_touched: false,
            is_typed_on: false,
            grown: None,
            clears_way: false,
        }
    }

    /// Whether the program has taken an answer already, as far as can be told: it has drawn
    /// something, and what was typed does not stand at the cursor, where it would wait for Enter.
    /// Of keys that are no text nothing can be told.
    pub(super) fn is_taken(&self, at_cursor: Option<&str>) -> bool {
        let answer = self.shape.as_ref().map_or("", Shape::beginning).trim();
        let is_text = !answer.is_empty() && !answer.contains(char::is_control);
        let is_gone = at_cursor.is_some_and(|at| !at.trim_end().ends_with(answer));
        is_text && self.is_stirred && is_gone
    }

    /// Whether what a box holds is this and nothing else, as far as can be told: all of it, or
    /// exactly what stood there when nobody else could type. Of the first row of a longer text
    /// nothing can be told.
    pub(super) fn is_alone_in(&self, held: &str) -> bool {
        let (is_whole, is_part) = match &self.shape {
            Some(shape) => (shape.is_all_of(held), shape.is_begun_by(held)),
            None => (false, false),
        };
        is_whole || (!is_part && self.shown.as_deref() == Some(held))
    }

    /// Whether there is more in a box than this, where no key tells that there is.
    pub(super) fn is_joined_in(&self, held: &str) -> bool {
        let is_as_before = self.shown.as_deref() == Some(held);
        let is_more = |shape: &Shape| shape.is_begun_by(held) && !shape.has_all_of(held);
        match &self.shape {
            Some(shape) if is_more(shape) => true,
            Some(shape) if shape.is_begun_by(held) => false,
            Some(_) | None if self.grown.as_deref() == Some(held) => false,
            // Never seen alone: a person's keys may stand there, whatever became of them.
            Some(_) | None if self.shown.is_none() => self.is_typed_on,
            Some(_) | None => !is_as_before,
        }
    }

    /// It may have been seen while it was only half there, and stand there whole since.
    pub(super) fn grow(&mut self, held: &str) {
        let is_more = |shown: &String| held.starts_with(shown.as_str()) && held != shown.as_str();
        let is_whole = self.ids.iter().all(|id| held.contains(&id.id8()));
        if !self.is_touched && is_whole && self.shown.as_ref().is_some_and(is_more) {
            self.grown = Some(held.to_owned());
        }
    }

    /// How the box shows it while it waits for its Enter, as far as anybody knows.
    pub(super) fn learn(&mut self, held: &str) {
        // What has grown is believed for as long as nobody has typed.
        if self.grown.as_deref() != Some(held) {
            self.is_learnt |= self.shown.is_none();
            self.shown = Some(held.to_owned());
        }
    }

    pub(super) fn touch(&mut self, by: Hand) {
        self.is_touched |= self.was_parked;
        if self.was_parked && by == Hand::Person {
            self.is_typed_on = true;
            // A key is told of after it is seen: it may be all that was learnt.
            self.shown
                .take_if(|_| self.is_learnt && self.entered.is_none());
        }
        self.grown = None;
    }

    /// Whether a box can hold this at all, as far as it was seen or can be told.
    pub(super) fn is_known_in(&self, held: &str) -> bool {
        let is_begun = self.shape.as_ref().is_some_and(|s| s.is_begun_by(held));
        is_begun || self.shown.as_deref() == Some(held) || self.grown.as_deref() == Some(held)
    }

    /// Whether a box holds one of these, by its id.
    pub(super) fn is_named_in(&self, held: &str) -> bool {
        self.ids.iter().any(|id| held.contains(&id.id8()))
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
    /// The journal is asked.
    Recording(Flight),
    /// The input box is being emptied; once the keys are pressed, it should be by this time.
    Preparing {
        flight: Flight,
        until: Option<Duration>,
    },
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
    /// A draft is brought back.
    Restoring {
        flight: Flight,
        evidence: String,
    },
    /// The keyboard is asked for, to bring a draft back that was put aside before.
    Fetching(Moment),
    /// It is brought back.
    Returning(Moment),
    /// The journal could not be written.
    Resting {
        since: Moment,
        until: Duration,
        why: String,
    },
}

impl Phase {
    /// The program writes something.
    pub(super) fn stir(&mut self) {
        if let Self::Writing(flight)
        | Self::Written { flight, .. }
        | Self::Looking {
            flight,
            before: Before::Enter,
        } = self
        {
            flight.is_stirred = true;
        }
    }

    /// Somebody else has typed, after a text of ours was parked.
    pub(super) fn touch(&mut self, by: Hand) {
        if let Self::Resuming(flight)
        | Self::Written { flight, .. }
        | Self::Looking { flight, .. } = self
        {
            flight.touch(by);
        }
    }

    /// The program has read all that was typed.
    pub(super) fn reads(&mut self) {
        if let Self::Looking {
            flight,
            before: Before::Text | Before::Enter | Before::Retry,
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
                if flight.lane == Lane::Raw =>
            {
                flight.shape.as_ref().map(Shape::beginning)
            }
            Self::Free
            | Self::Breaking { .. }
            | Self::Recording(_)
            | Self::Preparing { .. }
            | Self::Writing(_)
            | Self::Written { .. }
            | Self::Looking { .. }
            | Self::Resuming(_)
            | Self::Entering(_)
            | Self::Confirming { .. }
            | Self::Restoring { .. }
            | Self::Fetching(_)
            | Self::Returning(_)
            | Self::Resting { .. } => None,
        }
    }

    /// Whether a message is on its way into the terminal.
    pub(super) fn flies(&self, id: MessageId) -> bool {
        let flight = self.clone().flight();
        flight.is_some_and(|flight| flight.ids.contains(&id))
    }

    pub(super) fn flight(self) -> Option<Flight> {
        match self {
            Self::Breaking { flight, .. }
            | Self::Recording(flight)
            | Self::Preparing { flight, .. }
            | Self::Writing(flight)
            | Self::Written { flight, .. }
            | Self::Looking { flight, .. }
            | Self::Resuming(flight)
            | Self::Entering(flight)
            | Self::Confirming { flight, .. }
            | Self::Restoring { flight, .. } => Some(flight),
            Self::Free | Self::Fetching(_) | Self::Returning(_) | Self::Resting { .. } => None,
        }
    }
}
