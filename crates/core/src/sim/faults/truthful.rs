//! The observer of a faulty driver: it tells the oracle what delivery should have received.

use crate::delivery::{Decision, Delivery, DeliveryEvent, Effect};
use crate::driver::{JournalOperation, NudgeOutcome, Observer};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;

/// Report an event to the observer and not to delivery.
pub(super) fn tell_alone(observer: &mut impl Observer, now: Moment, event: &DeliveryEvent) {
    observer.on_event(now, event);
    observer.after_event();
}

/// Reports to the observer the event that delivery should have received.
pub(super) struct Truthful<'a, O> {
    pub(super) observer: &'a mut O,
    pub(super) truth: Option<DeliveryEvent>,
    /// Messages of an answer that delivery ends without Enter. The fault presses Enter first.
    pub(super) answer: Vec<MessageId>,
}

impl<O: Observer> Observer for Truthful<'_, O> {
    fn on_event(&mut self, now: Moment, event: &DeliveryEvent) {
        let is_same =
            |truth: &DeliveryEvent| std::mem::discriminant(truth) == std::mem::discriminant(event);
        let truth = self.truth.take_if(|truth| is_same(truth));
        self.observer.on_event(now, truth.as_ref().unwrap_or(event));
    }

    fn after_event(&mut self) {
        self.observer.after_event();
    }

    fn on_decision(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        pending: &[MessageState],
        chosen: &Decision,
    ) {
        self.observer.on_decision(now, delivery, pending, chosen);
    }

    fn on_effect(&mut self, now: Moment, delivery: &Delivery, effect: &Effect) {
        if let Effect::Offered { ids, .. } = effect
            && *ids == self.answer
        {
            self.observer.on_effect(now, delivery, &Effect::Enter);
        }
        self.observer.on_effect(now, delivery, effect);
    }

    fn on_keyboard_released(&mut self) {
        self.observer.on_keyboard_released();
    }

    fn on_commit_retry(&mut self, operation: &JournalOperation, why: &str) {
        self.observer.on_commit_retry(operation, why);
    }

    fn on_commit_lost(&mut self, operation: &JournalOperation, why: &str) {
        self.observer.on_commit_lost(operation, why);
    }

    fn on_nudge_end(&mut self, outcome: &NudgeOutcome) {
        self.observer.on_nudge_end(outcome);
    }

    fn on_answer_refused(&mut self, reason: &str) {
        self.observer.on_answer_refused(reason);
    }
}
