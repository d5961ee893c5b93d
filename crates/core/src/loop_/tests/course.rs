//! A loop's iterations, failures and ends.

use super::*;
use proptest::{prop_assert, proptest};
use std::time::Duration;

#[test]
fn iterations_follow_each_other_up_to_their_limit() {
    let mut desk = LoopJournal::begun();
    for number in 1..=5 {
        assert_eq!(desk.next(), iterate(number));
        desk.start().unwrap();
        assert_eq!(desk.next(), Next::Underway { number });
        let outcome = match number % 2 {
            0 => Outcome::Ended,
            _ => Outcome::Interrupted,
        };
        desk.end(outcome).unwrap();
    }
    assert_eq!(desk.next(), Next::End(LoopEnding::UsedUp));
    desk.finish(LoopEnding::UsedUp).unwrap();
    assert_eq!(desk.next(), Next::End(LoopEnding::UsedUp));
    assert_eq!(status(&desk.now()), "stopped");
    // The next start begins a new loop; numbers continue.
    desk.begin().unwrap();
    assert_eq!(desk.next(), iterate(6));
    let state = desk.now();
    assert_eq!((state.first, state.last_allowed()), (6, 10));
    for _ in 6..=10 {
        desk.iterate(Outcome::Ended);
    }
    assert_eq!(desk.next(), Next::End(LoopEnding::UsedUp));
}

#[test]
fn without_a_limit_iterations_do_not_end() {
    let mut desk = LoopJournal::default();
    let mut endless = settings();
    endless.policy.iterations = 0;
    let (run, settings) = (None, Box::new(endless));
    desk.order(&LoopOrder::Begin { run, settings }).unwrap();
    for number in 1..=60 {
        assert_eq!(desk.next(), iterate(number));
        desk.iterate(Outcome::Ended);
    }
    assert_eq!(desk.now().last_allowed(), 0);
}

#[test]
fn an_iteration_that_was_cut_off_failed_and_is_run_again() {
    let mut desk = LoopJournal::begun();
    desk.iterate(Outcome::Ended);
    desk.iterate(Outcome::Ended);
    desk.start().unwrap();
    // Killed here, without a recorded end. The next start records it.
    assert_eq!(desk.begin(), Ok(2));
    let state = desk.now();
    assert_eq!(state.open, None);
    let last = state.last.unwrap();
    assert_eq!(
        (last.number, last.outcome),
        (3, Outcome::Failed(Failure::CutOff))
    );
    assert_eq!((state.number, state.first), (3, 1));
    // A restart means that the loop should run now.
    assert_eq!(desk.next(), iterate(3));
    desk.iterate(Outcome::Ended);
    assert_eq!(desk.next(), iterate(4));
    // Killed between two iterations: nothing has failed.
    assert_eq!(desk.begin(), Ok(1));
    assert_eq!(desk.next(), iterate(4));
    assert_eq!(desk.now().last_allowed(), 5);
}

#[test]
fn waits_grow_with_failures_until_the_loop_gives_up() {
    let mut desk = LoopJournal::begun();
    desk.fail();
    let failed_at = desk.second;
    let after = |passed: i64, desk: &LoopJournal| next(at(failed_at + passed), &desk.now());
    let retry = |seconds| Next::Retry {
        number: 1,
        after: Duration::from_secs(seconds),
    };
    assert_eq!(after(0, &desk), retry(1));
    assert_eq!(after(1, &desk), iterate(1));
    // A clock that was set back extends no wait.
    assert_eq!(after(-3_600, &desk), retry(1));
    desk.fail();
    assert_eq!(desk.next(), retry(2));
    desk.fail();
    assert_eq!(desk.now().failures, 3);
    assert_eq!(desk.next(), Next::End(LoopEnding::GaveUp(3)));
    desk.finish(LoopEnding::GaveUp(3)).unwrap();
    assert_eq!(status(&desk.now()), "failed");
    // The loop continues at its number.
    desk.begin().unwrap();
    assert_eq!(desk.next(), iterate(1));
    assert_eq!(desk.now().failures, 0);
}

#[test]
fn a_success_ends_the_series_of_failures() {
    for outcome in [Outcome::Ended, Outcome::Interrupted] {
        let mut desk = LoopJournal::begun();
        desk.fail();
        desk.fail();
        desk.iterate(outcome);
        assert_eq!(desk.next(), iterate(2));
        desk.fail();
        assert_eq!(desk.now().failures, 1);
    }
}

#[test]
fn a_failure_is_recorded_with_its_story_and_count() {
    let mut desk = LoopJournal::begun();
    desk.fail();
    desk.start().unwrap();
    desk.begin().unwrap();
    let now = desk.now();
    assert_eq!(now.failures, 0, "who starts it again begins anew");
    let last = now.last.expect("it was cut off");
    assert_eq!(last.outcome, Outcome::Failed(Failure::CutOff));
    assert_eq!((last.story.as_deref(), last.failures), (Some("US-1"), 2));
}

#[test]
fn a_wait_doubles_up_to_its_maximum() {
    let policy = settings().policy;
    let check = |failures, millis| {
        let want = Duration::from_millis(millis);
        assert_eq!(policy.wait_after(failures), want, "{failures}");
    };
    check(0, 0);
    check(1, 1_000);
    check(2, 2_000);
    check(4, 8_000);
    check(5, 10_000);
    check(64, 10_000);
    check(65, 10_000);
    check(u32::MAX, 10_000);
    let huge = Policy {
        first_wait_ms: u64::MAX,
        longest_wait_ms: u64::MAX,
        ..policy
    };
    assert_eq!(huge.wait_after(9), Duration::from_millis(u64::MAX));
    // Without a limit, every failure counts.
    let mut desk = LoopJournal::default();
    let mut stubborn = settings();
    stubborn.policy.failures = 0;
    let (run, settings) = (None, Box::new(stubborn));
    desk.order(&LoopOrder::Begin { run, settings }).unwrap();
    for _ in 0..20 {
        desk.fail();
    }
    let after = Duration::from_secs(10);
    assert_eq!(desk.next(), Next::Retry { number: 1, after });
}

#[test]
fn a_loop_is_complete_by_the_tool_the_stories_or_the_token() {
    for proof in [Proof::Tool, Proof::Stories, Proof::Token] {
        let mut desk = LoopJournal::begun();
        desk.iterate(Outcome::Completed(proof));
        assert_eq!(desk.next(), Next::End(LoopEnding::Complete(proof)));
        desk.finish(LoopEnding::Complete(proof)).unwrap();
        assert_eq!(status(&desk.now()), "completed");
        // The report ends no later loop.
        desk.begin().unwrap();
        assert_eq!(desk.next(), iterate(2));
        desk.iterate(Outcome::Ended);
        assert_eq!(desk.next(), iterate(3));
    }
}

#[test]
fn a_recorded_completion_counts_whatever_the_runner_reports() {
    let mut desk = LoopJournal::begun();
    desk.start().unwrap();
    desk.say_complete();
    assert_eq!(desk.now().complete, Some(Proof::Tool));
    assert_eq!(desk.next(), Next::Underway { number: 1 });
    // The agent's report beats the runner's outcome.
    desk.end(Outcome::Failed(Failure::Exit(1))).unwrap();
    let complete = LoopEnding::Complete(Proof::Tool);
    assert_eq!(desk.next(), Next::End(complete.clone()));
    desk.finish(complete).unwrap();
    // A report after the end has no effect, and a run ends no other run.
    desk.say_complete();
    desk.begin().unwrap();
    assert_eq!(desk.next(), iterate(1));
    desk.start().unwrap();
    desk.say_complete();
    desk.begin().unwrap();
    assert_eq!(desk.next(), iterate(1));
}

proptest! {
    /// Iteration numbers never decrease, and texts wait in their order, whatever happens.
    #[test]
    fn iteration_numbers_never_decrease(steps in proptest::collection::vec(0..12_u8, 0..60)) {
        let mut desk = LoopJournal::begun();
        let mut number = 1;
        for (n, step) in (0_u128..).zip(steps) {
            let _ = match step {
                0 | 1 => desk.start(),
                2 => desk.end(Outcome::Ended),
                3 => desk.end(Outcome::Failed(Failure::Signal(9))),
                4 => desk.end(Outcome::Completed(Proof::Token)),
                5 => desk.begin(),
                6 => desk.ask(Request::Checkpoint),
                7 => desk.order(&LoopOrder::Checkpoint),
                8 => desk.resume(),
                9 => desk.inject(10_000 + n, &n.to_string()),
                10 => desk.finish(LoopEnding::UsedUp),
                _ => desk.ask(Request::Stop),
            };
            let state = desk.now();
            prop_assert!(state.number >= number && state.first <= state.number);
            prop_assert!(state.prompts.is_sorted_by_key(|waiting| waiting.at));
            number = state.number;
            // The next step is never refused.
            let allowed = match desk.next() {
                Next::Iterate { .. } | Next::Retry { .. } => decided(&state, &LoopOrder::StartIteration {
                    story: None,
                    task: None,
                    prompts: vec![],
                }),
                Next::Pause => decided(&state, &LoopOrder::Checkpoint),
                Next::End(how) => state.has_ended() || decided(&state, &LoopOrder::End { how }),
                Next::Paused | Next::Hold | Next::Underway { .. } => true,
            };
            prop_assert!(allowed);
        }
    }
}

fn decided(state: &LoopState, order: &LoopOrder) -> bool {
    decide(&state.agent, Some(state), order).is_ok()
}
