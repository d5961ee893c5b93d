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

/// Reason to refuse a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StepRefusal {
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
    #[error("a hook has shown it to the agent")]
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
pub enum OfferReport {
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
    report: &OfferReport,
) -> Result<Event, StepRefusal> {
    let message = &mail.message;
    if message.to != *agent {
        return Err(StepRefusal::NotYours(message.to.clone()));
    }
    check_report(now, mail, report)?;
    Ok(Event::Progress(progress(now, mail, report)))
}

/// Check that the message's state allows the step.
fn check_report(
    now: Timestamp,
    mail: &MessageState,
    report: &OfferReport,
) -> Result<(), StepRefusal> {
    match report {
        OfferReport::Offering { repeats, .. } => {
            check_offerable(now, mail)?;
            check_marked(mail, repeats)
        }
        // A raw answer without effect fails while its offer is under way.
        OfferReport::Failed { .. } => check_offering(mail).or_else(|_| check_offerable(now, mail)),
        // The proof did not arrive, or is no longer awaited.
        OfferReport::Uncertain { .. } if mail.status.proven == Proven::Unproven => Ok(()),
        // Whether a proof is awaited may change later.
        OfferReport::Offered { .. } if is_offered(mail) => Ok(()),
        OfferReport::Offered { .. }
        | OfferReport::Withdrawn { .. }
        | OfferReport::Uncertain { .. } => check_offering(mail),
        OfferReport::Accepted { .. } => check_acceptable(mail),
        OfferReport::Reminded { .. } if pending_replies::may_be_reminded(mail, now) => Ok(()),
        OfferReport::Reminded { .. } => Err(StepRefusal::NotOwed),
    }
}

/// Return the data of the step.
fn progress(now: Timestamp, mail: &MessageState, report: &OfferReport) -> Progress {
    let message = &mail.message;
    let step = |step| Progress::of(message.id, step);
    match report {
        OfferReport::Offering { route, .. } => Progress {
            route: Some(route.clone()),
            attempt: Some(1 + mail.offers()),
            evidence: promotion::evidence(message, now),
            ..step(Step::Offering)
        },
        OfferReport::Offered {
            route,
            evidence,
            proof_awaited,
        } => Progress {
            route: Some(route.clone()),
            evidence: Some(evidence.clone()),
            proof_awaited: *proof_awaited,
            ..step(Step::Offered)
        },
        OfferReport::Accepted { route, evidence } => Progress {
            route: Some(route.clone()),
            evidence: Some(evidence.clone()),
            ..step(Step::Accepted)
        },
        OfferReport::Uncertain { reason } => Progress {
            reason: Some(reason.clone()),
            ..step(Step::Uncertain)
        },
        OfferReport::Withdrawn { reason } => Progress {
            reason: Some(reason.clone()),
            ..step(Step::Withdrawn)
        },
        OfferReport::Reminded { route } => Progress {
            route: Some(route.clone()),
            attempt: Some(1 + mail.status.reminded),
            ..step(Step::Reminded)
        },
        OfferReport::Failed { reason } => Progress {
            reason: Some(reason.clone()),
            ..step(Step::Failed)
        },
    }
}

fn check_offerable(now: Timestamp, mail: &MessageState) -> Result<(), StepRefusal> {
    let status = mail.status.at(&mail.message, now);
    match (status.end, mail.message.envelope.not_before) {
        (Some(_), _) => return Err(StepRefusal::Ended(status.receipt())),
        (None, Some(due)) if due > now => return Err(StepRefusal::NotDue(due)),
        (None, _) if status.read => return Err(StepRefusal::Read),
        (None, _) => {}
    }
    match status.proven {
        // A hook showed the message, so no other route may.
        Proven::Stored | Proven::Uncertain if status.shown => Err(StepRefusal::Shown),
        Proven::Stored | Proven::Uncertain => Ok(()),
        Proven::Offering | Proven::Offered | Proven::Unproven | Proven::Accepted => {
            Err(StepRefusal::Already(status.receipt()))
        }
    }
}

fn is_offered(mail: &MessageState) -> bool {
    matches!(mail.status.proven, Proven::Offered | Proven::Unproven)
}

/// Check that a repeat is marked. A message can become a repeat after the caller loaded it,
/// if a hook was killed meanwhile.
fn check_marked(mail: &MessageState, repeats: &[MessageId]) -> Result<(), StepRefusal> {
    match mail.is_repeat() && !repeats.contains(&mail.message.id) {
        true => Err(StepRefusal::Unmarked),
        false => Ok(()),
    }
}

/// Check that an offer is open, regardless of other steps.
fn check_offering(mail: &MessageState) -> Result<(), StepRefusal> {
    match mail.status.proven {
        Proven::Offering => Ok(()),
        Proven::Stored
        | Proven::Uncertain
        | Proven::Offered
        | Proven::Unproven
        | Proven::Accepted => Err(StepRefusal::NotOffering(mail.status.receipt())),
    }
}

/// Check that the message can become accepted. The agent's proof may precede the session's `offered`,
/// because a hook is faster than a commit.
fn check_acceptable(mail: &MessageState) -> Result<(), StepRefusal> {
    match mail.status.proven {
        Proven::Accepted => Err(StepRefusal::Already(mail.status.receipt())),
        _ if !mail.status.is_reached() => Err(StepRefusal::NotSeen),
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

    fn offering() -> OfferReport {
        OfferReport::Offering {
            route: "terminal".into(),
            repeats: vec![message(1, "alice", "bob").id],
        }
    }

    fn offered() -> OfferReport {
        OfferReport::Offered {
            route: "terminal".into(),
            evidence: "written".into(),
            proof_awaited: false,
        }
    }

    fn accepted() -> OfferReport {
        OfferReport::Accepted {
            route: "terminal".into(),
            evidence: "hook".into(),
        }
    }

    fn uncertain() -> OfferReport {
        OfferReport::Uncertain {
            reason: "crash".into(),
        }
    }

    fn withdrawn() -> OfferReport {
        OfferReport::Withdrawn {
            reason: "a draft".into(),
        }
    }

    #[test]
    fn a_step_is_recorded_only_if_the_state_allows_it() {
        let check = |report: OfferReport, before: &[Step], want: Result<Step, StepRefusal>| {
            let mail = with_steps(&message(1, "alice", "bob"), before);
            let got = decide(second(1_000), &name("bob"), &mail, &report);
            let got = got.map(|event| match event {
                Event::Progress(progress) => progress.step,
                other => panic!("{other:?}"),
            });
            assert_eq!(got, want, "{report:?} after {before:?}");
        };
        let already = |state| Err(StepRefusal::Already(state));
        let idle = |state| Err(StepRefusal::NotOffering(state));
        check(offering(), &[], Ok(Offering));
        check(offering(), &[Offering, Uncertain], Ok(Offering));
        let unmarked = || OfferReport::Offering {
            route: "terminal".into(),
            repeats: Vec::new(),
        };
        check(unmarked(), &[], Ok(Offering));
        check(
            unmarked(),
            &[Offering, Uncertain],
            Err(StepRefusal::Unmarked),
        );
        check(offering(), &[Read, Unread], Ok(Offering));
        check(offering(), &[Offering], already(ReceiptState::Offering));
        let done = [Offering, Offered];
        check(offering(), &done, already(ReceiptState::Offered));
        check(offering(), &[Accepted], already(ReceiptState::Accepted));
        check(offering(), &[Shown], Err(StepRefusal::Shown));
        let cut_and_shown = [Offering, Uncertain, Shown];
        check(offering(), &cut_and_shown, Err(StepRefusal::Shown));
        check(offering(), &[Read], Err(StepRefusal::Read));
        for (end, state) in [
            (Archived, ReceiptState::Archived),
            (Deleted, ReceiptState::Deleted),
            (Cancelled, ReceiptState::Cancelled),
            (Expired, ReceiptState::Expired),
            (Failed, ReceiptState::Failed),
        ] {
            check(offering(), &[end], Err(StepRefusal::Ended(state)));
        }

        check(offered(), &done, Ok(Offered));
        for report in [uncertain(), withdrawn()] {
            check(report, &done, idle(ReceiptState::Offered));
        }
        for report in [offered(), uncertain(), withdrawn()] {
            check(report.clone(), &[], idle(ReceiptState::Stored));
            let cut = [Offering, Uncertain];
            check(report.clone(), &cut, idle(ReceiptState::Uncertain));
            check(report, &[Accepted], idle(ReceiptState::Accepted));
        }
        check(uncertain(), &[Shown], idle(ReceiptState::Stored));
        // Then the message may be offered and shown again.
        check(offering(), &[Shown, Uncertain], Ok(Offering));
        check(offered(), &[Offering], Ok(Offered));
        check(uncertain(), &[Offering], Ok(Uncertain));
        check(withdrawn(), &[Offering], Ok(Withdrawn));
        check(offering(), &[Offering, Withdrawn], Ok(Offering));
        check(
            accepted(),
            &[Offering, Withdrawn],
            Err(StepRefusal::NotSeen),
        );
        // The message was written nevertheless.
        check(offered(), &[Offering, Read], Ok(Offered));
        check(offered(), &[Offering, Archived], Ok(Offered));
        check(uncertain(), &[Offering, Deleted], Ok(Uncertain));

        check(accepted(), &[], Err(StepRefusal::NotSeen));
        check(accepted(), &[Offering], Ok(Accepted));
        check(accepted(), &done, Ok(Accepted));
        check(accepted(), &[Offering, Uncertain], Ok(Accepted));
        check(accepted(), &[Shown], Ok(Accepted));
        check(accepted(), &[Accepted], already(ReceiptState::Accepted));

        let failed = || OfferReport::Failed {
            reason: "gone".into(),
        };
        check(failed(), &[], Ok(Failed));
        check(failed(), &[Offering, Uncertain], Ok(Failed));
        check(failed(), &[Read], Err(StepRefusal::Read));
        check(failed(), &done, already(ReceiptState::Offered));
        check(reminded(), &done, Err(StepRefusal::NotOwed));
    }

    fn reminded() -> OfferReport {
        OfferReport::Reminded {
            route: "terminal".into(),
        }
    }

    #[test]
    fn a_reply_before_the_reminder_wins() {
        let mut asked = message(1, "alice", "bob");
        asked.envelope.expects_reply = true;
        let check = |before: &[Step], want: Result<u32, StepRefusal>| {
            let mail = with_steps(&asked, before);
            let got = decide(second(1_000), &name("bob"), &mail, &reminded());
            let got = got.map(|event| match event {
                Event::Progress(progress) => progress.attempt.unwrap(),
                other => panic!("{other:?}"),
            });
            assert_eq!(got, want, "{before:?}");
        };
        check(&[], Err(StepRefusal::NotOwed));
        check(&[Offering, Offered], Ok(1));
        check(&[Offering, Offered, Reminded, Reminded], Ok(3));
        check(&[Offering, Offered, Answered], Err(StepRefusal::NotOwed));
        check(&[Offering, Offered, Archived], Err(StepRefusal::NotOwed));
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
        let check = |mail: &MessageState, agent: &str, now: i64, want: Result<(), StepRefusal>| {
            let got = decide(second(now), &name(agent), mail, &offering());
            assert_eq!(got.map(drop), want, "{agent} at {now}");
        };
        plain.envelope.not_before = Some(second(1_000));
        plain.envelope.expires_at = Some(second(2_000));
        let mail = with_steps(&plain, &[]);
        check(&mail, "bob", 999, Err(StepRefusal::NotDue(second(1_000))));
        check(&mail, "bob", 1_000, Ok(()));
        check(
            &mail,
            "carol",
            1_000,
            Err(StepRefusal::NotYours(name("bob"))),
        );
        let ended = Err(StepRefusal::Ended(ReceiptState::Expired));
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
