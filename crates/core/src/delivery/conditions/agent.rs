//! The state of the agent: its activity, its questions, and whether another process has its
//! conversation. It decides nothing about mail.

use super::question::Questions;
use crate::activity::{Activity, Judgement};
use crate::harness::{Heard, Judge, Manifest, Says, Sighting, Source, Turn};
use crate::moment::Moment;
use std::sync::Arc;
use std::time::Duration;

/// Another process that has the agent's conversation.
#[derive(Debug, Clone)]
pub(crate) struct Handover {
    pub(crate) since: Moment,
    pub(crate) job: String,
}

#[derive(Debug, Clone)]
pub(crate) struct AgentState {
    pub(crate) harness: Arc<Manifest>,
    /// When the program was started.
    pub(crate) started_at: Moment,
    pub(crate) judge: Judge,
    pub(crate) heard: Heard,
    pub(crate) questions: Questions,
    /// The sign of work on the screen at the last look, whatever better sources say.
    pub(crate) work_sign: Option<String>,
    /// The agent continued to work after the last interrupt key.
    pub(crate) ignores_interrupts: bool,
    pub(crate) handed_over: Option<Handover>,
}

impl AgentState {
    pub(crate) fn new(harness: Arc<Manifest>, now: Moment) -> Self {
        Self {
            judge: Judge::new(&harness, now),
            harness,
            started_at: now,
            heard: Heard::default(),
            questions: Questions::default(),
            work_sign: None,
            ignores_interrupts: false,
            handed_over: None,
        }
    }

    /// Return the activity. An open question counts for more than silence or output.
    pub(crate) fn judgement(&self) -> Judgement {
        let judged = self.judge.judgement();
        match (&self.questions.open, &judged.activity) {
            (Some(dialog), Activity::Starting | Activity::Idle | Activity::Working) => Judgement {
                activity: Activity::Blocked(dialog.what.clone()),
                since: dialog.since,
                evidence: dialog.evidence.clone(),
                heard: dialog.hook_reported_at,
            },
            (Some(_), Activity::Blocked(_) | Activity::Exited) | (None, _) => judged,
        }
    }

    pub(crate) fn activity(&self) -> Activity {
        self.judgement().activity
    }

    pub(crate) fn has_exited(&self) -> bool {
        self.activity() == Activity::Exited
    }

    /// Whether the harness can tell that no question is open.
    pub(crate) fn knows_dialogs(&self) -> bool {
        self.harness.knows_dialogs()
    }

    pub(crate) fn is_asking(&self) -> bool {
        self.questions.open.is_some()
    }

    /// Whether other evidence than output shows that the agent works, if the harness forbids typing
    /// meanwhile. A sign on the screen counts even if a better source says "idle".
    pub(crate) fn is_at_work(&self) -> bool {
        let is_forbidden = !self.harness.submit.while_working && self.harness.input_box.is_some();
        let is_working = self.work_sign.is_some() || self.judge.surely_works();
        is_forbidden && is_working && !self.has_exited()
    }

    pub(crate) fn is_handed_over(&self) -> bool {
        self.handed_over.is_some() && !self.has_exited()
    }

    /// Note that messages were written to the program. Hook events after `from` already belong to
    /// them.
    pub(crate) fn given(&mut self, now: Moment, from: Option<Duration>) {
        self.judge.given(now, from, "a message was written to it");
    }

    /// Return the state of the agent's turn according to its hooks.
    pub(crate) fn doing(&self) -> Option<Turn> {
        let is_heard = self.judgement().heard.is_some();
        self.heard.doing().filter(|_| is_heard)
    }

    /// Update everything except the question from a look at the screen.
    pub(crate) fn look(&mut self, now: Moment, sighting: &Sighting) {
        let mut claims = sighting.claims.iter();
        let work = claims.find(|claim| claim.says == Says::Working);
        self.work_sign = work.map(|claim| claim.evidence.clone());
        let since = self.handed_over.take().map_or(now, |before| before.since);
        let job = sighting.program.handed_over.clone();
        self.handed_over = job.map(|job| Handover { since, job });
        self.judge.seen(now, &sighting.claims);
        if sighting.ready {
            self.judge.ready(now);
        }
    }

    /// End a question that a hook has reported.
    pub(crate) fn end_hook_question(&mut self) {
        self.heard.answered();
        self.judge.forget(Source::Hook);
    }
}
