//! Checks of each new fact against the true states: whether the fact can be true, and which facts it
//! requires.

use crate::fact::{Event, Fact, Progress};
use crate::id::MessageId;
use crate::message::Envelope;
use crate::receipt::Step;
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::ledger::Ledger;
use crate::sim::oracle::ledger::known_message::KnownMessage;
use crate::sim::world::senders::LIMITS;
use crate::storm::SENDER_SKEW;
use jiff::{SignedDuration, Timestamp};
use std::collections::VecDeque;

impl Ledger {
    pub(super) fn check_fact(&mut self, fact: &Fact) -> Checked {
        let progress = match &fact.event {
            Event::Message(envelope) => {
                self.check_key(fact, envelope)?;
                if let Some(answer) = &envelope.answers {
                    self.check_answer(answer)?;
                }
                return self.require_steps(fact, envelope);
            }
            Event::Progress(progress) => progress,
            Event::Ask(ask) => return self.check_ask(ask),
            // A session that resumes a conversation settles the earlier offers itself.
            Event::Started(_) if self.is_resumed => return Ok(()),
            Event::Started(_) => return self.check_requeued(),
            Event::Ended(_) | Event::Conversation(_) | Event::Work(_) | Event::Loop(_) => {
                return Ok(());
            }
        };
        let must_be = self.required_steps.pop_front();
        let is_required = must_be.is_none_or(|step| step == (progress.message, progress.step));
        Law::StormsAreCut.holds(is_required, || {
            format!("{progress:?} is recorded instead of {must_be:?}")
        })?;
        self.check_step(fact, progress, must_be.is_some())
    }

    /// Check a step of a message. `must_be` says whether the facts before it required the step.
    pub(super) fn check_step(&self, fact: &Fact, progress: &Progress, must_be: bool) -> Checked {
        let is_due = match progress.step {
            Step::Answered => must_be,
            _ => true,
        };
        let id = progress.message;
        let Some(known) = self.known.get(&id) else {
            return Law::NoClaimBeyondProof
                .violated(format!("{} of an unknown message", progress.step));
        };
        let exposed = self.exposed.get(&id).copied().unwrap_or_default();
        let claim = |is_true, what: &str| {
            let what = || format!("{}: '{}', and {what}", id.id8(), progress.step);
            Law::NoClaimBeyondProof.holds(is_true, what)
        };
        claim(is_due, "no message answers it")?;
        claim(
            !known.accepted || !progress.step.is_of_offers(),
            "it was accepted",
        )?;
        match progress.step {
            Step::Reminded => match known.reason_not_to_remind(fact.at) {
                Some(why) => Law::RemindersAreFew.violated(format!("{}: {why}", id.id8())),
                None => Ok(()),
            },
            Step::Failed => claim(known.raw || must_be, "it could still be offered"),
            Step::Offering => match known.reason_not_to_offer(fact.at) {
                Some(why) => Law::TheRightMoment
                    .violated(format!("{} is about to be shown: {why}", id.id8())),
                None => Ok(()),
            },
            // A person may have pressed Enter, which the program's hook reports.
            Step::Offered => claim(
                exposed.is_whole || self.submitted.contains(&id),
                "text and Enter were not both written",
            ),
            Step::Accepted => {
                let is_offered = known.offering || known.offered || known.was_uncertain;
                claim(is_offered, "no offer of it is recorded")?;
                // The proof of an answer is the change of its question.
                let is_answer = known.raw && exposed.is_begun;
                claim(
                    self.received.contains(&id) || is_answer,
                    "the model never received it",
                )
            }
            Step::Withdrawn => claim(!exposed.is_begun, "a part of it was written"),
            Step::Uncertain => claim(
                known.offering || known.shown || known.proof_awaited,
                "no offer of it was under way, and no hook has shown it",
            ),
            Step::Cancelled | Step::Expired => {
                claim(exposed.times == 0, "an agent may have seen it")
            }
            Step::Answered
            | Step::Shown
            | Step::Read
            | Step::Unread
            | Step::Archived
            | Step::Deleted => Ok(()),
        }
    }

    /// Set the steps that must be recorded with a message: its failure in a storm, or the reply to
    /// an earlier message.
    pub(super) fn require_steps(&mut self, fact: &Fact, envelope: &Envelope) -> Checked {
        let (from, to) = (&envelope.from, &fact.agent);
        let linked = |id: Option<MessageId>| id.and_then(|id| Some((id, self.known.get(&id)?)));
        let (parent, closed) = (linked(envelope.reply_to), linked(envelope.closes));
        let is_given = |at: Timestamp| fact.at.duration_since(at) < SignedDuration::from_hours(1);
        let given = self.last_given.get(from).filter(|(_, at)| is_given(*at));
        let led = parent.map(|(_, parent)| parent.hops).into_iter();
        let led = led.chain(given.map(|(hops, _)| *hops));
        let hops = match from.is_human() {
            true => 0,
            false => led.map(|hops| hops + 1).max().unwrap_or(0),
        };
        Law::StormsAreCut.holds(hops == envelope.hops, || {
            format!("{} hops are recorded instead of {hops}", envelope.hops)
        })?;
        let is_recent = |known: &&KnownMessage| {
            let is_pair = (&known.from, &known.to) == (from, to);
            let is_new = known.sent > fact.at - SignedDuration::from_mins(1)
                && known.sent <= fact.at + SENDER_SKEW;
            is_pair && is_new && known.ended != Some(Step::Failed)
        };
        let recent = self.known.values().filter(is_recent).count();
        let is_between_agents = !from.is_human() && !to.is_human();
        let is_much = hops > LIMITS.hops || recent >= LIMITS.rate as usize;
        let mut steps = VecDeque::new();
        if is_between_agents && is_much {
            steps.push_back((MessageId(fact.id), Step::Failed));
        } else {
            let answered = parent.filter(|(_, parent)| parent.to == *from);
            let closed = closed.filter(|(id, _)| answered.is_none_or(|(other, _)| other != *id));
            for (id, known) in answered.into_iter().chain(closed) {
                if known.expects_reply && !known.answered {
                    steps.push_back((id, Step::Answered));
                }
            }
        }
        self.required_steps = steps;
        Ok(())
    }

    /// Check that at most one message with this key is pending or has arrived.
    pub(super) fn check_key(&self, fact: &Fact, envelope: &Envelope) -> Checked {
        let counts = |known: &KnownMessage| match known.ended {
            Some(Step::Archived) => true,
            _ => !known.has_ended(fact.at),
        };
        let is_pair =
            |known: &KnownMessage| (&known.from, &known.to) == (&envelope.from, &fact.agent);
        let is_same = |known: &KnownMessage| known.key == envelope.key && is_pair(known);
        let is_doubled =
            envelope.key.is_some() && self.known.values().any(|k| is_same(k) && counts(k));
        Law::NothingDoubled.holds(!is_doubled, || "two messages have the same key")
    }
}

impl Step {
    /// Whether the step belongs to an offer, or excludes further offers.
    pub(super) fn is_of_offers(self) -> bool {
        match self {
            Self::Offering
            | Self::Offered
            | Self::Accepted
            | Self::Uncertain
            | Self::Withdrawn
            | Self::Cancelled
            | Self::Expired
            | Self::Failed => true,
            Self::Shown
            | Self::Reminded
            | Self::Answered
            | Self::Read
            | Self::Unread
            | Self::Archived
            | Self::Deleted => false,
        }
    }
}
