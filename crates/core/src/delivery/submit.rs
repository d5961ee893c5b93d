//! From a recorded offer to a text that is submitted: the look before Enter, Enter again where it
//! was swallowed. How a draft gets out of the way is in `aside`.
//!
//! Enter is pressed only after a look that shows no question; the text is never written twice.

use super::hold::Rule;
use super::{Desk, Effect, Flight, Lane, Phase, door};
use crate::activity::Activity;
use crate::harness::{Field, Sighting};
use crate::moment::Moment;
use std::time::Duration;

const WRITTEN: &str = "written whole to the terminal of the running program";

/// How long the Enter of an answer waits for the program to read its text.
const READ_WITHIN: Duration = Duration::from_secs(2);
/// By then a program has drawn what it makes of what it has read.
const DRAWN: Duration = Duration::from_millis(50);

const LET_GO: &str = "; the input box let go of it";
/// What an interrupt key may do.
const ENDS: &str = "ended the program";
const DESTROYS: &str = "destroyed a draft";
const ASKED: &str = "; a question opened, and the text may not be submitted";

/// What has become of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The box holds it.
    Stands,
    Gone,
    /// The box is out of sight.
    Hidden,
}

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

impl Desk {
    pub(super) fn look(&mut self, mut flight: Flight, before: Before) -> Vec<Effect> {
        flight.has_read = false;
        self.phase = Phase::Looking { flight, before };
        vec![Effect::Look]
    }

    /// What was asked for before something is done.
    pub(super) fn looked(&mut self, now: Moment, sighting: Sighting) -> Vec<Effect> {
        let at_cursor = sighting.before.clone();
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
            Before::Text => self.prepared(now, flight),
            Before::Enter if flight.lane == Lane::Raw => {
                self.submit_raw(now, flight, at_cursor.as_deref())
            }
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
            let spared = Some(ENDS);
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
            flight.spared = Some(ENDS);
        }
        self.record(flight)
    }

    fn press_now(&mut self, now: Moment, flight: Flight, keys: u8) -> Vec<Effect> {
        if self.goes_by_door(Lane::Interrupt) {
            return self.abort(now, flight, keys);
        }
        // Text can be written all the same, once the draft is put aside; then that comes back.
        let is_kept = self.way().is_some_and(|way| way.is_kept);
        if self.has_draft() && is_kept && self.dialog.is_none() {
            let spared = Some(DESTROYS);
            return self.record(Flight { spared, ..flight });
        }
        let interrupt = &self.manner.harness.interrupt;
        let key = match (&self.dialog, &interrupt.dismiss) {
            (Some(_), Some(dismiss)) => dismiss,
            (_, _) => &interrupt.keys,
        };
        let (key, wait) = (key.bytes().to_vec(), interrupt.wait.get());
        self.drafting.interrupted();
        self.judge.interrupted(now);
        self.judge.typed(now);
        self.phase = Phase::Breaking {
            flight,
            keys,
            until: now.mono + wait,
        };
        vec![Effect::Key(key)]
    }

    /// Interrupts by the agent's own door: no key is pressed.
    fn abort(&mut self, now: Moment, mut flight: Flight, keys: u8) -> Vec<Effect> {
        flight.aborts = flight.aborts.saturating_add(1);
        self.judge.interrupted(now);
        let until = now.mono + self.manner.harness.interrupt.wait.get();
        self.phase = Phase::Breaking {
            flight,
            keys,
            until,
        };
        vec![Effect::Abort]
    }

    /// The time for Enter has come.
    pub(super) fn enter(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        planted!(EnterUnlooked => return self.enters_blindly(flight));
        match flight.lane {
            _ if self.looks() => self.look(flight, Before::Enter),
            Lane::Raw => {
                let mut effects = self.submit_raw(now, flight, None);
                // What waited for the question to be answered goes on.
                if self.is_free() {
                    effects.extend(self.proceed(now));
                }
                effects
            }
            Lane::Interrupt | Lane::Normal | Lane::Idle => self.press_enter(now, flight),
        }
    }

    fn press_enter(&mut self, now: Moment, mut flight: Flight) -> Vec<Effect> {
        flight.entered = flight.entered.or(Some(now.mono));
        self.phase = Phase::Entering(flight);
        vec![Effect::Enter]
    }

    fn submit(&mut self, now: Moment, mut flight: Flight) -> Vec<Effect> {
        if self.withheld(&flight) == Some(Rule::Blocked) {
            return self.park(flight);
        }
        match (self.drafting.field(), flight.was_parked) {
            (Field::Empty, true) => {
                self.phase = Phase::Writing(flight);
                return self.lose("a question opened before Enter, and the text is gone since");
            }
            // What a person has added stays the person's.
            (Field::Holds(_), true) if self.has_more_than(&flight) => return self.park(flight),
            (Field::Holds(text), true) if !flight.is_known_in(text) => {
                self.phase = Phase::Writing(flight);
                return self.lose("a question opened before Enter, and another text stands there");
            }
            // A program that shows a text late would lose this Enter and keep the text.
            (Field::Empty, false) if flight.seen_by.is_some_and(|by| now.mono < by) => {
                let enter_at = flight.seen_by.unwrap_or(now.mono);
                self.phase = Phase::Written { flight, enter_at };
                return Vec::new();
            }
            // Not on a screen that nobody knows.
            (Field::Unseen, true) if self.sees_drafts() => return self.park(flight),
            (Field::Holds(text), _) => flight.shown = Some(text.clone()),
            (Field::Empty | Field::Unseen, _) => flight.shown = None,
        }
        self.press_enter(now, flight)
    }

    /// Enter belongs to the question that is answered: where the text alone has answered it, it
    /// would go to another, or to whatever stands in the box.
    fn submit_raw(&mut self, now: Moment, flight: Flight, at_cursor: Option<&str>) -> Vec<Effect> {
        let asks = self.dialog.as_ref().map(|dialog| dialog.number);
        let answers = flight.answers.as_ref().map(|question| question.number);
        let how = if answers.is_some() && asks != answers {
            "; answered before Enter, which was not pressed"
        } else if asks != answers {
            "; a question was told of before Enter, which was not pressed"
        } else if self.has_another_text(&flight) {
            "; another text stands in the input box, and Enter was not pressed"
        } else if flight.is_taken(at_cursor) {
            "; the program went on before Enter, which was not pressed"
        } else {
            return self.enter_answer(now, flight);
        };
        let evidence = self.evidence(&flight, how);
        self.complete(now, &flight, evidence)
    }

    /// What an answer does to its question is seen once it is read, and drawn.
    fn enter_answer(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        let is_late = match self.unread_for(now).filter(|_| flight.answers.is_some()) {
            Some(unread) => unread >= READ_WITHIN,
            None if flight.has_read => false,
            None => return self.press_enter(now, flight),
        };
        if is_late {
            self.phase = Phase::Writing(flight);
            return self.lose("the program has not read it, and Enter was not pressed");
        }
        let enter_at = now.mono + self.enter_after().max(DRAWN);
        self.phase = Phase::Written { flight, enter_at };
        Vec::new()
    }

    /// Whether the input box is in sight, and holds something else than an answer.
    fn has_another_text(&self, answer: &Flight) -> bool {
        match self.drafting.field() {
            Field::Holds(text) => answer.shape.as_ref().is_none_or(|s| !s.is_all_of(text)),
            Field::Empty | Field::Unseen => false,
        }
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
        self.has_cleared = false;
        vec![Effect::Resume]
    }

    pub(super) fn resumed(&mut self, now: Moment) -> Vec<Effect> {
        if let Phase::Resuming(flight) = &self.phase {
            self.phase = Phase::Written {
                flight: flight.clone(),
                enter_at: now.mono + self.enter_after(),
            };
        } else if let Phase::Fetching(_) = self.phase {
            self.phase = Phase::Free;
            if self.can_fetch() {
                self.phase = Phase::Returning(now);
                self.comes_back(now);
                return self.restores().map(Effect::Strokes).into_iter().collect();
            }
        }
        self.proceed(now)
    }

    pub(super) fn entered(&mut self, now: Moment) -> Vec<Effect> {
        let Phase::Entering(flight) = &self.phase else {
            return Vec::new();
        };
        let mut flight = flight.clone();
        flight.enters = flight.enters.saturating_add(1);
        if flight.shown.is_none() && flight.proof.is_none() {
            return self.finish(now, flight, "");
        }
        self.phase = Phase::Confirming {
            flight,
            until: now.mono + self.manner.harness.submit.retry_after.get(),
        };
        let submitted = self.submitted(now);
        if submitted.is_empty() {
            return self.confirm(now);
        }
        submitted
    }

    /// What the box shows of a text after its Enter.
    fn fate(&self, flight: &Flight) -> Fate {
        match self.drafting.field() {
            Field::Holds(text) => {
                let aside = self.aside.as_ref().and_then(|aside| aside.text.as_ref());
                // By its id, however it is shown by now.
                let is_it = flight.shown.as_ref() == Some(text) || flight.is_named_in(text);
                if is_it && aside != Some(text) {
                    Fate::Stands
                } else {
                    Fate::Gone
                }
            }
            Field::Empty => Fate::Gone,
            Field::Unseen => Fate::Hidden,
        }
    }

    /// Sees whether the box has let go of the text. Where a question opens, a person must be able
    /// to answer it, and Enter is not pressed again.
    pub(super) fn confirm(&mut self, now: Moment) -> Vec<Effect> {
        let Phase::Confirming { flight, until } = &self.phase else {
            return Vec::new();
        };
        let (flight, until) = (flight.clone(), *until);
        match (self.fate(&flight), &self.dialog) {
            (Fate::Gone, _) => self.finish(now, flight, LET_GO),
            // A person must be able to answer; Enter is not pressed again.
            (Fate::Stands | Fate::Hidden, Some(_)) => self.leave(now, &flight, ASKED),
            (Fate::Stands | Fate::Hidden, None) if until <= now.mono => {
                self.look(flight, Before::Retry)
            }
            (Fate::Stands | Fate::Hidden, None) => Vec::new(),
        }
    }

    fn retry(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        match (self.fate(&flight), &self.dialog) {
            (Fate::Gone, _) => return self.finish(now, flight, LET_GO),
            (Fate::Stands | Fate::Hidden, Some(_)) => return self.leave(now, &flight, ASKED),
            (Fate::Hidden, None) => {
                return self.leave(now, &flight, "; the input box is out of sight since");
            }
            // The key that was pressed before may have had its effect by now.
            (Fate::Stands, None) if flight.has_read => return self.look(flight, Before::Retry),
            (Fate::Stands, None) => {}
        }
        // The first may still be read, and another would go to whatever comes after it.
        if self.unread.is_some() {
            return self.leave(now, &flight, "; the program has not read its Enter yet");
        }
        if flight.enters > self.manner.harness.submit.retries {
            return self.leave(now, &flight, "; the input box still holds it");
        }
        planted!(RetypedOnRetry => return self.types_once_more(flight));
        self.press_enter(now, flight)
    }

    /// The text stands in the box, and is left there: what comes after it waits.
    fn leave(&mut self, now: Moment, flight: &Flight, how: &str) -> Vec<Effect> {
        self.drafting.left = match self.drafting.field() {
            Field::Holds(text) if flight.is_named_in(text) => Some(text.clone()),
            Field::Holds(_) | Field::Empty | Field::Unseen => flight.shown.clone(),
        };
        let evidence = self.evidence(flight, how);
        self.complete(now, flight, evidence)
    }

    pub(super) fn finish(&mut self, now: Moment, flight: Flight, how: &str) -> Vec<Effect> {
        let evidence = self.evidence(&flight, how);
        // An answer goes before others, and what was put aside for those stays so.
        if flight.lane == Lane::Raw {
            return self.complete(now, &flight, evidence);
        }
        match self.restores() {
            Some(keys) if self.dialog.is_none() => {
                self.phase = Phase::Restoring { flight, evidence };
                self.comes_back(now);
                vec![Effect::Strokes(keys)]
            }
            // Later; see `can_fetch`.
            Some(_) => self.complete(now, &flight, evidence),
            // Now that this is submitted, the program brings it back by itself. Where nobody has
            // seen that, it may still lie aside, and none is put in its place.
            None => {
                let is_submitted = flight.shown.is_some() || flight.proof.is_some();
                if is_submitted {
                    self.comes_by_itself(now);
                }
                self.complete(now, &flight, evidence)
            }
        }
    }

    pub(super) fn complete(
        &mut self,
        now: Moment,
        flight: &Flight,
        evidence: String,
    ) -> Vec<Effect> {
        self.phase = Phase::Free;
        self.judge.given(now, flight.entered);
        self.space_reminders(now, flight.cargo);
        flight.arrived(evidence)
    }

    pub(super) fn evidence(&self, flight: &Flight, how: &str) -> String {
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
        let spared = flight.spared.map_or(String::new(), |harm| {
            format!("; no interrupt key: it might have {harm}")
        });
        let detour = flight.detour.as_deref().map(door::detour);
        let detour = detour.unwrap_or_default();
        format!("{WRITTEN}{to_what}{enters}{how}{spared}{detour}")
    }

    /// The end of an offer that did not come to its own.
    pub(super) fn cut_off(&mut self, now: Moment, reason: &str) -> Vec<Effect> {
        if let Phase::Writing(flight) = &self.phase {
            self.unproven.forget(&flight.ids);
        }
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
            Phase::Fetching(_) | Phase::Returning(_) => {
                self.aside = None;
                self.phase = Phase::Free;
                Vec::new()
            }
            Phase::Free | Phase::Breaking { .. } | Phase::Recording(_) | Phase::Resting { .. } => {
                Vec::new()
            }
        }
    }

    /// An offer that may have been seen in part.
    fn lose(&mut self, reason: &str) -> Vec<Effect> {
        match std::mem::replace(&mut self.phase, Phase::Free).flight() {
            Some(flight) if flight.proof.is_some() => flight.arrived(self.evidence(&flight, "")),
            Some(flight) => flight.uncertain(reason),
            None => Vec::new(),
        }
    }
}
