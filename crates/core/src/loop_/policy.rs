//! What comes after an iteration. Looks at the loop and at the time that it is told, and at
//! nothing else.

use super::fact::{LoopEnding, Proof};
use super::state::{LoopState, Standing};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long a loop goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// How many iterations, those that failed not counted; 0: no end.
    pub iterations: u32,
    /// After how many failures in a row it gives up; 0: never.
    pub failures: u32,
    /// How long it waits after a first failure, in milliseconds; twice as long after each more.
    pub first_wait_ms: u64,
    pub longest_wait_ms: u64,
    /// How long an agent may write nothing before it counts as hanging; 0: for ever.
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
    /// How long to wait after so many failures in a row.
    pub fn wait_after(&self, failures: u32) -> Duration {
        let Some(doublings) = failures.checked_sub(1) else {
            return Duration::ZERO;
        };
        let factor = 1_u64.checked_shl(doublings).unwrap_or(u64::MAX);
        let wait = self.first_wait_ms.saturating_mul(factor);
        Duration::from_millis(wait.min(self.longest_wait_ms))
    }
}

/// What a loop does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Start this iteration now.
    Iterate { number: u32 },
    /// Start this iteration, which failed before, after so long; ask again then, or when
    /// something else happens.
    Retry { number: u32, after: Duration },
    /// Commit `Checkpoint`: somebody asked for it.
    Pause,
    /// Wait until somebody resumes or stops it.
    Paused,
    /// Wait: in interactive mode nothing goes on by itself.
    Hold,
    /// Wait for the iteration that runs.
    Underway { number: u32 },
    /// Commit `End` with this, unless it has ended so already.
    End(LoopEnding),
}

/// What comes next. A request to stop is heard in every state between iterations; completion is
/// not looked at in interactive mode, and counts once that is off.
pub fn next(now: Timestamp, state: &LoopState) -> Next {
    match &state.standing {
        Standing::Ended { how, .. } => return Next::End(how.clone()),
        Standing::Running | Standing::Paused { .. } => {}
    }
    let complete = state.complete.filter(|_| !state.is_interactive);
    if let Some(open) = &state.open {
        return Next::Underway {
            number: open.started.number,
        };
    }
    if state.stop_asked {
        return Next::End(complete.map_or(LoopEnding::Stopped, LoopEnding::Complete));
    }
    if matches!(state.standing, Standing::Paused { .. }) {
        return Next::Paused;
    }
    if state.is_interactive {
        return Next::Hold;
    }
    running(now, state, complete)
}

fn running(now: Timestamp, state: &LoopState, complete: Option<Proof>) -> Next {
    let policy = &state.settings.policy;
    if let Some(proof) = complete {
        return Next::End(LoopEnding::Complete(proof));
    }
    if policy.failures > 0 && state.failures >= policy.failures {
        return Next::End(LoopEnding::GaveUp(state.failures));
    }
    if policy.iterations > 0 && state.number > state.last_allowed() {
        return Next::End(LoopEnding::UsedUp);
    }
    if state.checkpoint_asked {
        return Next::Pause;
    }
    let number = state.number;
    let after = wait_left(now, state);
    if after.is_zero() {
        Next::Iterate { number }
    } else {
        Next::Retry { number, after }
    }
}

/// How much of the wait after a failure is left. A clock that was set back makes it no longer.
fn wait_left(now: Timestamp, state: &LoopState) -> Duration {
    let left = state.again_at().map(|at| at.duration_since(now));
    let left = left.and_then(|left| Duration::try_from(left).ok());
    let longest = state.settings.policy.wait_after(state.failures);
    left.unwrap_or_default().min(longest)
}
