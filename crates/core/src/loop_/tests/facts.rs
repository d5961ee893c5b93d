//! A loop's facts in the journal.

use super::*;

/// One fact of each kind, with and without optional fields.
pub(crate) fn every_fact() -> Vec<LoopFact> {
    let hostile = "a\n## b\u{1b}[2J\u{0}{{tasks}}".to_owned();
    let by = name("coder");
    let full = Settings {
        prd: Some("prd.json".into()),
        progress: Some("progress.txt".into()),
        model: Some("m".into()),
        command: vec!["x".into(), String::new()],
        prompt: Some(hostile.clone()),
        template: Some("t".into()),
        extra: Some("e".into()),
        sockets: vec!["s".into()],
        policy: Policy::default(),
        ..settings()
    };
    let began = |settings, goes_on| {
        LoopFact::Began(Box::new(Began {
            run: Some(Uuid::from_u128(1)),
            settings,
            number: 3,
            first: 1,
            goes_on,
        }))
    };
    let mut facts = vec![
        began(settings(), true),
        began(full, false),
        LoopFact::Checkpointed,
        LoopFact::Resumed(Resumed { by: by.clone() }),
        LoopFact::Injected(Injected {
            text: hostile.clone(),
            by: by.clone(),
        }),
    ];
    for what in [LoopRequest::Stop, LoopRequest::Checkpoint] {
        let by = by.clone();
        facts.push(LoopFact::Asked(Asked { what, by }));
    }
    for on in [true, false] {
        let by = by.clone();
        facts.push(LoopFact::Interactive(Interactive { on, by }));
    }
    for story in [None, Some(hostile.clone())] {
        facts.push(LoopFact::IterationStarted(IterationStarted {
            number: 1,
            run: story.as_ref().map(|_| Uuid::from_u128(1)),
            task: story.clone(),
            prompts: story.iter().map(|_| PromptId(Uuid::nil())).collect(),
            story,
        }));
    }
    let failures = [
        IterationFailure::Exit(1),
        IterationFailure::Signal(9),
        IterationFailure::Idle(60),
        IterationFailure::NotStarted(hostile.clone()),
        IterationFailure::CutOff,
    ];
    let proofs = [
        CompletionProof::Tool,
        CompletionProof::Stories,
        CompletionProof::Token,
    ];
    let outcomes = [
        IterationOutcome::Ended,
        IterationOutcome::Interrupted,
        IterationOutcome::Stopped,
    ];
    let outcomes = outcomes
        .into_iter()
        .chain(failures.map(IterationOutcome::Failed))
        .chain(proofs.map(IterationOutcome::Completed));
    facts.extend(
        outcomes
            .zip([true, false].into_iter().cycle())
            .map(|(outcome, is_unread)| {
                LoopFact::IterationEnded(IterationEnded {
                    number: 2,
                    outcome,
                    is_unread,
                })
            }),
    );
    let endings = [
        LoopEnding::UsedUp,
        LoopEnding::Stopped,
        LoopEnding::GaveUp(3),
        LoopEnding::Failed(hostile),
    ];
    let endings = endings.into_iter().chain(proofs.map(LoopEnding::Complete));
    facts.extend(endings.map(|how| LoopFact::Ended(LoopEnded { how })));
    facts
}

#[test]
fn a_state_is_written_and_read_back() {
    let mut journal = LoopJournal::begun();
    journal.fail();
    journal.inject(1, "one\u{1b}").unwrap();
    journal.start().unwrap();
    let check = |journal: &LoopJournal| {
        let json = serde_json::to_string(&journal.now()).unwrap();
        assert_eq!(
            serde_json::from_str::<LoopState>(&json).unwrap(),
            journal.now()
        );
    };
    check(&journal);
    journal
        .end(IterationOutcome::Completed(CompletionProof::Token))
        .unwrap();
    journal.order(&LoopOrder::Checkpoint).unwrap();
    check(&journal);
    journal.finish(LoopEnding::GaveUp(3)).unwrap();
    check(&journal);
}

#[test]
fn unfitting_facts_have_no_effect() {
    let mut journal = LoopJournal::begun();
    journal.start().unwrap();
    let before = journal.now();
    let late = IterationEnded {
        number: 9,
        outcome: IterationOutcome::Ended,
        is_unread: false,
    };
    let id = Uuid::from_u128(1);
    journal.add(id, Event::Loop(LoopFact::IterationEnded(late)));
    let by = name("coder");
    journal.add(id, Event::Loop(LoopFact::Resumed(Resumed { by })));
    let after = journal.now();
    assert_eq!((after.number, after.open), (1, before.open.clone()));
    assert_eq!(after.phase, LoopPhase::Running);
    // Facts of another agent.
    let mut state = before.clone();
    state.apply(&Fact {
        id,
        at: at(99),
        agent: name("other"),
        event: Event::Loop(LoopFact::Checkpointed),
    });
    assert_eq!(state, before);
    // Without a begin there is no loop.
    let mut loops = Loops::default();
    loops.apply(&journal.facts[1]);
    assert_eq!(loops.all().count(), 0);
}
