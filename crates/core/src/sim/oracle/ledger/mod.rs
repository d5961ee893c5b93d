//! The true state of each message. Kept independently of the journal: facts are folded in the
//! simplest way, and every text that reached a terminal is counted.

mod ask_checks;
mod fact_checks;
pub(crate) mod known_message;

use crate::fact::{Event, Fact, Progress};
use crate::id::{AskId, MessageId};
use crate::mail::MessageState;
use crate::name::AgentName;
use crate::receipt::{Proven, Step};
use crate::sim::oracle::law::{Checked, Law};
use crate::sim::oracle::ledger::known_message::KnownMessage;
use crate::sim::world::transcript::Row;
use ask_checks::KnownAsks;
use jiff::Timestamp;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

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
    /// Messages that a person took back, according to a part of the transcript that the session has
    /// read. The model has not received them since.
    withdrawn: BTreeSet<MessageId>,
    /// Whether the next session resumes a conversation.
    is_resumed: bool,
    /// Unproven messages that are in the transcript of the resumed conversation.
    in_resumed_transcript: BTreeSet<MessageId>,
    facts_read: usize,
    /// Hop count and time of the last message that each agent received.
    last_given: BTreeMap<AgentName, (u32, Timestamp)>,
    asks: KnownAsks,
    /// Steps that must be recorded with the last stored message.
    required_steps: VecDeque<(MessageId, Step)>,
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

    /// Note that a session is about to start, and the rows of the conversation that it resumes, if
    /// any.
    pub(crate) fn note_resumed(&mut self, rows: Option<&[Row]>) {
        self.is_resumed = rows.is_some();
        self.lost.append(&mut self.withdrawn);
        let given = rows.unwrap_or_default().iter();
        let given = given.filter(|row| !row.is_withdrawn);
        self.in_resumed_transcript = self.unproven_in(given);
    }

    /// Return the messages in these rows whose proof is awaited.
    fn unproven_in<'a>(&self, rows: impl Iterator<Item = &'a Row>) -> BTreeSet<MessageId> {
        let is_open = |(id, is_marked): &&(MessageId, bool)| {
            let known = self.known.get(id);
            let is_open = known
                .is_some_and(|k| k.proof_awaited && k.offered && k.was_uncertain == *is_marked);
            // Two repeats have the same header, so the transcript cannot tell them apart.
            is_open && known.is_some_and(|known| known.offers <= 2)
        };
        let messages = rows.flat_map(|row| &row.messages);
        messages.filter(is_open).map(|(id, _)| *id).collect()
    }

    /// Note that the session has read these rows of the transcript.
    pub(crate) fn note_rows_read(&mut self, rows: &[Row]) {
        let withdrawn = self.unproven_in(rows.iter().filter(|row| row.is_withdrawn));
        let is_new = |id: &MessageId| !self.received.contains(id);
        self.withdrawn.extend(withdrawn.into_iter().filter(is_new));
    }

    /// Check, at the end of a run, that every message that a person took back is offered again.
    pub(crate) fn check_withdrawn(&self) -> Checked {
        let staying = self.staying(&self.withdrawn);
        Law::NothingLost.holds(staying.is_none(), || {
            let id = staying.map(MessageId::id8).unwrap_or_default();
            format!("a person took {id} back from the queue, and it is still 'offered'")
        })
    }

    /// Return a message that is still offered, although it never reached the model.
    fn staying(&self, never_given: &BTreeSet<MessageId>) -> Option<MessageId> {
        let is_over = |known: &KnownMessage| known.ended.is_some() || known.read || known.accepted;
        let stays = |id: &&MessageId| {
            let known = self.known.get(id);
            // An answer is given only once, and no proof of it is awaited.
            known.is_some_and(|known| known.offered && !known.raw && !is_over(known))
        };
        never_given.iter().find(stays).copied()
    }

    /// Check that every message that was queued when its program died is pending again. Applies
    /// when a session starts, and at the end of a run.
    pub(crate) fn check_requeued(&self) -> Checked {
        let staying = self.staying(&self.lost);
        Law::NothingLost.holds(staying.is_none(), || {
            let id = staying.map(MessageId::id8).unwrap_or_default();
            format!("{id} was only queued when its program ended, and is still 'offered'")
        })
    }

    fn apply(&mut self, fact: &Fact) {
        match &fact.event {
            Event::Message(envelope) => {
                let known = KnownMessage::of(fact, envelope, self.known.len());
                self.known.insert(MessageId(fact.id), known);
                if let Some(answer) = &envelope.answers {
                    self.asks.answer(MessageId(fact.id), answer);
                }
            }
            Event::Ask(ask) => self.asks.apply(AskId(fact.id), ask),
            Event::Progress(progress) => self.apply_step(fact.at, progress),
            Event::Started(_)
            | Event::Ended(_)
            | Event::Conversation(_)
            | Event::Work(_)
            | Event::Loop(_) => {}
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
                self.withdrawn.remove(&progress.message);
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

    /// Record that a program died with these messages in its queue. A message that is not 'offered'
    /// any more is pending again already.
    pub(crate) fn note_lost_queue(&mut self, ids: &[MessageId]) {
        let is_offered = |id: &MessageId| self.known.get(id).is_some_and(|known| known.offered);
        let is_lost = |id: &&MessageId| is_offered(id) && !self.received.contains(id);
        self.lost.extend(ids.iter().filter(is_lost));
    }

    /// Record that the model was given a prompt with this message.
    pub(crate) fn note_received(&mut self, id: MessageId) {
        self.received.insert(id);
        self.lost.remove(&id);
        self.withdrawn.remove(&id);
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

    /// Return the number of the last offer of a message.
    pub(crate) fn offer_number(&self, id: MessageId) -> u32 {
        self.known.get(&id).map_or(0, |known| known.offers)
    }

    /// Return the exposure of a message in this offer, if the offer is still open.
    fn open_offer(&mut self, id: MessageId, number: u32) -> Option<&mut Exposed> {
        let is_last = self.offer_number(id) == number;
        let exposed = self.exposed.get_mut(&id).filter(|_| is_last);
        exposed.filter(|exposed| exposed.is_open)
    }

    /// Note that the program has all of a message that was sent in this offer.
    pub(crate) fn note_complete_offer(&mut self, id: MessageId, number: u32) {
        if let Some(exposed) = self.open_offer(id, number) {
            exposed.is_whole = true;
        }
    }

    /// Note that the program never saw a message that was sent in this offer.
    pub(crate) fn note_not_shown(&mut self, id: MessageId, number: u32) {
        if let Some(exposed) = self.open_offer(id, number) {
            exposed.times -= 1;
            exposed.is_begun = false;
        }
    }

    /// Whether a message is offered, and its model was not given it.
    pub(crate) fn is_waiting_for_model(&self, id: MessageId) -> bool {
        let is_offered = self.known.get(&id).is_some_and(|known| known.offered);
        is_offered && !self.received.contains(&id)
    }
}
