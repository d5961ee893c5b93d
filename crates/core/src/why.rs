//! Why a message is where it is: the rule that holds it, since when, on what evidence, and what
//! would release it. A reason is derived from what is known now, never stored.

use crate::mail::Letter;
use crate::receipt::ReceiptState;
use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    Held(Hold),
    /// Nothing holds it: it has come to where `state` says.
    Arrived {
        state: ReceiptState,
        since: Timestamp,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub rule: &'static str,
    pub since: Timestamp,
    /// The rule in a sentence.
    pub reason: String,
    pub evidence: String,
    pub release: String,
}

pub fn why(letter: &Letter, now: Timestamp) -> Why {
    let message = &letter.message;
    let standing = letter.standing.at(message, now);
    let state = standing.receipt();
    match state {
        ReceiptState::Stored => Why::Held(hold(letter, now)),
        ReceiptState::Uncertain => Why::Held(Hold {
            rule: "uncertain",
            since: last_step(letter),
            reason: "an offer was cut off; nobody knows whether the agent saw it".to_owned(),
            evidence: "the journal has 'offering' and no 'offered'".to_owned(),
            release: "it is offered again, marked as a repeat, when a session runs".to_owned(),
        }),
        ReceiptState::Expired => Why::Arrived {
            state,
            since: message.envelope.expires_at.unwrap_or(message.created_at),
        },
        ReceiptState::Offering
        | ReceiptState::Offered
        | ReceiptState::Accepted
        | ReceiptState::Read
        | ReceiptState::Archived
        | ReceiptState::Deleted
        | ReceiptState::Cancelled
        | ReceiptState::Failed => Why::Arrived {
            state,
            since: last_step(letter),
        },
    }
}

/// The reason in a sentence, where something holds it.
pub fn reason(letter: &Letter, now: Timestamp) -> Option<String> {
    match why(letter, now) {
        Why::Held(hold) => Some(hold.reason),
        Why::Arrived { .. } => None,
    }
}

fn hold(letter: &Letter, now: Timestamp) -> Hold {
    let message = &letter.message;
    let to = &message.to;
    match message.envelope.not_before {
        Some(due) if due > now => Hold {
            rule: "not-before",
            since: message.created_at,
            reason: format!("its sender wants it delivered no sooner than {due}"),
            evidence: format!("the message says not before {due}"),
            release: format!(
                "the time comes, or 'ph cancel {}' calls it back",
                message.id.id8()
            ),
        },
        due if to.is_human() => Hold {
            rule: "unread",
            since: due.unwrap_or(message.created_at),
            reason: "it lies in the person's inbox and has not been read".to_owned(),
            evidence: "the journal has no 'read' for it".to_owned(),
            release: format!("'ph read {}'", message.id.id8()),
        },
        due => Hold {
            rule: "no-session",
            since: due.unwrap_or(message.created_at),
            reason: format!("no session of {to} has offered it; it waits in the inbox"),
            evidence: if letter.standing.shown {
                "a hook has put it before the agent, which has not read it yet".to_owned()
            } else {
                "the journal has no offer for it".to_owned()
            },
            release: format!("{to} asks for its mail ('ph inbox', 'ph read', 'ph check --inject')"),
        },
    }
}

fn last_step(letter: &Letter) -> Timestamp {
    letter
        .receipts
        .last()
        .map_or(letter.message.created_at, |receipt| receipt.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::message;
    use crate::receipt::{Standing, Step};

    #[test]
    fn every_state_has_a_reason_or_an_arrival() {
        let now = Timestamp::from_second(1_000).unwrap();
        let check = |to: &str, not_before: Option<i64>, steps: &[Step], want: &str| {
            let mut message = message(1, "alice", to);
            message.envelope.not_before = not_before.map(|s| Timestamp::from_second(s).unwrap());
            let mut standing = Standing::default();
            steps.iter().for_each(|s| standing.apply(*s));
            let got = match why(
                &Letter {
                    message,
                    standing,
                    receipts: vec![],
                },
                now,
            ) {
                Why::Held(hold) => hold.rule,
                Why::Arrived { state, .. } => state.as_str(),
            };
            assert_eq!(got, want, "{to} {not_before:?} {steps:?}");
        };
        check("bob", None, &[], "no-session");
        check("human", None, &[], "unread");
        check("bob", Some(2_000), &[], "not-before");
        check("bob", Some(900), &[], "no-session");
        check("bob", None, &[Step::Offering, Step::Uncertain], "uncertain");
        check("bob", None, &[Step::Read], "read");
        check("bob", None, &[Step::Cancelled], "cancelled");
    }
}
