//! Offers: the steps that a session may record about a message that it delivers.
//!
//! Each is decided inside the journal's transaction: the message may have been read, cancelled or
//! shown by another route since the session loaded it.

use crate::fact::{Event, Progress};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::mail::pending_replies;
use crate::name::AgentName;
use crate::promotion;
use crate::receipt::{Proven, ReceiptState, Step};
use jiff::Timestamp;

/// Why a step is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    #[error("the message does not exist")]
    NotFound,
    #[error("it belongs to {0}")]
    NotYours(AgentName),
    #[error("it has been read")]
    Read,
    #[error("it has ended: {0}")]
    Ended(ReceiptState),
    #[error("it is not due before {0}")]
    NotDue(Timestamp),
    #[error("a hook has put it before the agent")]
    Shown,
    #[error("it was offered already: {0}")]
    Already(ReceiptState),
    #[error("it is not being offered: {0}")]
    NotOffering(ReceiptState),
    #[error("it may have been shown in the meantime, so its offer must be marked as a repeat")]
    Unmarked,
    #[error("it was never shown to the agent")]
    NotSeen,
    #[error("no reply is expected, or the agent was reminded often enough")]
    NotOwed,
}

/// A session's report about an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// The message is about to be shown, by this route.
    Offering {
        route: String,
        /// Messages that the offer marks as repeats.
        repeats: Vec<MessageId>,
    },
    /// The message was written completely to a live program, or passed to its hook.
    Offered {
        route: String,
        evidence: String,
        /// See [`Progress::proof_awaited`].
        proof_awaited: bool,
    },
    /// The agent's own record shows the message.
    Accepted { route: String, evidence: String },
    /// The offer was cut off.
    Uncertain { reason: String },
    /// The offer ended before anything was written.
    Withdrawn { reason: String },
    /// The agent is about to be reminded of the reply.
    Reminded { route: String },
    /// The message will never be offered.
    Failed { reason: String },
}

/// Return the step to record for a message of `agent`, or why it is refused.
pub fn decide(
    now: Timestamp,
    agent: &AgentName,
    mail: &MessageState,
    said: &Said,
) -> Result<Event, Kept> {
    let message = &mail.message;
    if message.to != *agent {
        return Err(Kept::NotYours(message.to.clone()));
    }
    may_be_said(now, mail, said)?;
    Ok(Event::Progress(progress(now, mail, said)))
}

/// Whether the message's state allows the step.
fn may_be_said(now: Timestamp, mail: &MessageState, said: &Said) -> Result<(), Kept> {
    match said {
        Said::Offering { repeats, .. } => {
            may_be_offered(now, mail)?;
            is_marked(mail, repeats)
        }
        // A raw answer without effect fails while its offer is under way.
        Said::Failed { .. } => is_offering(mail).or_else(|_| may_be_offered(now, mail)),
        // The proof did not arrive, or is no longer awaited.
        Said::Uncertain { .. } if mail.status.proven == Proven::Unproven => Ok(()),
        // Whether a proof is awaited may change later.
        Said::Offered { .. } if is_offered(mail) => Ok(()),
        Said::Offered { .. } | Said::Withdrawn { .. } | Said::Uncertain { .. } => is_offering(mail),
        Said::Accepted { .. } => may_be_accepted(mail),
        Said::Reminded { .. } if pending_replies::may_be_reminded(mail, now) => Ok(()),
        Said::Reminded { .. } => Err(Kept::NotOwed),
    }
}

/// Return the data of the step.
fn progress(now: Timestamp, mail: &MessageState, said: &Said) -> Progress {
    let message = &mail.message;
    let step = |step| Progress::of(message.id, step);
    match said {
        Said::Offering { route, .. } => Progress {
            route: Some(route.clone()),
            attempt: Some(1 + mail.offers()),
            evidence: promotion::evidence(message, now),
            ..step(Step::Offering)
        },
        Said::Offered {
            route,
            evidence,
            proof_awaited,
        } => Progress {
            route: Some(route.clone()),
            evidence: Some(evidence.clone()),
            proof_awaited: *proof_awaited,
            ..step(Step::Offered)
        },
        Said::Accepted { route, evidence } => Progress {
            route: Some(route.clone()),
            evidence: Some(evidence.clone()),
            ..step(Step::Accepted)
        },
        Said::Uncertain { reason } => Progress {
            reason: Some(reason.clone()),
            ..step(Step::Uncertain)
        },
        Said::Withdrawn { reason } => Progress {
            reason: Some(reason.clone()),
            ..step(Step::Withdrawn)
        },
        Said::Reminded { route } => Progress {
            route: Some(route.clone()),
            attempt: Some(1 + mail.status.reminded),
            ..step(Step::Reminded)
        },
        Said::Failed { reason } => Progress {
            reason: Some(reason.clone()),
            ..step(Step::Failed)
        },
    }
}

fn may_be_offered(now: Timestamp, mail: &MessageState) -> Result<(), Kept> {
    let status = mail.status.at(&mail.message, now);
    match (status.end, mail.message.envelope.not_before) {
        (Some(_), _) => return Err(Kept::Ended(status.receipt())),
        (None, Some(due)) if due > now => return Err(Kept::NotDue(due)),
        (None, _) if status.read => return Err(Kept::Read),
        (None, _) => {}
    }
    match status.proven {
        // A hook showed the message, so no other route may.
        Proven::Stored | Proven::Uncertain if status.shown => Err(Kept::Shown),
        Proven::Stored | Proven::Uncertain => Ok(()),
        Proven::Offering | Proven::Offered | Proven::Unproven | Proven::Accepted => {
            Err(Kept::Already(status.receipt()))
        }
    }
}

fn is_offered(mail: &MessageState) -> bool {
    matches!(mail.status.proven, Proven::Offered | Proven::Unproven)
}

/// Refuse an unmarked offer of a repeat. A message can become a repeat after the caller loaded it,
/// if a hook was killed meanwhile.
fn is_marked(mail: &MessageState, repeats: &[MessageId]) -> Result<(), Kept> {
    match mail.is_repeat() && !repeats.contains(&mail.message.id) {
        true => Err(Kept::Unmarked),
        false => Ok(()),
    }
}

/// Whether an offer is under way, regardless of other steps.
fn is_offering(mail: &MessageState) -> Result<(), Kept> {
    match mail.status.proven {
        Proven::Offering => Ok(()),
        Proven::Stored
        | Proven::Uncertain
        | Proven::Offered
        | Proven::Unproven
        | Proven::Accepted => Err(Kept::NotOffering(mail.status.receipt())),
    }
}

/// The agent's proof may precede the session's `offered`: a hook is faster than a commit.
fn may_be_accepted(mail: &MessageState) -> Result<(), Kept> {
    match mail.status.proven {
        Proven::Accepted => Err(Kept::Already(mail.status.receipt())),
        _ if !mail.status.is_reached() => Err(Kept::NotSeen),
        Proven::Stored
        | Proven::Offering
        | Proven::Uncertain
        | Proven::Offered
        | Proven::Unproven => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, name, with_steps};
    use Step::*;

    fn second(at: i64) -> Timestamp {
        Timestamp::from_second(at).unwrap()
    }

    fn offering() -> Said {
        Said::Offering {
            route: "terminal".into(),
            repeats: vec![message(1, "alice", "bob").id],
        }
    }

    fn offered() -> Said {
        Said::Offered {
            route: "terminal".into(),
            evidence: "written".into(),
            proof_awaited: false,
        }
    }

    fn accepted() -> Said {
        Said::Accepted {
            route: "terminal".into(),
            evidence: "hook".into(),
        }
    }

    fn uncertain() -> Said {
        Said::Uncertain {
            reason: "crash".into(),
        }
    }

    fn withdrawn() -> Said {
        Said::Withdrawn {
            reason: "a draft".into(),
        }
    }

    #[test]
    fn a_step_is_recorded_only_if_the_state_allows_it() {
        let check = |said: Said, before: &[Step], want: Result<Step, Kept>| {
            let mail = with_steps(&message(1, "alice", "bob"), before);
            let got = decide(second(1_000), &name("bob"), &mail, &said);
            let got = got.map(|event| match event {
                Event::Progress(progress) => progress.step,
                other => panic!("{other:?}"),
            });
            assert_eq!(got, want, "{said:?} after {before:?}");
        };
        let already = |state| Err(Kept::Already(state));
        let idle = |state| Err(Kept::NotOffering(state));
        check(offering(), &[], Ok(Offering));
        check(offering(), &[Offering, Uncertain], Ok(Offering));
        let unmarked = || Said::Offering {
            route: "terminal".into(),
            repeats: Vec::new(),
        };
        check(unmarked(), &[], Ok(Offering));
        check(unmarked(), &[Offering, Uncertain], Err(Kept::Unmarked));
        check(offering(), &[Read, Unread], Ok(Offering));
        check(offering(), &[Offering], already(ReceiptState::Offering));
        let done = [Offering, Offered];
        check(offering(), &done, already(ReceiptState::Offered));
        check(offering(), &[Accepted], already(ReceiptState::Accepted));
        check(offering(), &[Shown], Err(Kept::Shown));
        let cut_and_shown = [Offering, Uncertain, Shown];
        check(offering(), &cut_and_shown, Err(Kept::Shown));
        check(offering(), &[Read], Err(Kept::Read));
        for (end, state) in [
            (Archived, ReceiptState::Archived),
            (Deleted, ReceiptState::Deleted),
            (Cancelled, ReceiptState::Cancelled),
            (Expired, ReceiptState::Expired),
            (Failed, ReceiptState::Failed),
        ] {
            check(offering(), &[end], Err(Kept::Ended(state)));
        }

        check(offered(), &done, Ok(Offered));
        for said in [uncertain(), withdrawn()] {
            check(said, &done, idle(ReceiptState::Offered));
        }
        for said in [offered(), uncertain(), withdrawn()] {
            check(said.clone(), &[], idle(ReceiptState::Stored));
            let cut = [Offering, Uncertain];
            check(said.clone(), &cut, idle(ReceiptState::Uncertain));
            check(said, &[Accepted], idle(ReceiptState::Accepted));
        }
        check(uncertain(), &[Shown], idle(ReceiptState::Stored));
        // Then the message may be offered and shown again.
        check(offering(), &[Shown, Uncertain], Ok(Offering));
        check(offered(), &[Offering], Ok(Offered));
        check(uncertain(), &[Offering], Ok(Uncertain));
        check(withdrawn(), &[Offering], Ok(Withdrawn));
        check(offering(), &[Offering, Withdrawn], Ok(Offering));
        check(accepted(), &[Offering, Withdrawn], Err(Kept::NotSeen));
        // The message was written nevertheless.
        check(offered(), &[Offering, Read], Ok(Offered));
        check(offered(), &[Offering, Archived], Ok(Offered));
        check(uncertain(), &[Offering, Deleted], Ok(Uncertain));

        check(accepted(), &[], Err(Kept::NotSeen));
        check(accepted(), &[Offering], Ok(Accepted));
        check(accepted(), &done, Ok(Accepted));
        check(accepted(), &[Offering, Uncertain], Ok(Accepted));
        check(accepted(), &[Shown], Ok(Accepted));
        check(accepted(), &[Accepted], already(ReceiptState::Accepted));

        let failed = || Said::Failed {
            reason: "gone".into(),
        };
        check(failed(), &[], Ok(Failed));
        check(failed(), &[Offering, Uncertain], Ok(Failed));
        check(failed(), &[Read], Err(Kept::Read));
        check(failed(), &done, already(ReceiptState::Offered));
        check(reminded(), &done, Err(Kept::NotOwed));
    }

    fn reminded() -> Said {
        Said::Reminded {
            route: "terminal".into(),
        }
    }

    #[test]
    fn a_reply_before_the_reminder_wins() {
        let mut asked = message(1, "alice", "bob");
        asked.envelope.expects_reply = true;
        let check = |before: &[Step], want: Result<u32, Kept>| {
            let mail = with_steps(&asked, before);
            let got = decide(second(1_000), &name("bob"), &mail, &reminded());
            let got = got.map(|event| match event {
                Event::Progress(progress) => progress.attempt.unwrap(),
                other => panic!("{other:?}"),
            });
            assert_eq!(got, want, "{before:?}");
        };
        check(&[], Err(Kept::NotOwed));
        check(&[Offering, Offered], Ok(1));
        check(&[Offering, Offered, Reminded, Reminded], Ok(3));
        check(&[Offering, Offered, Answered], Err(Kept::NotOwed));
        check(&[Offering, Offered, Archived], Err(Kept::NotOwed));
    }

    #[test]
    fn a_promotion_is_evidence_in_the_receipt() {
        let mut late = message(1, "alice", "bob");
        late.envelope.priority = crate::priority::Priority::Idle;
        late.envelope.deadline = Some(second(1_000));
        let mail = with_steps(&late, &[]);
        let evidence = |now: i64| match decide(second(now), &name("bob"), &mail, &offering()) {
            Ok(Event::Progress(progress)) => progress.evidence,
            other => panic!("{other:?}"),
        };
        assert_eq!(evidence(999), None);
        let promoted = evidence(1_000).unwrap();
        assert!(
            promoted.starts_with("promoted from idle to normal"),
            "{promoted}"
        );
    }

    #[test]
    fn an_offer_needs_the_right_agent_and_time() {
        let mut plain = message(1, "alice", "bob");
        let check = |mail: &MessageState, agent: &str, now: i64, want: Result<(), Kept>| {
            let got = decide(second(now), &name(agent), mail, &offering());
            assert_eq!(got.map(drop), want, "{agent} at {now}");
        };
        plain.envelope.not_before = Some(second(1_000));
        plain.envelope.expires_at = Some(second(2_000));
        let mail = with_steps(&plain, &[]);
        check(&mail, "bob", 999, Err(Kept::NotDue(second(1_000))));
        check(&mail, "bob", 1_000, Ok(()));
        check(&mail, "carol", 1_000, Err(Kept::NotYours(name("bob"))));
        let ended = Err(Kept::Ended(ReceiptState::Expired));
        check(&mail, "bob", 2_000, ended);
        // A seen message does not expire.
        let cut = with_steps(&plain, &[Offering, Uncertain]);
        check(&cut, "bob", 2_000, Ok(()));
    }

    #[test]
    fn attempts_are_counted() {
        let check = |before: &[Step], want: u32| {
            let mail = with_steps(&message(1, "alice", "bob"), before);
            match decide(second(0), &name("bob"), &mail, &offering()) {
                Ok(Event::Progress(progress)) => assert_eq!(progress.attempt, Some(want)),
                other => panic!("{other:?}"),
            }
        };
        check(&[], 1);
        check(&[Offering, Uncertain], 2);
        check(&[Offering, Uncertain, Offering, Uncertain], 3);
    }
}
