//! The state of a session's loop, as read from the journal, for clients and listeners. Decides nothing:
//! the loop's runner decides and records.

use crate::Shared;
use crate::host::log;
use crate::state::SessionState;
use posthaste_core::AgentName;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::LoopWait;
use posthaste_core::driver::Input;
use posthaste_store::{Error, Journal};
use posthaste_wire::event::StateChange;
use posthaste_wire::{self as wire, RunStatus};
use std::time::Duration;
use tracing::info;
use uuid::Uuid;

/// How long a request about a loop waits for a busy journal. After that, the last view is used.
const READ_TIMEOUT: Duration = Duration::from_secs(1);

/// The loop according to the journal, as of the fact `seq` or a later one.
#[derive(Debug)]
pub(crate) struct LoopView {
    seq: u64,
    status: wire::LoopStatus,
    wait: LoopWait,
}

impl LoopView {
    pub(in crate::state) fn of(
        journal: &mut Journal,
        agent: &AgentName,
        run: Uuid,
    ) -> Result<Option<Self>, Error> {
        // Read this first: a fact that is added meanwhile may be included, but is not claimed.
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

    /// Read the current state for a request. The last view may lack an order that was already confirmed.
    pub(crate) async fn read(shared: &Shared) -> Option<Self> {
        let (agent, run) = (shared.agent.clone(), shared.run);
        let read = shared
            .journal
            .ask(move |journal| Self::of(journal, &agent, run));
        let view = tokio::time::timeout(READ_TIMEOUT, read).await;
        view.ok()?.ok()?
    }
}

/// The last view of the loop, if the session runs one.
#[derive(Debug, Default)]
pub(in crate::state) struct LoopWatch {
    status: Option<wire::LoopStatus>,
    seq: u64,
}

/// Consequences of a new view of the loop.
#[derive(Debug)]
struct LoopUpdate {
    wait: LoopWait,
    run: RunStatus,
    /// Change for listeners, if any.
    change: Option<StateChange>,
}

impl LoopWatch {
    /// Replace the last view. Ignore an older view: a read that began earlier may end later.
    fn update(&mut self, view: LoopView) -> Option<LoopUpdate> {
        if view.seq < self.seq {
            return None;
        }
        self.seq = view.seq;
        let now = view.status;
        let before = self.status.replace(now.clone());
        let (wait, run) = (view.wait, now.status);
        if before.as_ref() == Some(&now) {
            let change = None;
            return Some(LoopUpdate { wait, run, change });
        }
        let progress =
            |status: &wire::LoopStatus| (status.iteration, status.running, status.status);
        if before.as_ref().map(progress) != Some(progress(&now)) {
            let (iteration, running, status) = progress(&now);
            info!(target: log::SESSION, iteration, running, ?status, "loop");
        }
        let was = before.as_ref();
        let change = Some(StateChange {
            iteration: changed(was.map(|was| &was.iteration), now.iteration),
            max_iterations: changed(was.map(|was| &was.max_iterations), now.max_iterations),
            current_story: changed(was.map(|was| &was.current_story), now.current_story),
            status: changed(was.map(|was| &was.status), now.status),
            ..StateChange::default()
        });
        Some(LoopUpdate { wait, run, change })
    }

    pub(in crate::state) fn status(&self) -> Option<&wire::LoopStatus> {
        self.status.as_ref()
    }

    /// Return the session's activity, and the loop's status if the activity follows from it. The status of
    /// a loop that runs is better evidence than a silent terminal.
    fn activity(&self, observed: Activity) -> (Activity, Option<&wire::LoopStatus>) {
        match (&self.status, observed) {
            (None, observed) => (observed, None),
            (Some(_), Activity::Exited) => (Activity::Exited, None),
            (
                Some(status),
                Activity::Starting | Activity::Idle | Activity::Working | Activity::Blocked(_),
            ) => {
                let activity = match status.running {
                    true => Activity::Working,
                    false => Activity::Idle,
                };
                (activity, Some(status))
            }
        }
    }

    /// Return how the loop has ended, if its runner has recorded the end.
    pub(in crate::state) fn ended_as(&self) -> Option<RunStatus> {
        match self.status.as_ref()?.status {
            RunStatus::Running | RunStatus::Checkpointed => None,
            ended @ (RunStatus::Completed | RunStatus::Stopped | RunStatus::Failed) => Some(ended),
        }
    }

    pub(in crate::state) fn add_to(&self, mut status: wire::Status) -> wire::Status {
        if let Some(last) = &self.status {
            status.iteration = last.iteration;
            status.max_iterations = last.max_iterations;
            status.current_story = last.current_story.clone();
        }
        status
    }
}

impl SessionState {
    /// Apply a view of the loop, and publish what has changed.
    pub(in crate::state) fn apply_loop_view(&mut self, view: LoopView) {
        let Some(update) = self.loop_watch.update(view) else {
            return;
        };
        self.feed(Input::LoopChanged(update.wait));
        if let Some(change) = update.change {
            self.published.run = update.run;
            self.publish(change);
        }
    }

    pub(in crate::state) fn activity(&self) -> (Activity, Option<&wire::LoopStatus>) {
        self.loop_watch
            .activity(self.driver.delivery().activity().activity)
    }
}

/// Return the value if it differs from the last one.
fn changed<T: PartialEq>(was: Option<&T>, is: T) -> Option<T> {
    (was != Some(&is)).then_some(is)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn view(seq: u64, iteration: u64, status: &str) -> LoopView {
        let status = json!({
            "iteration": iteration, "max_iterations": 5, "status": status, "running": true,
            "interactive_mode": false, "current_story": null, "current_task": null,
            "tasks_done": 0, "tasks_open": 1, "failures": 0, "last": null, "spec": null,
            "prd": null,
        });
        LoopView {
            seq,
            status: serde_json::from_value(status).unwrap(),
            wait: LoopWait::default(),
        }
    }

    #[test]
    fn an_older_view_is_ignored_and_only_changes_are_published() {
        let mut watch = LoopWatch::default();
        assert_eq!(watch.activity(Activity::Working).0, Activity::Working);
        let update = watch.update(view(3, 1, "running")).unwrap();
        assert_eq!(update.change.unwrap().iteration, Some(1));
        assert!(watch.update(view(2, 0, "running")).is_none());
        assert_eq!(watch.update(view(4, 1, "running")).unwrap().change, None);
        let change = watch.update(view(5, 2, "running")).unwrap().change.unwrap();
        assert_eq!((change.iteration, change.max_iterations), (Some(2), None));
        // The status is better evidence than a silent terminal, but not than the program's end.
        assert_eq!(watch.activity(Activity::Idle).0, Activity::Working);
        assert_eq!(watch.activity(Activity::Exited).0, Activity::Exited);
        assert_eq!(watch.ended_as(), None);
        let update = watch.update(view(6, 2, "completed")).unwrap();
        assert_eq!(update.run, RunStatus::Completed);
        assert_eq!(watch.ended_as(), Some(RunStatus::Completed));
    }
}
