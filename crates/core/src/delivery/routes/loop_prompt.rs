//! The route into a loop: the runner includes mail in the next prompt. Nothing is typed.

use crate::delivery::outgoing::Lane;
use crate::delivery::rules::Rule;
use crate::loop_::{LoopPhase, LoopState};
use crate::mail::MessageState;
use crate::moment::Moment;
use crate::text;
use jiff::Timestamp;

/// The event that the next prompt of a loop waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum LoopWait {
    /// The end of the current iteration, if one runs.
    #[default]
    Turn,
    /// There is no next prompt: a client has asked the loop to stop.
    Stop,
    /// There is no next prompt: the current iteration is the last one allowed.
    Last,
    Checkpoint,
    /// The end of the current iteration, and of the pause after it.
    CheckpointAsked,
    Interactive,
    /// A time, after a failure.
    Failure {
        until: Timestamp,
        why: String,
    },
}

impl LoopWait {
    pub fn of(state: &LoopState) -> Self {
        if state.stop_asked && !state.has_ended() {
            return Self::Stop;
        }
        if let LoopPhase::Paused { .. } = state.phase {
            return Self::Checkpoint;
        }
        if state.is_interactive {
            return Self::Interactive;
        }
        match (&state.last, state.again_at()) {
            (Some(last), Some(until)) => Self::Failure {
                until,
                why: format!("iteration {} {}", last.number, last.outcome),
            },
            (_, _) if state.is_in_last() => Self::Last,
            (_, _) if state.checkpoint_asked => Self::CheckpointAsked,
            (_, _) => Self::Turn,
        }
    }
}

/// The reason for which the next prompt waits, and its beginning.
#[derive(Debug, Clone)]
pub(crate) struct LoopPrompt {
    pub(crate) since: Moment,
    wait: LoopWait,
}

impl LoopPrompt {
    pub(crate) fn new(now: Moment) -> Self {
        Self {
            since: now,
            wait: LoopWait::default(),
        }
    }

    /// Set the reason to wait, as the journal has it.
    pub(crate) fn set_wait(&mut self, now: Moment, wait: LoopWait) {
        if self.wait != wait {
            *self = Self { since: now, wait };
        }
    }

    /// Explain a message to a loop: the reason, the evidence and the release.
    pub(crate) fn explain(&self, now: Moment, mail: &MessageState) -> [String; 3] {
        let name = &mail.message.to;
        let then = "then it is in the next prompt";
        match &self.wait {
            _ if Lane::of(mail) == Lane::Raw => turn(mail),
            LoopWait::Stop => [
                "the loop was asked to stop, so it has no next prompt".to_owned(),
                "the journal has the request, and no end of the loop".to_owned(),
                format!("'ph restart {name}'; {then}"),
            ],
            LoopWait::Last => [
                "the current iteration is the last one that the loop is allowed".to_owned(),
                "its number equals '--iterations'".to_owned(),
                format!("'ph restart {name}' once it is over; {then}"),
            ],
            LoopWait::CheckpointAsked => [
                "the loop pauses at a checkpoint after this iteration".to_owned(),
                "a client asked for it".to_owned(),
                format!("'ph resume {name}', now or at the checkpoint; {then}"),
            ],
            LoopWait::Checkpoint => [
                "the loop is paused at a checkpoint".to_owned(),
                "the journal has the checkpoint, and nobody has resumed it".to_owned(),
                format!("'ph resume {name}'; {then}"),
            ],
            LoopWait::Interactive => [
                "the loop is in interactive mode, in which no iteration begins".to_owned(),
                "a client turned it on".to_owned(),
                format!("'ph interactive {name} off'; {then}"),
            ],
            LoopWait::Failure { until, why } if *until > now.wall => {
                let until = until.strftime("%Y-%m-%dT%H:%M:%SZ");
                [
                    format!("the loop waits until {until}, after a failure"),
                    text::one_line(why, 200),
                    format!("that time; {then}"),
                ]
            }
            LoopWait::Turn | LoopWait::Failure { .. } => turn(mail),
        }
    }
}

fn turn(mail: &MessageState) -> [String; 3] {
    let next = "the next iteration begins";
    let (reason, release) = match Lane::of(mail) {
        Lane::Interrupt => (
            "it interrupts the iteration, and is in the next prompt",
            next,
        ),
        Lane::Normal | Lane::Idle => (
            "this is a loop: it is in the prompt of the next iteration",
            next,
        ),
        Lane::Raw => (Rule::Loop.reason(), "its failure is recorded"),
    };
    [reason, "nothing is typed into a loop", release].map(str::to_owned)
}
