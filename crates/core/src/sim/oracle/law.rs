//! The laws that must always hold, by name.

use std::fmt;

/// The design's invariants that the core can keep or break.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Law {
    /// 1: nobody hears "ok" before the message is synced.
    OnDiskFirst,
    /// 2: what was acknowledged is there, in a state that can be seen.
    NothingLost,
    /// 2: what may have been shown is shown again only marked as a repeat.
    NothingDoubled,
    /// 2: once all goes well, everything reaches its agent or an end.
    NothingStarved,
    /// 3: a receipt says what is proven.
    NoClaimBeyondProof,
    /// 4: text goes only into a box that is recognised as empty, and Enter only where the box holds
    /// exactly that text; in an unknown view no key is pressed.
    OnlyRecognised,
    /// 5: nothing is typed into a question or a draft, or between a text and its Enter.
    CannotAct,
    /// 6: every wait has a rule that holds, since when, and evidence.
    EveryWaitHasAReason,
    /// Each priority goes in the activities that are its own.
    TheRightMoment,
    /// Interrupt, normal, idle-first (the newest first), idle; whole turns.
    DeliveryOrder,
    /// What agents cause each other to write ends, visibly; an answer is noted as one.
    StormsAreCut,
    /// Reminders: of what is owed and known, ten at most, one turn each time it falls idle.
    RemindersAreFew,
    /// Nothing changes by the clock before delivery wants to be asked.
    WakeupsAreTrue,
}

/// A law that a run broke, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) law: Law,
    what: String,
}

pub(crate) type Checked<T = ()> = Result<T, Violation>;

impl Law {
    pub(crate) fn violated<T>(self, what: impl fmt::Display) -> Checked<T> {
        Err(Violation {
            law: self,
            what: what.to_string(),
        })
    }

    /// Return an error that says `what`, unless the law `is_kept`.
    pub(crate) fn holds<D: fmt::Display>(self, is_kept: bool, what: impl FnOnce() -> D) -> Checked {
        if is_kept {
            Ok(())
        } else {
            self.violated(what())
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.law, self.what)
    }
}
