//! Test fixture: a loop's journal in which orders are decided. The tests are in the modules below.

mod course;
mod facts;
mod orders;

pub(crate) use facts::every_fact;

use super::policy::{NextStep, next};
use super::*;
use crate::fact::{Event, Fact};
use crate::id::PromptId;
use crate::mail::tests::name;
use crate::name::AgentName;
use crate::tasks;
use jiff::Timestamp;
use uuid::Uuid;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn settings() -> Settings {
    Settings {
        spec: Some("spec.md".into()),
        prd: None,
        progress: None,
        harness: "claude".into(),
        model: None,
        command: vec![],
        prompt: None,
        template: None,
        extra: None,
        cwd: "/work".into(),
        sockets: vec![],
        policy: Policy {
            iterations: 5,
            failures: 3,
            first_wait_ms: 1_000,
            longest_wait_ms: 10_000,
            idle_ms: 0,
        },
    }
}

/// A loop's journal. Every order is decided on the state of its facts.
#[derive(Default)]
struct LoopJournal {
    facts: Vec<Fact>,
    second: i64,
}

impl LoopJournal {
    fn begun() -> Self {
        let mut journal = Self::default();
        journal.begin().unwrap();
        journal
    }

    fn begin(&mut self) -> Result<usize, String> {
        let run = Some(Uuid::from_u128(100 + self.facts.len() as u128));
        let settings = Box::new(settings());
        self.order(&LoopOrder::Begin { run, settings })
    }

    /// Return the number of added facts, or the refusal.
    fn order(&mut self, order: &LoopOrder) -> Result<usize, String> {
        let agent = name("coder");
        let events = decide(&agent, self.state().as_ref(), order).map_err(|e| e.to_string())?;
        let count = events.len();
        for event in events {
            let id = match order {
                LoopOrder::Inject { id, .. } => id.0,
                _ => Uuid::from_u128(1_000 + self.facts.len() as u128),
            };
            self.add(id, event);
        }
        Ok(count)
    }

    fn add(&mut self, id: Uuid, event: Event) {
        self.second += 1;
        self.facts.push(Fact {
            id,
            at: at(self.second),
            agent: name("coder"),
            event,
        });
    }

    fn state(&self) -> Option<LoopState> {
        let mut loops = Loops::default();
        self.facts.iter().for_each(|fact| loops.apply(fact));
        loops.get(&name("coder")).cloned()
    }

    fn now(&self) -> LoopState {
        self.state().unwrap()
    }

    /// Return the next step now.
    fn next(&self) -> NextStep {
        next(at(self.second), &self.now())
    }

    fn start(&mut self) -> Result<usize, String> {
        let waiting = self.state().map_or_else(Vec::new, |state| state.prompts);
        self.order(&LoopOrder::StartIteration {
            story: Some("US-1".into()),
            task: None,
            prompts: waiting.iter().map(|waiting| waiting.id).collect(),
        })
    }

    fn end(&mut self, outcome: IterationOutcome) -> Result<usize, String> {
        self.end_with(outcome, false)
    }

    fn end_with(&mut self, outcome: IterationOutcome, is_unread: bool) -> Result<usize, String> {
        let number = self.now().number;
        self.order(&LoopOrder::EndIteration {
            number,
            outcome,
            is_unread,
        })
    }

    fn iterate(&mut self, outcome: IterationOutcome) {
        self.start().unwrap();
        self.end(outcome).unwrap();
    }

    fn fail(&mut self) {
        self.iterate(IterationOutcome::Failed(IterationFailure::Exit(1)));
    }

    fn ask(&mut self, what: LoopRequest) -> Result<usize, String> {
        let who = AgentName::human();
        self.order(&LoopOrder::Ask { who, what })
    }

    fn inject(&mut self, n: u128, text: &str) -> Result<usize, String> {
        self.order(&LoopOrder::Inject {
            who: AgentName::human(),
            id: PromptId(Uuid::from_u128(n)),
            text: text.into(),
        })
    }

    fn interactive(&mut self, on: bool) -> Result<usize, String> {
        let who = AgentName::human();
        self.order(&LoopOrder::Interactive { who, on })
    }

    fn resume(&mut self) -> Result<usize, String> {
        let who = AgentName::human();
        self.order(&LoopOrder::Resume { who })
    }

    fn finish(&mut self, how: LoopEnding) -> Result<usize, String> {
        self.order(&LoopOrder::End { how })
    }

    /// Record the agent's call of `session_complete`.
    fn say_complete(&mut self) {
        let coder = name("coder");
        let event = tasks::complete(&coder, &coder, None, None).unwrap();
        self.add(Uuid::from_u128(5_000 + self.facts.len() as u128), event);
    }

    fn waiting(&self) -> Vec<String> {
        let prompts = self.now().prompts;
        prompts.into_iter().map(|waiting| waiting.text).collect()
    }
}

fn iterate(number: u32) -> NextStep {
    NextStep::Iterate { number }
}

/// Name a loop's state as clients of the original do.
fn status(state: &LoopState) -> &'static str {
    match &state.phase {
        LoopPhase::Running => "running",
        LoopPhase::Paused { .. } => "checkpointed",
        LoopPhase::Ended { how, .. } => match how {
            LoopEnding::Complete(_) => "completed",
            LoopEnding::UsedUp | LoopEnding::Stopped => "stopped",
            LoopEnding::GaveUp(_) | LoopEnding::Failed(_) => "failed",
        },
    }
}
