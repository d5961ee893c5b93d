//! Loops in a journal: their state follows from their facts alone.

use posthaste_core::loop_::{
    CompletionProof, IterationFailure, IterationOutcome, LoopEnding, LoopOrder, LoopRequest,
    NextStep, Policy, Settings, policy,
};
use posthaste_core::{AgentName, LoopState, PromptId};
use posthaste_lab::{TempHome, assert_intact, assert_views_agree, at, name, records};
use posthaste_store::operation::{ApplyLoopOrder, LoopChange, RecordCompletion};
use posthaste_store::{Decided, Journal, Patience, transfer};
use proptest::prelude::*;
use uuid::Uuid;

fn settings() -> Box<Settings> {
    Box::new(Settings {
        spec: Some("spec.md".to_owned()),
        prd: Some("prd.json".to_owned()),
        progress: None,
        harness: "generic".to_owned(),
        model: None,
        command: vec!["agent".to_owned()],
        prompt: None,
        template: None,
        extra: None,
        cwd: "/".to_owned(),
        sockets: vec![],
        policy: Policy::default(),
    })
}

fn begin() -> LoopOrder {
    LoopOrder::Begin {
        run: Some(Uuid::from_u128(1)),
        settings: settings(),
    }
}

fn start(prompts: &[u128]) -> LoopOrder {
    LoopOrder::StartIteration {
        story: Some("US-1".to_owned()),
        task: None,
        prompts: prompts.iter().map(|n| prompt(*n)).collect(),
    }
}

fn end(number: u32, outcome: IterationOutcome) -> LoopOrder {
    LoopOrder::EndIteration {
        number,
        outcome,
        is_unread: false,
    }
}

fn inject(n: u128, text: &str) -> LoopOrder {
    LoopOrder::Inject {
        who: AgentName::human(),
        id: prompt(n),
        text: text.to_owned(),
    }
}

fn prompt(n: u128) -> PromptId {
    PromptId(Uuid::from_u128((0xfeed << 112) | n))
}

fn order(journal: &mut Journal, agent: &str, order: LoopOrder) -> Decided<LoopChange> {
    let job = ApplyLoopOrder {
        now: at(0),
        agent: name(agent),
        order,
    };
    journal.commit(job).unwrap()
}

/// Apply an order, and check that the result equals the state in the journal.
fn done(journal: &mut Journal, what: LoopOrder) -> LoopState {
    let LoopChange { state, .. } = order(journal, "coder", what).unwrap();
    assert_eq!(state_of(journal), Some(state.clone()));
    state
}

fn state_of(journal: &mut Journal) -> Option<LoopState> {
    journal.loop_state(&name("coder")).unwrap()
}

fn complete(journal: &mut Journal, agent: &str) {
    let job = RecordCompletion {
        now: at(0),
        who: name(agent),
        agent: name(agent),
        iteration: None,
    };
    journal.commit(job).unwrap().unwrap();
}

#[test]
fn a_runner_killed_at_any_point_continues_its_loop() {
    let work = || {
        vec![
            begin(),
            inject(1, "first"),
            start(&[1]),
            end(1, IterationOutcome::Ended),
            start(&[]),
            inject(2, "second"),
            end(2, IterationOutcome::Ended),
            start(&[2]),
            end(3, IterationOutcome::Failed(IterationFailure::Exit(1))),
            start(&[2]),
            end(3, IterationOutcome::Completed(CompletionProof::Stories)),
        ]
    };
    // For each number of facts: the next run of the iteration, and the prompts that wait for it.
    let want: [(u32, &[&str]); 12] = [
        (1, &[]),
        (1, &[]),
        (1, &["first"]),
        (1, &["first"]),
        (2, &[]),
        (2, &[]),
        (2, &["second"]),
        (3, &["second"]),
        (3, &["second"]),
        (3, &["second"]),
        (3, &["second"]),
        (4, &[]),
    ];
    for (count, (number, waiting)) in want.into_iter().enumerate() {
        let home = TempHome::new();
        let mut journal = home.journal();
        let mut before = None;
        for what in work().into_iter().take(count) {
            before = Some(done(&mut journal, what));
        }
        drop(journal);
        // Another process has only the journal.
        let mut journal = home.journal();
        assert_eq!(state_of(&mut journal), before);
        let was_open = before.is_some_and(|state| state.open.is_some());
        let facts = records(&journal).len();
        let state = done(&mut journal, begin());
        let kinds: Vec<String> = records(&journal)
            .into_iter()
            .skip(facts)
            .map(|record| record.kind)
            .collect();
        if was_open {
            assert_eq!(kinds, ["iteration_ended", "loop_began"], "{count}");
            let last = state.last.as_ref().unwrap();
            assert_eq!(
                last.outcome,
                IterationOutcome::Failed(IterationFailure::CutOff)
            );
            assert_eq!(last.number, number);
        } else {
            assert_eq!(kinds, ["loop_began"], "{count}");
        }
        assert_eq!(
            policy::next(at(0), &state),
            NextStep::Iterate { number },
            "{count}"
        );
        let texts: Vec<_> = state.prompts.iter().map(|p| p.text.as_str()).collect();
        assert_eq!(texts, waiting, "{count}");
        assert_views_agree(&mut journal, &[at(0)]);
        assert_intact(&mut journal);
    }
}

#[test]
fn a_denied_or_repeated_order_changes_nothing() {
    let home = TempHome::new();
    let mut journal = home.journal();
    let refused = order(&mut journal, "coder", LoopOrder::Checkpoint).unwrap_err();
    assert_eq!(refused.to_string(), "coder has no loop");
    assert_eq!(state_of(&mut journal), None);
    assert_eq!(journal.loops().unwrap(), []);
    done(&mut journal, begin());
    let who = AgentName::human();
    let ask = LoopOrder::Ask {
        who: who.clone(),
        what: LoopRequest::Stop,
    };
    done(&mut journal, ask.clone());
    let facts = records(&journal);
    let again = order(&mut journal, "coder", ask).unwrap();
    assert!(!again.is_changed, "{again:?}");
    let refused = order(&mut journal, "coder", LoopOrder::Resume { who }).unwrap_err();
    assert_eq!(refused.to_string(), "the loop of coder is not paused");
    let refused = order(&mut journal, "other", start(&[])).unwrap_err();
    assert_eq!(refused.to_string(), "other has no loop");
    assert_eq!(records(&journal), facts);
}

#[test]
fn a_completion_completes_the_loop() {
    let home = TempHome::new();
    let mut journal = home.journal();
    // A completion of an agent without a loop creates none.
    complete(&mut journal, "coder");
    assert_eq!(state_of(&mut journal), None);
    done(&mut journal, begin());
    assert_eq!(state_of(&mut journal).unwrap().complete, None);
    done(&mut journal, start(&[]));
    complete(&mut journal, "other");
    assert_eq!(state_of(&mut journal).unwrap().complete, None);
    complete(&mut journal, "coder");
    let state = state_of(&mut journal).unwrap();
    assert_eq!(state.complete, Some(CompletionProof::Tool));
    let state = done(&mut journal, end(1, IterationOutcome::Ended));
    let how = LoopEnding::Complete(CompletionProof::Tool);
    assert_eq!(policy::next(at(0), &state), NextStep::End(how.clone()));
    done(&mut journal, LoopOrder::End { how });
    // It does not end the next loop.
    let state = done(&mut journal, begin());
    assert_eq!(policy::next(at(0), &state), NextStep::Iterate { number: 2 });
    assert_views_agree(&mut journal, &[at(0)]);
}

#[test]
fn loops_are_listed_exported_and_imported() {
    let home = TempHome::new();
    let mut journal = home.journal();
    for agent in ["web", "api"] {
        order(&mut journal, agent, begin()).unwrap();
        order(&mut journal, agent, start(&[])).unwrap();
    }
    order(&mut journal, "web", end(1, IterationOutcome::Ended)).unwrap();
    order(&mut journal, "web", inject(7, "hi\u{1b}[2J\n## x")).unwrap();
    let listed = journal.loops().unwrap();
    let names: Vec<_> = listed.iter().map(|state| state.agent.as_str()).collect();
    assert_eq!(names, ["api", "web"]);
    let all = records(&journal);
    let lines = |skip: usize| -> String {
        let rest = all.iter().skip(skip);
        rest.map(|record| transfer::to_line(record) + "\n")
            .collect()
    };
    let elsewhere = TempHome::new();
    let mut copy = elsewhere.journal();
    transfer::import(&mut copy, &mut lines(0).as_bytes(), |_| {}).unwrap();
    assert_eq!(copy.loops().unwrap(), listed);
    assert_views_agree(&mut copy, &[at(9)]);
}

#[test]
fn unused_prompts_are_kept_for_the_next_loop() {
    let home = TempHome::new();
    let mut journal = home.journal();
    done(&mut journal, begin());
    done(&mut journal, inject(1, "too late"));
    let how = LoopEnding::UsedUp;
    done(&mut journal, LoopOrder::End { how });
    let state = done(&mut journal, begin());
    assert_eq!(state.prompts[0].text, "too late");
    assert_eq!(state.prompts[0].id, prompt(1));
    assert_views_agree(&mut journal, &[at(0)]);
}

#[test]
fn a_damaged_loop_in_the_views_blocks_nothing_and_is_rebuilt() {
    let home = TempHome::new();
    let mut journal = home.journal();
    done(&mut journal, begin());
    let before = done(&mut journal, start(&[]));
    let version: u32 = journal.examine().unwrap().view_versions[0];
    let conn = rusqlite::Connection::open(home.home().journal()).unwrap();
    conn.execute_batch(&format!("UPDATE v{version}_loops SET state = '{{'"))
        .unwrap();
    drop(conn);
    assert_eq!(state_of(&mut journal), None);
    complete(&mut journal, "coder");
    journal.rebuild_views().unwrap();
    let after = state_of(&mut journal).unwrap();
    assert_eq!(after.open, before.open);
    assert_eq!(after.complete, Some(CompletionProof::Tool));
    assert_views_agree(&mut journal, &[at(0)]);
}

/// Any order of a runner or a person, allowed or not.
fn any_order() -> impl Strategy<Value = LoopOrder> {
    let human = AgentName::human;
    let outcome = proptest::sample::select(vec![
        IterationOutcome::Ended,
        IterationOutcome::Failed(IterationFailure::Exit(1)),
        IterationOutcome::Completed(CompletionProof::Token),
    ]);
    let how = proptest::sample::select(vec![LoopEnding::UsedUp, LoopEnding::Stopped]);
    prop_oneof![
        2 => Just(begin()),
        3 => proptest::collection::vec(0..8_u128, 0..2).prop_map(|prompts| start(&prompts)),
        3 => (1..4_u32, outcome).prop_map(|(number, outcome)| end(number, outcome)),
        1 => Just(LoopOrder::Ask { who: human(), what: LoopRequest::Checkpoint }),
        1 => Just(LoopOrder::Checkpoint),
        1 => Just(LoopOrder::Resume { who: human() }),
        1 => any::<bool>().prop_map(move |on| LoopOrder::Interactive { who: human(), on }),
        1 => how.prop_map(|how| LoopOrder::End { how }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    /// `None` stands for a completion of the agent.
    #[test]
    fn the_view_of_loops_equals_a_replay(
        acts in proptest::collection::vec((0..2_usize, proptest::option::weighted(0.8, any_order())), 1..40),
    ) {
        let home = TempHome::new();
        let mut journal = home.journal();
        for (n, (who, act)) in (0_u128..).zip(acts) {
            let agent = ["api", "web"][who];
            match act {
                Some(what) => drop(order(&mut journal, agent, what)),
                None if n % 2 == 0 => complete(&mut journal, agent),
                None => drop(order(&mut journal, agent, inject(n, "text"))),
            }
        }
        assert_views_agree(&mut journal, &[at(0)]);
        let before = journal.loops().unwrap();
        drop(journal);
        // The views of another version are derived from the start.
        let mut other = Journal::open_with_views(home.home(), Patience::DEFAULT, 99).unwrap();
        prop_assert_eq!(&other.loops().unwrap(), &before);
        drop(other);
        let mut journal = home.journal();
        prop_assert_eq!(&journal.loops().unwrap(), &before);
        journal.rebuild_views().unwrap();
        prop_assert_eq!(&journal.loops().unwrap(), &before);
    }
}
