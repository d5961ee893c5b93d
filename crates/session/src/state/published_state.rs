//! The state that was last published to listeners.

use super::SessionState;
use super::requests::wire_activity;
use crate::host::log;
use posthaste_core::Timestamp;
use posthaste_core::activity::Activity;
use posthaste_wire::RunStatus;
use posthaste_wire::event::{Event, StateChange};
use posthaste_wire::topic::Topic;
use tracing::debug;

#[derive(Debug)]
pub(super) struct PublishedState {
    pub(super) run: RunStatus,
    activity: Activity,
    is_paused: bool,
    pub(super) updated_at: Timestamp,
}

impl PublishedState {
    pub(super) fn new(now: Timestamp) -> Self {
        Self {
            run: RunStatus::Running,
            activity: Activity::Starting,
            is_paused: false,
            updated_at: now,
        }
    }

    /// Set the run status. Return the change, if any.
    pub(super) fn set_run(&mut self, run: RunStatus) -> Option<StateChange> {
        (self.run != run).then(|| {
            self.run = run;
            StateChange {
                status: Some(run),
                ..StateChange::default()
            }
        })
    }

    /// Set the activity and whether delivery is paused. Return the changes, if any.
    pub(super) fn set_activity(
        &mut self,
        activity: Activity,
        is_paused: bool,
    ) -> Option<StateChange> {
        if (&activity, is_paused) == (&self.activity, self.is_paused) {
            return None;
        }
        let was = wire_activity(&self.activity);
        let (is, on) = wire_activity(&activity);
        let change = StateChange {
            activity: (was.0 != is).then_some(is),
            blocked_on: (was.1 != on).then_some(on),
            paused: (self.is_paused != is_paused).then_some(is_paused),
            ..StateChange::default()
        };
        (self.activity, self.is_paused) = (activity, is_paused);
        Some(change)
    }
}

impl SessionState {
    /// Publish the parts of the session's state that have changed since they were published last.
    pub(super) fn publish_changes(&mut self) {
        let (activity, _) = self.activity();
        let is_paused = self.is_paused();
        let (is, on) = wire_activity(&activity);
        let Some(change) = self.published.set_activity(activity, is_paused) else {
            return;
        };
        debug!(
            target: log::SESSION,
            activity = is.as_str(),
            blocked_on = change.blocked_on.is_some().then_some(on).flatten(),
            paused = self.driver.delivery().paused_because(),
            "state changed"
        );
        self.driver.note_change();
        self.publish(change);
    }

    /// Publish a change of the session's state to listeners.
    pub(super) fn publish(&mut self, change: StateChange) {
        self.published.updated_at = posthaste_store::times::now();
        if !change.is_empty() {
            let event = Event::StateChange(change);
            self.setup.shared.hub.publish(Topic::StateChange, &event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_values_are_published() {
        let mut published = PublishedState::new(Timestamp::UNIX_EPOCH);
        assert_eq!(published.set_run(RunStatus::Running), None);
        let change = published.set_run(RunStatus::Checkpointed).unwrap();
        assert_eq!(change.status, Some(RunStatus::Checkpointed));
        assert_eq!(published.set_activity(Activity::Starting, false), None);
        let change = published.set_activity(Activity::Starting, true).unwrap();
        assert_eq!((change.activity, change.paused), (None, Some(true)));
        let blocked = Activity::Blocked("a question".to_owned());
        let change = published.set_activity(blocked, true).unwrap();
        assert_eq!(change.blocked_on, Some(Some("a question".to_owned())));
        assert_eq!(change.paused, None);
        let change = published.set_activity(Activity::Idle, true).unwrap();
        assert_eq!(change.blocked_on, Some(None));
    }
}
