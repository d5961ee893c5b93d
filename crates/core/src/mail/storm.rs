//! Storms: messages between agents that cause each other without end, or come without measure.
//!
//! Every message carries how many led to it. One that is over a limit is stored, so that everybody
//! can see it, and ends at once: it is never put before anybody. What people write and what is
//! written to them is no part of a storm.

use crate::message::{Evidence, Message};
use crate::name::AgentName;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// What is too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// How many messages may lead to one.
    pub hops: u32,
    /// How many one agent may write to another in a minute.
    pub rate: u32,
}

impl Limits {
    pub const NONE: Self = Self {
        hops: u32::MAX,
        rate: u32::MAX,
    };
    pub const DEFAULT: Self = Self { hops: 16, rate: 60 };
}

/// Over how long the rate is measured.
pub const MINUTE: SignedDuration = SignedDuration::from_mins(1);
/// How far the times of senders at once may lie apart: they take the time before they wait for the
/// lock of the journal.
pub const SENDER_SKEW: SignedDuration = SignedDuration::from_secs(10);

/// For how long what an agent was given counts as the cause of what it writes. When its turn ends
/// is no fact; a storm that is slower than this costs little.
const TURN: SignedDuration = SignedDuration::from_hours(1);

/// The message that an agent was given last, and when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    pub message: Message,
    pub at: Timestamp,
}

/// What led its sender to write a message, where it does not say itself. Only who runs in a
/// session acts on what that was given.
pub fn cause<'a>(
    from: &AgentName,
    evidence: Evidence,
    given: Option<&'a Given>,
    now: Timestamp,
) -> Option<&'a Message> {
    let is_in_session = match evidence {
        Evidence::Ancestry | Evidence::Env => !from.is_human(),
        Evidence::Flag | Evidence::Default | Evidence::Provider => false,
    };
    let given = given.filter(|given| is_in_session && now.duration_since(given.at) < TURN)?;
    Some(&given.message)
}

/// How many messages led to one. A person's begins anew.
pub fn hops(from: &AgentName, answered: Option<&Message>, cause: Option<&Message>) -> u32 {
    if from.is_human() {
        return 0;
    }
    let causes = answered.into_iter().chain(cause);
    let hops = causes.map(|m| m.envelope.hops.saturating_add(1)).max();
    hops.unwrap_or(0)
}

/// What is too much about a message from one to another, `recent` of which were sent in the last
/// minute.
pub fn excess(
    limits: Limits,
    from: &AgentName,
    to: &AgentName,
    hops: u32,
    recent: u32,
) -> Option<String> {
    if from.is_human() || to.is_human() {
        return None;
    }
    if hops > limits.hops {
        return Some(format!(
            "a storm between agents: {hops} messages led to it, and {} may (mail.max_hops)",
            limits.hops
        ));
    }
    (recent >= limits.rate).then(|| {
        format!(
            "a storm between agents: {from} has written to {to} {recent} times in a minute, and {} are allowed (mail.max_rate)",
            limits.rate
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, name};

    fn with_hops(n: u128, hops: u32) -> Message {
        let mut message = message(n, "alice", "bob");
        message.envelope.hops = hops;
        message
    }

    #[test]
    fn hops_add_up_along_the_longest_way() {
        let (near, far) = (with_hops(1, 2), with_hops(2, 7));
        let bob = name("bob");
        assert_eq!(hops(&bob, None, None), 0);
        assert_eq!(hops(&bob, Some(&near), None), 3);
        assert_eq!(hops(&bob, None, Some(&far)), 8);
        assert_eq!(hops(&bob, Some(&near), Some(&far)), 8);
        assert_eq!(hops(&AgentName::human(), Some(&far), None), 0);
        assert_eq!(hops(&bob, Some(&with_hops(3, u32::MAX)), None), u32::MAX);
    }

    #[test]
    fn only_who_runs_in_a_session_acts_on_what_it_was_given() {
        let at = Timestamp::from_second(1_000).unwrap();
        let given = Given {
            message: with_hops(1, 0),
            at,
        };
        let check = |from: &str, evidence, after: i64, want: bool| {
            let now = at + SignedDuration::from_secs(after);
            let found = cause(&name(from), evidence, Some(&given), now);
            assert_eq!(found.is_some(), want, "{from} {evidence} {after}");
        };
        check("bob", Evidence::Ancestry, 0, true);
        check("bob", Evidence::Env, 3_599, true);
        check("bob", Evidence::Env, 3_600, false);
        check("bob", Evidence::Flag, 0, false);
        check("human", Evidence::Env, 0, false);
    }

    #[test]
    fn too_much_is_too_many_hops_or_too_many_at_once() {
        let limits = Limits { hops: 2, rate: 3 };
        let check = |from: &str, to: &str, hops, recent, want: bool| {
            let found = excess(limits, &name(from), &name(to), hops, recent);
            assert_eq!(found.is_some(), want, "{from} {to} {hops} {recent}");
        };
        check("a", "b", 2, 2, false);
        check("a", "b", 3, 0, true);
        check("a", "b", 0, 3, true);
        check("human", "b", 9, 9, false);
        check("a", "human", 9, 9, false);
    }
}
