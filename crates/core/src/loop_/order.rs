//! Orders for a loop, and their refusals. Decides inside the journal's transaction.

use super::fact::{
    Asked, Began, Injected, Interactive, IterationEnded, IterationFailure, IterationOutcome,
    IterationStarted, LoopEnded, LoopEnding, LoopFact, LoopRequest, Resumed, Settings,
};
use super::state::{LoopPhase, LoopState};
use crate::fact::Event;
use crate::id::PromptId;
use crate::name::AgentName;
use crate::text;
use uuid::Uuid;

/// Maximum size of an injected text; a longer text belongs in a file or message.
pub const MAX_PROMPT_BYTES: usize = 16 << 10;
/// Maximum number of injected texts that wait for the next prompt.
pub const MAX_WAITING_PROMPTS: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopOrder {
    /// Begin a loop, or continue one that has not ended. The caller holds the agent's lock, so an
    /// open iteration was cut off and is recorded as failed.
    Begin {
        /// The session's run, if known.
        run: Option<Uuid>,
        settings: Box<Settings>,
    },
    /// Start the iteration with the state's number. Committed before the agent is started.
    StartIteration {
        story: Option<String>,
        task: Option<String>,
        /// The texts of [`LoopState::prompts`] in the iteration's prompt.
        prompts: Vec<PromptId>,
    },
    EndIteration {
        number: u32,
        outcome: IterationOutcome,
        /// Whether the agent ended before its prompt was written completely.
        is_unread: bool,
    },
    /// Stop or pause after the iteration.
    Ask {
        who: AgentName,
        what: LoopRequest,
    },
    /// Pause now, between two iterations.
    Checkpoint,
    /// Continue after a pause, or cancel the request for one.
    Resume {
        who: AgentName,
    },
    /// Add a text to the next prompt.
    Inject {
        who: AgentName,
        id: PromptId,
        text: String,
    },
    Interactive {
        who: AgentName,
        on: bool,
    },
    End {
        how: LoopEnding,
    },
}

/// Why an order is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoopRefusal {
    #[error("{0} has no loop")]
    NoLoop(AgentName),
    #[error("the loop of {agent} has ended: {how}")]
    HasEnded { agent: AgentName, how: LoopEnding },
    #[error("the loop of {0} is not paused")]
    NotPaused(AgentName),
    #[error("the loop of {0} is paused at a checkpoint")]
    Paused(AgentName),
    #[error("iteration {number} of the loop of {agent} is still running")]
    Running { agent: AgentName, number: u32 },
    #[error("iteration {number} of the loop of {agent} is not running")]
    NotRunning { agent: AgentName, number: u32 },
    #[error("the loop of {agent} has no waiting injected prompt {}", id.id8())]
    NoPrompt { agent: AgentName, id: PromptId },
    #[error("an injected prompt needs a text")]
    Blank,
    #[error("an injected prompt has at most {MAX_PROMPT_BYTES} bytes; this has {0}")]
    TooLong(usize),
    #[error("the loop of {0} already has {MAX_WAITING_PROMPTS} waiting injected prompts")]
    TooMany(AgentName),
    #[error("a loop needs a spec or a prd")]
    NothingToDo,
}

/// Return the facts of an order: none if nothing changes. The fact of [`LoopOrder::Inject`] has the
/// order's id.
pub fn decide(
    agent: &AgentName,
    state: Option<&LoopState>,
    order: &LoopOrder,
) -> Result<Vec<Event>, LoopRefusal> {
    let facts = match order {
        LoopOrder::Begin { run, settings } => begin(state, *run, settings)?,
        LoopOrder::StartIteration {
            story,
            task,
            prompts,
        } => vec![start(
            between_iterations(agent, state)?,
            story.as_deref(),
            task.as_deref(),
            prompts,
        )?],
        LoopOrder::EndIteration {
            number,
            outcome,
            is_unread,
        } => vec![end(agent, state, *number, outcome, *is_unread)?],
        LoopOrder::Ask { who, what } => ask(live(agent, state)?, who, *what),
        LoopOrder::Checkpoint => {
            between_iterations(agent, state)?;
            vec![LoopFact::Checkpointed]
        }
        LoopOrder::Resume { who } => resume(live(agent, state)?, who)?,
        LoopOrder::Inject { who, text, .. } => vec![inject(live(agent, state)?, who, text)?],
        LoopOrder::Interactive { who, on } => {
            let is_so = live(agent, state)?.is_interactive == *on;
            let (on, by) = (*on, who.clone());
            let changed = (!is_so).then_some(LoopFact::Interactive(Interactive { on, by }));
            changed.into_iter().collect()
        }
        LoopOrder::End { how } => {
            let state = live(agent, state)?;
            closed(state)?;
            vec![LoopFact::Ended(LoopEnded { how: how.clone() })]
        }
    };
    Ok(facts.into_iter().map(Event::Loop).collect())
}

fn begin(
    before: Option<&LoopState>,
    run: Option<Uuid>,
    settings: &Settings,
) -> Result<Vec<LoopFact>, LoopRefusal> {
    if settings.spec.is_none() && settings.prd.is_none() {
        return Err(LoopRefusal::NothingToDo);
    }
    let cut_off = before.and_then(|state| state.open.as_ref()).map(|open| {
        LoopFact::IterationEnded(IterationEnded {
            number: open.started.number,
            outcome: IterationOutcome::Failed(IterationFailure::CutOff),
            is_unread: false,
        })
    });
    let goes_on = before.is_some_and(|state| match &state.phase {
        LoopPhase::Running | LoopPhase::Paused { .. } => true,
        LoopPhase::Ended { how, .. } => !how.is_final(),
    });
    let number = before.map_or(1, |state| state.number);
    let first = before.filter(|_| goes_on).map(|state| state.first);
    let began = LoopFact::Began(Box::new(Began {
        run,
        settings: settings.clone(),
        number,
        first: first.unwrap_or(number),
        goes_on,
    }));
    Ok(cut_off.into_iter().chain([began]).collect())
}

fn start(
    state: &LoopState,
    story: Option<&str>,
    task: Option<&str>,
    prompts: &[PromptId],
) -> Result<LoopFact, LoopRefusal> {
    if let LoopPhase::Paused { .. } = state.phase {
        return Err(LoopRefusal::Paused(state.agent.clone()));
    }
    let waits = |id: &&PromptId| !state.prompts.iter().any(|waiting| waiting.id == **id);
    if let Some(id) = prompts.iter().find(waits) {
        return Err(LoopRefusal::NoPrompt {
            agent: state.agent.clone(),
            id: *id,
        });
    }
    Ok(LoopFact::IterationStarted(IterationStarted {
        number: state.number,
        run: state.run,
        story: story.map(ToOwned::to_owned),
        task: task.map(ToOwned::to_owned),
        prompts: prompts.to_vec(),
    }))
}

fn end(
    agent: &AgentName,
    state: Option<&LoopState>,
    number: u32,
    outcome: &IterationOutcome,
    is_unread: bool,
) -> Result<LoopFact, LoopRefusal> {
    let state = live(agent, state)?;
    let open = state.open.as_ref().map(|open| open.started.number);
    if open != Some(number) {
        return Err(LoopRefusal::NotRunning {
            agent: agent.clone(),
            number,
        });
    }
    Ok(LoopFact::IterationEnded(IterationEnded {
        number,
        outcome: outcome.clone(),
        is_unread,
    }))
}

fn ask(state: &LoopState, who: &AgentName, what: LoopRequest) -> Vec<LoopFact> {
    let is_so = match what {
        LoopRequest::Stop => state.stop_asked,
        LoopRequest::Checkpoint => {
            state.checkpoint_asked || matches!(state.phase, LoopPhase::Paused { .. })
        }
    };
    let by = who.clone();
    let asked = (!is_so).then_some(LoopFact::Asked(Asked { what, by }));
    asked.into_iter().collect()
}

/// Resume the loop. A requested checkpoint that is not yet reached is recorded as reached and
/// resumed at once, which older versions understand.
fn resume(state: &LoopState, who: &AgentName) -> Result<Vec<LoopFact>, LoopRefusal> {
    let resumed = LoopFact::Resumed(Resumed { by: who.clone() });
    match state.phase {
        LoopPhase::Paused { .. } => Ok(vec![resumed]),
        LoopPhase::Running if state.checkpoint_asked => Ok(vec![LoopFact::Checkpointed, resumed]),
        LoopPhase::Running | LoopPhase::Ended { .. } => {
            Err(LoopRefusal::NotPaused(state.agent.clone()))
        }
    }
}

fn inject(state: &LoopState, who: &AgentName, said: &str) -> Result<LoopFact, LoopRefusal> {
    if said.len() > MAX_PROMPT_BYTES {
        return Err(LoopRefusal::TooLong(said.len()));
    }
    // A text without visible characters counts as empty.
    if text::one_line(said, 1).is_empty() {
        return Err(LoopRefusal::Blank);
    }
    if state.prompts.len() >= MAX_WAITING_PROMPTS {
        return Err(LoopRefusal::TooMany(state.agent.clone()));
    }
    Ok(LoopFact::Injected(Injected {
        text: said.trim().to_owned(),
        by: who.clone(),
    }))
}

/// Return the loop if it has not ended.
fn live<'a>(agent: &AgentName, state: Option<&'a LoopState>) -> Result<&'a LoopState, LoopRefusal> {
    let state = state.ok_or_else(|| LoopRefusal::NoLoop(agent.clone()))?;
    match &state.phase {
        LoopPhase::Running | LoopPhase::Paused { .. } => Ok(state),
        LoopPhase::Ended { how, .. } => Err(LoopRefusal::HasEnded {
            agent: agent.clone(),
            how: how.clone(),
        }),
    }
}

/// Return the loop if it has not ended and no iteration is open.
fn between_iterations<'a>(
    agent: &AgentName,
    state: Option<&'a LoopState>,
) -> Result<&'a LoopState, LoopRefusal> {
    let state = live(agent, state)?;
    closed(state)?;
    Ok(state)
}

fn closed(state: &LoopState) -> Result<(), LoopRefusal> {
    match &state.open {
        None => Ok(()),
        Some(open) => Err(LoopRefusal::Running {
            agent: state.agent.clone(),
            number: open.started.number,
        }),
    }
}
