//! Tasks: what stands on an agent's list, and who may change it.

use super::{Deed, WorkRefusal, fit};
use crate::fact::{Event, Fact};
use crate::id::TaskId;
use crate::name::AgentName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// How it stands with a task; in the order in which an agent is shown them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskStatus {
    InProgress,
    Blocked,
    Remaining,
    Completed,
}

impl TaskStatus {
    pub const ALL: [Self; 4] = [
        Self::InProgress,
        Self::Blocked,
        Self::Remaining,
        Self::Completed,
    ];
    /// What a new task can be.
    pub const FIRST: [Self; 2] = [Self::Remaining, Self::Blocked];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Blocked => "blocked",
            Self::Remaining => "remaining",
            Self::Completed => "completed",
        }
    }

    pub fn is_open(self) -> bool {
        match self {
            Self::InProgress | Self::Blocked | Self::Remaining => true,
            Self::Completed => false,
        }
    }
}

impl fmt::Display for TaskStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for TaskStatus {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|status| status.as_str() == text);
        known.ok_or_else(|| "a task is in_progress, blocked, remaining or completed".to_owned())
    }
}

/// A task was put on a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    pub text: String,
    pub status: TaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    pub by: AgentName,
}

/// A task has another status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub task: TaskId,
    pub status: TaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    pub by: AgentName,
}

/// A task that somebody wants to add.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    pub id: TaskId,
    pub text: String,
    pub status: TaskStatus,
    pub iteration: Option<u32>,
    pub by: AgentName,
}

impl NewTask {
    /// What it adds to the journal. Anybody may put a task on anybody's list, as anybody may
    /// write to anybody.
    pub fn decide(&self) -> Result<Event, WorkRefusal> {
        fit("task", &self.text)?;
        if !TaskStatus::FIRST.contains(&self.status) {
            return Err(WorkRefusal::CannotBegin(self.status));
        }
        Ok(Event::Work(Deed::Added(Added {
            text: self.text.clone(),
            status: self.status,
            iteration: self.iteration,
            by: self.by.clone(),
        })))
    }

    /// The task that it is once it stands on a list.
    pub fn on_the_list_of(&self, agent: &AgentName, now: Timestamp) -> Task {
        Task {
            id: self.id,
            agent: agent.clone(),
            text: self.text.clone(),
            status: self.status,
            iteration: self.iteration,
            added_by: self.by.clone(),
            created_at: now,
            updated_at: now,
        }
    }
}

/// A task with everything that is known of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    pub id: TaskId,
    /// Whose it is.
    pub agent: AgentName,
    pub text: String,
    pub status: TaskStatus,
    /// In which iteration it was last touched, as far as that was said.
    pub iteration: Option<u32>,
    pub added_by: AgentName,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Task {
    /// The task that a fact adds, if it does.
    pub fn added_by_fact(fact: &Fact) -> Option<Self> {
        let Event::Work(Deed::Added(added)) = &fact.event else {
            return None;
        };
        Some(Self {
            id: TaskId(fact.id),
            agent: fact.agent.clone(),
            text: added.text.clone(),
            status: added.status,
            iteration: added.iteration,
            added_by: added.by.clone(),
            created_at: fact.at,
            updated_at: fact.at,
        })
    }

    pub fn apply(&mut self, fact: &Fact) {
        if let Event::Work(Deed::Moved(moved)) = &fact.event
            && moved.task == self.id
        {
            self.status = moved.status;
            self.iteration = moved.iteration.or(self.iteration);
            self.updated_at = fact.at;
        }
    }

    /// What another status adds to the journal: nothing where it has that one. It is for its
    /// agent to change, for who added it, and for the person.
    pub fn decide(
        &self,
        who: &AgentName,
        status: TaskStatus,
        iteration: Option<u32>,
    ) -> Result<Option<Event>, WorkRefusal> {
        if *who != self.agent && *who != self.added_by && !who.is_human() {
            return Err(WorkRefusal::NotTheirs {
                who: who.clone(),
                owner: self.agent.clone(),
            });
        }
        let moved = Moved {
            task: self.id,
            status,
            iteration,
            by: who.clone(),
        };
        Ok((status != self.status).then_some(Event::Work(Deed::Moved(moved))))
    }
}

/// How many tasks of an agent have which status.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TaskCounts {
    pub in_progress: u64,
    pub blocked: u64,
    pub remaining: u64,
    pub completed: u64,
}

impl TaskCounts {
    pub fn of(self, status: TaskStatus) -> u64 {
        match status {
            TaskStatus::InProgress => self.in_progress,
            TaskStatus::Blocked => self.blocked,
            TaskStatus::Remaining => self.remaining,
            TaskStatus::Completed => self.completed,
        }
    }

    pub fn add(&mut self, status: TaskStatus, count: u64) {
        match status {
            TaskStatus::InProgress => self.in_progress += count,
            TaskStatus::Blocked => self.blocked += count,
            TaskStatus::Remaining => self.remaining += count,
            TaskStatus::Completed => self.completed += count,
        }
    }

    pub fn open(self) -> u64 {
        self.in_progress + self.blocked + self.remaining
    }
}
