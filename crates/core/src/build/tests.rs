use super::policy::{Next, next};
use super::*;
use crate::fact::{Event, Fact};
use crate::id::PromptId;
use crate::mail::tests::name;
use crate::name::AgentName;
use crate::work;
use jiff::Timestamp;
use std::time::Duration;
use uuid::Uuid;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

pub(crate) fn settings() -> Settings {
    Settings {
        spec: Some("spec.md".into()),
        prd: None,
        progress: None,
        harness: "claude".into(),
        model: None,
        command: vec![],
        prompt: None,
        template: None,
        extra: None,
        cwd: "/work".into(),
        sockets: vec![],
        policy: Policy {
            iterations: 5,
            failures: 3,
            first_wait_ms: 1_000,
            longest_wait_ms: 10_000,
            idle_ms: 0,
        },
    }
}

/// One of each, with and without what may be left out.
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
    for what in [Request::Stop, Request::Checkpoint] {
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
        Failure::Exit(1),
        Failure::Signal(9),
        Failure::Idle(60),
        Failure::NotStarted(hostile.clone()),
        Failure::CutOff,
    ];
    let proofs = [Proof::Tool, Proof::Stories, Proof::Token];
    let outcomes = [Outcome::Ended, Outcome::Interrupted, Outcome::Stopped];
    let outcomes = outcomes
        .into_iter()
        .chain(failures.map(Outcome::Failed))
        .chain(proofs.map(Outcome::Completed));
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

/// A loop's journal: every order is decided on what its facts add up to.
#[derive(Default)]
struct Desk {
    facts: Vec<Fact>,
    second: i64,
}

impl Desk {
    fn begun() -> Self {
        let mut desk = Self::default();
        desk.begin().unwrap();
        desk
    }

    fn begin(&mut self) -> Result<usize, String> {
        let run = Some(Uuid::from_u128(100 + self.facts.len() as u128));
        let settings = Box::new(settings());
        self.order(&LoopOrder::Begin { run, settings })
    }

    /// How many facts it added, or why none.
    fn order(&mut self, order: &LoopOrder) -> Result<usize, String> {
        let agent = name("coder");
        let events = decide(&agent, self.state().as_ref(), order).map_err(|e| e.to_string())?;
        let count = events.len();
        for event in events {
            let id = match order {
                LoopOrder::Inject { id, .. } => id.0,
                _ => Uuid::from_u128(1_000 + self.facts.len() as u128),
            };
            self.add(id, event);
        }
        Ok(count)
    }

    fn add(&mut self, id: Uuid, event: Event) {
        self.second += 1;
        self.facts.push(Fact {
            id,
            at: at(self.second),
            agent: name("coder"),
            event,
        });
    }

    fn state(&self) -> Option<LoopState> {
        let mut loops = Loops::default();
        self.facts.iter().for_each(|fact| loops.apply(fact));
        loops.get(&name("coder")).cloned()
    }

    fn now(&self) -> LoopState {
        self.state().unwrap()
    }

    /// What comes next, right now.
    fn next(&self) -> Next {
        next(at(self.second), &self.now())
    }

    fn start(&mut self) -> Result<usize, String> {
        let waiting = self.state().map_or_else(Vec::new, |state| state.prompts);
        self.order(&LoopOrder::StartIteration {
            story: Some("US-1".into()),
            task: None,
            prompts: waiting.iter().map(|waiting| waiting.id).collect(),
        })
    }

    fn end(&mut self, outcome: Outcome) -> Result<usize, String> {
        self.end_with(outcome, false)
    }

    fn end_with(&mut self, outcome: Outcome, is_unread: bool) -> Result<usize, String> {
        let number = self.now().number;
        self.order(&LoopOrder::EndIteration {
            number,
            outcome,
            is_unread,
        })
    }

    fn iterate(&mut self, outcome: Outcome) {
        self.start().unwrap();
        self.end(outcome).unwrap();
    }

    fn fail(&mut self) {
        self.iterate(Outcome::Failed(Failure::Exit(1)));
    }

    fn ask(&mut self, what: Request) -> Result<usize, String> {
        let who = AgentName::human();
        self.order(&LoopOrder::Ask { who, what })
    }

    fn inject(&mut self, n: u128, text: &str) -> Result<usize, String> {
        self.order(&LoopOrder::Inject {
            who: AgentName::human(),
            id: PromptId(Uuid::from_u128(n)),
            text: text.into(),
        })
    }

    fn interactive(&mut self, on: bool) -> Result<usize, String> {
        let who = AgentName::human();
        self.order(&LoopOrder::Interactive { who, on })
    }

    fn resume(&mut self) -> Result<usize, String> {
        let who = AgentName::human();
        self.order(&LoopOrder::Resume { who })
    }

    fn finish(&mut self, how: LoopEnding) -> Result<usize, String> {
        self.order(&LoopOrder::End { how })
    }

    /// The agent calls `session_complete`.
    fn say_complete(&mut self) {
        let coder = name("coder");
        let event = work::complete(&coder, &coder, None, None).unwrap();
        self.add(Uuid::from_u128(5_000 + self.facts.len() as u128), event);
    }

    fn waiting(&self) -> Vec<String> {
        let prompts = self.now().prompts;
        prompts.into_iter().map(|waiting| waiting.text).collect()
    }
}

fn iterate(number: u32) -> Next {
    Next::Iterate { number }
}

/// A loop's state in one word, as clients of the original know it.
fn status(state: &LoopState) -> &'static str {
    match &state.standing {
        Standing::Running => "running",
        Standing::Paused { .. } => "checkpointed",
        Standing::Ended { how, .. } => match how {
            LoopEnding::Complete(_) => "completed",
            LoopEnding::UsedUp | LoopEnding::Stopped => "stopped",
            LoopEnding::GaveUp(_) | LoopEnding::Failed(_) => "failed",
        },
    }
}

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

#[test]
fn a_stop_waits_for_the_iteration_and_a_restart_goes_on() {
    let mut desk = Desk::begun();
    desk.start().unwrap();
    assert_eq!(desk.ask(Request::Stop), Ok(1));
    assert_eq!(desk.ask(Request::Stop), Ok(0));
    assert_eq!(desk.next(), Next::Underway { number: 1 });
    desk.end(Outcome::Ended).unwrap();
    assert_eq!(desk.next(), Next::End(LoopEnding::Stopped));
    desk.finish(LoopEnding::Stopped).unwrap();
    desk.begin().unwrap();
    assert_eq!(desk.next(), iterate(2));
    assert_eq!(desk.now().first, 1);
    // One that was ended for it counts as an iteration.
    desk.iterate(Outcome::Stopped);
    assert_eq!(desk.next(), Next::End(LoopEnding::Stopped));
    // Complete is complete.
    let mut desk = Desk::begun();
    desk.ask(Request::Stop).unwrap();
    desk.iterate(Outcome::Completed(Proof::Stories));
    let complete = LoopEnding::Complete(Proof::Stories);
    assert_eq!(desk.next(), Next::End(complete));
}

#[test]
fn a_checkpoint_pauses_after_the_iteration_until_somebody_resumes() {
    let mut desk = Desk::begun();
    desk.start().unwrap();
    assert_eq!(desk.ask(Request::Checkpoint), Ok(1));
    assert_eq!(desk.ask(Request::Checkpoint), Ok(0));
    assert_eq!(
        desk.order(&LoopOrder::Checkpoint),
        Err("iteration 1 of the loop of coder is not over".into())
    );
    desk.end(Outcome::Ended).unwrap();
    assert_eq!(desk.next(), Next::Pause);
    desk.order(&LoopOrder::Checkpoint).unwrap();
    assert_eq!(desk.next(), Next::Paused);
    assert_eq!(status(&desk.now()), "checkpointed");
    assert_eq!(desk.ask(Request::Checkpoint), Ok(0));
    assert_eq!(
        desk.start(),
        Err("the loop of coder is paused at a checkpoint".into())
    );
    // The runner may come and go meanwhile.
    desk.begin().unwrap();
    assert_eq!(desk.next(), Next::Paused);
    desk.resume().unwrap();
    assert_eq!(desk.next(), iterate(2));
    assert_eq!(desk.resume(), Err("the loop of coder is not paused".into()));
    // It can be stopped where it stands.
    desk.order(&LoopOrder::Checkpoint).unwrap();
    desk.ask(Request::Stop).unwrap();
    assert_eq!(desk.next(), Next::End(LoopEnding::Stopped));
}

#[test]
fn a_checkpoint_that_is_not_reached_is_taken_back() {
    let mut desk = Desk::begun();
    desk.start().unwrap();
    assert_eq!(desk.resume(), Err("the loop of coder is not paused".into()));
    desk.ask(Request::Checkpoint).unwrap();
    desk.resume().unwrap();
    assert_eq!(desk.next(), Next::Underway { number: 1 });
    assert_eq!(status(&desk.now()), "running");
    desk.end(Outcome::Ended).unwrap();
    assert_eq!(desk.next(), iterate(2));
}

#[test]
fn in_interactive_mode_nothing_goes_on_by_itself() {
    let mut desk = Desk::begun();
    desk.start().unwrap();
    assert_eq!(desk.interactive(true), Ok(1));
    assert_eq!(desk.interactive(true), Ok(0));
    desk.say_complete();
    desk.end(Outcome::Ended).unwrap();
    assert_eq!(desk.next(), Next::Hold);
    desk.interactive(false).unwrap();
    let complete = LoopEnding::Complete(Proof::Tool);
    assert_eq!(desk.next(), Next::End(complete));
    desk.interactive(true).unwrap();
    desk.ask(Request::Stop).unwrap();
    assert_eq!(desk.next(), Next::End(LoopEnding::Stopped));
    // Who was in it is gone when it starts again.
    desk.begin().unwrap();
    assert!(!desk.now().is_interactive);
}

#[test]
fn injected_prompts_are_given_in_order_and_once() {
    let mut desk = Desk::begun();
    desk.inject(1, "one").unwrap();
    desk.inject(2, " two\n").unwrap();
    assert_eq!(desk.waiting(), ["one", "two"]);
    desk.start().unwrap();
    desk.inject(3, "three").unwrap();
    // Until the iteration has ended they may be lost with it.
    assert_eq!(desk.waiting(), ["one", "two", "three"]);
    desk.end(Outcome::Failed(Failure::Exit(1))).unwrap();
    assert_eq!(desk.waiting(), ["one", "two", "three"]);
    desk.start().unwrap();
    desk.begin().unwrap();
    assert_eq!(desk.waiting(), ["one", "two", "three"], "cut off");
    let first = LoopOrder::StartIteration {
        story: None,
        task: None,
        prompts: [1, 2].map(|n| PromptId(Uuid::from_u128(n))).to_vec(),
    };
    desk.order(&first).unwrap();
    desk.end(Outcome::Ended).unwrap();
    assert_eq!(desk.waiting(), ["three"]);
    // What no prompt has had is not lost with the loop either.
    desk.iterate(Outcome::Ended);
    desk.inject(4, "four").unwrap();
    desk.finish(LoopEnding::UsedUp).unwrap();
    desk.begin().unwrap();
    assert_eq!(desk.waiting(), ["four"]);
    desk.iterate(Outcome::Ended);
    assert_eq!(desk.waiting(), [""; 0]);
}

#[test]
fn injected_prompts_stay_until_an_iteration_that_had_them_has_ended_by_itself() {
    let mut desk = Desk::begun();
    desk.inject(1, "one").unwrap();
    let check = |desk: &mut Desk, outcome: Outcome, is_unread, is_kept| {
        desk.start().unwrap();
        desk.end_with(outcome.clone(), is_unread).unwrap();
        assert_eq!(desk.waiting().len(), usize::from(is_kept), "{outcome:?}");
    };
    for is_unread in [true, false] {
        check(&mut desk, Outcome::Interrupted, is_unread, true);
        check(&mut desk, Outcome::Stopped, is_unread, true);
        let failed = Outcome::Failed(Failure::Exit(1));
        check(&mut desk, failed, is_unread, true);
    }
    check(&mut desk, Outcome::Ended, true, true);
    check(&mut desk, Outcome::Completed(Proof::Token), true, true);
    check(&mut desk, Outcome::Ended, false, false);
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
fn what_a_loop_is_can_be_written_down() {
    let mut desk = Desk::begun();
    desk.fail();
    desk.inject(1, "one\u{1b}").unwrap();
    desk.start().unwrap();
    let check = |desk: &Desk| {
        let json = serde_json::to_string(&desk.now()).unwrap();
        assert_eq!(
            serde_json::from_str::<LoopState>(&json).unwrap(),
            desk.now()
        );
    };
    check(&desk);
    desk.end(Outcome::Completed(Proof::Token)).unwrap();
    desk.order(&LoopOrder::Checkpoint).unwrap();
    check(&desk);
    desk.finish(LoopEnding::GaveUp(3)).unwrap();
    check(&desk);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let mut none = Desk::default();
    let no_loop = || Err("coder has no loop".to_owned());
    assert_eq!(none.start(), no_loop());
    assert_eq!(none.ask(Request::Stop), no_loop());
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

    let mut desk = Desk::begun();
    let over = "iteration 1 of the loop of coder is not running";
    assert_eq!(desk.end(Outcome::Ended), Err(over.into()));
    desk.start().unwrap();
    let open = || Err("iteration 1 of the loop of coder is not over".to_owned());
    assert_eq!(desk.start(), open());
    assert_eq!(desk.finish(LoopEnding::Stopped), open());
    let (number, outcome) = (2, Outcome::Ended);
    let other = LoopOrder::EndIteration {
        number,
        outcome,
        is_unread: false,
    };
    let not_this = "iteration 2 of the loop of coder is not running";
    assert_eq!(desk.order(&other), Err(not_this.into()));
    desk.end(Outcome::Ended).unwrap();
    let unknown = LoopOrder::StartIteration {
        story: None,
        task: None,
        prompts: vec![PromptId(Uuid::from_u128(0xabc0 << 96))],
    };
    let no_prompt = "no injected prompt 0000abc0 waits in the loop of coder";
    assert_eq!(desk.order(&unknown), Err(no_prompt.into()));

    desk.finish(LoopEnding::Complete(Proof::Tool)).unwrap();
    let ended = || {
        Err("the loop of coder has ended: complete: the agent called session_complete".to_owned())
    };
    assert_eq!(desk.start(), ended());
    assert_eq!(desk.ask(Request::Checkpoint), ended());
    assert_eq!(desk.order(&LoopOrder::Checkpoint), ended());
    assert_eq!(desk.resume(), ended());
    assert_eq!(desk.inject(1, "x"), ended());
    assert_eq!(desk.interactive(true), ended());
    assert_eq!(desk.finish(LoopEnding::Stopped), ended());
}

#[test]
fn an_injected_prompt_is_a_text_of_some_length() {
    let mut desk = Desk::begun();
    let blank = || Err("an injected prompt needs a text".to_owned());
    assert_eq!(desk.inject(1, " \n\u{200b}\u{1b}"), blank());
    let long = "x".repeat(PROMPT_LIMIT + 1);
    let too_long = "an injected prompt has at most 16384 bytes; this has 16385";
    assert_eq!(desk.inject(1, &long), Err(too_long.into()));
    for n in 0..MOST_PROMPTS {
        desk.inject(n as u128, "x").unwrap();
    }
    let many = "100 injected prompts wait in the loop of coder already";
    assert_eq!(desk.inject(999, "x"), Err(many.into()));
}

#[test]
fn facts_that_do_not_fit_change_nothing_that_matters() {
    let mut desk = Desk::begun();
    desk.start().unwrap();
    let before = desk.now();
    let late = IterationEnded {
        number: 9,
        outcome: Outcome::Ended,
        is_unread: false,
    };
    let id = Uuid::from_u128(1);
    desk.add(id, Event::Loop(LoopFact::IterationEnded(late)));
    let by = name("coder");
    desk.add(id, Event::Loop(LoopFact::Resumed(Resumed { by })));
    let after = desk.now();
    assert_eq!((after.number, after.open), (1, before.open.clone()));
    assert_eq!(after.standing, Standing::Running);
    // Another agent's facts are another's.
    let mut state = before.clone();
    state.apply(&Fact {
        id,
        at: at(99),
        agent: name("other"),
        event: Event::Loop(LoopFact::Checkpointed),
    });
    assert_eq!(state, before);
    // Without a begin there is nothing to tell.
    let mut loops = Loops::default();
    loops.apply(&desk.facts[1]);
    assert_eq!(loops.all().count(), 0);
}

proptest::proptest! {
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
            proptest::prop_assert!(state.number >= number && state.first <= state.number);
            proptest::prop_assert!(state.prompts.is_sorted_by_key(|waiting| waiting.at));
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
            proptest::prop_assert!(allowed);
        }
    }
}

fn decided(state: &LoopState, order: &LoopOrder) -> bool {
    decide(&state.agent, Some(state), order).is_ok()
}
