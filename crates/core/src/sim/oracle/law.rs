//! The laws that every run must keep.

use std::fmt;

/// The invariants of the design that the core can break. The numbers are those of the design.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Law {
    /// 1: a message is acknowledged only after it is synced.
    OnDiskFirst,
    /// 2: an acknowledged message exists, in a visible state.
    NothingLost,
    /// 2: a message that may have been shown is shown again only with a mark as a repeat.
    NothingDoubled,
    /// 2: once nothing fails any more, every message reaches its agent or ends.
    NothingStarved,
    /// 3: a receipt claims only proven steps.
    NoClaimBeyondProof,
    /// 4: text goes only into a box that is recognised as empty, and Enter only into a box that
    /// holds exactly that text. No key is pressed in an unrecognised view.
    OnlyRecognised,
    /// 5: nothing is typed into a question or a draft, or between a text and its Enter.
    CannotAct,
    /// 6: every wait has a rule that applies, a start and evidence.
    EveryWaitHasAReason,
    /// Each priority is delivered only in the activities that it allows.
    TheRightMoment,
    /// The delivery order is interrupt, normal, idle-first (newest first), idle. A turn takes every
    /// message that fits.
    DeliveryOrder,
    /// Exchanges between agents end visibly, and a reply is recorded as the answer.
    StormsAreCut,
    /// Reminders name only owed replies to known messages, at most ten times each, with one turn
    /// per idle period.
    RemindersAreFew,
    /// 9: one ask is open at a time, and closes once. One answer to it counts, and only while the
    /// question is open that its face showed.
    OneAnswer,
    /// Delivery does not change by the clock alone before its next wakeup.
    WakeupsAreTrue,
}

/// A broken law, with details.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) law: Law,
    details: String,
}

pub(crate) type Checked<T = ()> = Result<T, Violation>;

impl Law {
    pub(crate) fn violated<T>(self, details: impl fmt::Display) -> Checked<T> {
        Err(Violation {
            law: self,
            details: details.to_string(),
        })
    }

    /// Return an error with the details, unless the law is kept.
    pub(crate) fn holds<D: fmt::Display>(
        self,
        is_kept: bool,
        details: impl FnOnce() -> D,
    ) -> Checked {
        if is_kept {
            Ok(())
        } else {
            self.violated(details())
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.law, self.details)
    }
}
