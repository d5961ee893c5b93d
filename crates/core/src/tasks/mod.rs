//! An agent's tasks, notes and completions.
//!
//! Owns their facts and rules. Texts are stored as they came; [`crate::text`] sanitizes them for
//! display.

mod note;
mod task;

pub use note::{NewNote, Note, NoteType, Noted};
pub use task::{Added, Moved, NewTask, Task, TaskCounts, TaskStatus};

use crate::fact::{Event, Fact, Odd, Record, parse_data};
use crate::id::TaskId;
use crate::name::AgentName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use uuid::Uuid;

/// Maximum size of a task or note. Every prompt of the agent contains them; a longer text belongs
/// in a file or message.
pub const MAX_TEXT_BYTES: usize = 16 << 10;

pub const TASK_KIND: &str = "task";
pub const STATUS_KIND: &str = "task_status";
pub const NOTE_KIND: &str = "note";
pub const COMPLETE_KIND: &str = "session_complete";

/// A change to an agent's tasks, notes or completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deed {
    /// A task was added; its id is the fact's id.
    Added(Added),
    /// A task's status changed.
    Moved(Moved),
    /// A note was made; its id is the fact's id.
    Noted(Noted),
    /// The agent reported that all its work is done.
    Completed(Completed),
}

/// An agent's report that its session has nothing left to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Completed {
    /// The agent's latest run at that time, if any. The report ends no later run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    pub by: AgentName,
}

/// The time and run of an agent's latest completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    pub agent: AgentName,
    pub at: Timestamp,
    pub completed: Completed,
}

impl Completion {
    /// Return the completion that `fact` records, if any.
    pub fn of(fact: &Fact) -> Option<Self> {
        let Event::Work(Deed::Completed(completed)) = &fact.event else {
            return None;
        };
        Some(Self {
            agent: fact.agent.clone(),
            at: fact.at,
            completed: completed.clone(),
        })
    }
}

/// Why a change to tasks, notes or completion is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorkRefusal {
    #[error("a {what} needs a text")]
    Blank { what: &'static str },
    #[error("a {what} has at most {MAX_TEXT_BYTES} bytes; this has {bytes}")]
    TooLong { what: &'static str, bytes: usize },
    #[error("a new task is remaining or blocked, not {0}")]
    CannotBegin(TaskStatus),
    #[error("{who} cannot change a task of {owner} that another agent added")]
    NotTheirs { who: AgentName, owner: AgentName },
    #[error("{who} cannot report the session of {owner} as complete")]
    NotTheirSession { who: AgentName, owner: AgentName },
}

/// Check the text of a task or note.
fn fit(what: &'static str, text: &str) -> Result<(), WorkRefusal> {
    let bytes = text.len();
    if bytes > MAX_TEXT_BYTES {
        return Err(WorkRefusal::TooLong { what, bytes });
    }
    // A text without visible characters counts as empty.
    if crate::text::one_line(text, 1).is_empty() {
        return Err(WorkRefusal::Blank { what });
    }
    Ok(())
}

/// Return the event that reports completion. Only the agent itself and the person may report it.
pub fn complete(
    who: &AgentName,
    agent: &AgentName,
    run: Option<Uuid>,
    iteration: Option<u32>,
) -> Result<Event, WorkRefusal> {
    if who != agent && !who.is_human() {
        return Err(WorkRefusal::NotTheirSession {
            who: who.clone(),
            owner: agent.clone(),
        });
    }
    Ok(Event::Work(Deed::Completed(Completed {
        run,
        iteration,
        by: who.clone(),
    })))
}

impl Deed {
    /// Parse a fact. `None` if it is not about tasks, notes or completions.
    pub(crate) fn read(kind: &str, data: &str) -> Option<Result<Self, Odd>> {
        Some(match kind {
            TASK_KIND => parse_data("task", data).map(Self::Added),
            STATUS_KIND => parse_data("task status", data).map(Self::Moved),
            NOTE_KIND => parse_data("note", data).map(Self::Noted),
            COMPLETE_KIND => parse_data("completion", data).map(Self::Completed),
            _ => return None,
        })
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Added(_) => TASK_KIND,
            Self::Moved(_) => STATUS_KIND,
            Self::Noted(_) => NOTE_KIND,
            Self::Completed(_) => COMPLETE_KIND,
        }
    }

    pub(crate) fn data(&self) -> serde_json::Result<String> {
        match self {
            Self::Added(added) => serde_json::to_string(added),
            Self::Moved(moved) => serde_json::to_string(moved),
            Self::Noted(noted) => serde_json::to_string(noted),
            Self::Completed(completed) => serde_json::to_string(completed),
        }
    }
}

/// Everybody's tasks, notes and completions, in memory: the model that the journal's views must
/// agree with.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Work {
    tasks: BTreeMap<TaskId, Task>,
    /// In journal order.
    order: Vec<TaskId>,
    /// Changes that were read before their task.
    early: BTreeMap<TaskId, Vec<Fact>>,
    notes: Vec<Note>,
    completions: BTreeMap<AgentName, Completion>,
}

impl Work {
    pub fn replay<'a>(records: impl IntoIterator<Item = &'a Record>) -> Self {
        let mut work = Self::default();
        for fact in records.into_iter().filter_map(|record| record.read().ok()) {
            work.apply(&fact);
        }
        work
    }

    pub fn apply(&mut self, fact: &Fact) {
        let Event::Work(deed) = &fact.event else {
            return;
        };
        match deed {
            Deed::Added(_) => {
                let Some(mut task) = Task::added_by_fact(fact) else {
                    return;
                };
                let id = task.id;
                if self.tasks.contains_key(&id) {
                    return;
                }
                for step in self.early.remove(&id).unwrap_or_default() {
                    task.apply(&step);
                }
                self.tasks.insert(id, task);
                self.order.push(id);
            }
            Deed::Moved(moved) => match self.tasks.get_mut(&moved.task) {
                Some(task) => task.apply(fact),
                None => self.early.entry(moved.task).or_default().push(fact.clone()),
            },
            Deed::Noted(_) => self.notes.extend(Note::of(fact)),
            Deed::Completed(_) => {
                let completion = Completion::of(fact).map(|c| (fact.agent.clone(), c));
                self.completions.extend(completion);
            }
        }
    }

    /// Return all tasks in the order in which they were added.
    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.order.iter().map(|id| &self.tasks[id])
    }

    /// Return all notes in the order in which they were made.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.notes.iter()
    }

    pub fn completion(&self, agent: &AgentName) -> Option<&Completion> {
        self.completions.get(agent)
    }
}

#[cfg(test)]
pub(crate) mod tests;
