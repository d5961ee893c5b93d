//! The way from a verb or a tool to an agent's tasks, notes and completion in the journal.
//!
//! Decides nothing: what may be done is the core's to say. Tasks and notes are always kept in the
//! journal, also where a script keeps the mail.

use crate::context::Context;
use posthaste_core::work::{NewNote, NewTask, TaskCounts};
use posthaste_core::{AgentName, IdPrefix, Note, NoteId, NoteType, Task, TaskId, TaskStatus};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Denied, Done, Job, Journal};
use uuid::Uuid;

/// Whose list is meant: the one that was named, else one's own.
pub(crate) fn whose(context: &Context, said: Option<&AgentName>) -> Result<AgentName> {
    match said {
        Some(name) => context.config.book.agent(&name.clone().into()),
        None => Ok(context.me()?.0),
    }
}

/// The iteration of a loop that something belongs to: the one that was named, else the one that
/// its agent runs in.
pub(crate) fn iteration(said: Option<u32>) -> Result<Option<u32>> {
    let around = std::env::var_os("PH_ITERATION").filter(|around| !around.is_empty());
    let (None, Some(around)) = (said, around) else {
        return Ok(said);
    };
    let number = around.to_str().and_then(|around| around.parse().ok());
    number.map(Some).ok_or_else(|| {
        Report::usage("PH_ITERATION is not a number")
            .hint("leave it as the loop has set it, or unset it")
    })
}

/// A task that is to be added, if it is fit: what is not is refused before a home is made for it.
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
    let Done::Task { task, .. } = journal.commit(Job::AddTask { now, agent, task })?? else {
        return Err(another_question());
    };
    Ok(task)
}

/// Gives a task another status; false where it had that one.
pub(crate) fn set_status(
    context: &Context,
    journal: &mut Journal,
    id: &IdPrefix,
    status: TaskStatus,
    iteration: Option<u32>,
) -> Result<(Task, bool)> {
    let job = Job::MoveTask {
        now: context.now,
        who: context.me()?.0,
        task: journal.task(id)?.id,
        status,
        iteration,
    };
    let Done::Task { task, is_changed } = journal.commit(job)?? else {
        return Err(another_question());
    };
    Ok((task, is_changed))
}

/// The tasks of an agent that stand so: by how they stand, then in the order in which they were
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

/// A note that is to be made, if it is fit.
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
    let Done::Note(note) = journal.commit(Job::AddNote { now, agent, note })?? else {
        return Err(another_question());
    };
    Ok(note)
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

/// Records that an agent says it is done.
pub(crate) fn complete(
    context: &Context,
    journal: &mut Journal,
    agent: &AgentName,
    iteration: Option<u32>,
) -> Result<()> {
    let job = Job::Complete {
        now: context.now,
        who: context.me()?.0,
        agent: agent.clone(),
        iteration,
    };
    journal.commit(job)??;
    Ok(())
}

fn another_question() -> Report {
    Report::storage("the journal answered another question")
}
