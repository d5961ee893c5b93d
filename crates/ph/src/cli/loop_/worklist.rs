//! Reads and writes an agent's tasks, notes and completion in the journal, for verbs and tools.
//!
//! The core decides what is allowed. Tasks and notes are always in the journal, even if a script keeps
//! the mail.

use crate::cli::prelude::*;
use posthaste_core::tasks::{NewNote, NewTask, TaskCounts};
use posthaste_core::{IdPrefix, Note, NoteId, NoteType, Task, TaskId, TaskStatus};
use posthaste_store::operation::{AddNote, AddTask, MoveTask, RecordCompletion, TaskChange};
use posthaste_store::{Denied, Journal};
use uuid::Uuid;

/// Return the agent whose list is used: the named one, else the caller.
pub(crate) fn whose(context: &Context, said: Option<&AgentName>) -> Result<AgentName> {
    match said {
        Some(name) => context.config.roster.agent(&name.clone().into()),
        None => Ok(context.me()?.0),
    }
}

/// Return the loop's iteration: the given one, else that of the calling agent.
pub(crate) fn iteration(said: Option<u32>) -> Result<Option<u32>> {
    let around = std::env::var_os("PH_ITERATION").filter(|around| !around.is_empty());
    let (None, Some(around)) = (said, around) else {
        return Ok(said);
    };
    let number = around.to_str().and_then(|around| around.parse().ok());
    number.map(Some).ok_or_else(|| {
        Report::usage("PH_ITERATION is not a number")
            .hint("do not change PH_ITERATION inside of a loop; outside, unset it")
    })
}

/// Create a task. An invalid one is refused before a home is created for it.
pub(crate) fn new_task(
    context: &Context,
    text: String,
    status: TaskStatus,
    iteration: Option<u32>,
) -> Result<NewTask> {
    let task = NewTask {
        id: TaskId(Uuid::new_v4()),
        text,
        status,
        iteration,
        by: context.me()?.0,
    };
    task.decide().map_err(Denied::Work)?;
    Ok(task)
}

pub(crate) fn add_task(
    context: &Context,
    journal: &mut Journal,
    agent: AgentName,
    task: NewTask,
) -> Result<Task> {
    let now = context.now;
    Ok(journal.commit(AddTask { now, agent, task })??)
}

/// Set the status of a task. Return false if it already had that status.
pub(crate) fn set_status(
    context: &Context,
    journal: &mut Journal,
    id: &IdPrefix,
    status: TaskStatus,
    iteration: Option<u32>,
) -> Result<(Task, bool)> {
    let change = MoveTask {
        now: context.now,
        who: context.me()?.0,
        task: journal.task(id)?.id,
        status,
        iteration,
    };
    let TaskChange { task, is_changed } = journal.commit(change)??;
    Ok((task, is_changed))
}

/// Return an agent's tasks with one of these statuses, by status, then in the order in which they were
/// added.
pub(crate) fn tasks(
    context: &Context,
    agent: &AgentName,
    which: &[TaskStatus],
) -> Result<Vec<Task>> {
    let mut tasks = match context.reader()? {
        Some(mut journal) => journal.tasks(agent, which)?,
        None => Vec::new(),
    };
    tasks.sort_by_key(|task| task.status);
    Ok(tasks)
}

/// Create a note, if it is valid.
pub(crate) fn new_note(
    context: &Context,
    kind: NoteType,
    text: String,
    iteration: Option<u32>,
) -> Result<NewNote> {
    let note = NewNote {
        id: NoteId(Uuid::new_v4()),
        kind,
        text,
        iteration,
        by: context.me()?.0,
    };
    note.decide().map_err(Denied::Work)?;
    Ok(note)
}

pub(crate) fn add_note(
    context: &Context,
    journal: &mut Journal,
    agent: AgentName,
    note: NewNote,
) -> Result<Note> {
    let now = context.now;
    Ok(journal.commit(AddNote { now, agent, note })??)
}

pub(crate) fn notes(context: &Context, agent: &AgentName, which: &[NoteType]) -> Result<Vec<Note>> {
    match context.reader()? {
        Some(mut journal) => Ok(journal.notes(agent, which)?),
        None => Ok(Vec::new()),
    }
}

pub(crate) fn counts(context: &Context, agent: &AgentName) -> Result<TaskCounts> {
    match context.reader()? {
        Some(mut journal) => Ok(journal.task_counts(agent)?),
        None => Ok(TaskCounts::default()),
    }
}

/// Record that an agent reports completion.
pub(crate) fn complete(
    context: &Context,
    journal: &mut Journal,
    agent: &AgentName,
    iteration: Option<u32>,
) -> Result<()> {
    let complete = RecordCompletion {
        now: context.now,
        who: context.me()?.0,
        agent: agent.clone(),
        iteration,
    };
    journal.commit(complete)??;
    Ok(())
}
