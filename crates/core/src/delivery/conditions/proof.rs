//! The proofs that are awaited: messages that were given to the agent and are not accepted yet, and
//! whether the agent can prove them.

use super::Conditions;
use crate::driver::Action;
use crate::harness::{Proof, Report, Route};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::name::AgentName;
use crate::receipt::Proven;
use crate::turn;
use std::time::Duration;

/// Maximum number of messages that are remembered as written and not accepted.
const MAX_UNPROVEN: usize = 256;
/// Timeout for a hook to name the transcript, counted from the first offer of a run.
const TRANSCRIPT_NAME_TIMEOUT: Duration = Duration::from_secs(60);
const NO_TRANSCRIPT: &str =
    "no transcript: no hook of the agent has named one, so no proof is awaited";
const HOOK_REPORTED_LATE: &str = "a hook of the agent has reported, so a proof is awaited";
const FORGOTTEN: &str = "more than 256 later messages are unproven, so a proof of this one would not be \
     recognised; it is offered again, marked as a repeat, when the agent ends";

/// The parts of a message's header that identify the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageHeader {
    pub(crate) id: MessageId,
    from: AgentName,
    /// Whether the header marks a repeat.
    is_repeat: bool,
}

impl MessageHeader {
    pub(crate) fn of(mail: &MessageState) -> Self {
        Self {
            id: mail.message.id,
            from: mail.message.envelope.from.clone(),
            is_repeat: mail.is_repeat(),
        }
    }
}

/// Whether a hook has named the agent's transcript in this run. Codex hooks name it only at the first
/// prompt, and a person may have disabled all hooks.
#[derive(Debug, Clone, Default)]
pub(crate) enum TranscriptNaming {
    /// No hook has named the transcript, and no offer depends on it.
    #[default]
    Unheard,
    /// The proof of these messages is awaited until the deadline, if a hook names the transcript.
    Expected {
        ids: Vec<MessageId>,
        until: Duration,
    },
    /// No hook is expected to name the transcript, or none did in time. No proof is awaited for these
    /// messages, unless a hook names the transcript later.
    Missing {
        ids: Vec<MessageId>,
    },
    Named,
}

impl TranscriptNaming {
    /// Record that these messages were offered before any hook named the transcript. If
    /// `has_hooks`, wait for a hook to name the transcript; otherwise await no proof.
    pub(crate) fn record_offer(&mut self, now: Moment, offered: &[MessageId], has_hooks: bool) {
        let ids = || offered.to_vec();
        match self {
            Self::Unheard if has_hooks => {
                let until = now.mono + TRANSCRIPT_NAME_TIMEOUT;
                *self = Self::Expected { ids: ids(), until };
            }
            Self::Unheard => *self = Self::Missing { ids: ids() },
            Self::Expected { ids, .. } => ids.extend_from_slice(offered),
            Self::Missing { ids } => {
                ids.extend_from_slice(offered);
                // Older messages can no longer be proven: see [`Unproven::add`].
                ids.drain(..ids.len().saturating_sub(MAX_UNPROVEN));
            }
            Self::Named => {}
        }
    }

    pub(crate) fn next_wakeup(&self) -> Option<Duration> {
        match self {
            Self::Expected { until, .. } => Some(*until),
            Self::Unheard | Self::Missing { .. } | Self::Named => None,
        }
    }
}

/// The proofs that this run awaits.
#[derive(Debug, Clone, Default)]
pub(crate) struct Proofs {
    /// Messages that were typed and are not accepted yet.
    pub(crate) typed: Unproven,
    /// Messages that a hook has passed on.
    pub(crate) hook: Unproven,
    /// Messages that were sent to the agent's API.
    pub(crate) http: Unproven,
    pub(crate) transcript: TranscriptNaming,
}

impl Proofs {
    /// Note that the typed text of these messages was cut off. A part of it may still be submitted,
    /// whatever route offers the messages again.
    pub(crate) fn forget_cut_off(&mut self, ids: &[MessageId]) {
        let repeats = self.typed.forget(ids);
        self.hook.distrust(&repeats);
        self.http.distrust(&repeats);
    }

    /// Note that the API did not say whether it has these messages. Repeats have equal headers, so the
    /// header of one that another route offers next may be the API's.
    pub(crate) fn note_silent_api(&mut self, ids: &[MessageId]) {
        let repeats = self.http.repeats(ids);
        self.typed.distrust(&repeats);
        self.hook.distrust(&repeats);
    }
}

/// Messages that were written to the program and are not accepted yet, the newest last.
#[derive(Debug, Clone, Default)]
pub(crate) struct Unproven {
    written: Vec<MessageHeader>,
    /// Repeats whose text was cut off. A later header cannot be distinguished from their header.
    cut: Vec<MessageId>,
    /// Whether a message was forgotten because too many were unproven.
    has_overflowed: bool,
}

impl Unproven {
    pub(crate) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    pub(crate) fn has(&self, id: MessageId) -> bool {
        self.written.iter().any(|header| header.id == id)
    }

    pub(crate) fn add(&mut self, header: &MessageHeader) {
        self.written.retain(|known| known.id != header.id);
        if self.cut.contains(&header.id) {
            return;
        }
        if self.written.len() == MAX_UNPROVEN {
            self.written.remove(0);
            self.has_overflowed = true;
        }
        self.written.push(header.clone());
    }

    /// Note that these messages are being given to the program.
    pub(crate) fn add_all(&mut self, messages: &[MessageState]) {
        for mail in messages {
            self.add(&MessageHeader::of(mail));
        }
    }

    /// Forget messages that were not sent.
    pub(crate) fn remove(&mut self, ids: &[MessageId]) {
        self.written.retain(|known| !ids.contains(&known.id));
    }

    /// Forget messages whose text was cut off, because their headers prove nothing. Return the repeats
    /// among them.
    fn forget(&mut self, ids: &[MessageId]) -> Vec<MessageId> {
        let cut = self.repeats(ids);
        self.distrust(&cut);
        self.remove(ids);
        cut
    }

    /// Return the repeats among these messages.
    fn repeats(&self, ids: &[MessageId]) -> Vec<MessageId> {
        let is_repeat = |known: &&MessageHeader| known.is_repeat && ids.contains(&known.id);
        let repeats = self.written.iter().filter(is_repeat);
        repeats.map(|known| known.id).collect()
    }

    /// Accept no header as proof of these repeats, because the text of an earlier one was cut off.
    fn distrust(&mut self, repeats: &[MessageId]) {
        self.remove(repeats);
        self.cut.extend(repeats);
        let excess = self.cut.len().saturating_sub(MAX_UNPROVEN);
        self.cut.drain(..excess);
    }

    /// Return the messages whose header is in `text`. A header that matches two messages proves
    /// neither. A header without the repeat mark does not prove a repeat: the header may be left from
    /// an earlier offer that was cut off.
    pub(crate) fn shown(&self, text: &str) -> Vec<MessageId> {
        let mut shown = Vec::new();
        for header in turn::headers(text) {
            let fits = |known: &&MessageHeader| {
                known.from.as_str() == header.from
                    && known.id.id8() == header.id8
                    && known.is_repeat == header.is_repeat
            };
            let mut fitting = self.written.iter().filter(fits);
            // The text may contain the message twice: a part of the first offer, and the repeat.
            if let (Some(known), None) = (fitting.next(), fitting.next())
                && !shown.contains(&known.id)
            {
                shown.push(known.id);
            }
        }
        shown
    }

    /// Like `shown`, but remove the returned messages, because they are proven.
    pub(crate) fn take_shown(&mut self, text: &str) -> Vec<MessageId> {
        let shown = self.shown(text);
        self.written.retain(|header| !shown.contains(&header.id));
        shown
    }
}

/// Messages found in a text, and the proof that the text gives.
#[derive(Debug, Clone)]
pub(crate) struct FoundMessages {
    pub(crate) ids: Vec<MessageId>,
    /// Messages that the model was given, and the evidence.
    accepted: Option<(Vec<MessageId>, String)>,
}

impl FoundMessages {
    pub(crate) fn new(ids: Vec<MessageId>, evidence: Option<String>) -> Self {
        let accepted = evidence.map(|evidence| (ids.clone(), evidence));
        Self { ids, accepted }
    }

    /// Record which messages the model was given.
    pub(crate) fn accept(&self, at: &mut Conditions) -> Option<Action> {
        let (ids, evidence) = self.accepted.clone()?;
        Some(at.accepted(ids, Route::Terminal, evidence))
    }

    /// Merge with an earlier result.
    pub(crate) fn after(self, before: Option<Self>) -> Self {
        let Some(before) = before else {
            return self;
        };
        Self {
            ids: [before.ids, self.ids].concat(),
            accepted: match (before.accepted, self.accepted) {
                (Some((first, _)), Some((more, evidence))) => {
                    Some(([first, more].concat(), evidence))
                }
                (first, more) => more.or(first),
            },
        }
    }
}

/// Return those of `messages` that the transcript of an earlier run shows as given to the model. A
/// message with more than two offers is skipped, because its repeats have identical headers.
pub fn proven_by(given: &str, messages: &[MessageState]) -> Vec<MessageId> {
    let is_plain = |mail: &&MessageState| mail.offers() <= 2;
    let mut unproven = Unproven::default();
    for mail in messages.iter().filter(is_plain) {
        unproven.add(&MessageHeader {
            is_repeat: mail.status.cut,
            ..MessageHeader::of(mail)
        });
    }
    unproven.shown(given)
}

impl Conditions {
    /// Return whether a proof of acceptance is expected: the harness defines one, and the agent's
    /// hooks work in this run.
    pub(crate) fn awaits_proof(&self) -> bool {
        self.missing_proof().is_none()
    }

    fn missing_proof(&self) -> Option<String> {
        let harness = &self.config.harness;
        let is_heard = self.agent.heard.session().is_some();
        match harness.proof.as_slice() {
            [] => Some(format!("harness {} cannot prove 'accepted'", harness.name)),
            proof if proof.contains(&Proof::Hook) && (is_heard || self.expects_hook()) => None,
            proof if proof.contains(&Proof::Transcript) && self.expects_transcript() => None,
            proof if proof.contains(&Proof::Transcript) => {
                Some("no transcript: no hook of the agent has named one".to_owned())
            }
            _ => Some("no hook of the agent has reported".to_owned()),
        }
    }

    /// Return whether a hook that the session gave the program may still report for the first time.
    fn expects_hook(&self) -> bool {
        match self.proof.transcript {
            TranscriptNaming::Unheard | TranscriptNaming::Expected { .. } => self.config.has_hooks,
            TranscriptNaming::Missing { .. } | TranscriptNaming::Named => false,
        }
    }

    fn expects_transcript(&self) -> bool {
        matches!(self.proof.transcript, TranscriptNaming::Named) || self.expects_hook()
    }

    /// Note that a hook has named the transcript. Return the messages whose proof was given up.
    pub(crate) fn name_transcript(&mut self, report: &Report) -> Vec<MessageId> {
        let is_proof = self.config.harness.proof.contains(&Proof::Hook);
        if report.transcript.is_none() && !is_proof {
            return Vec::new();
        }
        match std::mem::replace(&mut self.proof.transcript, TranscriptNaming::Named) {
            TranscriptNaming::Missing { ids } => ids,
            TranscriptNaming::Unheard
            | TranscriptNaming::Expected { .. }
            | TranscriptNaming::Named => Vec::new(),
        }
    }

    /// Await the proof of these messages again, unless they were proven meanwhile.
    pub(crate) fn await_again(&mut self, mut ids: Vec<MessageId>) -> Option<Action> {
        ids.retain(|id| self.proof.typed.has(*id));
        let evidence = HOOK_REPORTED_LATE.to_owned();
        (!ids.is_empty()).then(|| self.offered(ids, Route::Terminal, evidence, true))
    }

    /// Stop awaiting proofs if no hook has named a transcript in time.
    pub(crate) fn give_up_transcript(&mut self) -> Option<Action> {
        let TranscriptNaming::Expected { ids, until } = &self.proof.transcript else {
            return None;
        };
        if *until > self.now.mono {
            return None;
        }
        let ids = ids.clone();
        self.proof.transcript = TranscriptNaming::Missing { ids: ids.clone() };
        let evidence = NO_TRANSCRIPT.to_owned();
        Some(self.offered(ids, Route::Terminal, evidence, false))
    }

    /// Return why an offered message cannot be proven to be accepted, if there is a reason.
    pub(crate) fn lacks_proof(&self, mail: &MessageState) -> Option<String> {
        let why = self
            .missing_proof()
            .or_else(|| self.is_forgotten(mail).then(|| FORGOTTEN.to_owned()));
        why.map(|why| format!("; {why}"))
    }

    /// Whether the proof of a message is awaited, but would not be recognised, because too many
    /// messages were offered after it.
    fn is_forgotten(&self, mail: &MessageState) -> bool {
        let lists = [&self.proof.typed, &self.proof.hook, &self.proof.http];
        mail.status.proven == Proven::Unproven
            && lists.iter().any(|unproven| unproven.has_overflowed)
            && !lists.iter().any(|unproven| unproven.has(mail.message.id))
    }

    /// Return whether a message awaits a proof by the transcript.
    pub(crate) fn needs_transcript(&self) -> bool {
        let is_unproven = !self.proof.typed.is_empty() || !self.proof.hook.is_empty();
        self.config.harness.proof.contains(&Proof::Transcript) && is_unproven
    }

    /// Move the read offsets to the ends of the transcripts before an offer, because earlier rows
    /// cannot prove it. Keep the offsets while an earlier offer still awaits its proof.
    pub(crate) fn skip_transcripts(&self) -> Option<Action> {
        (!self.needs_transcript()).then_some(Action::SkipTranscripts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mail::tests::{message, with_steps};
    use crate::receipt::Step::{Offering, Uncertain};

    #[test]
    fn messages_offered_while_the_transcript_is_missing_are_remembered() {
        let (first, second) = (message(1, "alice", "bob").id, message(2, "alice", "bob").id);
        let mut transcript = TranscriptNaming::Missing { ids: vec![first] };
        transcript.record_offer(crate::activity::tests::ms(0), &[second], true);
        let TranscriptNaming::Missing { ids } = transcript else {
            panic!("{transcript:?}");
        };
        assert_eq!(ids, [first, second]);
    }

    #[test]
    fn the_messages_without_a_transcript_are_bounded() {
        let id = |n| message(n, "alice", "bob").id;
        let mut transcript = TranscriptNaming::Missing { ids: Vec::new() };
        let most = MAX_UNPROVEN as u128;
        for n in 1..=most + 10 {
            transcript.record_offer(crate::activity::tests::ms(0), &[id(n)], true);
        }
        let TranscriptNaming::Missing { ids } = transcript else {
            panic!("{transcript:?}");
        };
        assert_eq!(ids.len(), MAX_UNPROVEN);
        assert_eq!(ids.first(), Some(&id(11)));
        assert_eq!(ids.last(), Some(&id(most + 10)));
    }

    #[test]
    fn a_repeat_that_a_silent_api_may_have_proves_no_other_route() {
        let repeat = |n| {
            let message = message(n, "alice", "bob");
            MessageHeader::of(&with_steps(&message, &[Offering, Uncertain]))
        };
        let first = MessageHeader::of(&with_steps(&message(2, "alice", "bob"), &[]));
        let mut proofs = Proofs::default();
        proofs.http.add(&repeat(1));
        proofs.http.add(&first);
        proofs.note_silent_api(&[repeat(1).id, first.id]);
        proofs.typed.add(&repeat(1));
        proofs.typed.add(&repeat(2));
        assert!(proofs.http.has(repeat(1).id) && !proofs.typed.has(repeat(1).id));
        assert!(proofs.typed.has(first.id), "the repeat has another header");
    }

    /// A part of the first offer may still be in the box, and be submitted instead of the repeat.
    #[test]
    fn the_rest_of_an_offer_that_was_cut_off_does_not_prove_its_repeat() {
        let message = message(1, "alice", "bob");
        let id = message.id;
        let first = MessageHeader::of(&with_steps(&message, &[]));
        let repeat = MessageHeader::of(&with_steps(&message, &[Offering, Uncertain]));
        let head = &format!("[ph message from: alice id: {}] hi", id.id8());
        let again = head.replace(']', &format!("{}]", turn::REPEAT));
        let mut unproven = Unproven::default();
        unproven.add(&first);
        unproven.forget(&[id]);
        assert_eq!(unproven.take_shown(head), []);
        unproven.add(&repeat);
        assert_eq!(unproven.take_shown(head), []);
        assert_eq!(unproven.take_shown(&format!("{head}\n{again}")), [id]);
        // Two repeats have identical headers.
        unproven.add(&repeat);
        unproven.forget(&[id]);
        unproven.add(&repeat);
        assert_eq!(unproven.take_shown(&again), []);
    }
}
