//! A session as programs see it: ours, and as the original's `get_status` answers.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What an agent is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    Starting,
    Idle,
    Working,
    Blocked,
    Exited,
}

impl Activity {
    pub const ALL: [Self; 5] = [
        Self::Starting,
        Self::Idle,
        Self::Working,
        Self::Blocked,
        Self::Exited,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Working => "working",
            Self::Blocked => "blocked",
            Self::Exited => "exited",
        }
    }
}

impl fmt::Display for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// One run of an agent. Times are RFC 3339.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub name: String,
    pub activity: Activity,
    pub blocked_on: Option<String>,
    /// Since when it does what it does.
    pub since: Timestamp,
    pub evidence: String,
    pub pid: Option<u32>,
    pub child_pid: Option<u32>,
    pub socket: Option<String>,
    pub command: Vec<String>,
    pub cwd: String,
    pub harness: String,
    pub started_at: Timestamp,
    pub unread: u64,
    pub queued: u64,
    /// What holds its mail back, where somebody does.
    #[serde(default)]
    pub paused: Option<String>,
    /// What is wrong with the script that keeps its mail, where something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail_trouble: Option<MailTrouble>,
    /// Null while it runs.
    pub ended_at: Option<Timestamp>,
    /// How it ended: `exit 0`, `signal 9`, `crashed`; null while it runs.
    pub exit: Option<String>,
}

/// Why a session gets no mail from the script that keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailTrouble {
    pub what: String,
    pub since: Timestamp,
    /// When it is asked again.
    pub next: Timestamp,
}

/// How a run stands, in the original's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Run {
    Running,
    Completed,
    Stopped,
    Failed,
    Checkpointed,
}

/// Who has the keyboard, in the original's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    Autonomous,
    Interactive,
}

impl Mode {
    pub fn new(interactive: bool) -> Self {
        if interactive {
            Self::Interactive
        } else {
            Self::Autonomous
        }
    }
}

/// What `get_status` answers. Times are local, as [`crate::time::stamp`] writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub task_name: String,
    pub task_dir: String,
    pub iteration: u64,
    pub max_iterations: u64,
    pub current_story: Option<String>,
    pub agent: String,
    pub status: Run,
    pub interactive_mode: bool,
    pub mode_indicator: Mode,
    pub started_at: String,
    pub updated_at: String,
    pub recent_output: Vec<String>,
}
