//! What can be asked of a writer, and how it answers.

mod delivery;

use jiff::Timestamp;
use posthaste_core::inject;
use posthaste_core::offer::{Kept, Said};
use posthaste_core::work::{NewNote, NewTask};
use posthaste_core::{
    AgentName, Conversation, Draft, Ended, Letter, LoopOrder, LoopRefusal, LoopState, Message,
    MessageId, Note, Order, Refusal, Run, Started, Task, TaskId, TaskStatus, WorkRefusal,
};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub enum Job {
    /// Store messages, all or none.
    Post { now: Timestamp, drafts: Vec<Draft> },
    /// Do one thing with messages that are there, all or none.
    Order {
        now: Timestamp,
        who: AgentName,
        order: Order,
        ids: Vec<MessageId>,
    },
    /// Pick the most urgent unread messages that no route has put before their agent yet, and
    /// record that a hook is about to print them. The caller must hold the agent's inject lock.
    Inject { now: Timestamp, agent: AgentName },
    /// Record that these messages are about to be shown, as far as they still may be.
    Offer {
        now: Timestamp,
        agent: AgentName,
        ids: Vec<MessageId>,
        route: String,
        /// Messages that the offer marks as repeats.
        repeats: Vec<MessageId>,
    },
    /// Record what a session says of these messages, as far as it can be true.
    Say {
        now: Timestamp,
        agent: AgentName,
        ids: Vec<MessageId>,
        said: Said,
    },
    /// Record that offers were cut off.
    Uncertain {
        now: Timestamp,
        agent: AgentName,
        cut: Cut,
        reason: String,
    },
    /// Record which messages of an inbox ran out of time.
    Expire { now: Timestamp, agent: AgentName },
    /// Record that a session began; only for who holds the agent's name.
    Started {
        now: Timestamp,
        agent: AgentName,
        started: Started,
    },
    /// Record the conversation that a session's program is in.
    Conversation {
        now: Timestamp,
        agent: AgentName,
        conversation: Conversation,
    },
    /// Record how a session ended.
    Ended {
        now: Timestamp,
        agent: AgentName,
        ended: Ended,
    },
    /// Put a task on an agent's list.
    AddTask {
        now: Timestamp,
        agent: AgentName,
        task: NewTask,
    },
    /// Give a task another status.
    MoveTask {
        now: Timestamp,
        who: AgentName,
        task: TaskId,
        status: TaskStatus,
        iteration: Option<u32>,
    },
    /// Note something down for an agent.
    AddNote {
        now: Timestamp,
        agent: AgentName,
        note: NewNote,
    },
    /// Record that an agent says it is done.
    Complete {
        now: Timestamp,
        who: AgentName,
        agent: AgentName,
        iteration: Option<u32>,
    },
    /// Do something with an agent's loop.
    Loop {
        now: Timestamp,
        agent: AgentName,
        order: LoopOrder,
    },
}

/// Which offers were cut off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cut {
    /// All that a session has begun: that session has ended. Offers of hooks are left alone.
    All,
    /// Offers that a hook began and did not complete. The caller must hold the agent's inject lock.
    Injected,
    /// Offers whose proof can no longer arrive, because the run that made them has ended.
    Unproven,
    These(Vec<MessageId>),
}

/// Whether a commit must outlive a power cut before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    Synced,
    Unsynced,
}

impl Durability {
    /// Who was about to be shown something does not outlive a power cut either.
    fn of(said: &Said) -> Self {
        match said {
            Said::Offering { .. } | Said::Reminded { .. } => Self::Unsynced,
            Said::Offered { route, .. } if route == inject::ROUTE => Self::Unsynced,
            Said::Offered { .. }
            | Said::Accepted { .. }
            | Said::Uncertain { .. }
            | Said::Withdrawn { .. }
            | Said::Failed { .. } => Self::Synced,
        }
    }
}

impl Job {
    pub(crate) fn durability(&self) -> Durability {
        match self {
            // Shown once more after a power cut is better than a slow prompt every time.
            Self::Inject { .. } | Self::Offer { .. } => Durability::Unsynced,
            Self::Say { said, .. } => Durability::of(said),
            Self::Post { .. }
            | Self::Order { .. }
            | Self::Uncertain { .. }
            | Self::Expire { .. }
            | Self::Started { .. }
            | Self::Conversation { .. }
            | Self::Ended { .. }
            | Self::AddTask { .. }
            | Self::MoveTask { .. }
            | Self::AddNote { .. }
            | Self::Complete { .. }
            | Self::Loop { .. } => Durability::Synced,
        }
    }

    /// What a whole group of jobs needs: as much as the one that needs most.
    pub(crate) fn durability_of(jobs: &[Self]) -> Durability {
        let is_synced = |job: &Self| job.durability() == Durability::Synced;
        if jobs.iter().any(is_synced) {
            Durability::Synced
        } else {
            Durability::Unsynced
        }
    }
}

#[derive(Debug, Clone)]
pub enum Done {
    Posted(Vec<Posted>),
    Ordered(Vec<Ordered>),
    Injected(Injection),
    /// Which messages came a step further in delivery.
    Moved(Moved),
    Expired(Expired),
    /// A session began; with the run before it, where that had no end and so has crashed.
    Started {
        agent: AgentName,
        crashed: Option<Run>,
    },
    /// The conversation is on record.
    Conversation {
        agent: AgentName,
    },
    /// A session has its end; false where it had one, or another runs by now.
    Ended {
        agent: AgentName,
        is_new: bool,
    },
    /// A task as it stands now; unchanged where it stood so already.
    Task {
        task: Task,
        is_changed: bool,
    },
    Note(Note),
    /// An agent is done, in the run that is its latest.
    Completed {
        agent: AgentName,
        run: Option<Uuid>,
    },
    /// A loop as it stands now; unchanged where it stood so already.
    Loop {
        state: Box<LoopState>,
        is_changed: bool,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub agent: AgentName,
    pub moved: Vec<MessageId>,
    /// Those that stay as they are, and why.
    pub kept: Vec<(MessageId, Kept)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expired {
    pub agent: AgentName,
    pub ids: Vec<MessageId>,
    /// Whether there are others, to be recorded in another turn.
    pub more: bool,
}

#[derive(Debug, Clone)]
pub struct Posted {
    pub letter: Letter,
    /// False where the same message stood in the journal already.
    pub is_new: bool,
    /// Why its file could not be written, though it is stored. It is made when it is asked for.
    pub unfiled: Option<String>,
    /// In whose inboxes something has changed.
    pub(crate) touched: Vec<AgentName>,
}

#[derive(Debug, Clone)]
pub struct Ordered {
    pub message: Message,
    pub outcome: Outcome,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Changed,
    /// It was so already.
    Unchanged,
    AlreadyArchived,
}

#[derive(Debug, Clone)]
pub struct Injection {
    pub letters: Vec<Letter>,
    /// How many are unread in all.
    pub unread: u64,
}

/// Why a piece of work was not done. Nothing of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("{refusal}")]
    Refused {
        id: Option<MessageId>,
        refusal: Refusal,
    },
    #[error("no message {0}")]
    NotFound(MessageId),
    #[error("no task {0}")]
    NoTask(TaskId),
    #[error("{0}")]
    Work(WorkRefusal),
    #[error("{0}")]
    Loop(LoopRefusal),
}

impl Done {
    /// Whose inboxes or sessions it touched.
    pub(crate) fn agents(&self) -> Vec<AgentName> {
        match self {
            Self::Posted(posted) => {
                let new = posted.iter().filter(|p| p.is_new);
                new.flat_map(|p| &p.touched).cloned().collect()
            }
            Self::Ordered(ordered) => {
                let changed = ordered.iter().filter(|o| o.outcome == Outcome::Changed);
                changed.map(|o| o.message.to.clone()).collect()
            }
            Self::Injected(injection) => injection
                .letters
                .iter()
                .map(|l| l.message.to.clone())
                .collect(),
            Self::Moved(Moved { agent, moved, .. }) => touched(agent, !moved.is_empty()),
            Self::Expired(Expired { agent, ids, .. }) => touched(agent, !ids.is_empty()),
            Self::Started { agent, .. } => touched(agent, true),
            Self::Conversation { agent } => touched(agent, true),
            Self::Ended { agent, is_new } => touched(agent, *is_new),
            Self::Task { task, is_changed } => touched(&task.agent, *is_changed),
            Self::Note(note) => touched(&note.agent, true),
            Self::Completed { agent, .. } => touched(agent, true),
            Self::Loop { state, is_changed } => touched(&state.agent, *is_changed),
        }
    }
}

fn touched(agent: &AgentName, is_touched: bool) -> Vec<AgentName> {
    is_touched.then(|| agent.clone()).into_iter().collect()
}

/// What was done, or why nothing was.
pub type Answer = std::result::Result<Done, Denied>;
