//! The observer of a driver.

use super::{JournalOperation, NudgeOutcome};
use crate::delivery::{Decision, Delivery, DeliveryEvent, Effect};
use crate::mail::MessageState;
use crate::moment::Moment;

/// Observes the events, choices and effects of a driver, in order. A session logs them; the
/// simulation checks them against its laws.
pub trait Observer {
    /// Delivery is about to handle this event.
    fn on_event(&mut self, now: Moment, event: &DeliveryEvent);
    /// Delivery has handled the event, and the driver has carried out the effects.
    fn after_event(&mut self);
    /// Delivery has chosen what is due from the pending mail.
    fn on_decision(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        pending: &[MessageState],
        chosen: &Decision,
    );
    /// Delivery requests this effect.
    fn on_effect(&mut self, now: Moment, delivery: &Delivery, effect: &Effect);
    /// The driver releases the keyboard, because no turn needs it any more.
    fn on_keyboard_released(&mut self);
    /// The journal could not record this operation. It is tried again.
    fn on_commit_retry(&mut self, operation: &JournalOperation, why: &str);
    /// The operation could not be recorded in time, or not at all.
    fn on_commit_lost(&mut self, operation: &JournalOperation, why: &str);
    /// A nudge has ended.
    fn on_nudge_end(&mut self, outcome: &NudgeOutcome);
    /// An answer is refused before it is recorded.
    fn on_answer_refused(&mut self, reason: &str);
}
