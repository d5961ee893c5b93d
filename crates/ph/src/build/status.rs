//! How a loop stands, as programs are told it.

use super::files;
use posthaste_core::build::{LoopEnding, LoopState, Standing};
use posthaste_core::work::TaskCounts;
use posthaste_core::{AgentName, Timestamp, text};
use posthaste_store::{Error, Journal};
use posthaste_wire::{LoopStatus, Run};
use std::path::Path;
use uuid::Uuid;

/// The loop of one run of an agent, if that was one.
pub(crate) fn of_run(
    journal: &mut Journal,
    agent: &AgentName,
    run: Uuid,
) -> Result<Option<LoopState>, Error> {
    let state = journal.loop_state(agent)?;
    Ok(state.filter(|state| state.run == Some(run)))
}

pub(crate) fn status(journal: &mut Journal, state: &LoopState) -> Result<LoopStatus, Error> {
    let counts = journal.task_counts(&state.agent)?;
    Ok(told(state, counts))
}

fn told(state: &LoopState, counts: TaskCounts) -> LoopStatus {
    let open = state.open.as_ref();
    let last = state.last.as_ref();
    let number = open.map(|open| open.started.number);
    let number = number.or_else(|| last.map(|last| last.number));
    let shown = |text: &String| text::one_line(text, 200);
    let (run, ended) = match &state.standing {
        Standing::Running => (Run::Running, None),
        Standing::Paused { .. } => (Run::Checkpointed, None),
        Standing::Ended { how, .. } => (run(how), Some(how.to_string())),
    };
    let goes_on = state.standing == Standing::Running && !state.is_interactive;
    LoopStatus {
        iteration: number.map_or(0, u64::from),
        max_iterations: state.last_allowed().into(),
        status: run,
        running: open.is_some(),
        interactive_mode: state.is_interactive,
        current_story: open.and_then(|open| open.started.story.as_ref()).map(shown),
        current_task: open.and_then(|open| open.started.task.as_ref()).map(shown),
        tasks_done: counts.completed,
        tasks_open: counts.open(),
        failures: state.failures.into(),
        last: ended.or_else(|| last.map(|last| last.outcome.to_string())),
        began_at: Some(state.began_at),
        since: Some(since(state)),
        again_at: state.again_at().filter(|_| goes_on),
        stop_requested: state.stop_asked,
        checkpoint_requested: state.checkpoint_asked,
        injected: state.prompts.len() as u64,
        spec: state.settings.spec.clone(),
        prd: state.settings.prd.clone(),
    }
}

/// Since when it does what it does.
fn since(state: &LoopState) -> Timestamp {
    let between = || state.last.as_ref().map(|last| last.ended_at);
    match &state.standing {
        Standing::Paused { since } => *since,
        Standing::Ended { at, .. } => *at,
        Standing::Running => match &state.open {
            Some(open) => open.started_at,
            None => between().unwrap_or(state.began_at),
        },
    }
}

/// What a person is told of a prd as it stands on disk, a heading and a line each; or what is
/// wrong with it.
pub(crate) fn stories(path: &str) -> Result<Vec<(&'static str, String)>, String> {
    let prd = files::prd(Path::new(path)).map_err(|report| report.message().to_owned())?;
    let counts = format!("{} of {} pass", prd.done(), prd.total());
    let mut lines = vec![("stories", counts)];
    if let Some(story) = prd.current() {
        let title = text::one_line(&story.title, 200);
        lines.push((
            "story",
            format!("{}: {title}", text::one_line(&story.id, 80)),
        ));
        for criterion in &story.criteria {
            let mark = if criterion.passes { "[x]" } else { "[ ]" };
            let what = text::one_line(&criterion.description, 200);
            lines.push(("", format!("{mark} {what}")));
        }
    }
    Ok(lines)
}

/// In the original's words.
fn run(how: &LoopEnding) -> Run {
    match how {
        LoopEnding::Complete(_) => Run::Completed,
        LoopEnding::UsedUp | LoopEnding::Stopped => Run::Stopped,
        LoopEnding::GaveUp(_) | LoopEnding::Failed(_) => Run::Failed,
    }
}
