//! A session in `--json` and on the socket, and the original's `get_status`.

use jiff::Timestamp;
use posthaste_core::loop_::{LoopEnding, LoopPhase, LoopState};
use posthaste_core::tasks::TaskCounts;
use posthaste_core::text;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Activity of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activity {
    #[default]
    Starting,
    Idle,
    Working,
    Blocked,
    Exited,
}

impl Activity {
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
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    pub name: String,
    pub activity: Activity,
    pub blocked_on: Option<String>,
    /// Start of the current activity.
    pub since: Timestamp,
    pub evidence: String,
    pub pid: Option<u32>,
    pub child_pid: Option<u32>,
    pub socket: Option<String>,
    pub command: Vec<String>,
    pub cwd: String,
    pub harness: String,
    /// Version of its program, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Versions that the harness was tested with, if `version` is not one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tested_versions: Vec<String>,
    /// Job of another process that has the conversation: ph cannot see that process, and types
    /// nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<String>,
    pub started_at: Timestamp,
    pub unread: u64,
    pub queued: u64,
    /// Reason why deliveries are held.
    #[serde(default)]
    pub paused: Option<String>,
    /// Error of the script that keeps its mail.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mail_trouble: Option<MailTrouble>,
    /// Reason why its HTTP API is not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub door: Option<String>,
    /// State of its loop.
    #[serde(rename = "loop", default, skip_serializing_if = "Option::is_none")]
    pub loop_status: Option<LoopStatus>,
    /// Null while it runs.
    pub ended_at: Option<Timestamp>,
    /// `exit 0`, `signal 9` or `crashed`; null while it runs.
    pub exit: Option<String>,
    /// Processes of the program that outlived a crashed session.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub orphans: Vec<u32>,
}

impl Session {
    /// Create a session that was just started: no process, mail or end is known.
    pub fn starting(
        name: &str,
        started_at: Timestamp,
        command: &[String],
        cwd: &str,
        harness: &str,
    ) -> Self {
        Self {
            name: name.to_owned(),
            activity: Activity::Starting,
            since: started_at,
            evidence: "it was started".to_owned(),
            command: command.to_vec(),
            cwd: cwd.to_owned(),
            harness: harness.to_owned(),
            started_at,
            ..Self::default()
        }
    }
}

/// Reason why a session gets no mail from its provider's script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MailTrouble {
    pub what: String,
    pub since: Timestamp,
    /// Time of the next attempt.
    pub next: Timestamp,
}

/// State of a loop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopStatus {
    /// Current or last iteration; 0 before the first.
    pub iteration: u64,
    /// Number of the last allowed iteration; 0 means no limit.
    pub max_iterations: u64,
    pub status: RunStatus,
    /// Whether an iteration runs now.
    pub running: bool,
    pub interactive_mode: bool,
    pub current_story: Option<String>,
    pub current_task: Option<String>,
    pub tasks_done: u64,
    pub tasks_open: u64,
    pub failures: u64,
    /// Outcome of the last iteration, or of the loop itself.
    pub last: Option<String>,
    #[serde(default)]
    pub began_at: Option<Timestamp>,
    /// Start of the current iteration or pause, or else the end of the last iteration.
    #[serde(default)]
    pub since: Option<Timestamp>,
    /// Time at which a failed iteration is retried.
    #[serde(default)]
    pub again_at: Option<Timestamp>,
    /// Whether the loop was asked to end after this iteration.
    #[serde(default)]
    pub stop_requested: bool,
    /// Whether the loop was asked to pause after this iteration.
    #[serde(default)]
    pub checkpoint_requested: bool,
    /// Number of injected texts that wait for a prompt, or for the end of the iteration that has
    /// them.
    #[serde(default)]
    pub injected: u64,
    pub spec: Option<String>,
    pub prd: Option<String>,
}

impl LoopStatus {
    /// Convert the state of a loop.
    pub fn new(state: &LoopState, counts: TaskCounts) -> Self {
        let open = state.open.as_ref();
        let last = state.last.as_ref();
        let number = open.map(|open| open.started.number);
        let number = number.or_else(|| last.map(|last| last.number));
        let shown = |text: &String| text::one_line(text, 200);
        let (run, ended) = match &state.phase {
            LoopPhase::Running => (RunStatus::Running, None),
            LoopPhase::Paused { .. } => (RunStatus::Checkpointed, None),
            LoopPhase::Ended { how, .. } => (run(how), Some(how.to_string())),
        };
        let goes_on = state.phase == LoopPhase::Running && !state.is_interactive;
        Self {
            iteration: number.map_or(0, u64::from),
            max_iterations: state.last_allowed().into(),
            status: run,
            running: open.is_some(),
            interactive_mode: state.is_interactive,
            current_story: open.and_then(|open| open.started.story.as_ref()).map(shown),
            current_task: open.and_then(|open| open.started.task.as_ref()).map(shown),
            tasks_done: counts.completed,
            tasks_open: counts.open(),
            failures: state.failures.into(),
            last: ended.or_else(|| last.map(|last| last.outcome.to_string())),
            began_at: Some(state.began_at),
            since: Some(since(state)),
            again_at: state.again_at().filter(|_| goes_on),
            stop_requested: state.stop_asked,
            checkpoint_requested: state.checkpoint_asked,
            injected: state.prompts.len() as u64,
            spec: state.settings.spec.clone(),
            prd: state.settings.prd.clone(),
        }
    }

    /// Like [`Self::new`], for a session that is gone: one without a recorded end was killed.
    pub fn without_runner(mut self) -> Self {
        self.running = false;
        if self.status == RunStatus::Running {
            self.status = RunStatus::Failed;
        }
        self
    }

    /// Describe the state in a few words.
    pub fn describe(&self, now: Timestamp) -> String {
        let number = match (self.iteration, self.max_iterations) {
            (0, _) => "no iteration has begun".to_owned(),
            (iteration, 0) => format!("iteration {iteration}"),
            (iteration, most) => format!("iteration {iteration} of {most}"),
        };
        let doing = self.doing(now);
        let tasks = format!("tasks {} done, {} open", self.tasks_done, self.tasks_open);
        format!("{number}{doing}; {tasks}")
    }

    fn doing(&self, now: Timestamp) -> String {
        let is_live = matches!(self.status, RunStatus::Running | RunStatus::Checkpointed);
        let how = match (self.iteration, self.running) {
            (0, _) => "",
            (_, true) => " runs",
            (_, false) if is_live && self.failures > 0 => " failed",
            (_, false) => " over",
        };
        let mut doing = how.to_owned();
        if let (Some(at), RunStatus::Running) = (self.again_at, self.status) {
            let left = crate::time::length(at.duration_since(now));
            doing.push_str(&format!(", again in {left}"));
        }
        let is_running = self.status == RunStatus::Running;
        let marks = [
            (is_live && self.interactive_mode, "interactive"),
            (is_running && self.stop_requested, "to stop after this"),
            (
                is_running && self.checkpoint_requested,
                "to pause after this",
            ),
            (
                self.status == RunStatus::Checkpointed,
                "paused at a checkpoint",
            ),
            (self.status == RunStatus::Completed, "complete"),
            (self.status == RunStatus::Stopped, "stopped"),
            (self.status == RunStatus::Failed, "failed"),
        ];
        for (_, mark) in marks.into_iter().filter(|(is_so, _)| *is_so) {
            doing.push_str(&format!(", {mark}"));
        }
        if is_live && self.injected > 0 {
            doing.push_str(&format!(", {} injected", self.injected));
        }
        doing
    }
}

/// Return the start of the current iteration or pause, or else the end of the last one.
fn since(state: &LoopState) -> Timestamp {
    let between = || state.last.as_ref().map(|last| last.ended_at);
    match &state.phase {
        LoopPhase::Paused { since } => *since,
        LoopPhase::Ended { at, .. } => *at,
        LoopPhase::Running => match &state.open {
            Some(open) => open.started_at,
            None => between().unwrap_or(state.began_at),
        },
    }
}

/// Convert an ending to the original's words.
fn run(how: &LoopEnding) -> RunStatus {
    match how {
        LoopEnding::Complete(_) => RunStatus::Completed,
        LoopEnding::UsedUp | LoopEnding::Stopped => RunStatus::Stopped,
        LoopEnding::GaveUp(_) | LoopEnding::Failed(_) => RunStatus::Failed,
    }
}

/// State of a run in the original's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    Running,
    Completed,
    Stopped,
    Failed,
    Checkpointed,
}

/// Holder of the keyboard in the original's words.
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

/// Result of `get_status`. Times are local, as [`crate::time::stamp`] writes them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub task_name: String,
    pub task_dir: String,
    pub iteration: u64,
    pub max_iterations: u64,
    pub current_story: Option<String>,
    pub agent: String,
    pub status: RunStatus,
    pub interactive_mode: bool,
    pub mode_indicator: Mode,
    pub started_at: String,
    pub updated_at: String,
    pub recent_output: Vec<String>,
}
