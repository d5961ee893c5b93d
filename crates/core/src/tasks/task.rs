//! Tasks: an agent's list, and who may change it.

use super::{Deed, WorkRefusal, fit};
use crate::fact::{Event, Fact};
use crate::id::TaskId;
use crate::name::AgentName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A task's status, in display order.
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
    /// Statuses that a new task can have.
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
        known.ok_or_else(|| {
            "a task's status is in_progress, blocked, remaining or completed".to_owned()
        })
    }
}

/// A task was added.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Added {
    pub text: String,
    pub status: TaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    pub by: AgentName,
}

/// A task's status changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    pub task: TaskId,
    pub status: TaskStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    pub by: AgentName,
}

/// A task to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTask {
    pub id: TaskId,
    pub text: String,
    pub status: TaskStatus,
    pub iteration: Option<u32>,
    pub by: AgentName,
}

impl NewTask {
    /// Return the event that adds the task. Any agent may add a task to any list.
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

    /// Return the task as it will be stored.
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

/// A task with its current status.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Task {
    pub id: TaskId,
    /// The agent that the task belongs to.
    pub agent: AgentName,
    pub text: String,
    pub status: TaskStatus,
    /// The iteration in which the task was last changed, if known.
    pub iteration: Option<u32>,
    pub added_by: AgentName,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Task {
    /// Return the task that `fact` adds, if any.
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

    /// Return the event that changes the status, or none if it is unchanged. The agent, the agent
    /// that added the task, and the person may change it.
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

/// Number of an agent's tasks by status.
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
