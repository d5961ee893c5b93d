//! Receipts: a message's proven state, and the orders that may change it.
//!
//! [`MessageStatus`] is the state of one message. Only [`MessageStatus::apply`] changes the state,
//! and only [`decide`] allows orders. A state never claims more than the steps in the journal
//! prove.

pub mod offer;
mod order;
pub mod recovery;
pub mod why;

pub use order::{Order, Refusal, decide};

use crate::fact::Progress;
use crate::message::Message;
use crate::name::AgentName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A change of a message's state. Each is a kind of fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// The message is about to be shown, by the route that the fact names.
    Offering,
    /// The message was written completely to a live program, or passed to its hook.
    Offered,
    /// The agent's own hook or transcript shows the id.
    Accepted,
    /// An offer was cut off, or a hook failed to print the message; the agent may have seen it.
    Uncertain,
    /// An offer ended before any of the message was shown.
    Withdrawn,
    /// `check --inject` showed the message. Not a receipt: the state does not change.
    Shown,
    /// The agent is about to be reminded that a reply is expected. The state does not change.
    Reminded,
    /// A reply came, or is not expected any longer.
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

/// Proven state of a message's delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Proven {
    #[default]
    Stored,
    Offering,
    Uncertain,
    Offered,
    /// Offered; the agent's proof that its model was given the message is awaited.
    Unproven,
    Accepted,
}

/// Final states of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum End {
    Archived,
    Deleted,
    Cancelled,
    Expired,
    Failed,
}

impl End {
    /// Whether the message was never carried out, as far as its receipts say.
    pub fn is_without_effect(self) -> bool {
        match self {
            Self::Deleted | Self::Cancelled | Self::Expired | Self::Failed => true,
            Self::Archived => false,
        }
    }
}

/// State of a message: the sum of its steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct MessageStatus {
    pub proven: Proven,
    pub read: bool,
    pub shown: bool,
    /// Whether anybody may ever have seen the message; never reset. An open offer does not count:
    /// see [`MessageStatus::is_reached`].
    pub seen: bool,
    /// Whether an offer was ever cut off, so that the next offer must be marked as a repeat.
    pub cut: bool,
    /// Whether a reply came, or is not expected any longer.
    pub answered: bool,
    /// Number of reminders.
    pub reminded: u32,
    pub end: Option<End>,
}

/// A message's state as people and programs see it.
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

/// One entry of a message's history, for display.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub state: String,
    pub at: Timestamp,
    pub by: Option<AgentName>,
    pub route: Option<String>,
    pub evidence: Option<String>,
    pub reason: Option<String>,
}

impl MessageStatus {
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
                    // The hook failed to print the message that it had recorded.
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
            // Deletion is the only end that can follow another end.
            Step::Deleted => self.end = Some(End::Deleted),
            Step::Archived => self.end = self.end.or(Some(End::Archived)),
            Step::Cancelled => self.end = self.end.or(Some(End::Cancelled)),
            Step::Expired => self.end = self.end.or(Some(End::Expired)),
            Step::Failed => self.end = self.end.or(Some(End::Failed)),
        }
    }

    /// Return the proven state before the current offer.
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

    /// Whether the message is in the inbox, read or not. Ignores its times.
    pub fn in_inbox(self) -> bool {
        self.end.is_none()
    }

    pub fn is_unread(self) -> bool {
        self.in_inbox() && !self.read
    }

    /// Whether a route has shown the message or is about to, so that no other route may. A message
    /// whose offer was cut off may be shown again, marked as a repeat.
    pub fn is_offered_or_shown(self) -> bool {
        self.shown
            || match self.proven {
                Proven::Stored | Proven::Uncertain => false,
                Proven::Offering | Proven::Offered | Proven::Unproven | Proven::Accepted => true,
            }
    }

    /// Whether the message may have been seen or is about to be, so that it cannot expire or be
    /// cancelled.
    pub fn is_reached(self) -> bool {
        self.seen || self.proven == Proven::Offering
    }

    /// Describe how far the message came, for refusals.
    pub(super) fn describe_reach(self) -> &'static str {
        match self.receipt() {
            ReceiptState::Stored if self.shown => "a hook showed it to its agent",
            ReceiptState::Stored if self.cut => "an offer of it was cut off",
            ReceiptState::Stored => "it was read before",
            state => state.as_str(),
        }
    }

    /// Return the state at `now`: a message past its time has expired, even if no fact says so yet.
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

    pub(super) fn after(steps: &[Step]) -> MessageStatus {
        let mut status = MessageStatus::default();
        for step in steps {
            status.apply(*step);
        }
        status
    }

    #[test]
    fn steps_add_up_to_the_proven_state() {
        use Step::*;
        let check = |steps: &[Step], want: ReceiptState| {
            assert_eq!(after(steps).receipt(), want, "{steps:?}");
        };
        check(&[], ReceiptState::Stored);
        check(&[Offering], ReceiptState::Offering);
        check(&[Offering, Offered], ReceiptState::Offered);
        check(&[Offering, Offered, Accepted], ReceiptState::Accepted);
        // Out of order: a proof is never revoked.
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
        // A hook that fails to print revokes only its own step.
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
    fn an_unproven_offer_can_become_uncertain() {
        use Step::*;
        let check = |later: &[Step], want: ReceiptState, is_offered_or_shown: bool| {
            let mut status = after(&[Offering]);
            status.apply_progress(&Progress {
                proof_awaited: true,
                ..Progress::of(message(1, "alice", "bob").id, Offered)
            });
            later.iter().for_each(|step| status.apply(*step));
            assert_eq!(status.receipt(), want, "{later:?}");
            assert_eq!(
                status.is_offered_or_shown(),
                is_offered_or_shown,
                "{later:?}"
            );
        };
        check(&[], ReceiptState::Offered, true);
        check(&[Accepted], ReceiptState::Accepted, true);
        check(&[Uncertain], ReceiptState::Uncertain, false);
        check(&[Uncertain, Offering], ReceiptState::Offering, true);
        check(&[Uncertain, Accepted], ReceiptState::Accepted, true);
        check(&[Accepted, Uncertain], ReceiptState::Accepted, true);
        // The proof is no longer awaited.
        let mut status = after(&[Offering]);
        for proof_awaited in [true, false] {
            status.apply_progress(&Progress {
                proof_awaited,
                ..Progress::of(message(1, "alice", "bob").id, Offered)
            });
        }
        status.apply(Uncertain);
        assert_eq!(status.receipt(), ReceiptState::Offered);
    }

    #[test]
    fn every_step_is_a_kind() {
        for step in Step::ALL {
            assert_eq!(Step::from_kind(step.as_str()), Some(step));
        }
        assert_eq!(Step::from_kind("message"), None);
    }

    #[test]
    fn only_an_unseen_message_expires() {
        let end = Timestamp::from_second(2_000).unwrap();
        let mut stored = message(1, "alice", "bob");
        stored.envelope.expires_at = Some(end);
        let check = |now: i64, before: &[Step], want: ReceiptState| {
            let now = Timestamp::from_second(now).unwrap();
            assert_eq!(
                after(before).at(&stored, now).receipt(),
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
            &stored,
            MessageStatus::default(),
        )
        .unwrap();
        assert_eq!(record.len(), 1);
        assert_eq!(
            decide(
                end,
                Order::Expire,
                &name("bob"),
                &stored,
                after(&[Step::Expired])
            ),
            Ok(vec![])
        );
    }
}
