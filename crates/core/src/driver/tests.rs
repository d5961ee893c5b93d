//! Tests of the driver's sequencing: inputs go in, actions come out.

use super::*;
use crate::activity::tests::ms;
use crate::delivery::{Decision, DeliveryConfig, Effect};
use crate::harness::hook::tests::like_claude;
use crate::harness::{BoxState, Manifest, Sighting};
use crate::mail::MessageState;
use std::sync::Arc;
use uuid::Uuid;

/// Keeps the events that delivery was told.
#[derive(Default)]
struct Events(Vec<DeliveryEvent>);

impl Observer for Events {
    fn on_event(&mut self, _: Moment, event: &DeliveryEvent) {
        self.0.push(event.clone());
    }
    fn after_event(&mut self) {}
    fn on_decision(&mut self, _: Moment, _: &Delivery, _: &[MessageState], _: &Decision) {}
    fn on_effect(&mut self, _: Moment, _: &Delivery, _: &Effect) {}
    fn on_keyboard_released(&mut self) {}
    fn on_commit_retry(&mut self, _: &JournalOperation, _: &str) {}
    fn on_commit_lost(&mut self, _: &JournalOperation, _: &str) {}
    fn on_nudge_end(&mut self, _: &NudgeOutcome) {}
    fn on_answer_refused(&mut self, _: &str) {}
}

fn driver(manifest: Manifest, resumed: Option<Conversation>) -> SessionDriver {
    let config = DriverConfig {
        delivery: DeliveryConfig {
            harness: Arc::new(manifest),
            ..DeliveryConfig::generic(80)
        },
        run: RunIdentity {
            run: Uuid::nil(),
            harness: "test".to_owned(),
            cwd: "/".to_owned(),
        },
        resumed,
    };
    SessionDriver::new(config, ms(0))
}

#[test]
fn a_look_that_arrives_late_does_not_replace_a_newer_one() {
    let look = |output, input_box| Sighting {
        output,
        input_box,
        ..Sighting::default()
    };
    let newer = look(5, BoxState::Empty);
    let older = look(3, BoxState::Undescribed);
    let late = |input: fn(Sighting) -> Input| {
        let (mut driver, mut events) = (driver(Manifest::generic(), None), Events::default());
        driver.handle(ms(1), Input::ScreenChanged(newer.clone()), &mut events);
        driver.handle(ms(2), input(older.clone()), &mut events);
        events.0
    };
    let changed = DeliveryEvent::ScreenChanged(newer.clone());
    assert_eq!(
        late(Input::ScreenChanged),
        [changed.clone(), changed.clone()]
    );
    let looked = |sighting| Input::Looked {
        by: KeyboardUser::Turn,
        sighting,
    };
    assert_eq!(
        late(looked),
        [changed, DeliveryEvent::Looked(newer.clone())]
    );
}

/// Plays inputs to a driver, and returns the actions.
struct Stage {
    driver: SessionDriver,
    events: Events,
}

impl Stage {
    fn new(manifest: Manifest, resumed: Option<Conversation>) -> Self {
        Self {
            driver: driver(manifest, resumed),
            events: Events::default(),
        }
    }

    /// Handle an input, and return the actions that follow.
    fn input(&mut self, at: u64, input: Input) -> Vec<Action> {
        self.driver.handle(ms(at), input, &mut self.events);
        self.poll(at)
    }

    fn poll(&mut self, at: u64) -> Vec<Action> {
        std::iter::from_fn(|| self.driver.poll_action(ms(at), &mut self.events)).collect()
    }

    /// A hook reports a prompt in this conversation.
    fn hook(&mut self, at: u64, conversation: &str) -> Vec<Action> {
        let payload = serde_json::json!({"session_id": conversation, "prompt": "hi"});
        let report = like_claude().read("UserPromptSubmit", &payload.to_string());
        let hook = Input::HookCalled {
            call: HookCall(at),
            report: Box::new(report),
            takes_mail: false,
        };
        self.input(at, hook)
    }

    fn committed(&mut self, at: u64, commit: CommitId, has_more: bool) -> Vec<Action> {
        let committed = Input::Committed {
            commit,
            ids: Vec::new(),
            head: 0,
            has_more,
        };
        self.input(at, committed)
    }

    fn not_committed(&mut self, at: u64, commit: CommitId) -> Vec<Action> {
        let not_committed = Input::NotCommitted {
            commit,
            why: "the disk is full".to_owned(),
            is_final: false,
        };
        self.input(at, not_committed)
    }
}

/// Return the commits among these actions.
fn commits(actions: &[Action]) -> Vec<(CommitId, &JournalOperation)> {
    let commit = |action| match action {
        &Action::Commit {
            commit,
            ref operation,
        } => Some((commit, operation)),
        _ => None,
    };
    actions.iter().filter_map(commit).collect()
}

fn talker() -> Manifest {
    let mut manifest = Manifest::generic();
    manifest.hook = like_claude();
    manifest
}

/// Return the conversation that these actions record.
fn conversation(actions: &[Action]) -> Option<(CommitId, String)> {
    commits(actions)
        .into_iter()
        .find_map(|commit| match commit {
            (id, JournalOperation::RecordConversation(conversation)) => {
                Some((id, conversation.id.clone()))
            }
            _ => None,
        })
}

#[test]
fn a_conversation_that_is_not_recorded_is_retried() {
    let mut stage = Stage::new(talker(), None);
    let (first, id) = conversation(&stage.hook(10, "one")).expect("a commit");
    assert_eq!(id, "one");
    assert_eq!(conversation(&stage.not_committed(20, first)), None);
    assert_eq!(
        conversation(&stage.hook(500, "one")),
        None,
        "its commit is open"
    );
    assert_eq!(conversation(&stage.poll(1_020)), Some((first, id)));
    assert_eq!(conversation(&stage.not_committed(1_030, first)), None);
    // Another conversation begins: a retry would record the first one after it.
    let begins = like_claude().read(
        "SessionStart",
        r#"{"session_id": "two", "source": "clear"}"#,
    );
    stage.input(
        1_500,
        Input::HookCalled {
            call: HookCall(0),
            report: Box::new(begins),
            takes_mail: false,
        },
    );
    let (second, id) = conversation(&stage.hook(1_510, "two")).expect("a commit");
    assert_eq!(id, "two");
    let retried = stage.poll(2_030);
    assert_eq!(conversation(&retried), Some((first, "one".to_owned())));
    assert_eq!(conversation(&stage.not_committed(2_040, first)), None);
    stage.committed(2_050, second, false);
    assert_eq!(conversation(&stage.poll(9_000)), None);
}

#[test]
fn an_expiry_that_one_commit_does_not_complete_is_repeated() {
    let mut stage = Stage::new(Manifest::generic(), None);
    let expiry = |actions: &[Action]| {
        let is_expiry =
            |(_, operation): &(_, &JournalOperation)| **operation == JournalOperation::Expire;
        commits(actions)
            .into_iter()
            .find(is_expiry)
            .map(|(id, _)| id)
    };
    let first = expiry(&stage.poll(0)).expect("a commit");
    let second = expiry(&stage.committed(10, first, true)).expect("another commit");
    assert_eq!(expiry(&stage.not_committed(20, second)), None);
    assert_eq!(expiry(&stage.poll(1_020)), Some(second));
    assert_eq!(expiry(&stage.committed(1_030, second, false)), None);
}
