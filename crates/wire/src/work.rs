//! Tasks and notes in `--json`.

use posthaste_core::{NoteId, NoteType, TaskId, TaskStatus, Timestamp};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub agent: String,
    pub text: String,
    pub status: TaskStatus,
    /// Iteration of the last change, if it was given.
    pub iteration: Option<u32>,
    pub added_by: String,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

impl Task {
    pub fn new(task: &posthaste_core::Task) -> Self {
        Self {
            id: task.id,
            agent: task.agent.to_string(),
            text: task.text.clone(),
            status: task.status,
            iteration: task.iteration,
            added_by: task.added_by.to_string(),
            created_at: task.created_at,
            updated_at: task.updated_at,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    pub id: NoteId,
    pub agent: String,
    #[serde(rename = "type")]
    pub kind: NoteType,
    pub text: String,
    pub iteration: Option<u32>,
    pub by: String,
    pub created_at: Timestamp,
}

impl Note {
    pub fn new(note: &posthaste_core::Note) -> Self {
        Self {
            id: note.id,
            agent: note.agent.to_string(),
            kind: note.kind,
            text: note.text.clone(),
            iteration: note.iteration,
            by: note.by.to_string(),
            created_at: note.created_at,
        }
    }
}
