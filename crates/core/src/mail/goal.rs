//! Goals: the receipt that a sender waits for, and whether a message has reached it.

use crate::message::Message;
use crate::receipt::{End, MessageStatus, Proven};
use jiff::Timestamp;
use std::fmt;
use std::str::FromStr;

/// Declared in the order in which a message reaches them: a later goal includes the earlier ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Goal {
    Offered,
    Accepted,
    Read,
}

impl Goal {
    pub const ALL: [Self; 3] = [Self::Offered, Self::Accepted, Self::Read];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Offered => "offered",
            Self::Accepted => "accepted",
            Self::Read => "read",
        }
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid receipt to wait for: use offered, accepted or read")]
pub struct GoalError;

impl FromStr for Goal {
    type Err = GoalError;
    fn from_str(text: &str) -> Result<Self, GoalError> {
        let found = Self::ALL.into_iter().find(|goal| goal.as_str() == text);
        found.ok_or(GoalError)
    }
}

/// Whether a message has reached a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Reached,
    /// The message ended first and can no longer reach the goal.
    Never,
    NotYet,
}

impl Goal {
    pub fn progress(self, message: &Message, status: MessageStatus, now: Timestamp) -> Progress {
        let status = status.at(message, now);
        if furthest(status) >= Some(self) {
            return Progress::Reached;
        }
        match status.end {
            None => Progress::NotYet,
            Some(End::Archived | End::Deleted | End::Cancelled | End::Expired | End::Failed) => {
                Progress::Never
            }
        }
    }
}

/// Return the furthest goal that is proven. Archiving a message counts as reading it.
fn furthest(status: MessageStatus) -> Option<Goal> {
    match (status.end, status.proven) {
        (Some(End::Archived), _) => Some(Goal::Read),
        (_, _) if status.read => Some(Goal::Read),
        (_, Proven::Accepted) => Some(Goal::Accepted),
        (_, Proven::Offered | Proven::Unproven) => Some(Goal::Offered),
        (_, Proven::Stored | Proven::Offering | Proven::Uncertain) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, with_steps};
    use crate::receipt::Step::{self, *};

    #[test]
    fn a_goal_is_reached_only_by_proof() {
        let check = |steps: &[Step], want: &str| {
            let mut message = message(1, "alice", "bob");
            message.envelope.expires_at = Some(Timestamp::from_second(900).unwrap());
            let status = with_steps(&message, steps).status;
            let told = Goal::ALL.map(|goal| {
                let progress = goal.progress(&message, status, message.created_at);
                match progress {
                    super::Progress::Reached => '+',
                    super::Progress::Never => '-',
                    super::Progress::NotYet => '.',
                }
            });
            assert_eq!(String::from_iter(told), want, "{steps:?}");
        };
        check(&[], "...");
        check(&[Offering], "...");
        check(&[Offering, Uncertain], "...");
        check(&[Shown], "...");
        check(&[Offering, Offered], "+..");
        check(&[Offering, Offered, Accepted], "++.");
        check(&[Read], "+++");
        check(&[Archived], "+++");
        check(&[Offered, Read, Unread], "+..");
        check(&[Cancelled], "---");
        check(&[Failed], "---");
        check(&[Offering, Offered, Deleted], "+--");
        let message = message(1, "alice", "bob");
        let mut mortal = message.clone();
        mortal.envelope.expires_at = Some(message.created_at);
        let progress =
            Goal::Offered.progress(&mortal, MessageStatus::default(), message.created_at);
        assert_eq!(progress, super::Progress::Never);
    }
}
