//! From a recorded offer to a text that is submitted: the look before the text, the look before
//! Enter, and Enter again where the box still holds the text.
//!
//! If the harness describes the input box, text goes only into an empty one, and Enter follows
//! only if the box holds that text and nothing else. The text of a message is never written twice.

use super::hold::Rule;
use super::{Desk, Effect, Flight, Lane, Phase, door};
use crate::activity::Activity;
use crate::harness::{BoxState, Sighting};
use crate::moment::Moment;
use std::time::Duration;

const WRITTEN: &str = "written whole to the terminal of the running program";

/// How long a program may take to empty its box after the keys for it.
const CLEARED_WITHIN: Duration = Duration::from_secs(2);

const STILL_HELD: &str = "; the input box still holds it";
const LET_GO: &str = "; the input box let go of it";
/// What an interrupt key may do.
const ENDS: &str = "ended the program";

/// Fate of a text after its Enter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// The box holds it.
    Stands,
    Gone,
    /// The screen does not show the box.
    Hidden,
}

/// What a look comes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    /// The interrupt key, for the time of this number.
    Key(u8),
    Text,
    Enter,
    /// Enter once more.
    Retry,
    /// The verdict on an answer: whether its question is still open.
    Verdict,
}

impl Desk {
    pub(super) fn look(&mut self, mut flight: Flight, before: Before) -> Vec<Effect> {
        flight.has_read = false;
        self.phase = Phase::Looking { flight, before };
        vec![Effect::Look]
    }

    /// The screen, as it is before something is done.
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
            Before::Text => self.write_into_box(flight),
            Before::Enter if flight.lane == Lane::Raw => {
                self.answer_typed(now, flight, at_cursor.as_deref())
            }
            Before::Enter => self.submit(now, flight),
            Before::Retry => self.retry(now, flight),
            Before::Verdict => self.judge_answer(now, flight),
        }
    }

    /// Press the interrupt key. Check the screen first if the key could do harm.
    pub(super) fn press(&mut self, now: Moment, flight: Flight, keys: u8) -> Vec<Effect> {
        let quits = self.manner.harness.interrupt.quits_when_idle && self.dialog.is_none();
        if quits || self.has_described_box() && !self.goes_by_door(Lane::Interrupt) {
            return self.look(flight, Before::Key(keys));
        }
        self.press_if_it_works(now, flight, keys)
    }

    fn aimed(&mut self, now: Moment, mut flight: Flight, keys: u8) -> Vec<Effect> {
        if self.interrupt_barrier().is_some() {
            self.phase = Phase::Free;
            return Vec::new();
        }
        if !self.manner.harness.interrupt.quits_when_idle {
            return self.press_if_it_works(now, flight, keys);
        }
        if self.dialog.is_some() || self.judge.surely_works() {
            return self.press_now(now, flight, keys);
        }
        if self.activity().activity != Activity::Idle {
            flight.spared = Some(ENDS);
        }
        self.record(flight)
    }

    /// Press the interrupt key only if a dialog is open or the agent may be working. Our own typing
    /// can look like work, and the key could quit an idle agent.
    fn press_if_it_works(&mut self, now: Moment, flight: Flight, keys: u8) -> Vec<Effect> {
        let is_asked = self.dialog.is_some();
        if !is_asked && self.unread.is_none() && !self.judge.may_work() {
            let spared = Some(ENDS);
            return self.record(Flight { spared, ..flight });
        }
        self.press_now(now, flight, keys)
    }

    fn press_now(&mut self, now: Moment, mut flight: Flight, keys: u8) -> Vec<Effect> {
        if self.goes_by_door(Lane::Interrupt) {
            return self.abort(now, flight, keys);
        }
        let interrupt = &self.manner.harness.interrupt;
        let key = match (&self.dialog, &interrupt.dismiss) {
            (Some(_), Some(dismiss)) => dismiss,
            (_, _) => &interrupt.keys,
        };
        let (key, wait) = (key.bytes().to_vec(), interrupt.wait.get());
        if let Some(dialog) = &self.dialog {
            flight.dismissed = Some(dialog.what.clone());
        }
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

    /// Whether the box holds a text that an interrupt made the program put back, and a key empties it.
    pub(super) fn must_clear(&self) -> bool {
        self.clear_key().is_some() && self.drafting.is_put_back()
    }

    fn clear_key(&self) -> Option<Vec<u8>> {
        let input_box = self.manner.harness.input_box.as_ref()?;
        let keys = input_box.clear.as_ref()?;
        Some(keys.bytes().to_vec())
    }

    /// Empty the box of a text that the program has put back, once.
    pub(super) fn clear(&mut self, now: Moment, flight: Flight, keys: u8) -> Vec<Effect> {
        let Some(clear) = self.clear_key().filter(|_| !flight.has_cleared) else {
            return Vec::new();
        };
        let flight = Flight {
            has_cleared: true,
            ..flight
        };
        self.phase = Phase::Breaking {
            flight,
            keys,
            until: now.mono + CLEARED_WITHIN,
        };
        vec![Effect::Key(clear)]
    }

    /// Begins to write what is recorded: at once, or into a box that a last look shows to be empty.
    pub(super) fn begin(&mut self, flight: Flight) -> Vec<Effect> {
        if self.has_described_box() && flight.lane != Lane::Raw {
            return self.look(flight, Before::Text);
        }
        vec![self.write(flight)]
    }

    /// The second of two looks. The first was taken at least 100 ms ago, and the text is written only
    /// if both show an empty box with no output in between.
    fn write_into_box(&mut self, flight: Flight) -> Vec<Effect> {
        let is_ready = self.dialog.is_none() && self.drafting.is_empty_and_steady();
        let working = self.is_at_work().then_some(Rule::Working);
        match self.barrier(flight.lane).or(working) {
            None if is_ready => {
                self.drafting.has_settled();
                vec![self.write(flight)]
            }
            barrier => {
                if barrier.is_none() {
                    self.drafting.has_changed();
                }
                self.phase = Phase::Free;
                let changed = "the screen changed before the text was typed";
                flight.withdrawn(barrier.map_or(changed, Rule::name))
            }
        }
    }

    /// The time for Enter has come.
    pub(super) fn enter(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        match flight.lane {
            _ if self.looks() => self.look(flight, Before::Enter),
            Lane::Raw => {
                let mut effects = self.answer_typed(now, flight, None);
                // What waited for the question to be answered goes on.
                if self.is_free() {
                    effects.extend(self.proceed(now));
                }
                effects
            }
            Lane::Interrupt | Lane::Normal | Lane::Idle => self.press_enter(now, flight),
        }
    }

    pub(super) fn press_enter(&mut self, now: Moment, mut flight: Flight) -> Vec<Effect> {
        flight.entered = flight.entered.or(Some(now.mono));
        self.phase = Phase::Entering(flight);
        vec![Effect::Enter]
    }

    fn submit(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        if let Some(Rule::Blocked | Rule::HandedOver | Rule::Working) = self.withheld(&flight) {
            return self.park(flight);
        }
        let is_early = flight.seen_by.is_some_and(|by| now.mono < by) && !flight.was_parked;
        match self.drafting.state() {
            BoxState::Undescribed => self.press_enter(now, flight),
            BoxState::Holds(_) if self.holds_only(&flight) && !self.drafting.is_typed() => {
                match flight.enters > self.manner.harness.submit.retries {
                    true => self.leave(now, &flight, STILL_HELD),
                    false => self.press_enter(now, flight),
                }
            }
            BoxState::Empty if flight.entered.is_some() => self.finish(now, &flight, LET_GO),
            // The program shows the text a moment after it has read it.
            _ if is_early => {
                let enter_at = flight.seen_by.unwrap_or(now.mono);
                self.phase = Phase::Written { flight, enter_at };
                Vec::new()
            }
            BoxState::Empty if self.unread.is_none() => {
                self.phase = Phase::Writing(flight);
                self.lose("the input box does not hold the text, and Enter was not pressed")
            }
            BoxState::Empty | BoxState::Holds(_) | BoxState::Unrecognised(_) => self.park(flight),
        }
    }

    pub(super) fn has_described_box(&self) -> bool {
        self.manner.harness.input_box.is_some()
    }

    /// Whether the box holds a part of the text of a flight, or more than the text.
    fn holds_a_part(&self, flight: &Flight) -> bool {
        let input_box = self.manner.harness.input_box.as_ref();
        match (input_box, self.drafting.state(), &flight.text) {
            (Some(input_box), BoxState::Holds(held), Some(text)) => input_box.overlaps(held, text),
            (_, _, _) => false,
        }
    }

    /// Whether the box holds the text of a flight and nothing else.
    pub(super) fn holds_only(&self, flight: &Flight) -> bool {
        let input_box = self.manner.harness.input_box.as_ref();
        match (input_box, self.drafting.state(), &flight.text) {
            (Some(input_box), BoxState::Holds(held), Some(text)) => input_box.is_text(held, text),
            (_, _, _) => false,
        }
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

    /// Whether a text that waits for its Enter can have it, or is seen to be gone.
    pub(super) fn can_resume(&self) -> bool {
        let Some(parked) = self.parked.as_ref().filter(|_| self.is_free()) else {
            return false;
        };
        let is_in_sight = match self.drafting.state() {
            BoxState::Undescribed => true,
            BoxState::Empty => self.unread.is_none(),
            BoxState::Holds(_) => self.holds_only(parked) && !self.is_at_work(),
            BoxState::Unrecognised(_) => false,
        };
        let is_barred = self.dialog.is_some() || self.handed_over.is_some();
        !is_barred && !self.drafting.is_typed() && is_in_sight
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
        }
        self.proceed(now)
    }

    pub(super) fn entered(&mut self, now: Moment) -> Vec<Effect> {
        let Phase::Entering(flight) = &self.phase else {
            return Vec::new();
        };
        let mut flight = flight.clone();
        flight.enters = flight.enters.saturating_add(1);
        if flight.lane == Lane::Raw {
            return self.await_effect(now, flight);
        }
        if !self.has_described_box() && flight.proof.is_none() {
            return self.finish(now, &flight, "");
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
        match self.drafting.state() {
            BoxState::Holds(_) if self.holds_only(flight) => Fate::Stands,
            BoxState::Holds(_) if self.holds_a_part(flight) => Fate::Hidden,
            BoxState::Holds(_) | BoxState::Empty => Fate::Gone,
            BoxState::Unrecognised(_) | BoxState::Undescribed => Fate::Hidden,
        }
    }

    /// Check whether the text has left the box. If a dialog opens or the box is hidden, check again
    /// once the box is visible.
    pub(super) fn confirm(&mut self, now: Moment) -> Vec<Effect> {
        let Phase::Confirming { flight, until } = &self.phase else {
            return Vec::new();
        };
        let (flight, until) = (flight.clone(), *until);
        if flight.lane == Lane::Raw {
            return self.await_verdict(now, flight, until);
        }
        match (self.fate(&flight), &self.dialog) {
            (Fate::Gone, _) => self.finish(now, &flight, LET_GO),
            (Fate::Stands | Fate::Hidden, Some(_)) => self.park(flight),
            (Fate::Stands | Fate::Hidden, None) if until <= now.mono => {
                self.look(flight, Before::Retry)
            }
            (Fate::Stands | Fate::Hidden, None) => Vec::new(),
        }
    }

    fn retry(&mut self, now: Moment, flight: Flight) -> Vec<Effect> {
        match (self.fate(&flight), &self.dialog) {
            (Fate::Gone, _) => return self.finish(now, &flight, LET_GO),
            (Fate::Stands | Fate::Hidden, Some(_)) | (Fate::Hidden, None) => {
                return self.park(flight);
            }
            // Enter would cut the agent off, or its first Enter is about to have its effect.
            (Fate::Stands, None) if self.is_at_work() => return self.park(flight),
            // The key that was pressed before may have had its effect by now.
            (Fate::Stands, None) if flight.has_read => return self.look(flight, Before::Retry),
            (Fate::Stands, None) => {}
        }
        // The first may still be read, and another would go to whatever comes after it.
        if self.unread.is_some() {
            return self.leave(now, &flight, "; the program has not read its Enter yet");
        }
        if flight.enters > self.manner.harness.submit.retries {
            return self.leave(now, &flight, STILL_HELD);
        }
        self.press_enter(now, flight)
    }

    /// The text stays in the box: what comes after it waits.
    fn leave(&mut self, now: Moment, flight: &Flight, how: &str) -> Vec<Effect> {
        self.drafting.left = match self.drafting.state() {
            BoxState::Holds(held) => Some(held.text.clone()),
            BoxState::Empty | BoxState::Unrecognised(_) | BoxState::Undescribed => None,
        };
        self.finish(now, flight, how)
    }

    pub(super) fn finish(&mut self, now: Moment, flight: &Flight, how: &str) -> Vec<Effect> {
        let evidence = self.evidence(flight, how);
        self.complete(now, flight, evidence)
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
        let dismissed = flight.dismissed.as_ref().map_or(String::new(), |what| {
            format!("; a dialog was cancelled for it: {what}")
        });
        let detour = flight.detour.as_deref().map(door::detour);
        let detour = detour.unwrap_or_default();
        format!("{WRITTEN}{to_what}{enters}{how}{spared}{dismissed}{detour}")
    }

    /// The end of an offer that did not come to its own.
    pub(super) fn cut_off(&mut self, now: Moment, reason: &str) -> Vec<Effect> {
        if let Phase::Writing(flight) = &self.phase {
            self.unproven.forget(&flight.ids);
        }
        match &self.phase {
            Phase::Looking {
                flight,
                before: Before::Text,
            } => {
                let flight = flight.clone();
                self.phase = Phase::Free;
                flight.withdrawn(reason)
            }
            Phase::Confirming { flight, .. }
            | Phase::Looking {
                flight,
                before: Before::Retry,
            } if flight.lane != Lane::Raw => {
                let flight = flight.clone();
                self.finish(now, &flight, "")
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
            | Phase::Confirming { .. }
            | Phase::Looking {
                before: Before::Enter | Before::Retry | Before::Verdict,
                ..
            } => self.lose(reason),
            Phase::Free
            | Phase::Breaking { .. }
            | Phase::Settling(_)
            | Phase::Recording(_)
            | Phase::Resting { .. } => Vec::new(),
        }
    }

    /// An offer that may have been seen in part.
    pub(super) fn lose(&mut self, reason: &str) -> Vec<Effect> {
        let cut_off = std::mem::replace(&mut self.phase, Phase::Free);
        match cut_off.flight() {
            Some(flight) if flight.proof.is_some() => flight.arrived(self.evidence(flight, "")),
            Some(flight) => flight.uncertain(reason),
            None => Vec::new(),
        }
    }

    /// Return whether the next decision needs all input to be read: unread keys may still take
    /// effect.
    pub fn awaits_reading(&self) -> bool {
        match &self.phase {
            Phase::Confirming { .. }
            | Phase::Looking {
                before: Before::Retry | Before::Verdict,
                ..
            } => true,
            Phase::Written { flight, .. }
            | Phase::Looking {
                flight,
                before: Before::Enter,
            } => flight.answers.is_some() || self.has_described_box(),
            Phase::Free => self.parked.is_some() && self.has_described_box(),
            Phase::Breaking { .. }
            | Phase::Settling(_)
            | Phase::Recording(_)
            | Phase::Writing(_)
            | Phase::Looking {
                before: Before::Key(_) | Before::Text,
                ..
            }
            | Phase::Resuming(_)
            | Phase::Entering(_)
            | Phase::Resting { .. } => false,
        }
    }
}
