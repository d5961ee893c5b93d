//! Facts of a loop. Unknown fields are ignored; an unknown kind or variant makes the record odd.

use super::policy::Policy;
use crate::fact::{Odd, parse_data};
use crate::id::PromptId;
use crate::name::AgentName;
use crate::session::Ending;
use crate::text;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

const BEGAN_KIND: &str = "loop_began";
const ITERATION_STARTED_KIND: &str = "iteration_started";
const ITERATION_ENDED_KIND: &str = "iteration_ended";
const ASKED_KIND: &str = "loop_asked";
const CHECKPOINTED_KIND: &str = "loop_checkpointed";
const RESUMED_KIND: &str = "loop_resumed";
const INJECTED_KIND: &str = "prompt_injected";
const INTERACTIVE_KIND: &str = "loop_interactive";
const LOOP_ENDED_KIND: &str = "loop_ended";

/// A change of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopFact {
    Began(Box<Began>),
    IterationStarted(IterationStarted),
    IterationEnded(IterationEnded),
    /// Somebody requested a stop or a pause after the iteration.
    Asked(Asked),
    /// The loop paused.
    Checkpointed,
    Resumed(Resumed),
    /// A text for the next prompt was injected; its id is the fact's id.
    Injected(Injected),
    Interactive(Interactive),
    Ended(LoopEnded),
}

/// A loop's settings, sufficient to start it again. The environment is not included, because it may
/// hold secrets and facts can be exported; the session keeps it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prd: Option<String>,
    /// File for FAILURE and CHECKPOINT blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    pub harness: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The person's command in place of the harness's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The person's prompt in place of the built-in instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Path of a template.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Text added to the instructions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<String>,
    pub cwd: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sockets: Vec<String>,
    #[serde(default)]
    pub policy: Policy,
}

/// A loop began, or its runner was started again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Began {
    /// The session's run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Uuid>,
    pub settings: Settings,
    /// Number of the next iteration. Numbers continue across the loops of a name, like notes and
    /// tasks.
    pub number: u32,
    /// Number of the loop's first iteration, from which [`Policy::iterations`] counts.
    pub first: u32,
    /// Whether this continues the previous loop, which had not ended.
    #[serde(default)]
    pub goes_on: bool,
}

/// A text that waits for the next prompt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    pub id: PromptId,
    pub text: String,
    pub by: AgentName,
    pub at: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationStarted {
    pub number: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Uuid>,
    /// The current story of the prd.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub story: Option<String>,
    /// The task that is in progress or next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// The injected texts in the iteration's prompt. They are used up when the iteration ends by
    /// itself after its prompt was written completely; otherwise the next prompt contains them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<PromptId>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationEnded {
    pub number: u32,
    pub outcome: IterationOutcome,
    /// Whether the agent ended before its prompt was written completely.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_unread: bool,
}

/// How an iteration ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationOutcome {
    /// The loop's work is complete.
    Completed(CompletionProof),
    /// The agent succeeded, and work remains.
    Ended,
    /// The iteration failed; its number is run again.
    Failed(IterationFailure),
    /// An urgent message ended the iteration; the next prompt contains the message.
    Interrupted,
    /// The iteration was ended to stop the loop.
    Stopped,
}

/// Evidence that a loop is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CompletionProof {
    /// The agent called `session_complete`.
    Tool,
    /// Every story of the prd passes.
    Stories,
    /// The agent wrote the token.
    Token,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IterationFailure {
    Exit(i32),
    Signal(i32),
    /// No output for this number of seconds.
    Idle(u64),
    /// The agent could not be started, with the reason.
    NotStarted(String),
    /// The runner ended before the iteration did.
    CutOff,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    pub what: LoopRequest,
    pub by: AgentName,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopRequest {
    Stop,
    Checkpoint,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Resumed {
    pub by: AgentName,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Injected {
    pub text: String,
    pub by: AgentName,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Interactive {
    pub on: bool,
    pub by: AgentName,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoopEnded {
    pub how: LoopEnding,
}

/// How a loop ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoopEnding {
    Complete(CompletionProof),
    /// All allowed iterations are done.
    UsedUp,
    Stopped,
    /// This number of consecutive failures.
    GaveUp(u32),
    /// The loop cannot continue, with the reason.
    Failed(String),
}

impl LoopEnding {
    /// Whether the next start under this name begins a new loop and counts its iterations anew. A
    /// stopped or failed loop continues.
    pub fn is_final(&self) -> bool {
        match self {
            Self::Complete(_) | Self::UsedUp => true,
            Self::Stopped | Self::GaveUp(_) | Self::Failed(_) => false,
        }
    }
}

impl fmt::Display for CompletionProof {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tool => "the agent called session_complete",
            Self::Stories => "every story passes",
            Self::Token => "the agent wrote the completion token",
        })
    }
}

impl fmt::Display for IterationFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exit(code) => Ending::Exit(*code).fmt(f),
            Self::Signal(number) => Ending::Signal(*number).fmt(f),
            Self::Idle(seconds) => write!(f, "no output for {seconds} s"),
            Self::NotStarted(why) => write!(f, "not started: {}", text::one_line(why, 200)),
            Self::CutOff => f.write_str("cut off: the loop's runner ended first"),
        }
    }
}

impl fmt::Display for IterationOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Completed(proof) => write!(f, "complete: {proof}"),
            Self::Ended => f.write_str("ended"),
            Self::Failed(failure) => write!(f, "failed: {failure}"),
            Self::Interrupted => f.write_str("interrupted by a message"),
            Self::Stopped => f.write_str("stopped"),
        }
    }
}

impl fmt::Display for LoopEnding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Complete(proof) => write!(f, "complete: {proof}"),
            Self::UsedUp => f.write_str("all allowed iterations are done"),
            Self::Stopped => f.write_str("stopped"),
            Self::GaveUp(1) => f.write_str("gave up after a failure"),
            Self::GaveUp(failures) => write!(f, "gave up after {failures} consecutive failures"),
            Self::Failed(why) => write!(f, "failed: {}", text::one_line(why, 200)),
        }
    }
}

impl fmt::Display for LoopRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Stop => "stop",
            Self::Checkpoint => "checkpoint",
        })
    }
}

/// The data of a fact without fields.
#[derive(Serialize, Deserialize)]
struct NoFields {}

impl LoopFact {
    /// Parse a fact. `None` if it is not about a loop.
    pub(crate) fn read(kind: &str, data: &str) -> Option<Result<Self, Odd>> {
        Some(match kind {
            BEGAN_KIND => parse_data("loop's begin", data).map(Self::Began),
            ITERATION_STARTED_KIND => {
                parse_data("iteration's start", data).map(Self::IterationStarted)
            }
            ITERATION_ENDED_KIND => parse_data("iteration's end", data).map(Self::IterationEnded),
            ASKED_KIND => parse_data("request to a loop", data).map(Self::Asked),
            CHECKPOINTED_KIND => {
                parse_data("checkpoint", data).map(|NoFields {}| Self::Checkpointed)
            }
            RESUMED_KIND => parse_data("loop's resumption", data).map(Self::Resumed),
            INJECTED_KIND => parse_data("injected prompt", data).map(Self::Injected),
            INTERACTIVE_KIND => parse_data("interactive mode", data).map(Self::Interactive),
            LOOP_ENDED_KIND => parse_data("loop's end", data).map(Self::Ended),
            _ => return None,
        })
    }

    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Self::Began(_) => BEGAN_KIND,
            Self::IterationStarted(_) => ITERATION_STARTED_KIND,
            Self::IterationEnded(_) => ITERATION_ENDED_KIND,
            Self::Asked(_) => ASKED_KIND,
            Self::Checkpointed => CHECKPOINTED_KIND,
            Self::Resumed(_) => RESUMED_KIND,
            Self::Injected(_) => INJECTED_KIND,
            Self::Interactive(_) => INTERACTIVE_KIND,
            Self::Ended(_) => LOOP_ENDED_KIND,
        }
    }

    pub(crate) fn data(&self) -> serde_json::Result<String> {
        use serde_json::to_string;
        match self {
            Self::Began(began) => to_string(began),
            Self::IterationStarted(started) => to_string(started),
            Self::IterationEnded(ended) => to_string(ended),
            Self::Asked(asked) => to_string(asked),
            Self::Checkpointed => to_string(&NoFields {}),
            Self::Resumed(resumed) => to_string(resumed),
            Self::Injected(injected) => to_string(injected),
            Self::Interactive(interactive) => to_string(interactive),
            Self::Ended(ended) => to_string(ended),
        }
    }
}
