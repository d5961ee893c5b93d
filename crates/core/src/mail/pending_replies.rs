//! Replies that are expected: which messages await one, and the reminders.
//!
//! An agent is reminded when it becomes idle again, at most [`REMINDERS`] times per message, with
//! one line for all messages.

use crate::mail::MessageState;
use crate::message::Message;
use crate::name::AgentName;
use crate::receipt::{End, Step};
use jiff::Timestamp;

/// Maximum number of reminders for one message.
pub const REMINDERS: u32 = 10;
/// Maximum number of messages in one reminder, so that it fits into one terminal line.
pub const AT_ONCE: usize = 16;

/// Whether a reply is still expected at `now`.
pub fn is_awaited(mail: &MessageState, now: Timestamp) -> bool {
    let message = &mail.message;
    let is_open = match mail.status.at(message, now).end {
        None => true,
        Some(End::Archived | End::Deleted | End::Cancelled | End::Expired | End::Failed) => false,
    };
    // A message that was seen does not expire, but its reply is no longer wanted after that time.
    let is_open = is_open && !message.has_run_out(now);
    message.envelope.expects_reply && !mail.status.answered && is_open
}

/// Whether the agent may be reminded at `now`: the message was delivered, and fewer than
/// [`REMINDERS`] reminders were sent.
pub fn may_be_reminded(mail: &MessageState, now: Timestamp) -> bool {
    let status = mail.status;
    is_awaited(mail, now) && status.seen && status.reminded < REMINDERS
}

/// Whether `who` may end the wait for a reply: the sender, the recipient or the person.
pub fn may_close(who: &AgentName, message: &Message) -> bool {
    who.is_human() || *who == message.to || *who == message.envelope.from
}

/// Describe the reply's status, if the message expects one.
pub fn told(mail: &MessageState, now: Timestamp) -> Option<String> {
    if !mail.message.envelope.expects_reply {
        return None;
    }
    let last = |step: Step| {
        let of = |state: &str| state == step.as_str();
        mail.receipts.iter().rfind(move |r| of(&r.state))
    };
    if mail.status.answered {
        let how = last(Step::Answered).and_then(|receipt| receipt.evidence.as_deref());
        return Some(format!("answered: {}", how.unwrap_or("no longer expected")));
    }
    if !is_awaited(mail, now) {
        return Some("no longer expected: the message has ended".to_owned());
    }
    let reminded = mail.status.reminded;
    Some(match last(Step::Reminded) {
        Some(receipt) => format!(
            "expected; reminded {reminded} of {REMINDERS} times, last at {}",
            receipt.at
        ),
        None => format!("expected; reminded {reminded} of {REMINDERS} times"),
    })
}

/// Return the line that reminds an agent of `messages`, each with its count.
pub fn reminder(messages: &[MessageState]) -> String {
    let entries = messages.iter().map(|mail| {
        let (id, from) = (mail.message.id.id8(), &mail.message.envelope.from);
        let count = mail.status.reminded + 1;
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

    fn expecting(steps: &[Step]) -> MessageState {
        let mut message = message(1 << 96, "alice", "bob");
        message.envelope.expects_reply = true;
        with_steps(&message, steps)
    }

    #[test]
    fn a_reply_is_expected_until_it_comes_or_the_message_ends() {
        let now = Timestamp::from_second(1_000).unwrap();
        let check = |steps: &[Step], awaited: bool, reminds: bool| {
            let mail = expecting(steps);
            assert_eq!(is_awaited(&mail, now), awaited, "{steps:?}");
            assert_eq!(may_be_reminded(&mail, now), reminds, "{steps:?}");
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
    fn both_sides_and_the_person_can_end_the_wait() {
        let mail = expecting(&[]);
        for (who, want) in [
            ("alice", true),
            ("bob", true),
            ("human", true),
            ("eve", false),
        ] {
            assert_eq!(may_close(&name(who), &mail.message), want, "{who}");
        }
    }

    #[test]
    fn a_reply_s_status_is_described() {
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
    fn the_longest_reminder_fits_into_a_terminal_line() {
        let mut message = message(1 << 96, &"a".repeat(64), "bob");
        message.envelope.expects_reply = true;
        let mail = with_steps(&message, &[Offered, Reminded]);
        let line = reminder(&vec![mail; AT_ONCE]);
        assert!(line.len() < 4_000 && line.matches("00000001").count() == 2 * AT_ONCE);
        assert!(line.starts_with("[ph reminder 2 of 10: aaaa"));
    }
}
