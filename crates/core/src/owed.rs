//! Answers that are owed: a message whose sender expects one, until it has come.
//!
//! Its recipient is reminded of it each time it becomes idle again, a few times at most. What is
//! typed then is one turn for all that it owes.

use crate::mail::Letter;
use crate::message::Message;
use crate::name::AgentName;
use crate::receipt::{End, Step};
use jiff::Timestamp;

/// How often an agent is reminded of one message.
pub const REMINDERS: u32 = 10;
/// How many messages one reminder names, so that it fits into a line of a terminal.
pub const AT_ONCE: usize = 16;

/// Whether an answer is still expected at `now`.
pub fn is_awaited(letter: &Letter, now: Timestamp) -> bool {
    let message = &letter.message;
    let is_open = match letter.standing.at(message, now).end {
        None => true,
        Some(End::Archived | End::Deleted | End::Cancelled | End::Expired | End::Failed) => false,
    };
    // What was seen does not expire, but who wanted an answer by then wants none after.
    let is_open = is_open && !message.has_run_out(now);
    message.envelope.expects_reply && !letter.standing.answered && is_open
}

/// Whether its agent may be reminded of it at `now`: it has been put before it, and not too often.
pub fn may_be_reminded(letter: &Letter, now: Timestamp) -> bool {
    let standing = letter.standing;
    is_awaited(letter, now) && standing.seen && standing.reminded < REMINDERS
}

/// Whether this one's word ends the wait for an answer to a message: it is either side's, or the
/// person's.
pub fn may_close(who: &AgentName, message: &Message) -> bool {
    who.is_human() || *who == message.to || *who == message.envelope.from
}

/// What is said of the answer to a message that wants one.
pub fn told(letter: &Letter, now: Timestamp) -> Option<String> {
    if !letter.message.envelope.expects_reply {
        return None;
    }
    let last = |step: Step| {
        let of = |state: &str| state == step.as_str();
        letter.receipts.iter().rfind(move |r| of(&r.state))
    };
    if letter.standing.answered {
        let how = last(Step::Answered).and_then(|receipt| receipt.evidence.as_deref());
        return Some(format!("answered: {}", how.unwrap_or("no longer expected")));
    }
    if !is_awaited(letter, now) {
        return Some("no longer expected: the message has ended".to_owned());
    }
    let reminded = letter.standing.reminded;
    Some(match last(Step::Reminded) {
        Some(receipt) => format!(
            "expected; reminded {reminded} of {REMINDERS} times, last at {}",
            receipt.at
        ),
        None => format!("expected; reminded {reminded} of {REMINDERS} times"),
    })
}

/// The line that reminds an agent of what it owes, each with how often it was reminded before.
pub fn reminder(letters: &[Letter]) -> String {
    let entries = letters.iter().map(|letter| {
        let (id, from) = (letter.message.id.id8(), &letter.message.envelope.from);
        let count = letter.standing.reminded + 1;
        format!(
            "[ph reminder {count} of {REMINDERS}: {from} expects a reply to message {id}: ph reply {id}]"
        )
    });
    entries.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, name, with_steps};
    use crate::receipt::Step::*;

    fn expecting(steps: &[Step]) -> Letter {
        let mut message = message(1 << 96, "alice", "bob");
        message.envelope.expects_reply = true;
        with_steps(&message, steps)
    }

    #[test]
    fn an_answer_is_owed_until_it_comes_or_the_message_ends() {
        let now = Timestamp::from_second(1_000).unwrap();
        let check = |steps: &[Step], awaited: bool, reminds: bool| {
            let letter = expecting(steps);
            assert_eq!(is_awaited(&letter, now), awaited, "{steps:?}");
            assert_eq!(may_be_reminded(&letter, now), reminds, "{steps:?}");
        };
        check(&[], true, false);
        check(&[Offering], true, false);
        check(&[Offering, Offered], true, true);
        check(&[Offering, Uncertain], true, true);
        check(&[Shown], true, true);
        check(&[Read], true, true);
        for end in [Answered, Archived, Deleted, Failed] {
            check(&[Offered, end], false, false);
        }
        check(&[&[Offered][..], &[Reminded; 9]].concat(), true, true);
        check(&[&[Offered][..], &[Reminded; 10]].concat(), true, false);
        let mut mortal = expecting(&[Offered]);
        mortal.message.envelope.expires_at = Some(now);
        assert!(!is_awaited(&mortal, now));
        let plain = with_steps(&message(1, "alice", "bob"), &[Offered]);
        assert!(!is_awaited(&plain, now));
    }

    #[test]
    fn either_side_and_the_person_can_end_the_wait() {
        let letter = expecting(&[]);
        for (who, want) in [
            ("alice", true),
            ("bob", true),
            ("human", true),
            ("eve", false),
        ] {
            assert_eq!(may_close(&name(who), &letter.message), want, "{who}");
        }
    }

    #[test]
    fn what_is_said_of_it() {
        let now = Timestamp::from_second(1_000).unwrap();
        let said = |steps: &[Step]| told(&expecting(steps), now);
        assert_eq!(told(&with_steps(&message(1, "a", "b"), &[]), now), None);
        let expected = said(&[Offered]).unwrap();
        assert_eq!(expected, "expected; reminded 0 of 10 times");
        let reminded = said(&[Offered, Reminded, Reminded]).unwrap();
        assert!(reminded.starts_with("expected; reminded 2 of 10 times, last at "));
        assert_eq!(said(&[Answered]).unwrap(), "answered: no longer expected");
        let ended = said(&[Archived]).unwrap();
        assert_eq!(ended, "no longer expected: the message has ended");
    }

    #[test]
    fn the_longest_reminder_fits_a_terminal() {
        let mut message = message(1 << 96, &"a".repeat(64), "bob");
        message.envelope.expects_reply = true;
        let letter = with_steps(&message, &[Offered, Reminded]);
        let line = reminder(&vec![letter; AT_ONCE]);
        assert!(line.len() < 4_000 && line.matches("00000001").count() == 2 * AT_ONCE);
        assert!(line.starts_with("[ph reminder 2 of 10: aaaa"));
    }
}
