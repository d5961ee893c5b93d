//! A loop, as its session sees it: what the journal says of it, told to whoever asks or listens.
//! Its runner decides and records; nothing is decided here.

use super::SessionState;
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

/// The loop as it was seen last, if the session runs one.
#[derive(Debug, Default)]
pub(super) struct LoopWatch {
    status: Option<wire::LoopStatus>,
    /// The fact as of which that is at least.
    seq: u64,
}

/// What follows from a look at the loop.
#[derive(Debug)]
pub(super) struct LoopNews {
    pub(super) wait: LoopWait,
    pub(super) run: Run,
    /// What listeners are to be told, if anything has changed.
    pub(super) change: Option<StateChange>,
}

impl LoopWatch {
    /// Take in a look. A look that was begun earlier may end later; then nothing follows.
    fn see(&mut self, view: LoopView) -> Option<LoopNews> {
        if view.seq < self.seq {
            return None;
        }
        self.seq = view.seq;
        let now = view.status;
        let before = self.status.replace(now.clone());
        let (wait, run) = (view.wait, now.status);
        if before.as_ref() == Some(&now) {
            let change = None;
            return Some(LoopNews { wait, run, change });
        }
        let course = |status: &wire::LoopStatus| (status.iteration, status.running, status.status);
        if before.as_ref().map(course) != Some(course(&now)) {
            let (iteration, running, status) = course(&now);
            info!(target: log::SESSION, iteration, running, ?status, "loop");
        }
        let was = before.as_ref();
        let change = Some(StateChange {
            iteration: news(was.map(|was| &was.iteration), now.iteration),
            max_iterations: news(was.map(|was| &was.max_iterations), now.max_iterations),
            current_story: news(was.map(|was| &was.current_story), now.current_story),
            status: news(was.map(|was| &was.status), now.status),
            ..StateChange::default()
        });
        Some(LoopNews { wait, run, change })
    }

    pub(super) fn status(&self) -> Option<&wire::LoopStatus> {
        self.status.as_ref()
    }

    /// What the session does; and the loop by which that is known, where it is one that lives: its
    /// runner knows better than the silence of a terminal.
    fn activity(&self, judged: Activity) -> (Activity, Option<&wire::LoopStatus>) {
        match (&self.status, judged) {
            (None, judged) => (judged, None),
            (Some(_), Activity::Exited) => (Activity::Exited, None),
            (
                Some(looped),
                Activity::Starting | Activity::Idle | Activity::Working | Activity::Blocked(_),
            ) => {
                let activity = match looped.running {
                    true => Activity::Working,
                    false => Activity::Idle,
                };
                (activity, Some(looped))
            }
        }
    }

    /// How the loop has ended, in the original's words.
    pub(super) fn ended_as(&self) -> Option<Run> {
        match self.status.as_ref()?.status {
            // Its runner is gone, and did not say how.
            Run::Running | Run::Checkpointed => None,
            ended @ (Run::Completed | Run::Stopped | Run::Failed) => Some(ended),
        }
    }

    pub(super) fn add_to(&self, mut status: wire::Status) -> wire::Status {
        if let Some(looped) = &self.status {
            status.iteration = looped.iteration;
            status.max_iterations = looped.max_iterations;
            status.current_story = looped.current_story.clone();
        }
        status
    }
}

impl SessionState {
    /// Takes in how the loop stands, and tells what has changed.
    pub(super) fn see_loop(&mut self, view: LoopView) {
        let Some(news) = self.looped.see(view) else {
            return;
        };
        self.tell(Input::LoopChanged(news.wait));
        if let Some(change) = news.change {
            self.published.run = news.run;
            self.changed(change);
        }
    }

    /// The mode stands in the journal already: who types by the socket may do so from now on.
    pub(super) fn interact_in_loop(&mut self, enabled: bool, sink: Sink) {
        let was = self.setup.interactive.send_replace(enabled);
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

    pub(super) fn activity(&self) -> (Activity, Option<&wire::LoopStatus>) {
        self.looped
            .activity(self.driver.delivery().activity().activity)
    }
}

/// What is new; at the first look all is.
fn news<T: PartialEq>(was: Option<&T>, is: T) -> Option<T> {
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
    fn an_older_look_changes_nothing_and_only_changes_are_told() {
        let mut watch = LoopWatch::default();
        assert_eq!(watch.activity(Activity::Working).0, Activity::Working);
        let news = watch.see(view(3, 1, "running")).unwrap();
        assert_eq!(news.change.unwrap().iteration, Some(1));
        assert!(watch.see(view(2, 0, "running")).is_none());
        assert_eq!(watch.see(view(4, 1, "running")).unwrap().change, None);
        let change = watch.see(view(5, 2, "running")).unwrap().change.unwrap();
        assert_eq!((change.iteration, change.max_iterations), (Some(2), None));
        // The runner knows better than the silence of a terminal, and no better than its end.
        assert_eq!(watch.activity(Activity::Idle).0, Activity::Working);
        assert_eq!(watch.activity(Activity::Exited).0, Activity::Exited);
        assert_eq!(watch.ended_as(), None);
        let news = watch.see(view(6, 2, "completed")).unwrap();
        assert_eq!(news.run, Run::Completed);
        assert_eq!(watch.ended_as(), Some(Run::Completed));
    }
}
