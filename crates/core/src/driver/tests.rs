//! Tests of the driver's sequencing: inputs go in, actions come out.

use super::*;
use crate::activity::tests::ms;
use crate::delivery::tests::{id, mail};
use crate::delivery::{Decision, DeliveryConfig};
use crate::harness::hook::tests::like_claude;
use crate::harness::{Api, BoxState, Manifest, Proof, Route, Sighting, transcript};
use crate::mail::MessageState;
use crate::offer::OfferReport;
use crate::priority::Priority;
use crate::session::Ending;
use std::sync::Arc;
use uuid::Uuid;

/// Keeps the inputs that delivery was given.
#[derive(Default)]
struct Inputs(Vec<Input>);

impl Observer for Inputs {
    fn on_input(&mut self, _: Moment, input: &Input) {
        self.0.push(input.clone());
    }
    fn after_input(&mut self) {}
    fn on_decision(&mut self, _: Moment, _: &Delivery, _: &[MessageState], _: &Decision) {}
    fn on_action(&mut self, _: Moment, _: &Delivery, _: &Action) {}
    fn on_commit_retry(&mut self, _: &JournalOperation, _: &str) {}
    fn on_commit_lost(&mut self, _: &JournalOperation, _: &str) {}
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
        let (mut driver, mut given) = (driver(Manifest::generic(), None), Inputs::default());
        driver.handle(ms(1), Input::ScreenChanged(newer.clone()), &mut given);
        driver.handle(ms(2), input(older.clone()), &mut given);
        given.0
    };
    let changed = Input::ScreenChanged(newer.clone());
    assert_eq!(
        late(Input::ScreenChanged),
        [changed.clone(), changed.clone()]
    );
    let looked = |sighting| Input::Looked {
        by: KeyboardUser::Turn,
        sighting,
    };
    assert_eq!(late(looked), [changed, looked(newer.clone())]);
}

/// Plays inputs to a driver, and returns the actions.
struct Stage {
    driver: SessionDriver,
    given: Inputs,
    /// Every commit so far.
    commits: Vec<CommitId>,
}

impl Stage {
    fn new(manifest: Manifest, resumed: Option<Conversation>) -> Self {
        Self {
            driver: driver(manifest, resumed),
            given: Inputs::default(),
            commits: Vec::new(),
        }
    }

    /// Handle an input, and return the actions that follow.
    fn input(&mut self, at: u64, input: Input) -> Vec<Action> {
        self.driver.handle(ms(at), input, &mut self.given);
        self.poll(at)
    }

    fn poll(&mut self, at: u64) -> Vec<Action> {
        let next = || self.driver.poll_action(ms(at), &mut self.given);
        let actions: Vec<_> = std::iter::from_fn(next).collect();
        self.commits
            .extend(commits(&actions).iter().map(|(id, _)| *id));
        actions
    }

    /// Call a hook that takes no mail.
    fn call(&mut self, at: u64, event: &str, payload: &str) -> Vec<Action> {
        let hook = Input::HookCalled {
            call: HookCall(at),
            report: Box::new(like_claude().read(event, payload)),
            takes_mail: false,
        };
        self.input(at, hook)
    }

    /// A hook reports a prompt in this conversation.
    fn hook(&mut self, at: u64, conversation: &str) -> Vec<Action> {
        let payload = serde_json::json!({"session_id": conversation, "prompt": "hi"});
        self.call(at, "UserPromptSubmit", &payload.to_string())
    }

    /// Type a message of [`mail`] to the idle agent, with every step in time.
    fn offer(&mut self, at: u64, n: u128) {
        let view = MailView {
            head: 1,
            pending: vec![mail(n, Priority::Normal)],
            ..MailView::default()
        };
        self.input(at, Input::MailRead(view));
        self.input(at, Input::InputChecked { is_unread: false });
        let offering = self.input(at, Input::KeyboardLeased(KeyboardUser::Turn));
        let (commit, _) = *commits(&offering).last().expect("an offer");
        let committed = Input::Committed {
            commit,
            ids: vec![id(n)],
            head: 1,
            has_more: false,
        };
        self.input(at, committed);
        self.input(at, Input::Typed("text".to_owned()));
        self.poll(at + 60);
        self.input(at + 61, Input::EnterPressed(KeyboardUser::Turn));
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
    let begins = r#"{"session_id": "two", "source": "clear"}"#;
    let begun = stage.call(1_500, "SessionStart", begins);
    let (second, id) = conversation(&begun).expect("a commit");
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

/// Return the journal's operations among these actions.
fn operations(actions: &[Action]) -> Vec<JournalOperation> {
    let commits = commits(actions).into_iter();
    commits.map(|(_, operation)| operation.clone()).collect()
}

#[test]
fn a_checkpoint_pauses_before_the_hook_that_ends_the_turn_takes_mail() {
    let taker = || {
        let mut manifest = talker();
        manifest.routes = vec![Route::Hook, Route::Terminal];
        manifest
            .hook
            .context
            .push("Stop".to_owned().try_into().unwrap());
        let mut stage = Stage::new(manifest, None);
        stage.call(5, "SessionStart", r#"{"session_id": "one"}"#);
        stage.hook(10, "one");
        let view = MailView {
            head: 1,
            pending: vec![mail(1, Priority::Normal)],
            ..MailView::default()
        };
        stage.input(20, Input::MailRead(view));
        stage
    };
    let stop = || Input::HookCalled {
        call: HookCall(9),
        report: Box::new(like_claude_with_stop().read("Stop", r#"{"session_id": "one"}"#)),
        takes_mail: true,
    };
    let is_offer = |actions: &[Action]| {
        let is_offer = |operation: &JournalOperation| operation.has(id(1));
        operations(actions).iter().any(is_offer)
    };
    assert!(is_offer(&taker().input(30, stop())));
    let mut stage = taker();
    assert_eq!(stage.input(25, Input::CheckpointRequested), []);
    let actions = stage.input(30, stop());
    assert!(!is_offer(&actions) && actions.contains(&Action::ReportCheckpoint));
    assert!(stage.driver.delivery().is_paused());
    // A request that is taken back has no effect.
    let mut stage = taker();
    stage.input(25, Input::CheckpointRequested);
    stage.input(26, Input::Unpaused(PausedBy::Checkpoint));
    assert!(is_offer(&stage.input(30, stop())));
}

fn like_claude_with_stop() -> crate::harness::Hooks {
    let mut hooks = like_claude();
    hooks.context.push("Stop".to_owned().try_into().unwrap());
    hooks
}

/// Return a driver whose program has ended, with all processes that it had left.
fn ended(mut stage: Stage) -> (Stage, Vec<Action>) {
    stage.poll(100);
    while let Some(commit) = stage.commits.pop() {
        stage.committed(110, commit, false);
    }
    let mut actions = stage.input(200, Input::Exited(Ending::Exit(0)));
    assert!(actions.contains(&Action::EndProcesses), "{actions:?}");
    assert!(!stage.driver.is_finished());
    actions = stage.input(300, Input::ProcessesEnded);
    (stage, actions)
}

/// Offers of earlier runs are proven by the transcript of the resumed conversation, or end with the
/// start of another one. The end of a run that never took its conversation up decides nothing.
#[test]
fn a_run_that_ends_before_it_is_ready_leaves_earlier_offers_to_the_next() {
    let resumed = Conversation {
        run: Uuid::nil(),
        id: "one".to_owned(),
        harness: "test".to_owned(),
        cwd: "/".to_owned(),
        transcript: Some("/transcript".to_owned()),
        not_resumed: false,
    };
    let stage = Stage::new(Manifest::generic(), Some(resumed.clone()));
    assert!(stage.driver.delivery().is_starting());
    let (stage, actions) = ended(stage);
    assert_eq!(actions, []);
    assert!(stage.driver.is_finished());

    // The transcript is still being read at the end of a run that was ready.
    let mut stage = Stage::new(talker(), Some(resumed.clone()));
    let ready = stage.call(5, "SessionStart", r#"{"session_id": "one"}"#);
    let settle = JournalOperation::SettleEarlierOffers(resumed);
    let settling = commits(&ready)
        .into_iter()
        .find(|(_, operation)| **operation == settle);
    let (settling, _) = settling.expect("a commit");
    stage.commits.retain(|commit| *commit != settling);
    while let Some(commit) = stage.commits.pop() {
        stage.committed(110, commit, false);
    }
    stage.input(200, Input::Exited(Ending::Exit(0)));
    assert_eq!(stage.poll(2_200), [Action::EndProcesses]);
    assert_eq!(stage.input(2_300, Input::ProcessesEnded), []);
    let settled = stage.committed(2_400, settling, false);
    assert_eq!(operations(&settled), [JournalOperation::CloseUnproven]);
    stage.committed(2_410, commits(&settled)[0].0, false);
    assert!(stage.driver.is_finished());
}

#[test]
fn a_run_ends_in_time_although_the_journal_fails() {
    let (mut stage, actions) = ended(Stage::new(Manifest::generic(), None));
    let (commit, _) = commits(&actions)[0];
    stage.not_committed(400, commit);
    assert_eq!(stage.driver.next_timeout(ms(400)), Some(ms(1_400).mono));
    stage.poll(1_400);
    stage.not_committed(1_500, commit);
    assert!(!stage.driver.is_finished());
    stage.poll(2_300);
    assert!(stage.driver.is_finished());
}

/// A wrapper's worker may write to the transcript after the wrapper has ended.
#[test]
fn the_last_read_of_a_transcript_follows_the_end_of_all_processes() {
    let mut manifest = talker();
    manifest.proof = vec![Proof::Transcript];
    let mut stage = Stage::new(manifest, None);
    stage.call(5, "SessionStart", r#"{"session_id": "one"}"#);
    let payload = r#"{"session_id": "one", "transcript_path": "/transcript"}"#;
    stage.call(10, "Stop", payload);
    stage.offer(20, 1);
    stage.input(90, read(transcript::Shown::default()));
    let (mut stage, actions) = ended(stage);
    assert_eq!(actions, [Action::ReadTranscripts]);
    let shown = transcript::Shown {
        given: format!("[ph message from: alice id: {}] hi", id(1).id8()),
        ..transcript::Shown::default()
    };
    let actions = stage.input(400, read(shown));
    let said = operations(&actions);
    assert!(
        matches!(
            &said[0],
            JournalOperation::RecordStep {
                report: OfferReport::Accepted { .. },
                ..
            }
        ),
        "{said:?}"
    );
    assert_eq!(said[1], JournalOperation::CloseUnproven);
}

/// No turn begins at a checkpoint, although mail from the middle of the last turn may be unanswered.
#[test]
fn the_agent_is_told_to_continue_only_after_a_checkpoint() {
    let mut manifest = talker();
    manifest.routes = vec![Route::Http, Route::Terminal];
    manifest.http.api = Some(Api::OpenCode);
    let mut stage = Stage::new(manifest, None);
    stage.call(5, "SessionStart", r#"{"session_id": "one"}"#);
    stage.hook(10, "one");
    let view = MailView {
        pending: vec![mail(1, Priority::Normal)],
        ..MailView::default()
    };
    stage.input(20, Input::MailRead(view));
    let actions = stage.input(20, Input::InputChecked { is_unread: false });
    let Some(Action::CheckApi { offer, .. }) = actions.last() else {
        panic!("{actions:?}");
    };
    let offering = stage.input(30, Input::ApiConfirmed(*offer));
    let committed = Input::Committed {
        commit: commits(&offering)[0].0,
        ids: vec![id(1)],
        head: 1,
        has_more: false,
    };
    stage.input(40, committed);
    stage.input(50, Input::ApiAccepted(*offer));
    stage.input(60, Input::CheckpointRequested);
    let is_told = |actions: &[Action]| {
        let is_continue = |action: &Action| matches!(action, Action::ApiContinue { .. });
        actions.iter().any(is_continue)
    };
    // Mail that is due would have the agent continue.
    let view = MailView {
        head: 1,
        ..MailView::default()
    };
    stage.input(400, Input::MailRead(view));
    let actions = stage.call(500, "Stop", r#"{"session_id": "one"}"#);
    assert!(actions.contains(&Action::ReportCheckpoint), "{actions:?}");
    assert!(!is_told(&actions), "{actions:?}");
    let actions = stage.input(600, Input::Unpaused(PausedBy::Checkpoint));
    assert!(is_told(&actions), "{actions:?}");
}

fn read(shown: transcript::Shown) -> Input {
    let trouble = None;
    Input::TranscriptsRead {
        shown,
        trouble,
        is_complete: true,
    }
}
