//! The observer of a driver.

use super::{Action, Input, JournalOperation};
use crate::delivery::{Decision, Delivery};
use crate::mail::MessageState;
use crate::moment::Moment;

/// Observes the inputs, choices and actions of a delivery, in order. A session logs them; the
/// simulation checks them against its laws.
pub trait Observer {
    /// Delivery is about to handle this input.
    fn on_input(&mut self, now: Moment, input: &Input);
    /// Delivery has handled the input, and has requested the actions that follow.
    fn after_input(&mut self);
    /// Delivery has chosen what is due from the pending mail.
    fn on_decision(
        &mut self,
        now: Moment,
        delivery: &Delivery,
        pending: &[MessageState],
        chosen: &Decision,
    );
    /// Delivery requests this action.
    fn on_action(&mut self, now: Moment, delivery: &Delivery, action: &Action);
    /// The journal could not record this operation. It is tried again.
    fn on_commit_retry(&mut self, operation: &JournalOperation, why: &str);
    /// The operation could not be recorded in time, or not at all.
    fn on_commit_lost(&mut self, operation: &JournalOperation, why: &str);
}
