//! A loop's iterations, failures and ends.

use super::*;
use proptest::{prop_assert, proptest};
use std::time::Duration;

#[test]
fn iterations_follow_each_other_up_to_their_limit() {
    let mut journal = LoopJournal::begun();
    for number in 1..=5 {
        assert_eq!(journal.next(), iterate(number));
        journal.start().unwrap();
        assert_eq!(journal.next(), NextStep::Underway { number });
        let outcome = match number % 2 {
            0 => IterationOutcome::Ended,
            _ => IterationOutcome::Interrupted,
        };
        journal.end(outcome).unwrap();
    }
    assert_eq!(journal.next(), NextStep::End(LoopEnding::UsedUp));
    journal.finish(LoopEnding::UsedUp).unwrap();
    assert_eq!(journal.next(), NextStep::End(LoopEnding::UsedUp));
    assert_eq!(status(&journal.now()), "stopped");
    // The next start begins a new loop; numbers continue.
    journal.begin().unwrap();
    assert_eq!(journal.next(), iterate(6));
    let state = journal.now();
    assert_eq!((state.first, state.last_allowed()), (6, 10));
    for _ in 6..=10 {
        journal.iterate(IterationOutcome::Ended);
    }
    assert_eq!(journal.next(), NextStep::End(LoopEnding::UsedUp));
}

#[test]
fn without_a_limit_iterations_do_not_end() {
    let mut journal = LoopJournal::default();
    let mut endless = settings();
    endless.policy.iterations = 0;
    let (run, settings) = (None, Box::new(endless));
    journal.order(&LoopOrder::Begin { run, settings }).unwrap();
    for number in 1..=60 {
        assert_eq!(journal.next(), iterate(number));
        journal.iterate(IterationOutcome::Ended);
    }
    assert_eq!(journal.now().last_allowed(), 0);
}

#[test]
fn an_iteration_that_was_cut_off_failed_and_is_run_again() {
    let mut journal = LoopJournal::begun();
    journal.iterate(IterationOutcome::Ended);
    journal.iterate(IterationOutcome::Ended);
    journal.start().unwrap();
    // Killed here, without a recorded end. The next start records it.
    assert_eq!(journal.begin(), Ok(2));
    let state = journal.now();
    assert_eq!(state.open, None);
    let last = state.last.unwrap();
    assert_eq!(
        (last.number, last.outcome),
        (3, IterationOutcome::Failed(IterationFailure::CutOff))
    );
    assert_eq!((state.number, state.first), (3, 1));
    // A restart means that the loop should run now.
    assert_eq!(journal.next(), iterate(3));
    journal.iterate(IterationOutcome::Ended);
    assert_eq!(journal.next(), iterate(4));
    // Killed between two iterations: nothing has failed.
    assert_eq!(journal.begin(), Ok(1));
    assert_eq!(journal.next(), iterate(4));
    assert_eq!(journal.now().last_allowed(), 5);
}

#[test]
fn waits_grow_with_failures_until_the_loop_gives_up() {
    let mut journal = LoopJournal::begun();
    journal.fail();
    let failed_at = journal.second;
    let after = |passed: i64, journal: &LoopJournal| next(at(failed_at + passed), &journal.now());
    let retry = |seconds| NextStep::Retry {
        number: 1,
        after: Duration::from_secs(seconds),
    };
    assert_eq!(after(0, &journal), retry(1));
    assert_eq!(after(1, &journal), iterate(1));
    // A clock that was set back extends no wait.
    assert_eq!(after(-3_600, &journal), retry(1));
    journal.fail();
    assert_eq!(journal.next(), retry(2));
    journal.fail();
    assert_eq!(journal.now().failures, 3);
    assert_eq!(journal.next(), NextStep::End(LoopEnding::GaveUp(3)));
    journal.finish(LoopEnding::GaveUp(3)).unwrap();
    assert_eq!(status(&journal.now()), "failed");
    // The loop continues at its number.
    journal.begin().unwrap();
    assert_eq!(journal.next(), iterate(1));
    assert_eq!(journal.now().failures, 0);
}

#[test]
fn a_success_ends_the_series_of_failures() {
    for outcome in [IterationOutcome::Ended, IterationOutcome::Interrupted] {
        let mut journal = LoopJournal::begun();
        journal.fail();
        journal.fail();
        journal.iterate(outcome);
        assert_eq!(journal.next(), iterate(2));
        journal.fail();
        assert_eq!(journal.now().failures, 1);
    }
}

#[test]
fn a_failure_is_recorded_with_its_story_and_count() {
    let mut journal = LoopJournal::begun();
    journal.fail();
    journal.start().unwrap();
    journal.begin().unwrap();
    let now = journal.now();
    assert_eq!(now.failures, 0, "who starts it again begins anew");
    let last = now.last.expect("it was cut off");
    assert_eq!(
        last.outcome,
        IterationOutcome::Failed(IterationFailure::CutOff)
    );
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
    let mut journal = LoopJournal::default();
    let mut stubborn = settings();
    stubborn.policy.failures = 0;
    let (run, settings) = (None, Box::new(stubborn));
    journal.order(&LoopOrder::Begin { run, settings }).unwrap();
    for _ in 0..20 {
        journal.fail();
    }
    let after = Duration::from_secs(10);
    assert_eq!(journal.next(), NextStep::Retry { number: 1, after });
}

#[test]
fn a_loop_is_complete_by_the_tool_the_stories_or_the_token() {
    for proof in [
        CompletionProof::Tool,
        CompletionProof::Stories,
        CompletionProof::Token,
    ] {
        let mut journal = LoopJournal::begun();
        journal.iterate(IterationOutcome::Completed(proof));
        assert_eq!(journal.next(), NextStep::End(LoopEnding::Complete(proof)));
        journal.finish(LoopEnding::Complete(proof)).unwrap();
        assert_eq!(status(&journal.now()), "completed");
        // The report ends no later loop.
        journal.begin().unwrap();
        assert_eq!(journal.next(), iterate(2));
        journal.iterate(IterationOutcome::Ended);
        assert_eq!(journal.next(), iterate(3));
    }
}

#[test]
fn a_recorded_completion_overrides_the_reported_outcome() {
    let mut journal = LoopJournal::begun();
    journal.start().unwrap();
    journal.say_complete();
    assert_eq!(journal.now().complete, Some(CompletionProof::Tool));
    assert_eq!(journal.next(), NextStep::Underway { number: 1 });
    // The agent's report beats the runner's outcome.
    journal
        .end(IterationOutcome::Failed(IterationFailure::Exit(1)))
        .unwrap();
    let complete = LoopEnding::Complete(CompletionProof::Tool);
    assert_eq!(journal.next(), NextStep::End(complete.clone()));
    journal.finish(complete).unwrap();
    // A report after the end has no effect, and a run ends no other run.
    journal.say_complete();
    journal.begin().unwrap();
    assert_eq!(journal.next(), iterate(1));
    journal.start().unwrap();
    journal.say_complete();
    journal.begin().unwrap();
    assert_eq!(journal.next(), iterate(1));
}

proptest! {
    /// Iteration numbers never decrease, and texts wait in their order, whatever happens.
    #[test]
    fn iteration_numbers_never_decrease(steps in proptest::collection::vec(0..12_u8, 0..60)) {
        let mut journal = LoopJournal::begun();
        let mut number = 1;
        for (n, step) in (0_u128..).zip(steps) {
            let _ = match step {
                0 | 1 => journal.start(),
                2 => journal.end(IterationOutcome::Ended),
                3 => journal.end(IterationOutcome::Failed(IterationFailure::Signal(9))),
                4 => journal.end(IterationOutcome::Completed(CompletionProof::Token)),
                5 => journal.begin(),
                6 => journal.ask(LoopRequest::Checkpoint),
                7 => journal.order(&LoopOrder::Checkpoint),
                8 => journal.resume(),
                9 => journal.inject(10_000 + n, &n.to_string()),
                10 => journal.finish(LoopEnding::UsedUp),
                _ => journal.ask(LoopRequest::Stop),
            };
            let state = journal.now();
            prop_assert!(state.number >= number && state.first <= state.number);
            prop_assert!(state.prompts.is_sorted_by_key(|waiting| waiting.at));
            number = state.number;
            // The next step is never refused.
            let allowed = match journal.next() {
                NextStep::Iterate { .. } | NextStep::Retry { .. } => decided(&state, &LoopOrder::StartIteration {
                    story: None,
                    task: None,
                    prompts: vec![],
                }),
                NextStep::Pause => decided(&state, &LoopOrder::Checkpoint),
                NextStep::End(how) => state.has_ended() || decided(&state, &LoopOrder::End { how }),
                NextStep::Paused | NextStep::Hold | NextStep::Underway { .. } => true,
            };
            prop_assert!(allowed);
        }
    }
}

fn decided(state: &LoopState, order: &LoopOrder) -> bool {
    decide(&state.agent, Some(state), order).is_ok()
}
