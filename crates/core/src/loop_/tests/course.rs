//! A loop by itself: iteration after iteration, failures, and how it ends.

use super::*;
use proptest::{prop_assert, proptest};
use std::time::Duration;

#[test]
fn iterations_follow_each_other_until_they_are_used_up() {
    let mut desk = Desk::begun();
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
    // Another start is a loop of its own; numbers go on, as notes do.
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
fn without_a_number_there_is_no_end() {
    let mut desk = Desk::default();
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
fn what_was_cut_off_has_failed_and_is_run_again() {
    let mut desk = Desk::begun();
    desk.iterate(Outcome::Ended);
    desk.iterate(Outcome::Ended);
    desk.start().unwrap();
    // Killed here: no end was recorded. The next start does that.
    assert_eq!(desk.begin(), Ok(2));
    let state = desk.now();
    assert_eq!(state.open, None);
    let last = state.last.unwrap();
    assert_eq!(
        (last.number, last.outcome),
        (3, Outcome::Failed(Failure::CutOff))
    );
    assert_eq!((state.number, state.first), (3, 1));
    // Who starts it wants it to run now.
    assert_eq!(desk.next(), iterate(3));
    desk.iterate(Outcome::Ended);
    assert_eq!(desk.next(), iterate(4));
    // Killed between two iterations: nothing has failed.
    assert_eq!(desk.begin(), Ok(1));
    assert_eq!(desk.next(), iterate(4));
    assert_eq!(desk.now().last_allowed(), 5);
}

#[test]
fn failures_wait_longer_and_longer_and_then_it_gives_up() {
    let mut desk = Desk::begun();
    desk.fail();
    let failed_at = desk.second;
    let after = |passed: i64, desk: &Desk| next(at(failed_at + passed), &desk.now());
    let retry = |seconds| Next::Retry {
        number: 1,
        after: Duration::from_secs(seconds),
    };
    assert_eq!(after(0, &desk), retry(1));
    assert_eq!(after(1, &desk), iterate(1));
    // A clock that was set back makes nobody wait longer.
    assert_eq!(after(-3_600, &desk), retry(1));
    desk.fail();
    assert_eq!(desk.next(), retry(2));
    desk.fail();
    assert_eq!(desk.now().failures, 3);
    assert_eq!(desk.next(), Next::End(LoopEnding::GaveUp(3)));
    desk.finish(LoopEnding::GaveUp(3)).unwrap();
    assert_eq!(status(&desk.now()), "failed");
    // It goes on where it was.
    desk.begin().unwrap();
    assert_eq!(desk.next(), iterate(1));
    assert_eq!(desk.now().failures, 0);
}

#[test]
fn what_ends_well_ends_the_row_of_failures() {
    for outcome in [Outcome::Ended, Outcome::Interrupted] {
        let mut desk = Desk::begun();
        desk.fail();
        desk.fail();
        desk.iterate(outcome);
        assert_eq!(desk.next(), iterate(2));
        desk.fail();
        assert_eq!(desk.now().failures, 1);
    }
}

#[test]
fn a_failure_is_known_with_its_story_and_how_many_there_were() {
    let mut desk = Desk::begun();
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
fn a_wait_doubles_up_to_its_cap() {
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
    // Every failure counts where nobody gives up.
    let mut desk = Desk::default();
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
fn it_is_complete_by_the_tool_the_stories_or_the_token() {
    for proof in [Proof::Tool, Proof::Stories, Proof::Token] {
        let mut desk = Desk::begun();
        desk.iterate(Outcome::Completed(proof));
        assert_eq!(desk.next(), Next::End(LoopEnding::Complete(proof)));
        desk.finish(LoopEnding::Complete(proof)).unwrap();
        assert_eq!(status(&desk.now()), "completed");
        // It ends no loop that comes after.
        desk.begin().unwrap();
        assert_eq!(desk.next(), iterate(2));
        desk.iterate(Outcome::Ended);
        assert_eq!(desk.next(), iterate(3));
    }
}

#[test]
fn the_tool_s_word_counts_as_it_stands_in_the_journal() {
    let mut desk = Desk::begun();
    desk.start().unwrap();
    desk.say_complete();
    assert_eq!(desk.now().complete, Some(Proof::Tool));
    assert_eq!(desk.next(), Next::Underway { number: 1 });
    // Whatever the runner made of its end: the agent has said so.
    desk.end(Outcome::Failed(Failure::Exit(1))).unwrap();
    let complete = LoopEnding::Complete(Proof::Tool);
    assert_eq!(desk.next(), Next::End(complete.clone()));
    desk.finish(complete).unwrap();
    // Said after the end, it is nobody's; and a run ends no other.
    desk.say_complete();
    desk.begin().unwrap();
    assert_eq!(desk.next(), iterate(1));
    desk.start().unwrap();
    desk.say_complete();
    desk.begin().unwrap();
    assert_eq!(desk.next(), iterate(1));
}

proptest! {
    /// Whatever happens in whatever order, an iteration's number never goes back, and texts wait
    /// in the order in which they came.
    #[test]
    fn numbers_never_go_back(steps in proptest::collection::vec(0..12_u8, 0..60)) {
        let mut desk = Desk::begun();
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
            // What comes next is never refused.
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
