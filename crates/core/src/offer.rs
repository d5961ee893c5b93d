//! Offers: which steps a session may record about a message that it puts before its agent.
//!
//! Every one is decided inside the journal's transaction, on what stands there by then: a message
//! may have been read, called back or shown by another route since the session looked.

use crate::fact::{Event, Progress};
use crate::id::MessageId;
use crate::mail::Letter;
use crate::name::AgentName;
use crate::owed;
use crate::promotion;
use crate::receipt::{Proven, ReceiptState, Step};
use jiff::Timestamp;

/// Why a message stays as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Kept {
    #[error("there is no such message")]
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
    #[error("no offer of it is under way: {0}")]
    NotOffering(ReceiptState),
    #[error("it may have been shown meanwhile, so it must be offered as a repeat")]
    Unmarked,
    #[error("nothing was ever put before the agent")]
    NotSeen,
    #[error("the agent owes no answer to it, or was reminded of it often enough")]
    NotOwed,
}

/// What a session says of an offer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It is about to be shown, by this route.
    Offering {
        route: String,
        /// Messages that the offer marks as repeats.
        repeats: Vec<MessageId>,
    },
    /// It was written whole to a live child, or handed to its hook.
    Offered {
        route: String,
        evidence: String,
        /// See [`Progress::proof_awaited`].
        proof_awaited: bool,
    },
    /// The agent's own word shows it.
    Accepted { route: String, evidence: String },
    /// The offer was cut off.
    Uncertain { reason: String },
    /// The offer was taken back before anything was written.
    Withdrawn { reason: String },
    /// The agent is about to be reminded of the answer that it owes.
    Reminded { route: String },
    /// It will never be offered.
    Failed { reason: String },
}

/// The step that this adds to a message of `agent`, or why it adds none.
pub fn decide(
    now: Timestamp,
    agent: &AgentName,
    letter: &Letter,
    said: &Said,
) -> Result<Event, Kept> {
    let message = &letter.message;
    if message.to != *agent {
        return Err(Kept::NotYours(message.to.clone()));
    }
    may_be_said(now, letter, said)?;
    Ok(Event::Progress(progress(now, letter, said)))
}

/// Whether it can be true of the message as it stands.
fn may_be_said(now: Timestamp, letter: &Letter, said: &Said) -> Result<(), Kept> {
    match said {
        Said::Offering { repeats, .. } => {
            may_be_offered(now, letter)?;
            is_marked(letter, repeats)
        }
        // An answer that had no effect fails while its offer is under way.
        Said::Failed { .. } => is_offering(letter).or_else(|_| may_be_offered(now, letter)),
        // The proof did not arrive, or is no longer awaited.
        Said::Uncertain { .. } if letter.standing.proven == Proven::Unproven => Ok(()),
        // Whether a proof is awaited may change later.
        Said::Offered { .. } if is_offered(letter) => Ok(()),
        Said::Offered { .. } | Said::Withdrawn { .. } | Said::Uncertain { .. } => {
            is_offering(letter)
        }
        Said::Accepted { .. } => may_be_accepted(letter),
        Said::Reminded { .. } if owed::may_be_reminded(letter, now) => Ok(()),
        Said::Reminded { .. } => Err(Kept::NotOwed),
    }
}

/// The step as it is recorded.
fn progress(now: Timestamp, letter: &Letter, said: &Said) -> Progress {
    let message = &letter.message;
    let step = |step| Progress::of(message.id, step);
    match said {
        Said::Offering { route, .. } => Progress {
            route: Some(route.clone()),
            attempt: Some(1 + letter.offers()),
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
            attempt: Some(1 + letter.standing.reminded),
            ..step(Step::Reminded)
        },
        Said::Failed { reason } => Progress {
            reason: Some(reason.clone()),
            ..step(Step::Failed)
        },
    }
}

fn may_be_offered(now: Timestamp, letter: &Letter) -> Result<(), Kept> {
    let standing = letter.standing.at(&letter.message, now);
    match (standing.end, letter.message.envelope.not_before) {
        (Some(_), _) => return Err(Kept::Ended(standing.receipt())),
        (None, Some(due)) if due > now => return Err(Kept::NotDue(due)),
        (None, _) if standing.read => return Err(Kept::Read),
        (None, _) => {}
    }
    match standing.proven {
        // Handed to the agent's hook, it was put before the agent: no other route may do so again.
        Proven::Stored | Proven::Uncertain if standing.shown => Err(Kept::Shown),
        Proven::Stored | Proven::Uncertain => Ok(()),
        Proven::Offering | Proven::Offered | Proven::Unproven | Proven::Accepted => {
            Err(Kept::Already(standing.receipt()))
        }
    }
}

fn is_offered(letter: &Letter) -> bool {
    matches!(letter.standing.proven, Proven::Offered | Proven::Unproven)
}

/// Refuse an unmarked offer of a repeat. A message can become a repeat after the caller loaded it, if
/// a hook was killed meanwhile.
fn is_marked(letter: &Letter, repeats: &[MessageId]) -> Result<(), Kept> {
    match letter.is_repeat() && !repeats.contains(&letter.message.id) {
        true => Err(Kept::Unmarked),
        false => Ok(()),
    }
}

/// Whether an offer is under way, whatever else became of the message meanwhile.
fn is_offering(letter: &Letter) -> Result<(), Kept> {
    match letter.standing.proven {
        Proven::Offering => Ok(()),
        Proven::Stored
        | Proven::Uncertain
        | Proven::Offered
        | Proven::Unproven
        | Proven::Accepted => Err(Kept::NotOffering(letter.standing.receipt())),
    }
}

/// Its own word may come before the session's: a hook is faster than a commit.
fn may_be_accepted(letter: &Letter) -> Result<(), Kept> {
    match letter.standing.proven {
        Proven::Accepted => Err(Kept::Already(letter.standing.receipt())),
        _ if !letter.standing.is_reached() => Err(Kept::NotSeen),
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
    fn a_step_is_recorded_only_where_it_can_be_true() {
        let check = |said: Said, before: &[Step], want: Result<Step, Kept>| {
            let letter = with_steps(&message(1, "alice", "bob"), before);
            let got = decide(second(1_000), &name("bob"), &letter, &said);
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
        // Then it may be offered, and shown, again.
        check(offering(), &[Shown, Uncertain], Ok(Offering));
        check(offered(), &[Offering], Ok(Offered));
        check(uncertain(), &[Offering], Ok(Uncertain));
        check(withdrawn(), &[Offering], Ok(Withdrawn));
        check(offering(), &[Offering, Withdrawn], Ok(Offering));
        check(accepted(), &[Offering, Withdrawn], Err(Kept::NotSeen));
        // It was written all the same.
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
    fn an_answer_that_came_first_wins() {
        let mut asked = message(1, "alice", "bob");
        asked.envelope.expects_reply = true;
        let check = |before: &[Step], want: Result<u32, Kept>| {
            let letter = with_steps(&asked, before);
            let got = decide(second(1_000), &name("bob"), &letter, &reminded());
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
    fn a_promotion_stands_in_the_receipt() {
        let mut late = message(1, "alice", "bob");
        late.envelope.priority = crate::priority::Priority::Idle;
        late.envelope.deadline = Some(second(1_000));
        let letter = with_steps(&late, &[]);
        let evidence = |now: i64| match decide(second(now), &name("bob"), &letter, &offering()) {
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
    fn its_times_and_its_owner_count() {
        let mut plain = message(1, "alice", "bob");
        let check = |letter: &Letter, agent: &str, now: i64, want: Result<(), Kept>| {
            let got = decide(second(now), &name(agent), letter, &offering());
            assert_eq!(got.map(drop), want, "{agent} at {now}");
        };
        plain.envelope.not_before = Some(second(1_000));
        plain.envelope.expires_at = Some(second(2_000));
        let letter = with_steps(&plain, &[]);
        check(&letter, "bob", 999, Err(Kept::NotDue(second(1_000))));
        check(&letter, "bob", 1_000, Ok(()));
        check(&letter, "carol", 1_000, Err(Kept::NotYours(name("bob"))));
        let ended = Err(Kept::Ended(ReceiptState::Expired));
        check(&letter, "bob", 2_000, ended);
        // Seen, it does not expire.
        let cut = with_steps(&plain, &[Offering, Uncertain]);
        check(&cut, "bob", 2_000, Ok(()));
    }

    #[test]
    fn attempts_are_counted() {
        let check = |before: &[Step], want: u32| {
            let letter = with_steps(&message(1, "alice", "bob"), before);
            match decide(second(0), &name("bob"), &letter, &offering()) {
                Ok(Event::Progress(progress)) => assert_eq!(progress.attempt, Some(want)),
                other => panic!("{other:?}"),
            }
        };
        check(&[], 1);
        check(&[Offering, Uncertain], 2);
        check(&[Offering, Uncertain, Offering, Uncertain], 3);
    }
}
