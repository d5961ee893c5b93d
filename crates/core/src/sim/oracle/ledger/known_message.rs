//! The true state of one message, folded from its facts in the simplest way.

use crate::fact::{Fact, Progress};
use crate::message::Envelope;
use crate::name::AgentName;
use crate::priority::Priority;
use crate::receipt::Step;
use jiff::Timestamp;
use std::cmp::Reverse;

/// Maximum number of reminders of one message.
const MAX_REMINDERS: u32 = 10;

/// The true state of one message.
#[derive(Debug, Clone)]
pub(crate) struct KnownMessage {
    pub(super) position: usize,
    pub(crate) to: AgentName,
    pub(super) from: AgentName,
    pub(crate) sent: Timestamp,
    pub(super) hops: u32,
    pub(super) key: Option<String>,
    pub(super) priority: Priority,
    pub(super) deadline: Option<Timestamp>,
    pub(super) expects_reply: bool,
    pub(crate) raw: bool,
    pub(super) not_before: Option<Timestamp>,
    pub(super) expires_at: Option<Timestamp>,
    // Steps in the journal.
    pub(super) ended: Option<Step>,
    pub(super) read: bool,
    pub(super) shown: bool,
    pub(super) seen: bool,
    pub(crate) was_uncertain: bool,
    /// Whether an offer is recorded and still open.
    pub(crate) offering: bool,
    pub(super) offered: bool,
    /// Whether the agent's proof of the last offer is awaited.
    pub(super) proof_awaited: bool,
    pub(super) accepted: bool,
    pub(super) answered: bool,
    pub(super) reminders: u32,
    /// Number of offers, with those that were withdrawn.
    pub(super) offers: u32,
}

impl KnownMessage {
    /// Return the state of a new message, after `position` others.
    pub(super) fn of(fact: &Fact, envelope: &Envelope, position: usize) -> Self {
        Self {
            position,
            to: fact.agent.clone(),
            from: envelope.from.clone(),
            sent: fact.at,
            hops: envelope.hops,
            deadline: envelope.deadline,
            expects_reply: envelope.expects_reply,
            key: envelope.key.clone(),
            priority: envelope.priority,
            raw: envelope.raw,
            not_before: envelope.not_before,
            expires_at: envelope.expires_at,
            ended: None,
            read: false,
            shown: false,
            seen: false,
            was_uncertain: false,
            offering: false,
            offered: false,
            proof_awaited: false,
            accepted: false,
            answered: false,
            reminders: 0,
            offers: 0,
        }
    }

    /// Return the priority: a message waits for an idle agent until its deadline.
    pub(crate) fn priority(&self, now: Timestamp) -> Priority {
        let is_late = self.deadline.is_some_and(|deadline| deadline <= now);
        match self.priority {
            Priority::IdleFirst | Priority::Idle if is_late => Priority::Normal,
            priority => priority,
        }
    }

    /// Return the sort key in delivery order.
    pub(crate) fn order(&self, now: Timestamp) -> (Priority, Reverse<usize>, usize) {
        match self.priority(now) {
            Priority::IdleFirst => (Priority::IdleFirst, Reverse(self.position), 0),
            priority @ (Priority::Interrupt | Priority::Normal | Priority::Idle) => {
                (priority, Reverse(0), self.position)
            }
        }
    }

    pub(crate) fn goes_alone(&self) -> bool {
        self.raw || self.priority == Priority::Interrupt
    }

    pub(super) fn has_run_out(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|gone| gone <= now)
    }

    /// Return why the agent must not be reminded of the message, if so.
    pub(super) fn reason_not_to_remind(&self, now: Timestamp) -> Option<&'static str> {
        let reasons = [
            (!self.expects_reply, "no reply is expected"),
            (self.answered, "it was answered"),
            (
                self.ended.is_some() || self.has_run_out(now),
                "it has ended",
            ),
            (!self.seen, "its agent has not seen it"),
            (
                self.reminders >= MAX_REMINDERS,
                "its agent was reminded ten times",
            ),
        ];
        first(&reasons)
    }

    pub(crate) fn has_ended(&self, now: Timestamp) -> bool {
        self.ended.is_some() || (self.has_run_out(now) && !self.seen && !self.offering)
    }

    pub(crate) fn is_due(&self, now: Timestamp) -> bool {
        self.not_before.is_none_or(|due| due <= now)
    }

    /// Whether the message needs no further step.
    pub(crate) fn is_settled(&self, now: Timestamp) -> bool {
        self.has_ended(now) || self.offered || self.read || self.shown
    }

    /// Return why the message must not be shown, if so.
    pub(super) fn reason_not_to_offer(&self, now: Timestamp) -> Option<&'static str> {
        let reasons = [
            (self.has_ended(now), "it has ended"),
            (!self.is_due(now), "it is not due"),
            (self.read, "it was read"),
            (self.shown, "a hook has shown it"),
            (self.offering, "another offer of it is under way"),
            (self.offered, "it was offered"),
            (
                self.raw && self.was_uncertain,
                "an answer is given only once",
            ),
        ];
        first(&reasons)
    }

    pub(super) fn apply(&mut self, progress: &Progress) {
        let step = progress.step;
        match step {
            Step::Offering => {
                self.offering = true;
                self.offers += 1;
            }
            Step::Offered | Step::Accepted => {
                self.offering = false;
                self.offered = true;
                self.accepted |= step == Step::Accepted;
                self.proof_awaited = progress.proof_awaited && !self.accepted;
            }
            Step::Uncertain => {
                self.offering = false;
                self.shown = false;
                self.was_uncertain = true;
                self.offered &= !std::mem::take(&mut self.proof_awaited);
            }
            Step::Withdrawn => self.offering = false,
            Step::Shown => self.shown = true,
            Step::Reminded => self.reminders += 1,
            Step::Answered => self.answered = true,
            Step::Read => self.read = true,
            Step::Unread => self.read = false,
            Step::Archived | Step::Deleted | Step::Cancelled | Step::Expired | Step::Failed => {
                self.ended = Some(step);
            }
        }
        self.seen |= self.offered || self.was_uncertain || self.shown || self.read;
    }
}

/// Return the first reason that applies.
fn first(reasons: &[(bool, &'static str)]) -> Option<&'static str> {
    reasons
        .iter()
        .find_map(|(is_so, why)| is_so.then_some(*why))
}
