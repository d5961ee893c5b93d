//! An offer on its way: the interrupt key before it, its record in the journal, and its text, up to
//! where Enter is due. What comes after that is in `submit`.

use super::hold::Rule;
use super::phase::Cargo;
use super::{Desk, Effect, Flight, KEYS, Lane, Phase, REST, answer};
use crate::activity::Activity;
use crate::harness::BoxState;
use crate::id::MessageId;
use crate::moment::Moment;
use crate::turn::Input;
use std::time::Duration;

impl Desk {
    pub(super) fn go_on_breaking(
        &mut self,
        now: Moment,
        flight: Flight,
        keys: u8,
        until: Duration,
    ) -> Vec<Effect> {
        if self.interrupt_barrier().is_some() {
            self.phase = Phase::Free;
            return Vec::new();
        }
        if let Some(at) = self.settles_at() {
            return match at <= now.mono {
                true if self.must_clear() && flight.has_cleared && until <= now.mono => {
                    // The keys did not empty the box: its text is treated as a draft.
                    self.drafting.begun();
                    self.phase = Phase::Free;
                    Vec::new()
                }
                true if self.must_clear() => self.clear(now, flight, keys),
                true => self.record(flight),
                false => Vec::new(),
            };
        }
        let is_at_work = self.is_at_work();
        match (self.activity().activity, &mut self.dialog) {
            (_, _) if now.mono < until => Vec::new(),
            (_, _) if keys < KEYS => self.press(now, flight, keys + 1),
            // Nothing is typed into an agent that goes on working.
            (Activity::Working, _) if is_at_work => {
                self.ignores_interrupts = true;
                self.phase = Phase::Free;
                Vec::new()
            }
            // Nothing is typed into an open question.
            (Activity::Blocked(_), Some(dialog)) => {
                dialog.stays = true;
                self.phase = Phase::Free;
                Vec::new()
            }
            (
                Activity::Starting
                | Activity::Idle
                | Activity::Working
                | Activity::Blocked(_)
                | Activity::Exited,
                _,
            ) => self.record(flight),
        }
    }

    /// Whether the box has been empty for long enough, where the harness describes it.
    fn may_type_now(&self, flight: &Flight) -> bool {
        let is_described = self.has_described_box() && flight.lane != Lane::Raw;
        !is_described || self.drafting.is_empty_and_steady()
    }

    /// Continue an offer once the box is steady, or drop the offer if the box is no longer empty.
    pub(super) fn go_on_settling(&mut self, flight: Flight) -> Vec<Effect> {
        let is_empty = *self.drafting.state() == BoxState::Empty && self.dialog.is_none();
        if !is_empty || self.interrupt_barrier().is_some() {
            self.phase = Phase::Free;
            return Vec::new();
        }
        match self.may_type_now(&flight) {
            true => self.record(flight),
            false => Vec::new(),
        }
    }

    /// When one that has stopped shows all that it will. One that leaves its input unread has not
    /// stopped, however silent it is.
    pub(super) fn settles_at(&self) -> Option<Duration> {
        let judged = self.activity();
        let has_stopped = judged.activity == Activity::Idle && self.unread.is_none();
        let settle = self.manner.harness.interrupt.settle.get();
        has_stopped.then(|| judged.since.mono + settle)
    }

    /// A key that found no room was not pressed; its time comes again.
    pub(super) fn unpressed(&mut self) {
        if let Phase::Breaking { keys, .. } = &mut self.phase {
            *keys = keys.saturating_sub(1);
        }
    }

    pub(super) fn record(&mut self, mut flight: Flight) -> Vec<Effect> {
        if let Some(call) = self.call(&flight) {
            return vec![call];
        }
        if !self.may_type_now(&flight) {
            self.phase = Phase::Settling(flight);
            return Vec::new();
        }
        if flight.lane != Lane::Raw {
            flight.detour = self.door_fails().map(str::to_owned);
        }
        let effect = flight.offer();
        self.phase = Phase::Recording(flight);
        vec![effect]
    }

    pub(super) fn recorded(&mut self, mut ids: Vec<MessageId>) -> Vec<Effect> {
        let Phase::Recording(flight) = &self.phase else {
            return Vec::new();
        };
        let flight = flight.clone();
        self.phase = Phase::Free;
        if ids.is_empty() {
            return Vec::new();
        }
        if flight.cargo == Cargo::Reminders {
            return self.write_reminder(Flight { ids, ..flight });
        }
        let take_back = |ids, why: &str| {
            let reason = format!("nothing was written: {why}");
            Effect::Withdraw { ids, reason }
        };
        // In the moment that the journal took, the way may have been barred, or become narrow.
        if let Some(rule) = self.barrier(flight.lane) {
            return vec![take_back(ids, rule.name())];
        }
        if flight.lane == Lane::Raw && self.asks_another(&flight) {
            return vec![take_back(ids, answer::GONE)];
        }
        let rest = match self.input {
            Input::Typed => ids.split_off(1),
            Input::Pasted => Vec::new(),
        };
        let rest = (!rest.is_empty()).then(|| take_back(rest, "pastes are not taken any more"));
        self.drafting.begun();
        let begun = self.begin(Flight { ids, ..flight });
        rest.into_iter().chain(begun).collect()
    }

    /// An offer that has not begun. What barred it is told by an event of its own.
    pub(super) fn let_go(&mut self, now: Moment) {
        if let Phase::Recording(_) = self.phase {
            self.phase = Phase::Free;
        } else if let Phase::Resuming(flight) = &self.phase {
            self.parked = Some(flight.clone());
            self.phase = Phase::Free;
            self.is_typed_until_told(now);
        }
    }

    /// A draft barred the way, until the keys say otherwise; else it would be asked for again and
    /// again. Where they have said so already, they will not say it once more.
    pub(super) fn is_typed_until_told(&mut self, now: Moment) {
        if !self.has_cleared {
            self.drafting.typed(now, false);
        }
    }

    pub(super) fn rest(&mut self, now: Moment, why: String) {
        if let Phase::Recording(_) = self.phase {
            self.phase = Phase::Resting {
                since: now,
                until: now.mono + REST,
                why,
            };
        }
    }

    pub(super) fn wrote(&mut self, now: Moment, text: String) -> Vec<Effect> {
        if let Phase::Writing(flight) = &self.phase {
            let mut flight = flight.clone();
            flight.text = Some(text);
            let patience = self.manner.harness.submit.seen_within.get();
            flight.seen_by = Some(now.mono + patience);
            self.phase = Phase::Written {
                flight,
                enter_at: now.mono + self.enter_after(),
            };
        }
        let submitted = self.submitted(now);
        if submitted.is_empty() {
            return self.proceed(now);
        }
        submitted
    }

    /// Why Enter is not pressed after a text that is written. A pause is no reason: what is under
    /// way is brought to its end.
    pub(super) fn withheld(&self, flight: &Flight) -> Option<Rule> {
        match (self.activity().activity, flight.lane) {
            (Activity::Blocked(_), Lane::Interrupt | Lane::Normal | Lane::Idle) => {
                Some(Rule::Blocked)
            }
            (_, _) if self.handed_over.is_some() => Some(Rule::HandedOver),
            // An empty box has nothing to submit.
            (_, Lane::Interrupt | Lane::Normal | Lane::Idle)
                if self.is_at_work() && *self.drafting.state() != BoxState::Empty =>
            {
                Some(Rule::Working)
            }
            (_, _) => self.drafting.is_typed().then_some(Rule::Draft),
        }
    }
}
