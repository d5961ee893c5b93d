//! Why a message is where it is: the rule that holds it, since when, on what evidence, and what
//! would release it. A reason is derived from what is known now, never stored.

use crate::inject;
use crate::mail::Letter;
use crate::receipt::{Proven, Receipt, ReceiptState, Step};
use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    Held(Hold),
    /// Nothing holds it: it has come to where `state` says.
    Arrived {
        state: ReceiptState,
        since: Timestamp,
        /// What was said of it, where it came to a bad end or may go on from there.
        reason: Option<String>,
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

const AWAITED: &str = "a proof that the model was given it is awaited; if the agent ends without one, the \
     message is offered again, marked as a repeat";

pub fn why(letter: &Letter, now: Timestamp) -> Why {
    let message = &letter.message;
    let standing = letter.standing.at(message, now);
    let state = standing.receipt();
    match state {
        ReceiptState::Stored => Why::Held(hold(letter, now)),
        // Cut off once, and shown by a hook since.
        ReceiptState::Uncertain if standing.shown => Why::Held(hold(letter, now)),
        ReceiptState::Uncertain => Why::Held(Hold {
            rule: "uncertain",
            since: last_step(letter),
            reason: "an offer was cut off; nobody knows whether the agent saw it".to_owned(),
            evidence: cut_off_by(letter),
            release: "it is offered again, marked as a repeat, when a session runs".to_owned(),
        }),
        ReceiptState::Offering if inject::is_under_way(letter) => Why::Held(Hold {
            rule: "offering",
            since: last_step(letter),
            reason: "a hook of its agent is printing it, or was killed while printing".to_owned(),
            evidence: "the journal has 'offering' and no 'offered'".to_owned(),
            release: "the hook ends; the next hook or session then offers it again, marked as a \
                      repeat, if the hook has not printed it"
                .to_owned(),
        }),
        ReceiptState::Offering => Why::Held(Hold {
            rule: "offering",
            since: last_step(letter),
            reason: "its offer has begun, and the journal does not have its end yet".to_owned(),
            evidence: "the journal has 'offering' and no 'offered'".to_owned(),
            release: format!(
                "its session says how that ended; where it is gone, the next session of {} offers \
                 it again, marked as a repeat",
                message.to
            ),
        }),
        ReceiptState::Expired => Why::Arrived {
            state,
            since: message.envelope.expires_at.unwrap_or(message.created_at),
            reason: None,
        },
        ReceiptState::Failed => {
            let failed = Step::Failed.as_str();
            let receipt = letter.receipts.iter().find(|r| r.state == failed);
            Why::Arrived {
                state,
                since: receipt.map_or_else(|| last_step(letter), |receipt| receipt.at),
                reason: receipt.and_then(|receipt| receipt.reason.clone()),
            }
        }
        // That it stands in the input box, say, and was not submitted.
        ReceiptState::Offered => {
            let offered = Step::Offered.as_str();
            let mut receipts = letter.receipts.iter().rev();
            let receipt = receipts.find(|receipt| receipt.state == offered);
            Why::Arrived {
                state,
                since: arrived(letter),
                reason: receipt.and_then(|receipt| offered_so(receipt, standing.proven)),
            }
        }
        ReceiptState::Accepted
        | ReceiptState::Read
        | ReceiptState::Archived
        | ReceiptState::Deleted
        | ReceiptState::Cancelled => Why::Arrived {
            state,
            since: arrived(letter),
            reason: None,
        },
    }
}

/// The same, asked of the session of the message's agent, which runs: `held` is what it says holds
/// the message (see [`crate::delivery::Desk::hold`]).
pub fn why_live(letter: &Letter, now: Timestamp, held: Option<Hold>) -> Why {
    let on_record = why(letter, now);
    let state = letter.standing.at(&letter.message, now).receipt();
    match (state, held) {
        (ReceiptState::Stored | ReceiptState::Uncertain, _) if letter.standing.shown => on_record,
        (ReceiptState::Stored, None) if !letter.message.is_due(now) => on_record,
        (ReceiptState::Stored | ReceiptState::Uncertain | ReceiptState::Offering, Some(hold)) => {
            Why::Held(hold)
        }
        (ReceiptState::Stored | ReceiptState::Uncertain, None) => Why::Held(Hold {
            rule: "next",
            since: due(letter),
            reason: "nothing holds it: its session is about to offer it".to_owned(),
            evidence: "it is in the next turn".to_owned(),
            release: "it is written in this moment".to_owned(),
        }),
        // It is being written.
        (ReceiptState::Offering, None) => Why::Arrived {
            state,
            since: last_step(letter),
            reason: None,
        },
        (
            ReceiptState::Offered
            | ReceiptState::Accepted
            | ReceiptState::Read
            | ReceiptState::Archived
            | ReceiptState::Deleted
            | ReceiptState::Cancelled
            | ReceiptState::Expired
            | ReceiptState::Failed,
            _,
        ) => on_record,
    }
}

/// What holds a message whose session runs and does not answer: what it knows, nobody else does.
pub fn silent(letter: &Letter, now: Timestamp) -> Hold {
    let to = &letter.message.to;
    not_before(letter, now).unwrap_or_else(|| Hold {
        rule: "silent-session",
        since: due(letter),
        reason: format!("the session of {to} runs and does not answer"),
        evidence: "it holds its lock and did not answer just now".to_owned(),
        release: format!(
            "the session goes on, or is ended ('ph stop {to}') and started again ('ph restart {to}')"
        ),
    })
}

/// Return the reason that the journal has for a message that is uncertain.
fn cut_off_by(letter: &Letter) -> String {
    let is_cut = |receipt: &&Receipt| receipt.state == Step::Uncertain.as_str();
    let latest = letter.receipts.iter().rfind(is_cut);
    let reason = latest.and_then(|receipt| receipt.reason.clone());
    reason.unwrap_or_else(|| "the journal has 'uncertain' without a reason".to_owned())
}

/// Since when it could have been delivered.
pub(crate) fn due(letter: &Letter) -> Timestamp {
    let message = &letter.message;
    let not_before = message.envelope.not_before;
    not_before.map_or(message.created_at, |due| due.max(message.created_at))
}

/// The reason in a sentence, where something holds it, or it came to a bad end.
pub fn reason(letter: &Letter, now: Timestamp) -> Option<String> {
    match why(letter, now) {
        Why::Held(hold) => Some(hold.reason),
        Why::Arrived { reason, .. } => reason,
    }
}

/// The sender's own wish, where it holds the message back.
pub(crate) fn not_before(letter: &Letter, now: Timestamp) -> Option<Hold> {
    let message = &letter.message;
    let due = message.envelope.not_before.filter(|due| *due > now)?;
    let is_open = letter.standing.is_unread() && !letter.standing.is_handed();
    is_open.then(|| Hold {
        rule: "not-before",
        since: message.created_at,
        reason: format!("its sender wants it delivered no sooner than {due}"),
        evidence: format!("the message says not before {due}"),
        release: format!(
            "the time comes, or 'ph cancel {}' calls it back",
            message.id.id8()
        ),
    })
}

fn hold(letter: &Letter, now: Timestamp) -> Hold {
    if let Some(hold) = not_before(letter, now) {
        return hold;
    }
    let to = &letter.message.to;
    if to.is_human() {
        return Hold {
            rule: "unread",
            since: due(letter),
            reason: "it lies in the person's inbox and has not been read".to_owned(),
            evidence: "the journal has no 'read' for it".to_owned(),
            release: format!("'ph read {}'", letter.message.id.id8()),
        };
    }
    if letter.standing.shown {
        return Hold {
            rule: "shown",
            since: last_step(letter),
            reason: format!("a hook has put it before {to}, and nothing offers it again"),
            evidence: "the journal has 'shown' and no 'read' for it".to_owned(),
            release: format!("{to} reads it ('ph read {}')", letter.message.id.id8()),
        };
    }
    Hold {
        rule: "no-session",
        since: due(letter),
        reason: format!("no session of {to} has offered it; it waits in the inbox"),
        evidence: no_offer(letter).to_owned(),
        release: format!(
            "a session of {to} is started ('ph run --name {to} COMMAND', or 'ph restart {to}' where \
             it has run), or {to} asks for its mail ('ph inbox', 'ph read', 'ph check --inject')"
        ),
    }
}

fn no_offer(letter: &Letter) -> &'static str {
    let withdrawn = Step::Withdrawn.as_str();
    if letter.receipts.iter().any(|r| r.state == withdrawn) {
        "every offer of it was taken back before anything was written"
    } else {
        "the journal has no offer for it"
    }
}

/// What is known of a message that was offered, and of which nobody knows more. A door answers
/// before it has put anything before its agent.
fn offered_so(receipt: &Receipt, proven: Proven) -> Option<String> {
    let evidence = receipt.evidence.clone()?;
    Some(match proven {
        Proven::Unproven => format!("{evidence}; {AWAITED}"),
        Proven::Stored
        | Proven::Offering
        | Proven::Uncertain
        | Proven::Offered
        | Proven::Accepted => evidence,
    })
}

/// Since when it stands where it does. Reminders and answers do not move it.
fn arrived(letter: &Letter) -> Timestamp {
    let moves = |state: &str| state != Step::Reminded.as_str() && state != Step::Answered.as_str();
    let last = letter.receipts.iter().rfind(|r| moves(&r.state));
    last.map_or(letter.message.created_at, |receipt| receipt.at)
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
    use crate::mail::tests::{message, with_steps};
    use crate::receipt::Standing;

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
        check("bob", None, &[Step::Shown], "shown");
        let unprinted = [Step::Shown, Step::Uncertain];
        check("bob", None, &unprinted, "uncertain");
        let repeated = [Step::Shown, Step::Uncertain, Step::Shown];
        check("bob", None, &repeated, "shown");
        check("bob", Some(2_000), &[Step::Shown], "shown");
        check("bob", None, &[Step::Offering], "offering");
        check("bob", None, &[Step::Offering, Step::Uncertain], "uncertain");
        check("bob", None, &[Step::Read], "read");
        check("bob", None, &[Step::Cancelled], "cancelled");
    }

    #[test]
    fn an_offer_that_was_taken_back_is_named() {
        let now = Timestamp::from_second(1_000).unwrap();
        let letter = with_steps(
            &message(1, "alice", "bob"),
            &[Step::Offering, Step::Withdrawn],
        );
        let Why::Held(hold) = why(&letter, now) else {
            panic!("nothing holds it");
        };
        let evidence = "every offer of it was taken back before anything was written";
        assert_eq!((hold.rule, &*hold.evidence), ("no-session", evidence));
    }

    #[test]
    fn an_offer_whose_proof_is_awaited_says_so() {
        let now = Timestamp::from_second(1_000).unwrap();
        let check = |steps: &[Step], is_awaited: bool, want: Option<&str>| {
            let mut letter = with_steps(&message(1, "alice", "bob"), steps);
            for receipt in &mut letter.receipts {
                receipt.evidence = Some("written".to_owned());
            }
            if is_awaited {
                letter.standing.proven = Proven::Unproven;
            }
            assert_eq!(reason(&letter, now).as_deref(), want, "{steps:?}");
        };
        let offered = [Step::Offering, Step::Offered];
        check(&offered, false, Some("written"));
        check(&offered, true, Some(&format!("written; {AWAITED}")));
        let accepted = [Step::Offering, Step::Offered, Step::Accepted];
        check(&accepted, false, None);
    }

    #[test]
    fn a_session_that_does_not_answer_is_no_session_that_is_not_there() {
        let now = Timestamp::from_second(1_000).unwrap();
        let check = |not_before: Option<i64>, steps: &[Step], want: &str| {
            let mut message = message(1, "alice", "bob");
            message.envelope.not_before = not_before.map(|s| Timestamp::from_second(s).unwrap());
            let letter = with_steps(&message, steps);
            let got = match why_live(&letter, now, Some(silent(&letter, now))) {
                Why::Held(hold) => hold.rule,
                Why::Arrived { state, .. } => state.as_str(),
            };
            assert_eq!(got, want, "{not_before:?} {steps:?}");
        };
        check(None, &[], "silent-session");
        check(Some(2_000), &[], "not-before");
        check(None, &[Step::Offering], "silent-session");
        check(None, &[Step::Shown], "shown");
        check(None, &[Step::Read], "read");
    }

    #[test]
    fn a_running_session_knows_better() {
        let now = Timestamp::from_second(1_000).unwrap();
        let held = Hold {
            rule: "working",
            since: now,
            reason: String::new(),
            evidence: String::new(),
            release: String::new(),
        };
        let check = |steps: &[Step], held: Option<&Hold>, want: &str| {
            let letter = with_steps(&message(1, "alice", "bob"), steps);
            let got = match why_live(&letter, now, held.cloned()) {
                Why::Held(hold) => hold.rule,
                Why::Arrived { state, .. } => state.as_str(),
            };
            assert_eq!(got, want, "{steps:?} {held:?}");
        };
        check(&[], None, "next");
        check(&[], Some(&held), "working");
        let cut = [Step::Offering, Step::Uncertain];
        check(&cut, Some(&held), "working");
        check(&cut, None, "next");
        check(&[Step::Offering], None, "offering");
        check(&[Step::Offering], Some(&held), "working");
        check(&[Step::Shown], None, "shown");
        check(&[Step::Read], Some(&held), "read");
        check(&[Step::Cancelled], Some(&held), "cancelled");
    }
}
