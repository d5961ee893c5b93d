//! The observer of a faulty driver: it tells the oracle what delivery should have received.

use super::actions::press_enter;
use crate::delivery::{Decision, Delivery};
use crate::driver::{Action, Input, JournalOperation, Observer};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::offer::OfferReport;

/// Report an input to the observer and not to delivery.
pub(super) fn tell_alone(observer: &mut impl Observer, now: Moment, input: &Input) {
    observer.on_input(now, input);
    observer.after_input();
}

/// Reports to the observer the input that delivery should have received.
pub(super) struct Truthful<'a, O> {
    pub(super) observer: &'a mut O,
    pub(super) truth: Option<Input>,
    /// Messages of an answer that delivery ends without Enter. The fault presses Enter first.
    pub(super) answer: Vec<MessageId>,
}

impl<O: Observer> Observer for Truthful<'_, O> {
    fn on_input(&mut self, now: Moment, input: &Input) {
        let is_same =
            |truth: &Input| std::mem::discriminant(truth) == std::mem::discriminant(input);
        let truth = self.truth.take_if(|truth| is_same(truth));
        self.observer.on_input(now, truth.as_ref().unwrap_or(input));
    }

    fn after_input(&mut self) {
        self.observer.after_input();
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

    fn on_action(&mut self, now: Moment, delivery: &Delivery, action: &Action) {
        if let Action::Commit {
            operation:
                JournalOperation::RecordStep {
                    ids,
                    report: OfferReport::Offered { .. },
                },
            ..
        } = action
            && *ids == self.answer
        {
            self.observer.on_action(now, delivery, &press_enter());
        }
        self.observer.on_action(now, delivery, action);
    }

    fn on_commit_retry(&mut self, operation: &JournalOperation, why: &str) {
        self.observer.on_commit_retry(operation, why);
    }

    fn on_commit_lost(&mut self, operation: &JournalOperation, why: &str) {
        self.observer.on_commit_lost(operation, why);
    }
}
