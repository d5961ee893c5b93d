//! Orders for a loop: stops, checkpoints, prompts and refusals.

use super::*;

#[test]
fn a_stop_waits_for_the_iteration_and_a_restart_continues() {
    let mut journal = LoopJournal::begun();
    journal.start().unwrap();
    assert_eq!(journal.ask(LoopRequest::Stop), Ok(1));
    assert_eq!(journal.ask(LoopRequest::Stop), Ok(0));
    assert_eq!(journal.next(), NextStep::Underway { number: 1 });
    journal.end(IterationOutcome::Ended).unwrap();
    assert_eq!(journal.next(), NextStep::End(LoopEnding::Stopped));
    journal.finish(LoopEnding::Stopped).unwrap();
    journal.begin().unwrap();
    assert_eq!(journal.next(), iterate(2));
    assert_eq!(journal.now().first, 1);
    // An iteration that was ended for the stop counts.
    journal.iterate(IterationOutcome::Stopped);
    assert_eq!(journal.next(), NextStep::End(LoopEnding::Stopped));
    // A completed loop stays complete.
    let mut journal = LoopJournal::begun();
    journal.ask(LoopRequest::Stop).unwrap();
    journal.iterate(IterationOutcome::Completed(CompletionProof::Stories));
    let complete = LoopEnding::Complete(CompletionProof::Stories);
    assert_eq!(journal.next(), NextStep::End(complete));
}

#[test]
fn a_checkpoint_pauses_after_the_iteration_until_it_is_resumed() {
    let mut journal = LoopJournal::begun();
    journal.start().unwrap();
    assert_eq!(journal.ask(LoopRequest::Checkpoint), Ok(1));
    assert_eq!(journal.ask(LoopRequest::Checkpoint), Ok(0));
    assert_eq!(
        journal.order(&LoopOrder::Checkpoint),
        Err("iteration 1 of the loop of coder is still running".into())
    );
    journal.end(IterationOutcome::Ended).unwrap();
    assert_eq!(journal.next(), NextStep::Pause);
    journal.order(&LoopOrder::Checkpoint).unwrap();
    assert_eq!(journal.next(), NextStep::Paused);
    assert_eq!(status(&journal.now()), "checkpointed");
    assert_eq!(journal.ask(LoopRequest::Checkpoint), Ok(0));
    assert_eq!(
        journal.start(),
        Err("the loop of coder is paused at a checkpoint".into())
    );
    // A new runner does not end the pause.
    journal.begin().unwrap();
    assert_eq!(journal.next(), NextStep::Paused);
    journal.resume().unwrap();
    assert_eq!(journal.next(), iterate(2));
    assert_eq!(
        journal.resume(),
        Err("the loop of coder is not paused".into())
    );
    // A paused loop can be stopped.
    journal.order(&LoopOrder::Checkpoint).unwrap();
    journal.ask(LoopRequest::Stop).unwrap();
    assert_eq!(journal.next(), NextStep::End(LoopEnding::Stopped));
}

#[test]
fn a_requested_checkpoint_can_be_cancelled() {
    let mut journal = LoopJournal::begun();
    journal.start().unwrap();
    assert_eq!(
        journal.resume(),
        Err("the loop of coder is not paused".into())
    );
    journal.ask(LoopRequest::Checkpoint).unwrap();
    journal.resume().unwrap();
    assert_eq!(journal.next(), NextStep::Underway { number: 1 });
    assert_eq!(status(&journal.now()), "running");
    journal.end(IterationOutcome::Ended).unwrap();
    assert_eq!(journal.next(), iterate(2));
}

#[test]
fn in_interactive_mode_no_iteration_starts() {
    let mut journal = LoopJournal::begun();
    journal.start().unwrap();
    assert_eq!(journal.interactive(true), Ok(1));
    assert_eq!(journal.interactive(true), Ok(0));
    journal.say_complete();
    journal.end(IterationOutcome::Ended).unwrap();
    assert_eq!(journal.next(), NextStep::Hold);
    journal.interactive(false).unwrap();
    let complete = LoopEnding::Complete(CompletionProof::Tool);
    assert_eq!(journal.next(), NextStep::End(complete));
    journal.interactive(true).unwrap();
    journal.ask(LoopRequest::Stop).unwrap();
    assert_eq!(journal.next(), NextStep::End(LoopEnding::Stopped));
    // A restart ends interactive mode.
    journal.begin().unwrap();
    assert!(!journal.now().is_interactive);
}

#[test]
fn injected_prompts_are_given_once_and_in_order() {
    let mut journal = LoopJournal::begun();
    journal.inject(1, "one").unwrap();
    journal.inject(2, " two\n").unwrap();
    assert_eq!(journal.waiting(), ["one", "two"]);
    journal.start().unwrap();
    journal.inject(3, "three").unwrap();
    // They may be lost with the iteration until it has ended.
    assert_eq!(journal.waiting(), ["one", "two", "three"]);
    journal
        .end(IterationOutcome::Failed(IterationFailure::Exit(1)))
        .unwrap();
    assert_eq!(journal.waiting(), ["one", "two", "three"]);
    journal.start().unwrap();
    journal.begin().unwrap();
    assert_eq!(journal.waiting(), ["one", "two", "three"], "cut off");
    let first = LoopOrder::StartIteration {
        story: None,
        task: None,
        prompts: [1, 2].map(|n| PromptId(Uuid::from_u128(n))).to_vec(),
    };
    journal.order(&first).unwrap();
    journal.end(IterationOutcome::Ended).unwrap();
    assert_eq!(journal.waiting(), ["three"]);
    // A text that no prompt contained outlives its loop.
    journal.iterate(IterationOutcome::Ended);
    journal.inject(4, "four").unwrap();
    journal.finish(LoopEnding::UsedUp).unwrap();
    journal.begin().unwrap();
    assert_eq!(journal.waiting(), ["four"]);
    journal.iterate(IterationOutcome::Ended);
    assert_eq!(journal.waiting(), [""; 0]);
}

#[test]
fn injected_prompts_stay_until_an_iteration_that_had_them_ends_by_itself() {
    let mut journal = LoopJournal::begun();
    journal.inject(1, "one").unwrap();
    let check = |journal: &mut LoopJournal, outcome: IterationOutcome, is_unread, is_kept| {
        journal.start().unwrap();
        journal.end_with(outcome.clone(), is_unread).unwrap();
        assert_eq!(journal.waiting().len(), usize::from(is_kept), "{outcome:?}");
    };
    for is_unread in [true, false] {
        check(&mut journal, IterationOutcome::Interrupted, is_unread, true);
        check(&mut journal, IterationOutcome::Stopped, is_unread, true);
        let failed = IterationOutcome::Failed(IterationFailure::Exit(1));
        check(&mut journal, failed, is_unread, true);
    }
    check(&mut journal, IterationOutcome::Ended, true, true);
    check(
        &mut journal,
        IterationOutcome::Completed(CompletionProof::Token),
        true,
        true,
    );
    check(&mut journal, IterationOutcome::Ended, false, false);
}

#[test]
fn invalid_orders_are_refused() {
    let mut none = LoopJournal::default();
    let no_loop = || Err("coder has no loop".to_owned());
    assert_eq!(none.start(), no_loop());
    assert_eq!(none.ask(LoopRequest::Stop), no_loop());
    assert_eq!(none.resume(), no_loop());
    assert_eq!(none.inject(1, "x"), no_loop());
    assert_eq!(none.interactive(true), no_loop());
    assert_eq!(none.order(&LoopOrder::Checkpoint), no_loop());
    assert_eq!(none.finish(LoopEnding::Stopped), no_loop());
    let nothing = Box::new(Settings {
        spec: None,
        ..settings()
    });
    let begin = LoopOrder::Begin {
        run: None,
        settings: nothing,
    };
    assert_eq!(
        none.order(&begin),
        Err("a loop needs a spec or a prd".into())
    );

    let mut journal = LoopJournal::begun();
    let over = "iteration 1 of the loop of coder is not running";
    assert_eq!(journal.end(IterationOutcome::Ended), Err(over.into()));
    journal.start().unwrap();
    let open = || Err("iteration 1 of the loop of coder is still running".to_owned());
    assert_eq!(journal.start(), open());
    assert_eq!(journal.finish(LoopEnding::Stopped), open());
    let (number, outcome) = (2, IterationOutcome::Ended);
    let other = LoopOrder::EndIteration {
        number,
        outcome,
        is_unread: false,
    };
    let not_this = "iteration 2 of the loop of coder is not running";
    assert_eq!(journal.order(&other), Err(not_this.into()));
    journal.end(IterationOutcome::Ended).unwrap();
    let unknown = LoopOrder::StartIteration {
        story: None,
        task: None,
        prompts: vec![PromptId(Uuid::from_u128(0xabc0 << 96))],
    };
    let no_prompt = "the loop of coder has no waiting injected prompt 0000abc0";
    assert_eq!(journal.order(&unknown), Err(no_prompt.into()));

    journal
        .finish(LoopEnding::Complete(CompletionProof::Tool))
        .unwrap();
    let ended = || {
        Err("the loop of coder has ended: complete: the agent called session_complete".to_owned())
    };
    assert_eq!(journal.start(), ended());
    assert_eq!(journal.ask(LoopRequest::Checkpoint), ended());
    assert_eq!(journal.order(&LoopOrder::Checkpoint), ended());
    assert_eq!(journal.resume(), ended());
    assert_eq!(journal.inject(1, "x"), ended());
    assert_eq!(journal.interactive(true), ended());
    assert_eq!(journal.finish(LoopEnding::Stopped), ended());
}

#[test]
fn an_injected_prompt_has_a_minimum_and_maximum_length() {
    let mut journal = LoopJournal::begun();
    let blank = || Err("an injected prompt needs a text".to_owned());
    assert_eq!(journal.inject(1, " \n\u{200b}\u{1b}"), blank());
    let long = "x".repeat(MAX_PROMPT_BYTES + 1);
    let too_long = "an injected prompt has at most 16384 bytes; this has 16385";
    assert_eq!(journal.inject(1, &long), Err(too_long.into()));
    for n in 0..MAX_WAITING_PROMPTS {
        journal.inject(n as u128, "x").unwrap();
    }
    let many = "the loop of coder already has 100 waiting injected prompts";
    assert_eq!(journal.inject(999, "x"), Err(many.into()));
}
