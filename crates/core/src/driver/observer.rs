//! What a driver tells its observer.

use super::nudge::NudgeOutcome;
use crate::delivery::{Decision, Delivery, Effect, Event};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;

/// Observes the events, choices and effects of a driver, in order. A session logs them; the
/// simulation checks them against its laws.
pub trait Observer {
    /// Delivery is about to handle this event.
    fn hears(&mut self, now: Moment, event: &Event);
    /// Delivery has handled the event, and the driver has carried out the effects.
    fn has_heard(&mut self);
    /// Delivery has chosen what is due from the pending mail.
    fn chooses(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        pending: &[MessageState],
        chosen: &Decision,
    );
    /// Delivery requests this effect.
    fn wants(&mut self, now: Moment, delivery: &Delivery, effect: &Effect);
    /// The driver releases the keyboard, because no turn needs it any more.
    fn releases_keyboard(&mut self);
    /// The journal could not record a receipt. It is tried again.
    fn retries(&mut self, ids: &[MessageId], why: &str);
    /// A receipt could not be recorded in time. The next session will find the offer cut off.
    fn gives_up(&mut self, ids: &[MessageId], why: &str);
    /// A nudge has ended.
    fn ends_nudge(&mut self, outcome: &NudgeOutcome);
    /// An answer is refused before it is recorded.
    fn refuses_answer(&mut self, reason: &str);
}
