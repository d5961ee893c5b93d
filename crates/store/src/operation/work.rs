//! Tasks, notes and completions.

use super::{Decided, Denied, Operation};
use crate::journal::transaction::Transaction;
use jiff::Timestamp;
use posthaste_core::tasks::{self, NewNote, NewTask};
use posthaste_core::{AgentName, Note, Task, TaskId, TaskStatus};
use uuid::Uuid;

/// Add a task to an agent's list.
#[derive(Debug, Clone)]
pub struct AddTask {
    pub now: Timestamp,
    pub agent: AgentName,
    pub task: NewTask,
}

/// Change a task's status.
#[derive(Debug, Clone)]
pub struct MoveTask {
    pub now: Timestamp,
    pub who: AgentName,
    pub task: TaskId,
    pub status: TaskStatus,
    pub iteration: Option<u32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskChange {
    pub task: Task,
    /// False if the task already had the status.
    pub is_changed: bool,
}

/// Add a note for an agent.
#[derive(Debug, Clone)]
pub struct AddNote {
    pub now: Timestamp,
    pub agent: AgentName,
    pub note: NewNote,
}

/// Record that an agent is done. Returns the agent's latest run, which is the one that is complete.
#[derive(Debug, Clone)]
pub struct RecordCompletion {
    pub now: Timestamp,
    pub who: AgentName,
    pub agent: AgentName,
    pub iteration: Option<u32>,
}

impl Operation for AddTask {
    type Output = Task;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<Task>> {
        let event = match self.task.decide() {
            Ok(event) => event,
            Err(refusal) => return Ok(Err(Denied::Work(refusal))),
        };
        tx.append_with_id(self.task.id.0, self.now, &self.agent, event)?;
        // An import may have brought a change of this task before.
        let stored = tx.views.task(self.task.id)?;
        Ok(Ok(stored.unwrap_or_else(|| {
            self.task.on_the_list_of(&self.agent, self.now)
        })))
    }
}

impl Operation for MoveTask {
    type Output = TaskChange;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<TaskChange>> {
        let Some(mut task) = tx.views.task(self.task)? else {
            return Ok(Err(Denied::NoTask(self.task)));
        };
        let event = match task.decide(&self.who, self.status, self.iteration) {
            Ok(event) => event,
            Err(refusal) => return Ok(Err(Denied::Work(refusal))),
        };
        let is_changed = event.is_some();
        if let Some(event) = event {
            let agent = task.agent.clone();
            let fact = tx.append_with_id(Uuid::new_v4(), self.now, &agent, event)?;
            task.apply(&fact);
        }
        Ok(Ok(TaskChange { task, is_changed }))
    }
}

impl Operation for AddNote {
    type Output = Note;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<Note>> {
        let event = match self.note.decide() {
            Ok(event) => event,
            Err(refusal) => return Ok(Err(Denied::Work(refusal))),
        };
        tx.append_with_id(self.note.id.0, self.now, &self.agent, event)?;
        Ok(Ok(self.note.noted_for(&self.agent, self.now)))
    }
}

impl Operation for RecordCompletion {
    type Output = Option<Uuid>;

    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<Option<Uuid>>> {
        let run = tx.views.latest_run(&self.agent)?;
        let run = run.map(|run| run.started.run);
        match tasks::complete(&self.who, &self.agent, run, self.iteration) {
            Ok(event) => {
                tx.append_events(self.now, &self.agent, vec![event])?;
                Ok(Ok(run))
            }
            Err(refusal) => Ok(Err(Denied::Work(refusal))),
        }
    }
}
