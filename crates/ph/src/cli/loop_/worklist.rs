//! Reads and writes an agent's tasks, notes and completion in the journal, for verbs and tools.
//!
//! The core decides what is allowed. Tasks and notes are always in the journal, even if a script
//! keeps the mail. A writer gets the journal back, to tidy it after its output.

use crate::context::Context;
use posthaste_core::tasks::{NewNote, NewTask, TaskCounts};
use posthaste_core::{AgentName, IdPrefix, Note, NoteId, NoteType, Task, TaskId, TaskStatus};
use posthaste_store::operation::{AddNote, AddTask, MoveTask, RecordCompletion, TaskChange};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Denied, Error, Journal};
use uuid::Uuid;

/// Return the agent whose list is used: the named one, else the caller.
pub(crate) fn owner(context: &Context, name: Option<&AgentName>) -> Result<AgentName> {
    match name {
        Some(name) => context.config.roster.agent(&name.clone().into()),
        None => Ok(context.me()?.0),
    }
}

/// Return the loop's iteration: the given one, else that of the calling agent.
pub(crate) fn iteration(given: Option<u32>) -> Result<Option<u32>> {
    let around = std::env::var_os("PH_ITERATION").filter(|around| !around.is_empty());
    let (None, Some(around)) = (given, around) else {
        return Ok(given);
    };
    let number = around.to_str().and_then(|around| around.parse().ok());
    number.map(Some).ok_or_else(|| {
        Report::usage("PH_ITERATION is not a number")
            .hint("do not change PH_ITERATION inside of a loop; outside, unset it")
    })
}

/// Add a task. An invalid one is refused before a home is created for it.
pub(crate) fn add_task(
    context: &Context,
    agent: AgentName,
    text: String,
    status: TaskStatus,
    iteration: Option<u32>,
) -> Result<(Journal, Task)> {
    let task = NewTask {
        id: TaskId(Uuid::new_v4()),
        text,
        status,
        iteration,
        by: context.me()?.0,
    };
    task.decide().map_err(Denied::Work)?;
    let (now, mut journal) = (context.now, context.journal()?);
    let task = journal.commit(AddTask { now, agent, task })??;
    Ok((journal, task))
}

/// Set the status of a task, which must be on the list of `owner` if that is given.
pub(crate) fn set_status(
    context: &Context,
    owner: Option<&AgentName>,
    id: &IdPrefix,
    status: TaskStatus,
    iteration: Option<u32>,
) -> Result<(Journal, TaskChange)> {
    let mut journal = context.reader()?.ok_or_else(|| Error::NoTask(id.clone()))?;
    let task = journal.task(id)?;
    if let Some(agent) = owner.filter(|owner| **owner != task.agent) {
        return Err(Report::not_found(format!("no task {id} of {agent}"))
            .hint(format!("that task is on the list of {}", task.agent)));
    }
    let change = journal.commit(MoveTask {
        now: context.now,
        who: context.me()?.0,
        task: task.id,
        status,
        iteration,
    })??;
    Ok((journal, change))
}

/// Return an agent's tasks with one of these statuses, by status, then in the order in which they
/// were added.
pub(crate) fn tasks(
    context: &Context,
    agent: &AgentName,
    statuses: &[TaskStatus],
) -> Result<Vec<Task>> {
    let mut tasks = context.query(|journal| journal.tasks(agent, statuses))?;
    tasks.sort_by_key(|task| task.status);
    Ok(tasks)
}

/// Add a note. An invalid one is refused before a home is created for it.
pub(crate) fn add_note(
    context: &Context,
    agent: AgentName,
    kind: NoteType,
    text: String,
    iteration: Option<u32>,
) -> Result<(Journal, Note)> {
    let note = NewNote {
        id: NoteId(Uuid::new_v4()),
        kind,
        text,
        iteration,
        by: context.me()?.0,
    };
    note.decide().map_err(Denied::Work)?;
    let (now, mut journal) = (context.now, context.journal()?);
    let note = journal.commit(AddNote { now, agent, note })??;
    Ok((journal, note))
}

pub(crate) fn notes(context: &Context, agent: &AgentName, kinds: &[NoteType]) -> Result<Vec<Note>> {
    context.query(|journal| journal.notes(agent, kinds))
}

pub(crate) fn counts(context: &Context, agent: &AgentName) -> Result<TaskCounts> {
    context.query(|journal| journal.task_counts(agent))
}

/// Record that the calling agent reports completion.
pub(crate) fn complete(
    context: &Context,
    agent: &AgentName,
    iteration: Option<u32>,
) -> Result<Journal> {
    let mut journal = context.journal()?;
    journal.commit(RecordCompletion {
        now: context.now,
        who: agent.clone(),
        agent: agent.clone(),
        iteration,
    })??;
    Ok(journal)
}
