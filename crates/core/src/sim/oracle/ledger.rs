//! The true state of each message. Kept independently of the journal: facts are folded in the
//! simplest way, and every text that reached a terminal is counted.

use crate::fact::{Event, Fact, Progress};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::message::Envelope;
use crate::name::AgentName;
use crate::priority::Priority;
use crate::receipt::{Proven, Step};
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::world::senders::LIMITS;
use crate::sim::world::transcript::Row;
use crate::storm::SENDER_SKEW;
use jiff::{SignedDuration, Timestamp};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// Maximum number of reminders of one message.
const MAX_REMINDERS: u32 = 10;

/// The true state of one message.
#[derive(Debug, Clone)]
pub(crate) struct KnownMessage {
    position: usize,
    pub(crate) to: AgentName,
    from: AgentName,
    pub(crate) sent: Timestamp,
    hops: u32,
    key: Option<String>,
    priority: Priority,
    deadline: Option<Timestamp>,
    expects_reply: bool,
    pub(crate) raw: bool,
    not_before: Option<Timestamp>,
    expires_at: Option<Timestamp>,
    // Steps in the journal.
    ended: Option<Step>,
    read: bool,
    shown: bool,
    seen: bool,
    pub(crate) was_uncertain: bool,
    /// Whether an offer is recorded and still open.
    pub(crate) offering: bool,
    offered: bool,
    /// Whether the agent's proof of the last offer is awaited.
    proof_awaited: bool,
    accepted: bool,
    answered: bool,
    reminders: u32,
    /// Number of offers, with those that were withdrawn.
    offers: u32,
}

/// The exposure of a message to terminals and prompts. A crash does not undo it.
#[derive(Debug, Clone, Copy, Default)]
struct Exposed {
    /// Number of times that a part of the message was shown to an agent.
    times: u32,
    /// Whether an offer is recorded, and the session has not recorded its end.
    is_open: bool,
    /// Whether a part was written in the current offer.
    is_begun: bool,
    /// Whether text and Enter were written completely to a live program in the current offer.
    is_whole: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Ledger {
    known: BTreeMap<MessageId, KnownMessage>,
    exposed: BTreeMap<MessageId, Exposed>,
    /// Messages that were submitted to the program, which may have queued them.
    submitted: BTreeSet<MessageId>,
    /// Messages that the model received in a prompt.
    received: BTreeSet<MessageId>,
    /// Messages that were in a program's queue when it died, and never reached the model.
    lost: BTreeSet<MessageId>,
    /// Whether the next session resumes a conversation.
    is_resumed: bool,
    /// Unproven messages that are in the transcript of the resumed conversation.
    in_resumed_transcript: BTreeSet<MessageId>,
    facts_read: usize,
    /// Hop count and time of the last message that each agent received.
    last_given: BTreeMap<AgentName, (u32, Timestamp)>,
    /// Steps that must be recorded with the last stored message.
    required_steps: VecDeque<(MessageId, Step)>,
}

impl KnownMessage {
    /// Return the state of a new message, after `position` others.
    fn of(fact: &Fact, envelope: &Envelope, position: usize) -> Self {
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

    fn has_run_out(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|gone| gone <= now)
    }

    /// Return why the agent must not be reminded of the message, if so.
    fn reason_not_to_remind(&self, now: Timestamp) -> Option<&'static str> {
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
    fn reason_not_to_offer(&self, now: Timestamp) -> Option<&'static str> {
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

    fn apply(&mut self, progress: &Progress) {
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

impl Ledger {
    pub(crate) fn get(&self, id: MessageId) -> Option<&KnownMessage> {
        self.known.get(&id)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (MessageId, &KnownMessage)> {
        self.known.iter().map(|(id, known)| (*id, known))
    }

    /// Return the number of facts read so far.
    pub(crate) fn facts_read(&self) -> usize {
        self.facts_read
    }

    /// Read the new facts, and check that each can be true.
    pub(crate) fn read_facts(&mut self, facts: &[Fact]) -> Checked {
        for fact in &facts[self.facts_read..] {
            self.check_fact(fact)?;
            self.apply(fact);
        }
        self.facts_read = facts.len();
        Ok(())
    }

    fn check_fact(&mut self, fact: &Fact) -> Checked {
        let progress = match &fact.event {
            Event::Message(envelope) => {
                self.check_key(fact, envelope)?;
                return self.require_steps(fact, envelope);
            }
            Event::Progress(progress) => progress,
            // A session that resumes a conversation settles the earlier offers itself.
            Event::Started(_) if self.is_resumed => return Ok(()),
            Event::Started(_) => return self.check_requeued(),
            Event::Ended(_)
            | Event::Conversation(_)
            | Event::Work(_)
            | Event::Loop(_)
            | Event::Ask(_) => {
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

    /// Note that a session is about to start, and the rows of the conversation that it resumes, if
    /// any.
    pub(crate) fn note_resumed(&mut self, rows: Option<&[Row]>) {
        self.is_resumed = rows.is_some();
        let messages = rows
            .unwrap_or_default()
            .iter()
            .flat_map(|row| &row.messages);
        let is_proven = |(id, is_marked): &&(MessageId, bool)| {
            let known = self.known.get(id);
            let is_open = known
                .is_some_and(|k| k.proof_awaited && k.offered && k.was_uncertain == *is_marked);
            // Two repeats have the same header, so the transcript cannot tell them apart.
            is_open && known.is_some_and(|known| known.offers <= 2)
        };
        self.in_resumed_transcript = messages.filter(is_proven).map(|(id, _)| *id).collect();
    }

    /// Check that every message that was queued when its program died is pending again. Applies
    /// when a session starts, and at the end of a run.
    pub(crate) fn check_requeued(&self) -> Checked {
        let is_over = |known: &KnownMessage| known.ended.is_some() || known.read || known.accepted;
        let stays = |id: &&MessageId| {
            let known = self.known.get(id);
            // An answer is given only once, and no proof of it is awaited.
            known.is_some_and(|known| known.offered && !known.raw && !is_over(known))
        };
        let staying = self.lost.iter().find(stays);
        Law::NothingLost.holds(staying.is_none(), || {
            let id = staying.map(|id| id.id8()).unwrap_or_default();
            format!("{id} was only queued when its program ended, and is still 'offered'")
        })
    }

    /// Check a step of a message. `must_be` says whether the facts before it required the step.
    fn check_step(&self, fact: &Fact, progress: &Progress, must_be: bool) -> Checked {
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
    fn require_steps(&mut self, fact: &Fact, envelope: &Envelope) -> Checked {
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
    fn check_key(&self, fact: &Fact, envelope: &Envelope) -> Checked {
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

    fn apply(&mut self, fact: &Fact) {
        match &fact.event {
            Event::Message(envelope) => {
                let known = KnownMessage::of(fact, envelope, self.known.len());
                self.known.insert(MessageId(fact.id), known);
            }
            Event::Progress(progress) => self.apply_step(fact.at, progress),
            Event::Started(_)
            | Event::Ended(_)
            | Event::Conversation(_)
            | Event::Work(_)
            | Event::Loop(_)
            | Event::Ask(_) => {}
        }
    }

    fn apply_step(&mut self, at: Timestamp, progress: &Progress) {
        if let Some(known) = self.known.get_mut(&progress.message) {
            known.apply(progress);
            if let Step::Offering | Step::Offered | Step::Accepted | Step::Shown = progress.step {
                self.last_given.insert(known.to.clone(), (known.hops, at));
            }
        }
        let exposed = self.exposed.entry(progress.message).or_default();
        match progress.step {
            Step::Offering => {
                *exposed = Exposed {
                    times: exposed.times,
                    is_open: true,
                    ..Exposed::default()
                };
            }
            Step::Uncertain => {
                exposed.is_open = false;
                self.lost.remove(&progress.message);
            }
            Step::Offered | Step::Withdrawn => exposed.is_open = false,
            // The agent's proof may come before the session's receipt.
            Step::Accepted
            | Step::Shown
            | Step::Reminded
            | Step::Answered
            | Step::Read
            | Step::Unread
            | Step::Archived
            | Step::Deleted
            | Step::Cancelled
            | Step::Expired
            | Step::Failed => {}
        }
    }

    /// Replace the known facts after a power cut. A message whose last offer was lost counts as
    /// never shown: the program that may have seen it is gone too, and the design accepts that for
    /// speed.
    pub(crate) fn reload(&mut self, facts: &[Fact]) {
        let before = std::mem::take(&mut self.known);
        self.in_resumed_transcript.clear();
        self.last_given.clear();
        self.required_steps.clear();
        facts.iter().for_each(|fact| self.apply(fact));
        self.facts_read = facts.len();
        for (id, known) in &self.known {
            let was_shown = before.get(id).is_some_and(|was| was.offering || was.shown);
            let is_on_record =
                known.offering || known.offered || known.was_uncertain || known.shown;
            if was_shown && !is_on_record {
                self.exposed.remove(id);
            }
        }
    }

    /// Record that a prompt with this message was submitted to the program.
    pub(crate) fn note_submitted(&mut self, id: MessageId) {
        self.submitted.insert(id);
    }

    /// Record that a program died with these messages in its queue.
    pub(crate) fn note_lost_queue(&mut self, ids: &[MessageId]) {
        let is_new = |id: &&MessageId| !self.received.contains(id);
        self.lost.extend(ids.iter().filter(is_new));
    }

    /// Record that the model was given a prompt with this message.
    pub(crate) fn note_received(&mut self, id: MessageId) {
        self.received.insert(id);
        self.lost.remove(&id);
    }

    /// Check that exactly the accepted messages have the status "accepted".
    pub(crate) fn check_status(&self, message_state: &MessageState) -> Checked {
        let id = message_state.message.id;
        let is_accepted = self.get(id).is_some_and(|known| known.accepted);
        let says_so = message_state.status.proven == Proven::Accepted;
        Law::NoClaimBeyondProof.holds(is_accepted == says_so, || {
            format!(
                "{} is accepted: {is_accepted}; its status says so: {says_so}",
                id.id8()
            )
        })
    }

    /// Whether an offer of the message is recorded and open.
    pub(crate) fn is_open(&self, id: MessageId) -> bool {
        self.exposed.get(&id).is_some_and(|exposed| exposed.is_open)
    }

    /// Whether a part of the message was written in the offer under way.
    pub(crate) fn is_partly_written(&self, id: MessageId) -> bool {
        let exposed = self.exposed.get(&id);
        exposed.is_some_and(|exposed| exposed.is_open && exposed.is_begun)
    }

    /// Note that a part of a message is shown to the agent.
    pub(crate) fn note_shown(&mut self, id: MessageId, is_marked: bool) -> Checked {
        let cut = self.known.get(&id).is_some_and(|known| known.was_uncertain);
        let exposed = self.exposed.entry(id).or_default();
        Law::NothingDoubled.holds(!exposed.is_begun || !exposed.is_open, || {
            format!("{} is written twice within one offer", id.id8())
        })?;
        Law::NothingDoubled.holds(exposed.times == 0 || is_marked, || {
            format!(
                "{} may have been seen, and is shown again unmarked",
                id.id8()
            )
        })?;
        Law::NoClaimBeyondProof.holds(cut || !is_marked, || {
            format!(
                "{} is marked as a repeat, and no offer of it was cut off",
                id.id8()
            )
        })?;
        Law::NothingDoubled.holds(!self.in_resumed_transcript.contains(&id), || {
            format!(
                "the resumed transcript has {}, and it is shown again",
                id.id8()
            )
        })?;
        exposed.times += 1;
        exposed.is_begun = true;
        Ok(())
    }

    pub(crate) fn note_complete(&mut self, id: MessageId) {
        self.exposed.entry(id).or_default().is_whole = true;
    }
}

impl Step {
    /// Whether the step belongs to an offer, or excludes further offers.
    fn is_of_offers(self) -> bool {
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

/// Return the first reason that applies.
fn first(reasons: &[(bool, &'static str)]) -> Option<&'static str> {
    reasons
        .iter()
        .find_map(|(is_so, why)| is_so.then_some(*why))
}
