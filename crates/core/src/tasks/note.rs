//! Notes: texts that an agent keeps for its later iterations.

use super::{Deed, WorkRefusal, fit};
use crate::fact::{Event, Fact};
use crate::id::NoteId;
use crate::name::AgentName;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A note's type, in display order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteType {
    Stuck,
    Learning,
    Tip,
    Decision,
}

impl NoteType {
    pub const ALL: [Self; 4] = [Self::Stuck, Self::Learning, Self::Tip, Self::Decision];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stuck => "stuck",
            Self::Learning => "learning",
            Self::Tip => "tip",
            Self::Decision => "decision",
        }
    }
}

impl fmt::Display for NoteType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for NoteType {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.as_str() == text);
        known.ok_or_else(|| "a note's type is learning, stuck, tip or decision".to_owned())
    }
}

/// A note was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noted {
    #[serde(rename = "type")]
    pub kind: NoteType,
    pub text: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub iteration: Option<u32>,
    pub by: AgentName,
}

/// A note to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNote {
    pub id: NoteId,
    pub kind: NoteType,
    pub text: String,
    pub iteration: Option<u32>,
    pub by: AgentName,
}

impl NewNote {
    /// Return the event that makes the note.
    pub fn decide(&self) -> Result<Event, WorkRefusal> {
        fit("note", &self.text)?;
        Ok(Event::Work(Deed::Noted(Noted {
            kind: self.kind,
            text: self.text.clone(),
            iteration: self.iteration,
            by: self.by.clone(),
        })))
    }

    /// Return the note as it will be stored.
    pub fn noted_for(&self, agent: &AgentName, now: Timestamp) -> Note {
        Note {
            id: self.id,
            agent: agent.clone(),
            kind: self.kind,
            text: self.text.clone(),
            iteration: self.iteration,
            by: self.by.clone(),
            created_at: now,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note {
    pub id: NoteId,
    /// The agent that the note belongs to.
    pub agent: AgentName,
    #[serde(rename = "type")]
    pub kind: NoteType,
    pub text: String,
    pub iteration: Option<u32>,
    pub by: AgentName,
    pub created_at: Timestamp,
}

impl Note {
    /// Return the note that `fact` makes, if any.
    pub fn of(fact: &Fact) -> Option<Self> {
        let Event::Work(Deed::Noted(noted)) = &fact.event else {
            return None;
        };
        Some(Self {
            id: NoteId(fact.id),
            agent: fact.agent.clone(),
            kind: noted.kind,
            text: noted.text.clone(),
            iteration: noted.iteration,
            by: noted.by.clone(),
            created_at: fact.at,
        })
    }
}
