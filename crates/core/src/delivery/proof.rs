//! What a desk makes of the agent's own hooks: what they say of its work, what they ask, and which
//! messages they prove to be accepted.
//!
//! A message is accepted by one thing alone: a hook of this agent's shows a text that was
//! submitted, and in it stands the whole header of a message that this session has written.

use super::phase::Cargo;
use super::submit::Before;
use super::{Desk, Effect, Flight, Phase};
use crate::harness::{Claim, Report, Route, Source, Turn, Word};
use crate::id::MessageId;
use crate::mail::Letter;
use crate::moment::Moment;
use crate::name::AgentName;
use crate::turn;

/// How many messages are remembered as written and not yet accepted.
const REMEMBERED: usize = 256;
const SUBMITTED: &str = "; its hook shows that it was submitted";
const CUT_OFF: &str = "somebody else pressed Enter, and what was submitted does not show it";

/// A message and who sent it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) id: MessageId,
    from: AgentName,
    /// Whether its header says so.
    is_repeat: bool,
}

impl Sent {
    pub(super) fn of(letter: &Letter) -> Self {
        Self {
            id: letter.message.id,
            from: letter.message.envelope.from.clone(),
            is_repeat: letter.is_repeat(),
        }
    }
}

/// What was written to the program and is not accepted yet, the newest last.
#[derive(Debug, Clone, Default)]
pub(super) struct Unproven {
    written: Vec<Sent>,
    /// Repeats that broke off: no later header can be told from theirs.
    cut: Vec<MessageId>,
}

impl Unproven {
    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }

    pub(super) fn add(&mut self, sent: &Sent) {
        self.written.retain(|known| known.id != sent.id);
        if self.cut.contains(&sent.id) {
            return;
        }
        if self.written.len() == REMEMBERED {
            self.written.remove(0);
        }
        self.written.push(sent.clone());
    }

    /// Of these something is missing: their headers prove nothing.
    pub(super) fn forget(&mut self, ids: &[MessageId]) {
        let is_cut = |known: &&Sent| known.is_repeat && ids.contains(&known.id);
        let cut = self.written.iter().filter(is_cut).map(|known| known.id);
        self.cut.extend(cut);
        let excess = self.cut.len().saturating_sub(REMEMBERED);
        self.cut.drain(..excess);
        self.written.retain(|known| !ids.contains(&known.id));
    }

    /// Takes out those whose header stands in a text that was submitted. One that would fit two
    /// messages proves neither; one that is no repeat may be all that is left of an offer that
    /// broke off, and does not prove the repeat.
    pub(super) fn take_shown(&mut self, submitted: &str) -> Vec<MessageId> {
        let mut shown = Vec::new();
        for header in turn::headers(submitted) {
            let fits = |sent: &&Sent| {
                sent.from.as_str() == header.from
                    && sent.id.id8() == header.id8
                    && sent.is_repeat == header.is_repeat
            };
            let mut fitting = self.written.iter().filter(fits);
            // It may stand there twice: a part of it from before, and the repeat.
            if let (Some(sent), None) = (fitting.next(), fitting.next())
                && !shown.contains(&sent.id)
            {
                shown.push(sent.id);
            }
        }
        self.written.retain(|sent| !shown.contains(&sent.id));
        shown
    }
}

/// What shows that messages were accepted.
#[derive(Debug, Clone)]
pub(super) struct Proof {
    ids: Vec<MessageId>,
    evidence: String,
}

impl Proof {
    fn effect(&self) -> Effect {
        Effect::Accepted {
            ids: self.ids.clone(),
            evidence: self.evidence.clone(),
            route: Route::Terminal,
        }
    }
}

impl Flight {
    /// That it was written whole, and what is proven of it by then. Where somebody else has
    /// pressed Enter, that is all that is known to have been submitted.
    pub(super) fn arrived(&self, evidence: String) -> Vec<Effect> {
        planted!(AcceptedByEnter => return self.accepted_by_enter(evidence));
        let Some(proof) = &self.proof else {
            return self.offered(evidence);
        };
        let is_submitted = |id: &MessageId| self.entered.is_some() || proof.ids.contains(id);
        let (submitted, cut_off): (Vec<_>, Vec<_>) =
            self.ids.iter().copied().partition(is_submitted);
        let part = |ids| Self {
            ids,
            ..self.clone()
        };
        let mut effects = part(submitted).offered(evidence);
        effects.push(proof.effect());
        if !cut_off.is_empty() {
            effects.extend(part(cut_off).uncertain(CUT_OFF));
        }
        effects
    }

    fn has(&self, ids: &[MessageId]) -> bool {
        let is_in = |id: &MessageId| ids.contains(id);
        self.cargo == Cargo::Messages && self.ids.iter().any(is_in)
    }
}

impl Desk {
    /// What the agent's hooks say it does within its turn.
    pub fn doing(&self) -> Option<Turn> {
        let is_heard = self.activity().heard.is_some();
        self.heard.doing().filter(|_| is_heard)
    }

    /// Has a flight's text written.
    pub(super) fn write(&mut self, mut flight: Flight) -> Effect {
        flight.attempts = flight.attempts.saturating_add(1);
        flight.output = self.drafting.output();
        flight.at_cursor.clone_from(&self.at_cursor);
        if self.manner.harness.is_proven_by_hook() {
            let written = flight.sent.iter();
            for sent in written.filter(|sent| flight.ids.contains(&sent.id)) {
                self.unproven.add(sent);
            }
        }
        let write = flight.write();
        self.phase = Phase::Writing(flight);
        write
    }

    /// A hook has something to say.
    pub(super) fn hooked(&mut self, now: Moment, report: &Report) -> Vec<Effect> {
        let Some(word) = self.heard.hear(now, report) else {
            planted!(AcceptedElsewhere => return self.prove(now, report));
            return self.proceed(now);
        };
        self.door.enter(self.heard.session());
        if report.ready {
            self.judge.ready(now);
        }
        match word {
            Word::Does(says) => {
                let evidence = format!("hook {}", report.event);
                let source = Source::Hook;
                self.judge.claim(
                    now,
                    Claim {
                        source,
                        says,
                        evidence,
                    },
                );
            }
            Word::Unsure => self.judge.forget(Source::Hook),
            Word::Nothing => {}
        }
        self.ask(now);
        let mut effects = self.prove(now, report);
        effects.extend(self.prove_called(report));
        effects.extend(self.proceed(now));
        effects
    }

    /// The same of those that went by the door.
    fn prove_called(&mut self, report: &Report) -> Option<Effect> {
        let ids = self.door.hear(report);
        let (evidence, route) = (shows(report), Route::Http);
        (!ids.is_empty()).then_some(Effect::Accepted {
            ids,
            evidence,
            route,
        })
    }

    /// Sees which messages a text shows that was submitted.
    fn prove(&mut self, now: Moment, report: &Report) -> Vec<Effect> {
        let Some(submitted) = &report.prompt else {
            return Vec::new();
        };
        let ids = self.unproven.take_shown(submitted);
        if ids.is_empty() {
            return Vec::new();
        }
        let evidence = shows(report);
        let proof = Proof { ids, evidence };
        if let Some(flight) = self.parked.take_if(|parked| parked.has(&proof.ids)) {
            // Somebody else has pressed Enter, or ours had its effect behind a dialog.
            let how = self.evidence(&flight, SUBMITTED);
            let proof = Some(proof);
            return Flight { proof, ..flight }.arrived(how);
        }
        self.prove_in_flight(now, proof)
    }

    fn prove_in_flight(&mut self, now: Moment, proof: Proof) -> Vec<Effect> {
        match &mut self.phase {
            Phase::Writing(flight)
            | Phase::Written { flight, .. }
            | Phase::Looking {
                flight,
                before: Before::Enter | Before::Retry,
            }
            | Phase::Resuming(flight)
            | Phase::Entering(flight)
            | Phase::Confirming { flight, .. }
                if flight.has(&proof.ids) =>
            {
                let known = flight.proof.take().map(|known| known.ids);
                let ids = [known.unwrap_or_default(), proof.ids].concat();
                flight.proof = Some(Proof { ids, ..proof });
                self.submitted(now)
            }
            Phase::Free
            | Phase::Breaking { .. }
            | Phase::Settling(_)
            | Phase::Recording(_)
            | Phase::Writing(_)
            | Phase::Written { .. }
            | Phase::Looking { .. }
            | Phase::Resuming(_)
            | Phase::Entering(_)
            | Phase::Confirming { .. }
            | Phase::Resting { .. } => vec![proof.effect()],
        }
    }

    /// Ends a flight of which it is proven that it was submitted: Enter is not pressed, or not
    /// pressed again, whatever the box shows. A write that is under way is waited for.
    pub(super) fn submitted(&mut self, now: Moment) -> Vec<Effect> {
        match &self.phase {
            Phase::Written { flight, .. }
            | Phase::Looking {
                flight,
                before: Before::Enter | Before::Retry,
            }
            | Phase::Confirming { flight, .. }
                if flight.proof.is_some() =>
            {
                let flight = flight.clone();
                self.finish(now, &flight, SUBMITTED)
            }
            Phase::Free
            | Phase::Breaking { .. }
            | Phase::Settling(_)
            | Phase::Recording(_)
            | Phase::Writing(_)
            | Phase::Written { .. }
            | Phase::Looking { .. }
            | Phase::Resuming(_)
            | Phase::Entering(_)
            | Phase::Confirming { .. }
            | Phase::Resting { .. } => Vec::new(),
        }
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

    /// Half of it may stand in the box, and be submitted instead of the repeat.
    #[test]
    fn what_is_left_of_an_offer_that_broke_off_does_not_prove_its_repeat() {
        let message = message(1, "alice", "bob");
        let id = message.id;
        let first = Sent::of(&with_steps(&message, &[]));
        let repeat = Sent::of(&with_steps(&message, &[Offering, Uncertain]));
        let head = &format!("[ph message from: alice id: {}] hi", id.id8());
        let again = head.replace(']', &format!("{}]", turn::REPEAT));
        let mut unproven = Unproven::default();
        unproven.add(&first);
        unproven.forget(&[id]);
        assert_eq!(unproven.take_shown(head), []);
        unproven.add(&repeat);
        assert_eq!(unproven.take_shown(head), []);
        assert_eq!(unproven.take_shown(&format!("{head}\n{again}")), [id]);
        // One repeat cannot be told from another.
        unproven.add(&repeat);
        unproven.forget(&[id]);
        unproven.add(&repeat);
        assert_eq!(unproven.take_shown(&again), []);
    }
}
