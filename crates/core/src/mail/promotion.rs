//! Promotion: after its deadline, a message that waits for an idle agent counts as normal.
//!
//! A busy agent therefore cannot starve it. The priority is computed from deadline and time, never
//! stored.

use crate::mail::MessageState;
use crate::message::{Envelope, Message};
use crate::moment::Moment;
use crate::priority::Priority;
use crate::why::Hold;
use jiff::Timestamp;
use std::time::Duration;

/// Return the message's priority at `now`.
pub fn priority(message: &Message, now: Timestamp) -> Priority {
    match promoted_from(message, now) {
        Some(_) => Priority::Normal,
        None => message.envelope.priority,
    }
}

/// Return the original priority if the message is promoted at `now`.
pub fn promoted_from(message: &Message, now: Timestamp) -> Option<Priority> {
    let is_late = promotes_at(&message.envelope).is_some_and(|at| at <= now);
    is_late.then_some(message.envelope.priority)
}

/// Return the time of promotion, if any. Only messages that wait for an idle agent are promoted.
pub fn promotes_at(envelope: &Envelope) -> Option<Timestamp> {
    match envelope.priority {
        Priority::Interrupt | Priority::Normal => None,
        Priority::IdleFirst | Priority::Idle => envelope.deadline,
    }
}

/// Return the evidence of a promotion, for the receipt of an offer.
pub fn evidence(message: &Message, now: Timestamp) -> Option<String> {
    let from = promoted_from(message, now)?;
    let deadline = message.envelope.deadline?;
    Some(format!(
        "promoted from {from} to normal: its deadline was {deadline}"
    ))
}

/// Add the effect of the message's deadline to `hold`.
pub(crate) fn told(mut hold: Hold, message: &Message, now: Timestamp) -> Hold {
    if let Some(promoted) = evidence(message, now) {
        hold.evidence = format!("{}; {promoted}", hold.evidence);
    } else if let Some(deadline) = promotes_at(&message.envelope)
        && hold.rule == "working"
    {
        hold.release = format!(
            "{}, or its deadline comes ({deadline}) and it goes as a normal message",
            hold.release
        );
    }
    hold
}

/// Return the monotonic time at which one of `pending` becomes due, is promoted or expires.
pub(crate) fn next_time(now: Moment, pending: &[MessageState]) -> Option<Duration> {
    let times = pending.iter().flat_map(|mail| {
        let envelope = &mail.message.envelope;
        [
            envelope.not_before,
            promotes_at(envelope),
            envelope.expires_at,
        ]
    });
    let next = times.flatten().filter(|time| *time > now.wall).min()?;
    let wait = Duration::try_from(next.duration_since(now.wall)).ok()?;
    Some(now.mono.saturating_add(wait))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::message;

    #[test]
    fn a_message_waits_for_an_idle_agent_until_its_deadline() {
        let deadline = Timestamp::from_second(2_000).unwrap();
        let check = |sent: Priority, now: i64, want: Priority| {
            let mut message = message(1, "alice", "bob");
            message.envelope.priority = sent;
            message.envelope.deadline = Some(deadline);
            let now = Timestamp::from_second(now).unwrap();
            assert_eq!(priority(&message, now), want, "{sent} at {now}");
            assert_eq!(promoted_from(&message, now).is_some(), sent != want);
        };
        for early in [Priority::Idle, Priority::IdleFirst] {
            check(early, 1_999, early);
            check(early, 2_000, Priority::Normal);
        }
        for other in [Priority::Normal, Priority::Interrupt] {
            check(other, 2_000, other);
        }
    }
}
