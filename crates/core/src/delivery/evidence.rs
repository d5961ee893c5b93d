//! The evidence of the agent's hooks and transcripts: its activity, its questions, and the messages
//! that are proven to be accepted.
//!
//! A message is accepted only if the agent's transcript or hook shows a text that the model was
//! given, and this text contains the whole header of a message that this session has written. A
//! text that was only submitted may still be queued, so it proves only that Enter had its effect.

use super::Delivery;
use super::conditions::proof::FoundMessages;
use crate::driver::Action;
use crate::harness::{Claim, Proof, Report, Route, Source, Word, transcript};

const TRANSCRIBED: &str = "the agent's transcript shows that the model was given the message";
const SHOWN: &str = "its transcript shows the id in the text of its hook";
const WITHDRAWN: &str = "a person removed it from the agent's queue";

impl Delivery {
    /// Handle a report of one of the agent's hooks.
    pub(super) fn hear(&mut self, report: &Report) -> Vec<Action> {
        let (now, agent) = (self.at.now, &mut self.at.agent);
        let Some(word) = agent.heard.hear(now, report) else {
            return Vec::new();
        };
        if report.ready {
            agent.judge.ready(now);
        }
        match word {
            Word::Does(says) => {
                let (source, evidence) = (Source::Hook, format!("hook {}", report.event));
                let claim = Claim {
                    source,
                    says,
                    evidence,
                };
                agent.judge.claim(now, claim);
            }
            Word::Unsure => agent.judge.forget(Source::Hook),
            Word::Nothing => {}
        }
        agent.settle_question(now);
        let unawaited = self.at.name_transcript(report);
        let mut actions = self.prove_by_hook(report);
        actions.extend(self.at.await_again(unawaited));
        actions
    }

    /// Find the messages that a hook reports as submitted or as given to the model.
    fn prove_by_hook(&mut self, report: &Report) -> Vec<Action> {
        let is_proof = self.at.config.harness.proof.contains(&Proof::Hook);
        let given = report.given.as_deref().filter(|_| is_proof);
        let Some(given) = given else {
            let submitted = report.prompt.as_deref();
            return submitted.map_or_else(Vec::new, |text| self.prove(text, None));
        };
        let shows = format!("its hook {} holds the id", report.event);
        let sent = self.at.proof.http.take_shown(given);
        let mut actions = self.prove(given, Some(shows.clone()));
        if !sent.is_empty() {
            actions.push(self.at.accepted(sent, Route::Http, shows));
        }
        actions
    }

    /// Find the messages that the transcript shows as given to the model, or as taken back by a
    /// person before that.
    pub(super) fn transcript_read(&mut self, shown: &transcript::Shown) -> Vec<Action> {
        let by_hook = self.at.proof.hook.take_shown(&shown.given);
        let mut actions = self.prove(&shown.given, Some(TRANSCRIBED.to_owned()));
        if !by_hook.is_empty() {
            actions.push(self.at.accepted(by_hook, Route::Hook, SHOWN.to_owned()));
        }
        let withdrawn = self.at.proof.typed.shown(&shown.withdrawn);
        if !withdrawn.is_empty() {
            actions.push(self.at.uncertain(withdrawn, WITHDRAWN));
        }
        actions
    }

    /// Find the typed messages in `text`. With evidence, the model was given the text; without
    /// evidence, the text was only submitted and may be queued.
    fn prove(&mut self, text: &str, evidence: Option<String>) -> Vec<Action> {
        let typed = &mut self.at.proof.typed;
        let ids = match evidence {
            Some(_) => typed.take_shown(text),
            None => typed.shown(text),
        };
        if ids.is_empty() {
            return Vec::new();
        }
        let found = FoundMessages::new(ids, evidence);
        self.at_terminal(|terminal, at| terminal.prove(at, found))
    }
}
