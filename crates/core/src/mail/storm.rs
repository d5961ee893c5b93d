//! Storms: endless or excessive messages between agents.
//!
//! Every message carries a hop count. A message over a limit is stored and fails at once, so it is
//! visible but never delivered. Messages from and to the person are exempt.

use crate::message::{Evidence, Message};
use crate::name::AgentName;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// Limits for messages between agents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Maximum hop count.
    pub hops: u32,
    /// Maximum number of messages from one agent to another per minute.
    pub rate: u32,
}

impl Limits {
    pub const NONE: Self = Self {
        hops: u32::MAX,
        rate: u32::MAX,
    };
    pub const DEFAULT: Self = Self { hops: 16, rate: 60 };
}

/// Period over which the rate is measured.
pub const MINUTE: SignedDuration = SignedDuration::from_mins(1);
/// How far after now a message may be dated and still count towards the rate. Senders read the time
/// before they wait for the journal's lock, at most this long by default. If ten processes of one agent
/// send at once, the one that gets the lock last may have read the earliest time: the other nine are
/// dated after its now, and a storm of concurrent senders would be hidden if they did not count. Messages
/// dated later than this are from before a change of the clock, and do not count.
pub const SENDER_SKEW: SignedDuration = SignedDuration::from_secs(10);

/// Time for which a delivered message counts as the cause of its recipient's messages. The end of a
/// turn is not recorded; a storm slower than this costs little.
const CAUSE_TIMEOUT: SignedDuration = SignedDuration::from_hours(1);

/// The message that an agent was given last, and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Given {
    pub message: Message,
    pub at: Timestamp,
}

/// Return the message that caused the sender to write. Only a sender in a session has one.
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
    let given =
        given.filter(|given| is_in_session && now.duration_since(given.at) < CAUSE_TIMEOUT)?;
    Some(&given.message)
}

/// Return a new message's hop count. A message from the person has none.
pub fn hops(from: &AgentName, answered: Option<&Message>, cause: Option<&Message>) -> u32 {
    if from.is_human() {
        return 0;
    }
    let causes = answered.into_iter().chain(cause);
    let hops = causes.map(|m| m.envelope.hops.saturating_add(1)).max();
    hops.unwrap_or(0)
}

/// Return which limit a message exceeds, if any. `recent` is the number of messages in the last
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
            "storm between agents: hop count {hops} exceeds the limit of {} (mail.max_hops)",
            limits.hops
        ));
    }
    (recent >= limits.rate).then(|| {
        format!(
            "storm between agents: {from} sent {to} {recent} messages in a minute, and the limit is {} (mail.max_rate)",
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
    fn hops_are_counted_along_the_longest_path() {
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
    fn only_a_sender_in_a_session_has_a_cause() {
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
    fn a_message_over_the_hop_or_rate_limit_is_excess() {
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
