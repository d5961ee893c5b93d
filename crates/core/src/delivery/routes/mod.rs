//! The routes into the agent. Three of them implement [`Route`], each with a state machine of its own;
//! `loop_prompt` only explains why the mail of a loop waits. No route decides about another: the
//! arbiter (`delivery/mod.rs`) chooses the route of each turn.

pub(crate) mod hook;
pub(crate) mod http;
pub(crate) mod loop_prompt;
pub(crate) mod terminal;

use crate::delivery::{Conditions, Lane, OutgoingTurn, Rule};
use crate::driver::{Action, Input};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::why::Hold;
use std::time::Duration;

/// How long a hook may take to report that it has passed its mail on, and an API to answer.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// Time after which a message in flight needs an explanation.
const SLOW_AFTER: Duration = Duration::from_secs(1);

/// A way into the agent.
pub(crate) trait Route {
    /// Return the rule by which the route cannot carry messages of a lane now, if any. A recorded
    /// offer is checked by the same rule before it is sent, so that an offer that begins is not
    /// withdrawn without a change.
    fn rule(&self, at: &Conditions, lane: Lane) -> Option<Rule>;

    /// Begin to carry a turn that no rule holds.
    fn carry(&mut self, at: &mut Conditions, turn: OutgoingTurn) -> Vec<Action>;

    /// Handle an input. The route handles the results of its actions and ignores the rest.
    fn on(&mut self, at: &mut Conditions, input: &Input) -> Vec<Action>;

    /// Do what is due, and continue after a change of the conditions.
    fn proceed(&mut self, at: &mut Conditions) -> Vec<Action>;

    /// Return when [`Self::proceed`] has an effect without another input.
    fn next_wakeup(&self, at: &Conditions) -> Option<Duration>;

    /// Whether the route carries this message now.
    fn has(&self, id: MessageId) -> bool;

    /// Explain why a message that the route carries has not arrived. Return nothing as long as that
    /// needs no explanation.
    fn explain(&self, now: Moment, at: &Conditions, mail: &MessageState) -> Option<Hold>;
}

/// Explain a turn in flight, if that takes longer than [`SLOW_AFTER`].
fn slow(
    now: Moment,
    turn: &OutgoingTurn,
    rule: &'static str,
    reason: String,
    release: &str,
) -> Option<Hold> {
    let waited = now.mono.saturating_sub(turn.since.mono);
    (waited >= SLOW_AFTER).then(|| Hold {
        rule,
        since: turn.since.wall,
        reason,
        evidence: format!("its offer began {} s ago", waited.as_secs()),
        release: release.to_owned(),
    })
}

/// Withdraw messages of which a hook or the API was given nothing.
fn unsent(at: &mut Conditions, turn: &OutgoingTurn, why: &str) -> Action {
    at.withdrawn(turn.ids(), format!("nothing was sent: {why}"))
}
