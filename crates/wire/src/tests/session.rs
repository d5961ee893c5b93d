//! Loops in the session's state: their descriptions, and fields of older sessions.

use crate::{LoopStatus, RunStatus};

fn status() -> LoopStatus {
    LoopStatus {
        iteration: 3,
        max_iterations: 9,
        status: RunStatus::Running,
        running: true,
        interactive_mode: false,
        current_story: None,
        current_task: None,
        tasks_done: 1,
        tasks_open: 2,
        failures: 0,
        last: None,
        began_at: None,
        since: None,
        again_at: None,
        stop_requested: false,
        checkpoint_requested: false,
        injected: 0,
        spec: None,
        prd: None,
    }
}

#[test]
fn a_loop_is_described_by_its_state() {
    let now = "2026-11-15T10:00:00Z".parse().unwrap();
    let check = |change: &dyn Fn(&mut LoopStatus), want: &str| {
        let mut looped = status();
        change(&mut looped);
        assert_eq!(
            looped.describe(now),
            format!("{want}; tasks 1 done, 2 open")
        );
    };
    check(&|_| {}, "iteration 3 of 9 runs");
    check(&|l| l.max_iterations = 0, "iteration 3 runs");
    check(
        &|l| (l.iteration, l.running) = (0, false),
        "no iteration has begun",
    );
    check(&|l| l.running = false, "iteration 3 of 9 over");
    check(
        &|l| l.interactive_mode = true,
        "iteration 3 of 9 runs, interactive",
    );
    check(
        &|l| (l.stop_requested, l.checkpoint_requested) = (true, true),
        "iteration 3 of 9 runs, to stop after this, to pause after this",
    );
    check(&|l| l.injected = 2, "iteration 3 of 9 runs, 2 injected");
    check(
        &|l| {
            (l.running, l.failures) = (false, 2);
            l.again_at = "2026-11-15T10:00:04Z".parse().ok();
        },
        "iteration 3 of 9 failed, again in 4s",
    );
    check(
        &|l| (l.running, l.failures, l.interactive_mode) = (false, 1, true),
        "iteration 3 of 9 failed, interactive",
    );
    check(
        &|l| (l.running, l.status) = (false, RunStatus::Checkpointed),
        "iteration 3 of 9 over, paused at a checkpoint",
    );
    for (run, word) in [
        (RunStatus::Completed, "complete"),
        (RunStatus::Stopped, "stopped"),
        (RunStatus::Failed, "failed"),
    ] {
        check(
            &|l| {
                (l.running, l.status) = (false, run);
                (l.stop_requested, l.interactive_mode) = (true, true);
                l.injected = 1;
            },
            &format!("iteration 3 of 9 over, {word}"),
        );
    }
}

#[test]
fn lines_of_older_sessions_are_valid() {
    let mut old = serde_json::to_value(status()).unwrap();
    let fields = old.as_object_mut().unwrap();
    for name in [
        "began_at",
        "since",
        "again_at",
        "stop_requested",
        "checkpoint_requested",
        "injected",
    ] {
        fields.remove(name).expect(name);
    }
    assert_eq!(serde_json::from_value::<LoopStatus>(old).unwrap(), status());
}
