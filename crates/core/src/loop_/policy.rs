//! Decides the step after an iteration, from the loop's state and the given time alone.

use super::fact::{CompletionProof, LoopEnding};
use super::state::{LoopPhase, LoopState};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Limits of a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// Maximum number of successful iterations; 0 means no limit.
    pub iterations: u32,
    /// Number of consecutive failures after which the loop gives up; 0 means never.
    pub failures: u32,
    /// Wait after the first failure, in milliseconds; it doubles with each further failure.
    pub first_wait_ms: u64,
    pub longest_wait_ms: u64,
    /// Silence after which an agent counts as hanging, in milliseconds; 0 means no limit.
    pub idle_ms: u64,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            iterations: 50,
            failures: 5,
            first_wait_ms: 2_000,
            longest_wait_ms: 300_000,
            idle_ms: 1_800_000,
        }
    }
}

impl Policy {
    /// Return the wait after this number of consecutive failures.
    pub fn wait_after(&self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else {
            return Duration::ZERO;
        };
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let wait = self.first_wait_ms.saturating_mul(factor);
        Duration::from_millis(wait.min(self.longest_wait_ms))
    }
}

/// The next step of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NextStep {
    /// Start this iteration now.
    Iterate { number: u32 },
    /// Start this iteration, which failed before, after a wait; ask again then or after any event.
    Retry { number: u32, after: Duration },
    /// Commit `Checkpoint`: a pause was requested.
    Pause,
    /// Wait until the loop is resumed or stopped.
    Paused,
    /// Wait for the end of interactive mode.
    Hold,
    /// Wait for the running iteration.
    Underway { number: u32 },
    /// Commit `End`, unless the loop has ended already.
    End(LoopEnding),
}

/// Return the next step. A requested stop counts in every state between iterations; completion is
/// ignored in interactive mode and counts after it.
pub fn next(now: Timestamp, state: &LoopState) -> NextStep {
    match &state.phase {
        LoopPhase::Ended { how, .. } => return NextStep::End(how.clone()),
        LoopPhase::Running | LoopPhase::Paused { .. } => {}
    }
    let complete = state.complete.filter(|_| !state.is_interactive);
    if let Some(open) = &state.open {
        return NextStep::Underway {
            number: open.started.number,
        };
    }
    if state.stop_asked {
        return NextStep::End(complete.map_or(LoopEnding::Stopped, LoopEnding::Complete));
    }
    if matches!(state.phase, LoopPhase::Paused { .. }) {
        return NextStep::Paused;
    }
    if state.is_interactive {
        return NextStep::Hold;
    }
    running(now, state, complete)
}

fn running(now: Timestamp, state: &LoopState, complete: Option<CompletionProof>) -> NextStep {
    let policy = &state.settings.policy;
    if let Some(proof) = complete {
        return NextStep::End(LoopEnding::Complete(proof));
    }
    if policy.failures > 0 && state.failures >= policy.failures {
        return NextStep::End(LoopEnding::GaveUp(state.failures));
    }
    if policy.iterations > 0 && state.number > state.last_allowed() {
        return NextStep::End(LoopEnding::UsedUp);
    }
    if state.checkpoint_asked {
        return NextStep::Pause;
    }
    let number = state.number;
    let after = wait_left(now, state);
    if after.is_zero() {
        NextStep::Iterate { number }
    } else {
        NextStep::Retry { number, after }
    }
}

/// Return the remaining wait after a failure. A clock that was set back does not extend it.
fn wait_left(now: Timestamp, state: &LoopState) -> Duration {
    let left = state.again_at().map(|at| at.duration_since(now));
    let left = left.and_then(|left| Duration::try_from(left).ok());
    let longest = state.settings.policy.wait_after(state.failures);
    left.unwrap_or_default().min(longest)
}
