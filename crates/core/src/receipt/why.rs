//! Explains a message's state: the rule that holds it, since when, the evidence, and its release.
//!
//! A reason is derived from the current state, never stored.

use crate::inject;
use crate::mail::MessageState;
use crate::receipt::{Proven, Receipt, ReceiptState, Step};
use jiff::Timestamp;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Why {
    Held(Hold),
    /// No rule holds the message: it has reached `state`.
    Arrived {
        state: ReceiptState,
        since: Timestamp,
        /// The recorded reason, if the state is a failure or not final.
        reason: Option<String>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hold {
    pub rule: &'static str,
    pub since: Timestamp,
    /// The rule in one sentence.
    pub reason: String,
    pub evidence: String,
    pub release: String,
}

const AWAITED: &str = "a proof that the model was given it is awaited; if the agent ends without one, the \
     message is offered again, marked as a repeat";

pub fn why(mail: &MessageState, now: Timestamp) -> Why {
    let message = &mail.message;
    let status = mail.status.at(message, now);
    let state = status.receipt();
    match state {
        ReceiptState::Stored => Why::Held(hold(mail, now)),
        // Cut off once, and shown by a hook since.
        ReceiptState::Uncertain if status.shown => Why::Held(hold(mail, now)),
        ReceiptState::Uncertain => Why::Held(uncertain(mail)),
        ReceiptState::Offering => Why::Held(offering(mail)),
        ReceiptState::Expired => Why::Arrived {
            state,
            since: message.envelope.expires_at.unwrap_or(message.created_at),
            reason: None,
        },
        ReceiptState::Failed => {
            let failed = Step::Failed.as_str();
            let receipt = mail.receipts.iter().find(|r| r.state == failed);
            Why::Arrived {
                state,
                since: receipt.map_or_else(|| last_step(mail), |receipt| receipt.at),
                reason: receipt.and_then(|receipt| receipt.reason.clone()),
            }
        }
        // For example, that the text is in the input box without having been submitted.
        ReceiptState::Offered => {
            let offered = Step::Offered.as_str();
            let mut receipts = mail.receipts.iter().rev();
            let receipt = receipts.find(|receipt| receipt.state == offered);
            Why::Arrived {
                state,
                since: last_change(mail),
                reason: receipt.and_then(|receipt| offer_reason(receipt, status.proven)),
            }
        }
        ReceiptState::Accepted
        | ReceiptState::Read
        | ReceiptState::Archived
        | ReceiptState::Deleted
        | ReceiptState::Cancelled => Why::Arrived {
            state,
            since: last_change(mail),
            reason: None,
        },
    }
}

fn uncertain(mail: &MessageState) -> Hold {
    Hold {
        rule: "uncertain",
        since: last_step(mail),
        reason: "an offer was cut off; the agent may have seen it".to_owned(),
        evidence: cut_off_reason(mail),
        release: "it is offered again, marked as a repeat, when a session runs".to_owned(),
    }
}

fn offering(mail: &MessageState) -> Hold {
    let (reason, release) = if inject::is_under_way(mail) {
        (
            "a hook of its agent is printing it, or was killed while printing",
            "the hook ends; the next hook or session then offers it again, marked as a repeat, if \
             the hook has not printed it"
                .to_owned(),
        )
    } else {
        (
            "its offer has begun, and its end is not in the journal yet",
            format!(
                "its session records the end; if the session is gone, the next session of {} \
                 offers it again, marked as a repeat",
                mail.message.to
            ),
        )
    };
    Hold {
        rule: "offering",
        since: last_step(mail),
        reason: reason.to_owned(),
        evidence: "the journal has 'offering' and no 'offered'".to_owned(),
        release,
    }
}

/// Like [`why`], for an agent whose session runs: `held` is the session's own reason (see
/// [`crate::delivery::Delivery::hold`]).
pub fn why_live(mail: &MessageState, now: Timestamp, held: Option<Hold>) -> Why {
    let on_record = why(mail, now);
    let state = mail.status.at(&mail.message, now).receipt();
    match (state, held) {
        (ReceiptState::Stored | ReceiptState::Uncertain, _) if mail.status.shown => on_record,
        (ReceiptState::Stored, None) if !mail.message.is_due(now) => on_record,
        (ReceiptState::Stored | ReceiptState::Uncertain | ReceiptState::Offering, Some(hold)) => {
            Why::Held(hold)
        }
        (ReceiptState::Stored | ReceiptState::Uncertain, None) => Why::Held(Hold {
            rule: "next",
            since: due(mail),
            reason: "nothing holds it: its session is about to offer it".to_owned(),
            evidence: "it is in the next turn".to_owned(),
            release: "it is written now".to_owned(),
        }),
        // The message is being written.
        (ReceiptState::Offering, None) => Why::Arrived {
            state,
            since: last_step(mail),
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

/// Return the hold for a message whose session runs and does not respond.
pub fn silent(mail: &MessageState, now: Timestamp) -> Hold {
    let to = &mail.message.to;
    not_before(mail, now).unwrap_or_else(|| Hold {
        rule: "silent-session",
        since: due(mail),
        reason: format!("the session of {to} runs and does not respond"),
        evidence: "it holds its lock and did not respond just now".to_owned(),
        release: format!("the session responds again, or you restart it ('ph restart {to}')"),
    })
}

/// Return the recorded reason of an uncertain message.
fn cut_off_reason(mail: &MessageState) -> String {
    let is_cut = |receipt: &&Receipt| receipt.state == Step::Uncertain.as_str();
    let latest = mail.receipts.iter().rfind(is_cut);
    let reason = latest.and_then(|receipt| receipt.reason.clone());
    reason.unwrap_or_else(|| "the journal has 'uncertain' without a reason".to_owned())
}

/// Return the time from which the message could be delivered.
pub(crate) fn due(mail: &MessageState) -> Timestamp {
    let message = &mail.message;
    let not_before = message.envelope.not_before;
    not_before.map_or(message.created_at, |due| due.max(message.created_at))
}

/// Return the reason in one sentence, if a rule holds the message or it failed.
pub fn reason(mail: &MessageState, now: Timestamp) -> Option<String> {
    match why(mail, now) {
        Why::Held(hold) => Some(hold.reason),
        Why::Arrived { reason, .. } => reason,
    }
}

/// Return the hold for a message that its sender scheduled for later.
pub(crate) fn not_before(mail: &MessageState, now: Timestamp) -> Option<Hold> {
    let message = &mail.message;
    let due = message.envelope.not_before.filter(|due| *due > now)?;
    let is_open = mail.status.is_unread() && !mail.status.is_offered_or_shown();
    is_open.then(|| Hold {
        rule: "not-before",
        since: message.created_at,
        reason: format!("its sender scheduled it for {due}"),
        evidence: format!("the message has 'not before {due}'"),
        release: format!(
            "the time comes, or 'ph cancel {}' cancels it",
            message.id.id8()
        ),
    })
}

fn hold(mail: &MessageState, now: Timestamp) -> Hold {
    if let Some(hold) = not_before(mail, now) {
        return hold;
    }
    let to = &mail.message.to;
    if to.is_human() {
        return Hold {
            rule: "unread",
            since: due(mail),
            reason: "it is in the person's inbox and has not been read".to_owned(),
            evidence: "the journal has no 'read' for it".to_owned(),
            release: format!("'ph read {}'", mail.message.id.id8()),
        };
    }
    if mail.status.shown {
        return Hold {
            rule: "shown",
            since: last_step(mail),
            reason: format!("a hook showed it to {to}, and no route offers it again"),
            evidence: "the journal has 'shown' and no 'read' for it".to_owned(),
            release: format!("{to} reads it ('ph read {}')", mail.message.id.id8()),
        };
    }
    Hold {
        rule: "no-session",
        since: due(mail),
        reason: format!("no session of {to} has offered it; it waits in the inbox"),
        evidence: no_offer(mail).to_owned(),
        release: format!(
            "a session of {to} is started ('ph run --name {to} COMMAND', or 'ph restart {to}' where \
             it has run), or {to} asks for its mail ('ph inbox', 'ph read', 'ph check --inject')"
        ),
    }
}

fn no_offer(mail: &MessageState) -> &'static str {
    let withdrawn = Step::Withdrawn.as_str();
    if mail.receipts.iter().any(|r| r.state == withdrawn) {
        "every offer was withdrawn before anything was written"
    } else {
        "the journal has no offer for it"
    }
}

/// Return the reason recorded with an offer that is not proven further. An agent's HTTP API
/// responds before it shows the message.
fn offer_reason(receipt: &Receipt, proven: Proven) -> Option<String> {
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

/// Return the time of the last state change. Reminders and replies do not change the state.
fn last_change(mail: &MessageState) -> Timestamp {
    let moves = |state: &str| state != Step::Reminded.as_str() && state != Step::Answered.as_str();
    let last = mail.receipts.iter().rfind(|r| moves(&r.state));
    last.map_or(mail.message.created_at, |receipt| receipt.at)
}

fn last_step(mail: &MessageState) -> Timestamp {
    mail.receipts
        .last()
        .map_or(mail.message.created_at, |receipt| receipt.at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, with_steps};
    use crate::receipt::MessageStatus;

    #[test]
    fn every_state_has_a_reason_or_is_an_arrival() {
        let now = Timestamp::from_second(1_000).unwrap();
        let check = |to: &str, not_before: Option<i64>, steps: &[Step], want: &str| {
            let mut message = message(1, "alice", to);
            message.envelope.not_before = not_before.map(|s| Timestamp::from_second(s).unwrap());
            let mut status = MessageStatus::default();
            steps.iter().for_each(|s| status.apply(*s));
            let got = match why(
                &MessageState {
                    message,
                    status,
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
    fn a_withdrawn_offer_is_named() {
        let now = Timestamp::from_second(1_000).unwrap();
        let mail = with_steps(
            &message(1, "alice", "bob"),
            &[Step::Offering, Step::Withdrawn],
        );
        let Why::Held(hold) = why(&mail, now) else {
            panic!("nothing holds it");
        };
        let evidence = "every offer was withdrawn before anything was written";
        assert_eq!((hold.rule, &*hold.evidence), ("no-session", evidence));
    }

    #[test]
    fn an_offer_whose_proof_is_awaited_says_so() {
        let now = Timestamp::from_second(1_000).unwrap();
        let check = |steps: &[Step], is_awaited: bool, want: Option<&str>| {
            let mut mail = with_steps(&message(1, "alice", "bob"), steps);
            for receipt in &mut mail.receipts {
                receipt.evidence = Some("written".to_owned());
            }
            if is_awaited {
                mail.status.proven = Proven::Unproven;
            }
            assert_eq!(reason(&mail, now).as_deref(), want, "{steps:?}");
        };
        let offered = [Step::Offering, Step::Offered];
        check(&offered, false, Some("written"));
        check(&offered, true, Some(&format!("written; {AWAITED}")));
        let accepted = [Step::Offering, Step::Offered, Step::Accepted];
        check(&accepted, false, None);
    }

    #[test]
    fn an_unresponsive_session_differs_from_a_missing_one() {
        let now = Timestamp::from_second(1_000).unwrap();
        let check = |not_before: Option<i64>, steps: &[Step], want: &str| {
            let mut message = message(1, "alice", "bob");
            message.envelope.not_before = not_before.map(|s| Timestamp::from_second(s).unwrap());
            let mail = with_steps(&message, steps);
            let got = match why_live(&mail, now, Some(silent(&mail, now))) {
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
    fn a_running_session_gives_the_reason() {
        let now = Timestamp::from_second(1_000).unwrap();
        let held = Hold {
            rule: "working",
            since: now,
            reason: String::new(),
            evidence: String::new(),
            release: String::new(),
        };
        let check = |steps: &[Step], held: Option<&Hold>, want: &str| {
            let mail = with_steps(&message(1, "alice", "bob"), steps);
            let got = match why_live(&mail, now, held.cloned()) {
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
