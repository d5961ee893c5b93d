//! Evaluation of the agent's hooks and transcript: its activity, its questions, and the messages that
//! are proven to be accepted.
//!
//! A message is accepted only if the agent's transcript or hook shows a text that the model was
//! given, and this text contains the whole header of a message that this session has written. A
//! text that was only submitted may still be queued, so it proves only that Enter had its effect.

use super::{Delivery, Effect};
use crate::harness::{Claim, Proof, Report, Route, Source, Turn, Word, transcript};
use crate::id::MessageId;
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::name::AgentName;
use crate::receipt::Proven;
use crate::turn;
use std::time::Duration;

/// Maximum number of messages that are remembered as written and not accepted.
const MAX_UNPROVEN: usize = 256;
const TRANSCRIBED: &str = "the agent's transcript shows that the model was given the message";
/// Timeout for a hook to name the transcript, counted from the first offer of a run.
const TRANSCRIPT_NAME_TIMEOUT: Duration = Duration::from_secs(60);
const NO_TRANSCRIPT: &str =
    "no transcript: no hook of the agent has named one, so no proof is awaited";
const HOOK_REPORTED_LATE: &str = "a hook of the agent has reported, so a proof is awaited";
const FORGOTTEN: &str = "more than 256 later messages are unproven, so a proof of this one would not be \
     recognised; it is offered again, marked as a repeat, when the agent ends";
const WITHDRAWN: &str = "a person removed it from the agent's queue";

/// The parts of a message's header that identify the message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageHeader {
    pub(super) id: MessageId,
    from: AgentName,
    /// Whether the header marks a repeat.
    is_repeat: bool,
}

impl MessageHeader {
    pub(super) fn of(mail: &MessageState) -> Self {
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
pub(super) enum TranscriptNaming {
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
    pub(super) fn record_offer(&mut self, now: Moment, offered: &[MessageId], has_hooks: bool) {
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

    pub(super) fn next_wakeup(&self) -> Option<Duration> {
        match self {
            Self::Expected { until, .. } => Some(*until),
            Self::Unheard | Self::Missing { .. } | Self::Named => None,
        }
    }
}

/// The proofs that this run awaits for typed messages.
#[derive(Debug, Clone, Default)]
pub(super) struct Proofs {
    pub(super) unproven: Unproven,
    pub(super) transcript: TranscriptNaming,
}

/// Messages that were written to the program and are not accepted yet, the newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct Unproven {
    written: Vec<MessageHeader>,
    /// Repeats whose text was cut off. A later header cannot be distinguished from their header.
    cut: Vec<MessageId>,
    /// Whether a message was forgotten because too many were unproven.
    has_overflowed: bool,
}

impl Unproven {
    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    pub(super) fn has(&self, id: MessageId) -> bool {
        self.written.iter().any(|header| header.id == id)
    }

    pub(super) fn add(&mut self, header: &MessageHeader) {
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

    /// Forget messages whose text was cut off, because their headers prove nothing.
    pub(super) fn forget(&mut self, ids: &[MessageId]) {
        let is_cut = |known: &&MessageHeader| known.is_repeat && ids.contains(&known.id);
        let cut = self.written.iter().filter(is_cut).map(|known| known.id);
        self.cut.extend(cut);
        let excess = self.cut.len().saturating_sub(MAX_UNPROVEN);
        self.cut.drain(..excess);
        self.written.retain(|known| !ids.contains(&known.id));
    }

    /// Return the messages whose header is in `text`. A header that matches two messages proves
    /// neither. A header without the repeat mark does not prove a repeat: the header may be left from
    /// an earlier offer that was cut off.
    fn shown(&self, text: &str) -> Vec<MessageId> {
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
    pub(super) fn take_shown(&mut self, text: &str) -> Vec<MessageId> {
        let shown = self.shown(text);
        self.written.retain(|header| !shown.contains(&header.id));
        shown
    }
}

/// Messages found in a text, and the proof that the text gives.
#[derive(Debug, Clone)]
pub(crate) struct FoundMessages {
    pub(super) ids: Vec<MessageId>,
    /// Messages that the model was given, and the evidence.
    accepted: Option<(Vec<MessageId>, String)>,
}

impl FoundMessages {
    pub(super) fn effect(&self) -> Option<Effect> {
        let (ids, evidence) = self.accepted.clone()?;
        let route = Route::Terminal;
        Some(Effect::Accepted {
            ids,
            evidence,
            route,
        })
    }

    /// Merge with an earlier result.
    pub(super) fn after(self, before: Option<Self>) -> Self {
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

impl Delivery {
    /// Return whether a proof of acceptance is expected: the harness defines one, and the agent's
    /// hooks work in this run.
    pub(super) fn awaits_proof(&self) -> bool {
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

    /// Note that a hook has named the transcript. Await the proof of messages again that were given
    /// up before.
    fn name_transcript(&mut self, report: &Report) -> Option<Effect> {
        let is_proof = self.config.harness.proof.contains(&Proof::Hook);
        if report.transcript.is_none() && !is_proof {
            return None;
        }
        match std::mem::replace(&mut self.proof.transcript, TranscriptNaming::Named) {
            TranscriptNaming::Missing { mut ids } => {
                ids.retain(|id| self.proof.unproven.has(*id));
                (!ids.is_empty()).then_some(Effect::Offered {
                    ids,
                    evidence: HOOK_REPORTED_LATE.to_owned(),
                    route: Route::Terminal,
                    proof_awaited: true,
                })
            }
            TranscriptNaming::Unheard
            | TranscriptNaming::Expected { .. }
            | TranscriptNaming::Named => None,
        }
    }

    /// Stop awaiting proofs if no hook has named a transcript in time.
    pub(super) fn give_up_transcript(&mut self, now: Moment) -> Option<Effect> {
        let TranscriptNaming::Expected { ids, until } = &self.proof.transcript else {
            return None;
        };
        if *until > now.mono {
            return None;
        }
        let ids = ids.clone();
        self.proof.transcript = TranscriptNaming::Missing { ids: ids.clone() };
        Some(Effect::Offered {
            ids,
            evidence: NO_TRANSCRIPT.to_owned(),
            route: Route::Terminal,
            proof_awaited: false,
        })
    }

    /// Return whether a report belongs to the agent's own conversation.
    pub fn is_own(&self, report: &Report) -> bool {
        self.agent.heard.is_own(report)
    }

    /// Return why an offered message cannot be proven to be accepted, if there is a reason.
    pub fn lacks_proof(&self, mail: &MessageState) -> Option<String> {
        let why = self
            .missing_proof()
            .or_else(|| self.is_forgotten(mail).then(|| FORGOTTEN.to_owned()));
        why.map(|why| format!("; {why}"))
    }

    /// Whether the proof of a message is awaited, but would not be recognised, because too many
    /// messages were offered after it.
    fn is_forgotten(&self, mail: &MessageState) -> bool {
        let lists = [
            &self.proof.unproven,
            &self.hook.unproven,
            self.http.unproven(),
        ];
        mail.status.proven == Proven::Unproven
            && lists.iter().any(|unproven| unproven.has_overflowed)
            && !lists.iter().any(|unproven| unproven.has(mail.message.id))
    }

    /// Return whether a message awaits a proof by the transcript.
    pub fn needs_transcript(&self) -> bool {
        let is_unproven = !self.proof.unproven.is_empty() || !self.hook.unproven.is_empty();
        self.config.harness.proof.contains(&Proof::Transcript) && is_unproven
    }

    /// Return the state of the agent's turn according to its hooks.
    pub fn doing(&self) -> Option<Turn> {
        self.agent.doing()
    }

    /// Handle a call of one of the agent's hooks.
    pub(super) fn hook_called(&mut self, now: Moment, report: &Report) -> Vec<Effect> {
        let Some(word) = self.agent.heard.hear(now, report) else {
            return self.proceed(now);
        };
        self.http.set_conversation(self.agent.heard.session());
        if report.ready {
            self.agent.judge.ready(now);
        }
        match word {
            Word::Does(says) => {
                let evidence = format!("hook {}", report.event);
                let source = Source::Hook;
                self.agent.judge.claim(
                    now,
                    Claim {
                        source,
                        says,
                        evidence,
                    },
                );
            }
            Word::Unsure => self.agent.judge.forget(Source::Hook),
            Word::Nothing => {}
        }
        self.agent.settle_question(now);
        let mut effects = self.prove_by_hook(now, report);
        effects.extend(self.prove_sent_to_api(report));
        effects.extend(self.name_transcript(report));
        effects.extend(self.proceed(now));
        effects
    }

    /// Return the effect of messages sent over HTTP that a hook proves to be given to the model.
    fn prove_sent_to_api(&mut self, report: &Report) -> Option<Effect> {
        if !self.config.harness.proof.contains(&Proof::Hook) {
            return None;
        }
        let ids = self.http.prove(report);
        let (evidence, route) = (shows(report), Route::Http);
        (!ids.is_empty()).then_some(Effect::Accepted {
            ids,
            evidence,
            route,
        })
    }

    /// Find the messages that a hook reports as submitted or as given to the model.
    fn prove_by_hook(&mut self, now: Moment, report: &Report) -> Vec<Effect> {
        let is_proof = self.config.harness.proof.contains(&Proof::Hook);
        let given = report.given.as_deref().filter(|_| is_proof);
        match (given, &report.prompt) {
            (Some(given), _) => self.prove(now, given, Some(shows(report))),
            (None, Some(submitted)) => self.prove(now, submitted, None),
            (None, None) => Vec::new(),
        }
    }

    /// Find the messages that the transcript shows as given to the model, or as taken back by a
    /// person before that.
    pub(super) fn transcript_read(
        &mut self,
        now: Moment,
        shown: &transcript::Shown,
    ) -> Vec<Effect> {
        let by_hook = self.hook.prove(&shown.given);
        let mut effects = self.prove(now, &shown.given, Some(TRANSCRIBED.to_owned()));
        effects.extend(by_hook);
        let ids = self.proof.unproven.shown(&shown.withdrawn);
        let reason = WITHDRAWN.to_owned();
        effects.extend((!ids.is_empty()).then_some(Effect::Uncertain { ids, reason }));
        effects
    }

    /// Find the messages in `text`. With evidence, the model was given the text; without evidence,
    /// the text was only submitted and may be queued.
    fn prove(&mut self, now: Moment, text: &str, evidence: Option<String>) -> Vec<Effect> {
        let ids = match evidence {
            Some(_) => self.proof.unproven.take_shown(text),
            None => self.proof.unproven.shown(text),
        };
        if ids.is_empty() {
            return Vec::new();
        }
        let accepted = evidence.map(|evidence| (ids.clone(), evidence));
        let proof = FoundMessages { ids, accepted };
        self.prove_typed(now, proof)
    }
}

fn shows(report: &Report) -> String {
    format!("its hook {} holds the id", report.event)
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
