//! From a recorded offer to a text that is submitted: a draft put aside, the look before Enter,
//! Enter again where it was swallowed, the draft brought back.
//!
//! Enter is pressed only after a look that shows no question; the text is never written twice.

use super::hold::Rule;
use super::{Cargo, Desk, Effect, Flight, Lane, Phase};
use crate::activity::Activity;
use crate::harness::{Field, Sighting};
use crate::moment::Moment;
use std::time::Duration;

/// How long a program may take to empty its box when the keys for it are pressed.
const EMPTIES: Duration = Duration::from_secs(2);
const LET_GO: &str = "; the input box let go of it";
const ASKED: &str = "; a question opened before the input box was seen to let go of it";
const WRITTEN: &str = "written whole to the terminal of the running program";

/// What a look comes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// The interrupt key, for the time of this number.
    Key(u8),
    /// The text, after a draft was put aside.
    Text,
    Enter,
    /// Enter once more.
    Retry,
}

/// A draft that was put aside.
#[derive(Debug, Clone)]
pub(super) struct Aside {
    text: Option<String>,
    restore: Option<Vec<u8>>,
    /// The turn that it was put aside for is over, and it has not been brought back.
    is_owed: bool,
}

impl Desk {
    /// Begins to write what is recorded; first a draft is put aside, where there is one.
    pub(super) fn begin(&mut self, flight: Flight) -> Effect {
        let way = self.way().filter(|_| self.has_draft());
        let Some(way) = way else {
            let write = flight.write();
            self.phase = Phase::Writing(flight);
            return write;
        };
        let text = match self.drafting.field() {
            Field::Holds(text) => Some(text.clone()),
            Field::Empty | Field::Unseen => None,
        };
        if way.is_kept {
            self.aside = Some(Aside {
                text,
                restore: way.restore,
                is_owed: false,
            });
        }
        self.phase = Phase::Preparing {
            flight,
            until: None,
        };
        Effect::Strokes(way.keys)
    }

    pub(super) fn stroked(&mut self, now: Moment) -> Vec<Effect> {
        if let Phase::Preparing { until, .. } = &mut self.phase {
            *until = Some(now.mono + EMPTIES);
            return self.empty(now);
        }
        if let Phase::Restoring { flight, evidence } = &self.phase {
            let (flight, evidence) = (flight.clone(), evidence.clone());
            return self.complete(now, &flight, evidence);
        }
        Vec::new()
    }

    /// Goes on once the box is empty, or should be.
    pub(super) fn empty(&mut self, now: Moment) -> Vec<Effect> {
        let Phase::Preparing {
            flight,
            until: Some(until),
        } = &self.phase
        else {
            return Vec::new();
        };
        let is_empty = *self.drafting.field() == Field::Empty;
        if is_empty || self.dialog.is_some() || *until <= now.mono {
            let flight = flight.clone();
            return self.look(flight, Before::Text);
        }
        Vec::new()
    }

    fn look(&mut self, flight: Flight, before: Before) -> Vec<Effect> {
        self.phase = Phase::Looking { flight, before };
        vec![Effect::Look]
    }

    /// What was asked for before something is done.
    pub(super) fn looked(&mut self, now: Moment, sighting: Sighting) -> Vec<Effect> {
        self.seen(now, sighting);
        let Phase::Looking { flight, before } = &self.phase else {
            return self.proceed(now);
        };
        let (flight, before) = (flight.clone(), *before);
        if self.activity().activity == Activity::Exited {
            return self.cut_off(now, "the program exited before it was complete");
        }
        match before {
            Before::Key(keys) => self.aimed(now, flight, keys),
            Before::Text => self.prepared(flight),
            Before::Enter => self.submit(now, flight),
            Before::Retry => self.retry(now, flight),
        }
    }

    /// Presses the interrupt key, or first looks whether that would end the program.
    pub(super) fn press(&mut self, now: Moment, flight: Flight, keys: u8) -> Vec<Effect> {
        let is_asked = self.dialog.is_some();
        if self.manner.harness.interrupt.quits_when_idle && !is_asked {
            return self.look(flight, Before::Key(keys));
        }
        // It seems to work because of what we have typed; the key would end one that does not.
        if !is_asked && self.unread.is_none() && !self.judge.may_work() {
            let spared = true;
            return self.record(Flight { spared, ..flight });
        }
        self.press_now(now, flight, keys)
    }

    fn aimed(&mut self, now: Moment, mut flight: Flight, keys: u8) -> Vec<Effect> {
        if self.rule(Lane::Interrupt).is_some() {
            self.phase = Phase::Free;
            return Vec::new();
        }
        if self.dialog.is_some() || self.judge.surely_works() {
            return self.press_now(now, flight, keys);
        }
        if self.activity().activity != Activity::Idle {
            flight.spared = true;
        }
        self.record(flight)
    }

    fn press_now(&mut self, now: Moment, flight: Flight, keys: u8) -> Vec<Effect> {
        let interrupt = &self.manner.harness.interrupt;
        let key = match (&self.dialog, &interrupt.dismiss) {
            (Some(_), Some(dismiss)) => dismiss,
            (_, _) => &interrupt.keys,
        };
        let key = key.bytes().to_vec();
        self.drafting.interrupted();
        self.judge.typed(now);
        self.phase = Phase::Breaking {
            flight,
            keys,
            until: now.mono + super::BREAK,
        };
        vec![Effect::Key(key)]
    }

    /// Writes, where the box is empty by now.
    fn prepared(&mut self, flight: Flight) -> Vec<Effect> {
        let is_empty = *self.drafting.field() == Field::Empty;
        if is_empty && self.dialog.is_none() {
            let write = flight.write();
            self.phase = Phase::Writing(flight);
            return vec![write];
        }
        self.phase = Phase::Free;
        let why = if self.dialog.is_some() {
            self.owe();
            "a question opened while a draft was put aside"
        } else {
            self.aside = None;
            self.drafting.stays();
            "the draft could not be put aside"
        };
        flight.withdrawn(why)
    }

    /// The time for Enter has come.
    pub(super) fn enter(&mut self, flight: Flight) -> Vec<Effect> {
        let is_seen = match flight.lane {
            Lane::Raw => self.knows_dialogs(),
            Lane::Interrupt | Lane::Normal | Lane::Idle => self.looks(),
        };
        if is_seen {
            return self.look(flight, Before::Enter);
        }
        self.phase = Phase::Entering(flight);
        vec![Effect::Enter]
    }

    fn submit(&mut self, now: Moment, mut flight: Flight) -> Vec<Effect> {
        if flight.lane == Lane::Raw {
            return self.submit_raw(now, flight);
        }
        if self.withheld(&flight) == Some(Rule::Blocked) {
            return self.park(flight);
        }
        match (self.drafting.field(), flight.was_parked) {
            (Field::Empty, true) => {
                self.phase = Phase::Writing(flight);
                return self.lose("a question opened before Enter, and the text is gone since");
            }
            // Not on a screen that nobody knows.
            (Field::Unseen, true) if self.sees_drafts() => return self.park(flight),
            // What a person has added stays the person's.
            (Field::Holds(_), true) if self.has_more_than(&flight) => return self.park(flight),
            (Field::Holds(text), _) => flight.shown = Some(text.clone()),
            (Field::Empty | Field::Unseen, _) => flight.shown = None,
        }
        self.phase = Phase::Entering(flight);
        vec![Effect::Enter]
    }

    /// Enter belongs to the question that is answered: where the text alone has answered it, it
    /// would go to another, or to whatever stands in the box.
    fn submit_raw(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        let asks = self.dialog.as_ref().map(|dialog| dialog.number);
        let answers = flight.answers.as_ref().map(|question| question.number);
        if answers.is_some() && asks != answers {
            let evidence = self.evidence(&flight, "; answered before Enter, which was not pressed");
            return self.complete(now, &flight, evidence);
        }
        self.phase = Phase::Entering(flight);
        vec![Effect::Enter]
    }

    fn sees_drafts(&self) -> bool {
        self.manner.harness.draft.pattern.is_some()
    }

    /// The keyboard is given back: a person, or a raw message, must be able to answer.
    pub(super) fn park(&mut self, flight: Flight) -> Vec<Effect> {
        self.parked = Some(Flight {
            was_parked: true,
            ..flight
        });
        self.phase = Phase::Free;
        Vec::new()
    }

    /// Whether a text that waits for its Enter can have it.
    pub(super) fn can_resume(&self) -> bool {
        let is_in_sight = !self.sees_drafts() || *self.drafting.field() != Field::Unseen;
        let is_clear = self.dialog.is_none() && !self.drafting.is_typed() && is_in_sight;
        let is_alone = |parked: &Flight| !self.has_more_than(parked);
        self.parked.as_ref().is_some_and(is_alone) && self.is_free() && is_clear
    }

    pub(super) fn resume(&mut self) -> Vec<Effect> {
        let Some(flight) = self.parked.take() else {
            return Vec::new();
        };
        self.phase = Phase::Resuming(flight);
        vec![Effect::Resume]
    }

    pub(super) fn resumed(&mut self, now: Moment) -> Vec<Effect> {
        let Phase::Resuming(flight) = &self.phase else {
            return Vec::new();
        };
        let flight = flight.clone();
        if !flight.ids.is_empty() {
            self.phase = Phase::Written {
                flight,
                enter_at: now.mono + self.enter_after(),
            };
            return self.proceed(now);
        }
        self.phase = Phase::Free;
        let restore = self.aside.as_ref().and_then(|aside| aside.restore.clone());
        match restore {
            // In the moment that the keyboard took, something else may have filled the box.
            Some(keys) if self.can_give_back() => {
                let evidence = String::new();
                self.phase = Phase::Restoring { flight, evidence };
                vec![Effect::Strokes(keys)]
            }
            Some(_) | None => self.proceed(now),
        }
    }

    pub(super) fn entered(&mut self, now: Moment) -> Vec<Effect> {
        let Phase::Entering(flight) = &self.phase else {
            return Vec::new();
        };
        let mut flight = flight.clone();
        flight.enters = flight.enters.saturating_add(1);
        if flight.shown.is_none() {
            return self.finish(now, flight, "");
        }
        self.phase = Phase::Confirming {
            flight,
            until: now.mono + self.manner.harness.submit.retry_after.get(),
        };
        self.confirm(now)
    }

    /// What the screen says of a text after Enter; nothing while the box still holds it.
    fn verdict(&self, flight: &Flight) -> Option<&'static str> {
        let aside = self.aside.as_ref().and_then(|aside| aside.text.as_ref());
        match self.drafting.field() {
            Field::Holds(text) if aside == Some(text) => Some(LET_GO),
            // However it is shown by now.
            Field::Holds(text) if flight.is_named_in(text) => None,
            Field::Holds(text) if flight.shown.as_ref() == Some(text) => None,
            Field::Holds(_) | Field::Empty => Some(LET_GO),
            Field::Unseen => Some("; the input box is out of sight"),
        }
    }

    /// Sees whether the box has let go of the text. Where a question opens, a person must be able
    /// to answer it, and Enter is not pressed again.
    pub(super) fn confirm(&mut self, now: Moment) -> Vec<Effect> {
        let Phase::Confirming { flight, until } = &self.phase else {
            return Vec::new();
        };
        let (flight, until) = (flight.clone(), *until);
        match self.verdict(&flight) {
            _ if self.dialog.is_some() => self.leave(now, &flight, ASKED),
            Some(how) => self.finish(now, flight, how),
            None if until <= now.mono => self.look(flight, Before::Retry),
            None => Vec::new(),
        }
    }

    fn retry(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        let has_more = flight.enters <= self.manner.harness.submit.retries;
        match self.verdict(&flight) {
            _ if self.dialog.is_some() => self.leave(now, &flight, ASKED),
            Some(how) => self.finish(now, flight, how),
            None if has_more => {
                self.phase = Phase::Entering(flight);
                vec![Effect::Enter]
            }
            None => self.leave(now, &flight, "; the input box still holds it"),
        }
    }

    /// The text stands in the box, and is left there: what comes after it waits.
    fn leave(&mut self, now: Moment, flight: &Flight, how: &str) -> Vec<Effect> {
        self.drafting.left = match self.drafting.field() {
            Field::Holds(text) if flight.is_named_in(text) => Some(text.clone()),
            Field::Holds(_) | Field::Empty | Field::Unseen => flight.shown.clone(),
        };
        let evidence = self.evidence(flight, how);
        self.complete_owing(now, flight, evidence)
    }

    /// The same as complete, with a draft that cannot be brought back yet.
    fn complete_owing(&mut self, now: Moment, flight: &Flight, evidence: String) -> Vec<Effect> {
        self.owe();
        let aside = self.aside.take();
        let effects = self.complete(now, flight, evidence);
        self.aside = aside;
        effects
    }

    /// A draft that a key brings back is kept in mind until that is pressed; one that comes back by
    /// itself is not.
    fn owe(&mut self) {
        self.aside = self.aside.take().filter(|aside| aside.restore.is_some());
        if let Some(aside) = &mut self.aside {
            aside.is_owed = true;
        }
    }

    /// Whether a draft is to be brought back once the box is free.
    pub(super) fn owes_draft(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.is_owed)
    }

    pub(super) fn can_give_back(&self) -> bool {
        let is_empty = *self.drafting.field() == Field::Empty && !self.drafting.is_typed();
        let is_at_rest = self.is_free() && self.parked.is_none() && self.dialog.is_none();
        self.owes_draft() && is_empty && is_at_rest
    }

    /// Asks for the keyboard, to bring a draft back: a turn of nothing.
    pub(super) fn give_back(&mut self, now: Moment) -> Vec<Effect> {
        let nothing = Flight::new(Vec::new(), Cargo::Reminders, Lane::Idle, now);
        self.phase = Phase::Resuming(nothing);
        vec![Effect::Resume]
    }

    fn finish(&mut self, now: Moment, flight: Flight, how: &str) -> Vec<Effect> {
        let evidence = self.evidence(&flight, how);
        // An answer goes before others, and what was put aside for those stays so.
        let aside = self.aside.as_ref().filter(|_| flight.lane != Lane::Raw);
        match aside.and_then(|aside| aside.restore.clone()) {
            Some(keys) if self.dialog.is_none() => {
                self.phase = Phase::Restoring { flight, evidence };
                vec![Effect::Strokes(keys)]
            }
            Some(_) => self.complete_owing(now, &flight, evidence),
            None => self.complete(now, &flight, evidence),
        }
    }

    pub(super) fn complete(
        &mut self,
        now: Moment,
        flight: &Flight,
        evidence: String,
    ) -> Vec<Effect> {
        self.phase = Phase::Free;
        if flight.lane != Lane::Raw {
            self.aside = None;
        }
        if !flight.ids.is_empty() {
            self.judge.given(now);
            self.space_reminders(now, flight.cargo);
        }
        flight.offered(evidence)
    }

    fn evidence(&self, flight: &Flight, how: &str) -> String {
        let to_what = match (flight.lane, &flight.answers) {
            (Lane::Raw, None) if self.knows_dialogs() => ", with no question in sight".to_owned(),
            (Lane::Raw, None) => ", dialog unknown".to_owned(),
            (Lane::Raw, Some(question)) => format!(", in answer to: {}", question.what),
            (Lane::Interrupt | Lane::Normal | Lane::Idle, _) => String::new(),
        };
        let enters = match flight.enters {
            0 | 1 => String::new(),
            enters => format!(", Enter pressed {enters} times"),
        };
        let spared = if flight.spared {
            "; no interrupt key: it might have ended the program"
        } else {
            ""
        };
        format!("{WRITTEN}{to_what}{enters}{how}{spared}")
    }

    /// The end of an offer that did not come to its own.
    pub(super) fn cut_off(&mut self, now: Moment, reason: &str) -> Vec<Effect> {
        match &self.phase {
            Phase::Preparing { flight, .. }
            | Phase::Looking {
                flight,
                before: Before::Text,
            } => {
                let flight = flight.clone();
                self.phase = Phase::Free;
                flight.withdrawn(reason)
            }
            Phase::Confirming { flight, .. }
            | Phase::Restoring { flight, .. }
            | Phase::Looking {
                flight,
                before: Before::Retry,
            } => {
                let flight = flight.clone();
                let evidence = self.evidence(&flight, "");
                self.complete(now, &flight, evidence)
            }
            Phase::Looking {
                before: Before::Key(_),
                ..
            } => {
                self.phase = Phase::Free;
                Vec::new()
            }
            Phase::Writing(_)
            | Phase::Written { .. }
            | Phase::Entering(_)
            | Phase::Resuming(_)
            | Phase::Looking {
                before: Before::Enter,
                ..
            } => self.lose(reason),
            Phase::Free | Phase::Breaking { .. } | Phase::Recording(_) | Phase::Resting { .. } => {
                Vec::new()
            }
        }
    }

    /// An offer that may have been seen in part.
    fn lose(&mut self, reason: &str) -> Vec<Effect> {
        match std::mem::replace(&mut self.phase, Phase::Free).flight() {
            Some(flight) => flight.uncertain(reason),
            None => Vec::new(),
        }
    }
}
