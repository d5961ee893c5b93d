//! How far a message is proven to have come, and which orders may move it.
//!
//! [`Standing`] is the whole state of one message in a few bytes. [`Standing::apply`] is the only
//! place that changes it; [`decide`] is the only place that says whether an order may be carried
//! out. Neither claims more than a step that stands in the journal.

mod order;

pub use order::{Order, Refusal, decide};

use crate::fact::Progress;
use crate::message::Message;
use crate::name::AgentName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// One step on a message's way; each is a kind of fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// About to be shown, by the route that the fact names.
    Offering,
    /// Completely written to a live child, or handed to its hook.
    Offered,
    /// The agent's own hook or transcript shows the id.
    Accepted,
    /// An offer was cut off, or a hook could not print what it was to show; nobody knows whether
    /// it was seen.
    Uncertain,
    /// An offer was taken back before anything of it was shown.
    Withdrawn,
    /// Put before an agent by `check --inject`. No receipt: it moves nothing.
    Shown,
    /// Its agent is about to be told again that an answer is expected. It moves nothing either.
    Reminded,
    /// It was answered, or its answer is not expected any more.
    Answered,
    Read,
    Unread,
    Archived,
    Deleted,
    Cancelled,
    Expired,
    Failed,
}

impl Step {
    pub const ALL: [Self; 15] = [
        Self::Offering,
        Self::Offered,
        Self::Accepted,
        Self::Uncertain,
        Self::Withdrawn,
        Self::Shown,
        Self::Reminded,
        Self::Answered,
        Self::Read,
        Self::Unread,
        Self::Archived,
        Self::Deleted,
        Self::Cancelled,
        Self::Expired,
        Self::Failed,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Offering => "offering",
            Self::Offered => "offered",
            Self::Accepted => "accepted",
            Self::Uncertain => "uncertain",
            Self::Withdrawn => "withdrawn",
            Self::Shown => "shown",
            Self::Reminded => "reminded",
            Self::Answered => "answered",
            Self::Read => "read",
            Self::Unread => "unread",
            Self::Archived => "archived",
            Self::Deleted => "deleted",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }

    pub fn from_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.as_str() == kind)
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// What is proven of a message's delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Proven {
    #[default]
    Stored,
    Offering,
    Uncertain,
    Offered,
    /// Offered, and the agent's proof that its model was given it is awaited.
    Unproven,
    Accepted,
}

/// How a message left the inbox for good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    Archived,
    Deleted,
    Cancelled,
    Expired,
    Failed,
}

/// Where a message stands: everything that its steps add up to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Standing {
    pub proven: Proven,
    pub read: bool,
    pub shown: bool,
    /// Whether anybody may ever have seen it; never taken back, whatever else is. An offer that
    /// has only begun is not in it: see [`Standing::is_reached`].
    pub seen: bool,
    /// Whether an offer of it was ever cut off: whoever offers it again says so.
    pub cut: bool,
    /// Whether its answer has come, or is not expected any more.
    pub answered: bool,
    /// How often its agent was reminded of the answer.
    pub reminded: u32,
    pub end: Option<End>,
}

/// A standing in the one word that people and programs see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReceiptState {
    Stored,
    Offering,
    Offered,
    Accepted,
    Uncertain,
    Read,
    Archived,
    Deleted,
    Cancelled,
    Expired,
    Failed,
}

impl ReceiptState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stored => "stored",
            Self::Offering => "offering",
            Self::Offered => "offered",
            Self::Accepted => "accepted",
            Self::Uncertain => "uncertain",
            Self::Read => "read",
            Self::Archived => "archived",
            Self::Deleted => "deleted",
            Self::Cancelled => "cancelled",
            Self::Expired => "expired",
            Self::Failed => "failed",
        }
    }
}

impl fmt::Display for ReceiptState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One line of a message's journey, as it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub state: String,
    pub at: Timestamp,
    pub by: Option<AgentName>,
    pub route: Option<String>,
    pub evidence: Option<String>,
    pub reason: Option<String>,
}

impl Standing {
    /// Apply a step with its data.
    pub fn apply_progress(&mut self, progress: &Progress) {
        self.apply(progress.step);
        if progress.step == Step::Offered
            && matches!(self.proven, Proven::Offered | Proven::Unproven)
        {
            self.proven = match progress.proof_awaited {
                true => Proven::Unproven,
                false => Proven::Offered,
            };
        }
    }

    pub fn apply(&mut self, step: Step) {
        self.seen |= match step {
            Step::Offered | Step::Accepted | Step::Uncertain | Step::Shown | Step::Read => true,
            Step::Offering
            | Step::Withdrawn
            | Step::Reminded
            | Step::Answered
            | Step::Unread
            | Step::Archived
            | Step::Deleted
            | Step::Cancelled
            | Step::Expired
            | Step::Failed => false,
        };
        match step {
            Step::Offering => {
                if matches!(self.proven, Proven::Stored | Proven::Uncertain) {
                    self.proven = Proven::Offering;
                }
            }
            Step::Offered => {
                if !matches!(self.proven, Proven::Accepted | Proven::Unproven) {
                    self.proven = Proven::Offered;
                }
            }
            Step::Accepted => self.proven = Proven::Accepted,
            Step::Uncertain => {
                self.cut = true;
                match self.proven {
                    Proven::Offering | Proven::Unproven => self.proven = Proven::Uncertain,
                    // Its hook takes back what it said.
                    Proven::Stored | Proven::Uncertain if self.shown => {
                        self.shown = false;
                        self.proven = Proven::Uncertain;
                    }
                    Proven::Stored | Proven::Uncertain | Proven::Offered | Proven::Accepted => {}
                }
            }
            Step::Withdrawn => {
                if self.proven == Proven::Offering {
                    self.proven = self.before_offer();
                }
            }
            Step::Shown => self.shown = true,
            Step::Reminded => self.reminded = self.reminded.saturating_add(1),
            Step::Answered => self.answered = true,
            Step::Read => self.read = true,
            Step::Unread => self.read = false,
            // Deleting is the one end that can follow another.
            Step::Deleted => self.end = Some(End::Deleted),
            Step::Archived => self.end = self.end.or(Some(End::Archived)),
            Step::Cancelled => self.end = self.end.or(Some(End::Cancelled)),
            Step::Expired => self.end = self.end.or(Some(End::Expired)),
            Step::Failed => self.end = self.end.or(Some(End::Failed)),
        }
    }

    /// What was proven before the offer that is under way.
    fn before_offer(self) -> Proven {
        if self.cut {
            Proven::Uncertain
        } else {
            Proven::Stored
        }
    }

    pub fn receipt(self) -> ReceiptState {
        match (self.end, self.read, self.proven) {
            (Some(End::Archived), _, _) => ReceiptState::Archived,
            (Some(End::Deleted), _, _) => ReceiptState::Deleted,
            (Some(End::Cancelled), _, _) => ReceiptState::Cancelled,
            (Some(End::Expired), _, _) => ReceiptState::Expired,
            (Some(End::Failed), _, _) => ReceiptState::Failed,
            (None, true, _) => ReceiptState::Read,
            (None, false, Proven::Stored) => ReceiptState::Stored,
            (None, false, Proven::Offering) => ReceiptState::Offering,
            (None, false, Proven::Uncertain) => ReceiptState::Uncertain,
            (None, false, Proven::Offered | Proven::Unproven) => ReceiptState::Offered,
            (None, false, Proven::Accepted) => ReceiptState::Accepted,
        }
    }

    /// Whether it lies in the inbox, read or not. Says nothing of its times.
    pub fn in_inbox(self) -> bool {
        self.end.is_none()
    }

    pub fn is_unread(self) -> bool {
        self.in_inbox() && !self.read
    }

    /// Whether some route has put it before its agent, or is about to: no other may do so again.
    /// What was cut off may be, marked as a repeat.
    pub fn is_handed(self) -> bool {
        self.shown
            || match self.proven {
                Proven::Stored | Proven::Uncertain => false,
                Proven::Offering | Proven::Offered | Proven::Unproven | Proven::Accepted => true,
            }
    }

    /// Whether anybody may have seen it, or is about to: it can neither run out nor be called back.
    pub fn is_reached(self) -> bool {
        self.seen || self.proven == Proven::Offering
    }

    /// How it reached somebody, in a word: where it lies unread and unproven, what was before.
    pub(super) fn reach(self) -> &'static str {
        match self.receipt() {
            ReceiptState::Stored if self.shown => "a hook has shown it to its agent",
            ReceiptState::Stored if self.cut => "an offer of it was cut off",
            ReceiptState::Stored => "it was read before",
            state => state.as_str(),
        }
    }

    /// The standing that holds at `now`: a message whose time ran out has expired, whether or
    /// not somebody has come by to record it.
    pub fn at(mut self, message: &Message, now: Timestamp) -> Self {
        if self.end.is_none() && message.has_run_out(now) && !self.is_reached() {
            self.end = Some(End::Expired);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, name};

    pub(super) fn after(steps: &[Step]) -> Standing {
        let mut standing = Standing::default();
        for step in steps {
            standing.apply(*step);
        }
        standing
    }

    #[test]
    fn steps_add_up_to_what_is_proven() {
        use Step::*;
        let check = |steps: &[Step], want: ReceiptState| {
            assert_eq!(after(steps).receipt(), want, "{steps:?}");
        };
        check(&[], ReceiptState::Stored);
        check(&[Offering], ReceiptState::Offering);
        check(&[Offering, Offered], ReceiptState::Offered);
        check(&[Offering, Offered, Accepted], ReceiptState::Accepted);
        // Out of order: what is proven is never taken back.
        check(&[Accepted, Offered, Offering], ReceiptState::Accepted);
        check(&[Offered, Offering], ReceiptState::Offered);
        check(&[Offering, Uncertain], ReceiptState::Uncertain);
        check(&[Offering, Uncertain, Offering], ReceiptState::Offering);
        check(&[Offering, Offered, Uncertain], ReceiptState::Offered);
        check(&[Offering, Withdrawn], ReceiptState::Stored);
        check(&[Read, Unread, Offering, Withdrawn], ReceiptState::Stored);
        check(&[Offering, Withdrawn, Offering], ReceiptState::Offering);
        let again = [Offering, Uncertain, Offering, Withdrawn];
        check(&again, ReceiptState::Uncertain);
        check(&[Withdrawn], ReceiptState::Stored);
        check(&[Offering, Offered, Withdrawn], ReceiptState::Offered);
        check(&[Offering, Uncertain, Withdrawn], ReceiptState::Uncertain);
        check(&[Shown], ReceiptState::Stored);
        // A hook that could not print it takes back what it said, and no more than that.
        check(&[Shown, Uncertain], ReceiptState::Uncertain);
        check(&[Uncertain], ReceiptState::Stored);
        check(&[Shown, Accepted, Uncertain], ReceiptState::Accepted);
        check(&[Shown, Uncertain, Shown], ReceiptState::Uncertain);
        check(&[Read], ReceiptState::Read);
        check(&[Offered, Read, Unread], ReceiptState::Offered);
        check(&[Read, Archived], ReceiptState::Archived);
        check(&[Archived, Read], ReceiptState::Archived);
        check(&[Cancelled, Archived], ReceiptState::Cancelled);
        check(&[Expired, Deleted], ReceiptState::Deleted);
        check(&[Failed, Expired], ReceiptState::Failed);
    }

    #[test]
    fn an_offer_whose_proof_is_awaited_can_become_uncertain() {
        use Step::*;
        let check = |later: &[Step], want: ReceiptState, is_handed: bool| {
            let mut standing = after(&[Offering]);
            standing.apply_progress(&Progress {
                proof_awaited: true,
                ..Progress::of(message(1, "alice", "bob").id, Offered)
            });
            later.iter().for_each(|step| standing.apply(*step));
            assert_eq!(standing.receipt(), want, "{later:?}");
            assert_eq!(standing.is_handed(), is_handed, "{later:?}");
        };
        check(&[], ReceiptState::Offered, true);
        check(&[Accepted], ReceiptState::Accepted, true);
        check(&[Uncertain], ReceiptState::Uncertain, false);
        check(&[Uncertain, Offering], ReceiptState::Offering, true);
        check(&[Uncertain, Accepted], ReceiptState::Accepted, true);
        check(&[Accepted, Uncertain], ReceiptState::Accepted, true);
        // No proof will come after all.
        let mut standing = after(&[Offering]);
        for proof_awaited in [true, false] {
            standing.apply_progress(&Progress {
                proof_awaited,
                ..Progress::of(message(1, "alice", "bob").id, Offered)
            });
        }
        standing.apply(Uncertain);
        assert_eq!(standing.receipt(), ReceiptState::Offered);
    }

    #[test]
    fn every_step_is_a_kind() {
        for step in Step::ALL {
            assert_eq!(Step::from_kind(step.as_str()), Some(step));
        }
        assert_eq!(Step::from_kind("message"), None);
    }

    #[test]
    fn time_runs_out_only_for_what_nobody_saw() {
        let end = Timestamp::from_second(2_000).unwrap();
        let mut letter = message(1, "alice", "bob");
        letter.envelope.expires_at = Some(end);
        let check = |now: i64, before: &[Step], want: ReceiptState| {
            let now = Timestamp::from_second(now).unwrap();
            assert_eq!(
                after(before).at(&letter, now).receipt(),
                want,
                "{now} {before:?}"
            );
        };
        check(1_999, &[], ReceiptState::Stored);
        check(2_000, &[], ReceiptState::Expired);
        check(
            2_000,
            &[Step::Offering, Step::Uncertain],
            ReceiptState::Uncertain,
        );
        check(2_000, &[Step::Shown], ReceiptState::Stored);
        check(2_000, &[Step::Read, Step::Unread], ReceiptState::Stored);
        check(2_000, &[Step::Offering], ReceiptState::Offering);
        let back = [Step::Offering, Step::Withdrawn];
        check(1_999, &back, ReceiptState::Stored);
        check(2_000, &back, ReceiptState::Expired);
        check(2_000, &[Step::Read], ReceiptState::Read);
        check(2_000, &[Step::Archived], ReceiptState::Archived);
        let record = decide(
            end,
            Order::Expire,
            &name("bob"),
            &letter,
            Standing::default(),
        )
        .unwrap();
        assert_eq!(record.len(), 1);
        assert_eq!(
            decide(
                end,
                Order::Expire,
                &name("bob"),
                &letter,
                after(&[Step::Expired])
            ),
            Ok(vec![])
        );
    }
}
