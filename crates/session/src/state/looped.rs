//! A loop, as its session sees it: what the journal says of it, told to whoever asks or listens.
//! Its runner decides and records; nothing is decided here.

use super::Clerk;
use crate::Shared;
use crate::host::log;
use crate::socket::dispatch::Sink;
use posthaste_core::AgentName;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::LoopWait;
use posthaste_core::driver::Input;
use posthaste_store::{Error, Journal};
use posthaste_wire::event::StateChange;
use posthaste_wire::{self as wire, Run, method};
use std::time::Duration;
use tracing::info;
use uuid::Uuid;

/// How long whoever asks about a loop waits for a journal that is busy; after that the last look
/// must do.
const BUSY: Duration = Duration::from_secs(1);

/// What the journal says of the loop, and as of which fact at least.
#[derive(Debug)]
pub(crate) struct LoopView {
    seq: u64,
    status: wire::LoopStatus,
    wait: LoopWait,
}

impl LoopView {
    pub(super) fn of(
        journal: &mut Journal,
        agent: &AgentName,
        run: Uuid,
    ) -> Result<Option<Self>, Error> {
        // Before the rest: what comes in between is seen, and not claimed.
        let seq = journal.head()?;
        let state = journal.loop_state(agent)?;
        let Some(state) = state.filter(|state| state.run == Some(run)) else {
            return Ok(None);
        };
        Ok(Some(Self {
            seq,
            status: wire::LoopStatus::new(&state, journal.task_counts(agent)?),
            wait: LoopWait::of(&state),
        }))
    }

    /// As it stands now, for whoever asks: of what was acknowledged nothing may be missing, and the
    /// last look may be from before.
    pub(crate) async fn now(shared: &Shared) -> Option<Self> {
        let (agent, run) = (shared.agent.clone(), shared.run);
        let look = shared
            .books
            .ask(move |journal| Self::of(journal, &agent, run));
        let view = tokio::time::timeout(BUSY, look).await;
        view.ok()?.ok()?
    }
}

impl Clerk {
    /// Takes in how the loop stands, and tells what has changed.
    pub(super) fn see_loop(&mut self, view: LoopView) {
        // A look that was begun earlier may end later.
        if view.seq < self.loop_seq {
            return;
        }
        self.loop_seq = view.seq;
        self.tell(Input::LoopChanged(view.wait));
        let now = view.status;
        let before = self.looped.replace(now.clone());
        if before.as_ref() == Some(&now) {
            return;
        }
        let course = |status: &wire::LoopStatus| (status.iteration, status.running, status.status);
        if before.as_ref().map(course) != Some(course(&now)) {
            let (iteration, running, status) = course(&now);
            info!(target: log::SESSION, iteration, running, ?status, "loop");
        }
        self.run = now.status;
        let was = before.as_ref();
        let change = StateChange {
            iteration: news(was.map(|was| &was.iteration), now.iteration),
            max_iterations: news(was.map(|was| &was.max_iterations), now.max_iterations),
            current_story: news(was.map(|was| &was.current_story), now.current_story),
            status: news(was.map(|was| &was.status), now.status),
            ..StateChange::default()
        };
        self.changed(change);
    }

    /// The mode stands in the journal already: who types by the socket may do so from now on.
    pub(super) fn interact_in_loop(&mut self, enabled: bool, sink: Sink) {
        let was = self.outset.interactive.send_replace(enabled);
        sink.answer::<method::SetInteractiveMode>(&method::InteractiveMode {
            interactive_mode: enabled,
        });
        if was != enabled {
            self.changed(StateChange {
                interactive_mode: Some(enabled),
                ..StateChange::default()
            });
        }
    }

    /// What the session does; and the loop by which that is known, where it is one that lives: its
    /// runner knows better than the silence of a terminal.
    pub(super) fn activity(&self) -> (Activity, Option<&wire::LoopStatus>) {
        let judged = self.delivery().activity();
        let Some(looped) = &self.looped else {
            return (judged.activity, None);
        };
        match judged.activity {
            Activity::Exited => (Activity::Exited, None),
            Activity::Starting | Activity::Idle | Activity::Working | Activity::Blocked(_) => {
                let activity = match looped.running {
                    true => Activity::Working,
                    false => Activity::Idle,
                };
                (activity, Some(looped))
            }
        }
    }

    /// How the loop has ended, in the original's words.
    pub(super) fn run_of_loop(&self) -> Option<Run> {
        let looped = self.looped.as_ref()?;
        match looped.status {
            // Its runner is gone, and did not say how.
            Run::Running | Run::Checkpointed => None,
            ended @ (Run::Completed | Run::Stopped | Run::Failed) => Some(ended),
        }
    }

    pub(super) fn add_loop(&self, mut status: wire::Status) -> wire::Status {
        if let Some(looped) = &self.looped {
            status.iteration = looped.iteration;
            status.max_iterations = looped.max_iterations;
            status.current_story = looped.current_story.clone();
        }
        status
    }
}

/// What is new; at the first look all is.
fn news<T: PartialEq>(was: Option<&T>, is: T) -> Option<T> {
    (was != Some(&is)).then_some(is)
}
