//! A loop's state: the sum of its facts. Applying a fact cannot fail; a fact that does not fit is
//! ignored.

use super::fact::{
    Began, CompletionProof, IterationEnded, IterationOutcome, IterationStarted, LoopEnding,
    LoopFact, LoopRequest, Settings, Waiting,
};
use crate::fact::{Event, Fact, Record};
use crate::id::PromptId;
use crate::name::AgentName;
use crate::tasks::Deed;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// A loop with all its facts. The journal's views store this shape, so changing it needs a new
/// version of the views.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopState {
    pub agent: AgentName,
    pub began_at: Timestamp,
    /// Time of the last change.
    pub updated_at: Timestamp,
    /// The session's current or last run.
    pub run: Option<Uuid>,
    pub settings: Settings,
    /// Number of the loop's first iteration.
    pub first: u32,
    /// Number of the running or next iteration. A failed iteration's number is used again.
    pub number: u32,
    /// The running iteration. After a crash, the one that was cut off.
    pub open: Option<Iteration>,
    /// The iteration that ended last.
    pub last: Option<PastIteration>,
    /// Number of consecutive failures since the last start.
    pub failures: u32,
    /// Texts for the next prompt, in order. A text is removed when an iteration whose prompt
    /// contained it, completely written, ends by itself and without failure.
    pub prompts: Vec<Waiting>,
    pub is_interactive: bool,
    /// A stop after the iteration was requested.
    pub stop_asked: bool,
    /// A pause after the iteration was requested.
    pub checkpoint_asked: bool,
    /// Evidence that the work is complete, in this run.
    pub complete: Option<CompletionProof>,
    pub phase: LoopPhase,
}

/// A running iteration.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Iteration {
    pub started_at: Timestamp,
    pub started: IterationStarted,
}

/// An iteration that has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastIteration {
    pub ended_at: Timestamp,
    pub number: u32,
    pub outcome: IterationOutcome,
    pub story: Option<String>,
    /// Number of consecutive failures, including this one.
    pub failures: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopPhase {
    /// According to the journal; only the session's lock shows whether the runner exists.
    Running,
    /// Paused at a checkpoint.
    Paused {
        since: Timestamp,
    },
    Ended {
        at: Timestamp,
        how: LoopEnding,
    },
}

impl LoopState {
    /// Return the loop that `fact` begins, if any.
    pub fn begun_by(fact: &Fact) -> Option<Self> {
        let Event::Loop(LoopFact::Began(began)) = &fact.event else {
            return None;
        };
        Some(Self {
            agent: fact.agent.clone(),
            began_at: fact.at,
            updated_at: fact.at,
            run: began.run,
            settings: began.settings.clone(),
            first: began.first,
            number: began.number,
            open: None,
            last: None,
            failures: 0,
            prompts: Vec::new(),
            is_interactive: false,
            stop_asked: false,
            checkpoint_asked: false,
            complete: None,
            phase: LoopPhase::Running,
        })
    }

    pub fn apply(&mut self, fact: &Fact) {
        if fact.agent != self.agent {
            return;
        }
        if let Event::Loop(happened) = &fact.event {
            self.happen(fact, happened);
        } else if let Event::Work(Deed::Completed(_)) = &fact.event
            && !self.has_ended()
        {
            // Valid for the run in which it was reported.
            self.complete = self.complete.or(Some(CompletionProof::Tool));
            self.updated_at = fact.at;
        }
    }

    fn happen(&mut self, fact: &Fact, happened: &LoopFact) {
        self.updated_at = fact.at;
        match happened {
            LoopFact::Began(began) if began.goes_on => self.go_on(began),
            LoopFact::Began(_) => {
                if let Some(next) = Self::begun_by(fact) {
                    // A text that no prompt contained outlives its loop.
                    let prompts = std::mem::take(&mut self.prompts);
                    *self = Self { prompts, ..next };
                }
            }
            LoopFact::IterationStarted(started) => {
                self.number = started.number;
                self.open = Some(Iteration {
                    started_at: fact.at,
                    started: started.clone(),
                });
            }
            LoopFact::IterationEnded(ended) => self.end_iteration(fact.at, ended),
            LoopFact::Asked(asked) => match asked.what {
                LoopRequest::Stop => self.stop_asked = true,
                LoopRequest::Checkpoint => self.checkpoint_asked = true,
            },
            LoopFact::Checkpointed => {
                self.checkpoint_asked = false;
                if !self.has_ended() {
                    self.phase = LoopPhase::Paused { since: fact.at };
                }
            }
            LoopFact::Resumed(_) => {
                if matches!(self.phase, LoopPhase::Paused { .. }) {
                    self.phase = LoopPhase::Running;
                }
            }
            LoopFact::Injected(injected) => self.prompts.push(Waiting {
                id: PromptId(fact.id),
                text: injected.text.clone(),
                by: injected.by.clone(),
                at: fact.at,
            }),
            LoopFact::Interactive(mode) => self.is_interactive = mode.on,
            LoopFact::Ended(ended) => {
                // The first recorded end counts.
                if !self.has_ended() {
                    self.open = None;
                    self.phase = LoopPhase::Ended {
                        at: fact.at,
                        how: ended.how.clone(),
                    };
                }
            }
        }
    }

    /// Reset requests, interactive mode and consecutive failures of the previous run: a restart
    /// means that the loop should run. A pause stays until it is resumed.
    fn go_on(&mut self, began: &Began) {
        self.run = began.run;
        self.settings = began.settings.clone();
        self.first = began.first;
        self.number = began.number;
        self.open = None;
        self.failures = 0;
        self.is_interactive = false;
        self.stop_asked = false;
        self.checkpoint_asked = false;
        self.complete = None;
        if self.has_ended() {
            self.phase = LoopPhase::Running;
        }
    }

    fn end_iteration(&mut self, at: Timestamp, ended: &IterationEnded) {
        let Some(open) = self
            .open
            .take_if(|open| open.started.number == ended.number)
        else {
            return;
        };
        (self.failures, self.number) = match &ended.outcome {
            IterationOutcome::Failed(_) => (self.failures.saturating_add(1), ended.number),
            IterationOutcome::Completed(_)
            | IterationOutcome::Ended
            | IterationOutcome::Interrupted
            | IterationOutcome::Stopped => (0, ended.number.saturating_add(1)),
        };
        self.last = Some(PastIteration {
            ended_at: at,
            number: ended.number,
            outcome: ended.outcome.clone(),
            story: open.started.story,
            failures: self.failures,
        });
        let has_ended_by_itself = match &ended.outcome {
            IterationOutcome::Completed(proof) => {
                self.complete = Some(*proof);
                true
            }
            IterationOutcome::Ended => true,
            IterationOutcome::Stopped => {
                self.stop_asked = true;
                false
            }
            IterationOutcome::Failed(_) | IterationOutcome::Interrupted => false,
        };
        if has_ended_by_itself && !ended.is_unread {
            let used = &open.started.prompts;
            self.prompts.retain(|waiting| !used.contains(&waiting.id));
        }
    }

    pub fn has_ended(&self) -> bool {
        matches!(self.phase, LoopPhase::Ended { .. })
    }

    /// Return the number of the last allowed iteration; 0 means no limit.
    pub fn last_allowed(&self) -> u32 {
        match self.settings.policy.iterations {
            0 => 0,
            most => self.first.saturating_add(most - 1),
        }
    }

    /// Whether the running iteration is the last allowed one, unless it fails.
    pub fn is_in_last(&self) -> bool {
        let last = self.last_allowed();
        self.open.is_some() && last > 0 && self.number >= last
    }

    /// Return the time at which a failed iteration is run again, if nothing else holds it.
    pub fn again_at(&self) -> Option<Timestamp> {
        let is_due = self.open.is_none() && self.failures > 0;
        let last = self.last.as_ref().filter(|_| is_due)?;
        let wait = self.settings.policy.wait_after(self.failures);
        let wait = Some(wait).filter(|wait| !wait.is_zero())?;
        last.ended_at.checked_add(wait).ok()
    }
}

/// Everybody's latest loop, in memory: the model that the journal's view must agree with.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Loops {
    latest: BTreeMap<AgentName, LoopState>,
}

impl Loops {
    pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut loops = Self::default();
        for fact in records.into_iter().filter_map(|record| record.read().ok()) {
            loops.apply(&fact);
        }
        loops
    }

    pub fn apply(&mut self, fact: &Fact) {
        match self.latest.get_mut(&fact.agent) {
            Some(state) => state.apply(fact),
            None => {
                let first = LoopState::begun_by(fact);
                let first = first.map(|state| (fact.agent.clone(), state));
                self.latest.extend(first);
            }
        }
    }

    pub fn get(&self, agent: &AgentName) -> Option<&LoopState> {
        self.latest.get(agent)
    }

    /// Return the loops, ordered by agent.
    pub fn all(&self) -> impl Iterator<Item = &LoopState> {
        self.latest.values()
    }
}
