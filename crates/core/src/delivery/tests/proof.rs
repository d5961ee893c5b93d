//! Proofs by the agent's hooks and transcript.

use super::screen::{asks, beginning, empty, holds, looked, manifest, on, resting, seen, wrote};
use super::*;
use super::{Call, Line, distinct_ids, play, raw, rule};
use crate::activity::tests::ms;
use crate::delivery::conditions::proof::MessageHeader;
use crate::harness::hook::tests::like_claude;
use crate::harness::{Proof, Sighting, Turn, transcript};
use crate::mail::tests::{message, with_steps};
use crate::priority::Priority;
use crate::receipt::Proven;
use serde_json::json;

const PROMPT: &str = "UserPromptSubmit";

/// Return a message whose short id is unique.
fn mail(n: u128, from: &str) -> MessageState {
    with_steps(&message(n << 96, from, "bob"), &[])
}

fn recorded(ids: &[u128]) -> Call<'static> {
    Call::Recorded(distinct_ids(ids))
}

fn heads(all: &[(&str, u128)]) -> String {
    let head = |(from, n): &(&str, u128)| format!("[ph message from: {from} id: {n:08x}] hi");
    all.iter().map(head).collect::<Vec<_>>().join("\n")
}

fn hook(event: &str, payload: &serde_json::Value) -> Input {
    hook_called(like_claude().read(event, &payload.to_string()))
}

fn hooked<'a>(at: u64, event: &str, want: &'a str) -> Line<'a> {
    (
        at,
        Call::On(hook(event, &json!({"tool_name": "Bash"}))),
        want,
    )
}

fn submits<'a>(at: u64, text: &str, want: &'a str) -> Line<'a> {
    (at, Call::On(hook(PROMPT, &json!({"prompt": text}))), want)
}

fn with(change: impl FnOnce(&mut crate::harness::Manifest)) -> Stage {
    let mut manifest = manifest();
    manifest.hook = like_claude();
    manifest.hook.ready.clear();
    manifest.proof = vec![Proof::Hook];
    change(&mut manifest);
    let mut delivery = resting(manifest);
    delivery.on(ms(2_500), Input::PasteMode(true));
    delivery
}

/// Play an offer up to Enter, which is pressed at 3,053.
fn entered(delivery: Stage, pending: &[MessageState]) -> Stage {
    play(
        delivery,
        &[
            (3_000, Call::Act(pending), "offer 1"),
            (3_001, recorded(&[1]), "look"),
            looked(3_001, empty(), "write 1"),
            on(3_002, wrote(), ""),
            seen(3_010, holds("text"), ""),
            tick(3_052, "look"),
            looked(3_053, holds("text"), "enter"),
        ],
    )
}

fn evidence(delivery: &Delivery, now: u64) -> String {
    let judged = delivery.activity();
    format!("{}: {}", judged.activity, judged.told(ms(now)))
}

#[test]
fn a_hook_that_shows_the_header_proves_it() {
    let pending = [mail(1, "alice")];
    let ours = heads(&[("alice", 1)]);
    // Before the text has left the box, which is then not waited for.
    let delivery = play(
        entered(with(|_| ()), &pending),
        &[
            on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
            submits(3_060, &ours, "offered 1; accepted 1"),
            seen(3_070, holds("text"), ""),
            submits(3_300, &ours, ""),
        ],
    );
    assert_eq!(
        evidence(&delivery, 3_400),
        "working: hook UserPromptSubmit just now"
    );
    // Afterwards.
    play(
        entered(with(|_| ()), &pending),
        &[
            on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
            seen(3_060, empty(), "offered 1"),
            submits(9_000, &ours, "accepted 1"),
        ],
    );
    // Before the result of Enter.
    play(
        entered(with(|_| ()), &pending),
        &[
            submits(3_054, &ours, ""),
            on(
                3_055,
                Input::EnterPressed(KeyboardUser::Turn),
                "offered 1; accepted 1",
            ),
        ],
    );
    let mut delivery = entered(with(|_| ()), &pending);
    delivery.on(ms(3_054), Input::EnterPressed(KeyboardUser::Turn));
    let effects = delivery.on(ms(3_060), hook(PROMPT, &json!({"prompt": ours})));
    let [
        (
            _,
            OfferReport::Offered {
                evidence: offered, ..
            },
        ),
        (_, OfferReport::Accepted { evidence, .. }),
    ] = receipts(&effects)[..]
    else {
        panic!("{effects:?}");
    };
    assert!(offered.ends_with("; its hook shows that it was submitted"));
    assert_eq!(evidence, "its hook UserPromptSubmit holds the id");
}

#[test]
fn no_other_text_or_event_proves_a_message() {
    let pending = [mail(1, "alice")];
    let check = |events: &[Input]| {
        let mut delivery = play(
            entered(with(|_| ()), &pending),
            &[
                on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
                seen(3_060, empty(), "offered 1"),
            ],
        );
        for event in events {
            let effects = delivery.on(ms(4_000), event.clone());
            let shows = summary(&delivery, &effects);
            assert!(!shows.contains("accepted"), "{event:?}: {shows}");
        }
    };
    let prompt = |text: &str| hook(PROMPT, &json!({"prompt": text, "session_id": "a"}));
    let ours = heads(&[("alice", 1)]);
    check(&[prompt(&heads(&[("mallory", 1)]))]);
    check(&[prompt(&heads(&[("alice", 2)]))]);
    check(&[prompt("00000001")]);
    check(&[prompt(&format!("read this: {ours}"))]);
    check(&[prompt(&format!("    {ours}"))]);
    // Not the submitted text.
    check(&[hook("Stop", &json!({"prompt": ours}))]);
    check(&[hook(PROMPT, &json!({"text": ours}))]);
    check(&[hook(PROMPT, &json!({"prompt": [ours]}))]);
    // The prompt of another session of the agent.
    let other = hook(PROMPT, &json!({"prompt": ours, "session_id": "b"}));
    check(&[prompt("mine"), other]);
    // The harness does not accept hooks as a proof.
    let delivery = entered(with(|manifest| manifest.proof.clear()), &pending);
    play(
        delivery,
        &[
            on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
            submits(3_060, &ours, ""),
            seen(3_070, empty(), "offered 1"),
        ],
    );
}

#[test]
fn a_turn_is_proven_message_by_message() {
    let pending = [mail(1, "alice"), mail(2, "carol")];
    let delivery = play(
        with(|_| ()),
        &[
            (3_000, Call::Act(&pending), "offer 1,2"),
            (3_001, recorded(&[1, 2]), "look"),
            looked(3_001, empty(), "write 1,2"),
            on(3_002, wrote(), ""),
            tick(3_052, "look"),
            looked(3_053, holds("text"), "enter"),
            on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
            seen(3_060, empty(), "offered 1,2"),
        ],
    );
    let swapped = heads(&[("carol", 1), ("carol", 2)]);
    play(
        delivery,
        &[
            submits(3_100, &swapped, "accepted 2; offered 1"),
            submits(3_300, &heads(&[("alice", 1), ("carol", 2)]), "accepted 1"),
        ],
    );
    // A pending message that was never written is not proven.
    let waits = [mail(3, "alice")];
    let mut delivery = with(|_| ());
    delivery.on(ms(2_600), hook("PermissionRequest", &json!({})));
    assert_eq!(delivery.act(ms(3_000), &waits), []);
    play(delivery, &[submits(3_100, &heads(&[("alice", 3)]), "")]);
}

#[test]
fn a_header_that_fits_two_messages_proves_neither() {
    let twin = with_steps(&message((1 << 96) + 1, "alice", "bob"), &[]);
    let pending = [mail(1, "alice"), twin];
    let ids = pending.iter().map(|mail| mail.message.id).collect();
    let mut delivery = with(|_| ());
    delivery.act(ms(3_000), &pending);
    delivery.recorded(ms(3_001), ids);
    delivery.on(ms(3_002), wrote());
    let prompt = hook(PROMPT, &json!({"prompt": heads(&[("alice", 1)])}));
    let actions = delivery.on(ms(3_003), prompt);
    assert_eq!(summary(&delivery, &actions), "");
}

#[test]
fn enter_is_pressed_again_only_without_proof() {
    let pending = [mail(1, "alice")];
    let swallowed = entered(with(|_| ()), &pending);
    play(
        swallowed,
        &[
            on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
            tick(4_054, "look"),
            looked(4_055, holds("text"), "enter"),
            on(4_056, Input::EnterPressed(KeyboardUser::Turn), ""),
            submits(4_060, &heads(&[("alice", 1)]), "offered 1; accepted 1"),
        ],
    );
    let late = entered(with(|_| ()), &pending);
    play(
        late,
        &[
            on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
            tick(4_054, "look"),
            submits(4_055, &heads(&[("alice", 1)]), "offered 1; accepted 1"),
            looked(4_056, holds("text"), ""),
        ],
    );
}

#[test]
fn a_text_that_a_person_submits_is_accepted() {
    let pending = [mail(1, "alice")];
    let delivery = play(
        with(|_| ()),
        &[
            (3_000, Call::Act(&pending), "offer 1"),
            (3_001, recorded(&[1]), "look"),
            looked(3_001, empty(), "write 1"),
            on(3_002, wrote(), ""),
            hooked(3_020, "PermissionRequest", ""),
            // A person approves, and presses Enter.
            submits(5_000, &heads(&[("alice", 1)]), "offered 1; accepted 1"),
            tick(5_100, ""),
        ],
    );
    assert!(!delivery.is_writing());
}

/// A question may have swallowed the end of the text.
#[test]
fn a_text_that_a_person_submits_proves_only_the_shown_messages() {
    let pending = [mail(1, "alice"), mail(2, "carol")];
    let written = [
        (3_000, Call::Act(&pending), "offer 1,2"),
        (3_001, recorded(&[1, 2]), "look"),
        looked(3_001, empty(), "write 1,2"),
        on(3_002, wrote(), ""),
        hooked(3_020, "PermissionRequest", ""),
    ];
    let delivery = play(with(|_| ()), &written);
    let half = heads(&[("alice", 1)]);
    let told = "offered 1; accepted 1; uncertain 2";
    play(delivery, &[submits(5_000, &half, told)]);
}

#[test]
fn hooks_decide_the_activity() {
    let delivery = with(|_| ());
    let check = |delivery: &Delivery, now: u64, want: &str, doing: Option<Turn>| {
        assert_eq!(evidence(delivery, now), want);
        assert_eq!(delivery.doing(), doing, "{want}");
    };
    check(
        &delivery,
        2_600,
        "idle: the pattern that shows that it is ready appeared",
        None,
    );
    let delivery = play(delivery, &[hooked(3_000, "PreToolUse", "")]);
    check(
        &delivery,
        9_000,
        "working: hook PreToolUse 6 s ago",
        Some(Turn::Tool),
    );
    // Neither silence nor output changes that.
    let delivery = play(
        delivery,
        &[
            on(4_000, Input::OutputSeen, ""),
            tick(9_000, ""),
            hooked(9_500, "PostToolUse", ""),
        ],
    );
    let working = Some(Turn::Working);
    check(
        &delivery,
        9_600,
        "working: hook PostToolUse just now",
        working,
    );
    let delivery = play(
        delivery,
        &[
            hooked(10_000, "Stop", ""),
            hooked(10_040, "PostToolUse", ""),
            on(10_050, Input::OutputSeen, ""),
        ],
    );
    check(
        &delivery,
        13_000,
        "idle: hook Stop 3 s ago",
        Some(Turn::Idle),
    );
    // After the interrupt key no hook comes. The screen and silence decide.
    let urgent = {
        let mut urgent = message(1 << 96, "alice", "bob");
        urgent.envelope.priority = Priority::Interrupt;
        [with_steps(&urgent, &[])]
    };
    let delivery = play(
        delivery,
        &[
            submits(14_000, "go", ""),
            (15_000, Call::Act(&urgent), "look"),
            looked(15_000, empty(), "key [3]"),
        ],
    );
    check(
        &delivery,
        15_100,
        "working: the interrupt key was pressed",
        None,
    );
    play(delivery, &[tick(17_000, "offer 1")]);
}

#[test]
fn a_turn_that_is_over_before_its_receipt_is_over() {
    let pending = [mail(1, "alice")];
    let delivery = play(
        entered(with(|_| ()), &pending),
        &[
            on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
            submits(3_060, "cut short by the agent", ""),
            hooked(3_200, "Stop", ""),
            seen(3_210, empty(), "offered 1"),
        ],
    );
    assert_eq!(evidence(&delivery, 3_300), "idle: hook Stop just now");
}

#[test]
fn a_question_by_hook_holds_mail() {
    let pending = [mail(1, "alice")];
    let held = |delivery: &Delivery, now: u64| delivery.hold(ms(now), &pending[0], &pending);
    let asked = || play(with(|_| ()), &[hooked(3_000, "PermissionRequest", "")]);
    let delivery = asked();
    assert_eq!(
        delivery.activity().activity,
        Activity::Blocked("Bash".to_owned())
    );
    let hold = held(&delivery, 6_000).unwrap();
    assert_eq!(hold.rule, "blocked");
    assert_eq!(hold.reason, "the program waits for an answer (Bash)");
    assert_eq!(hold.evidence, "hook PermissionRequest 3 s ago");
    let free = |delivery: Stage, lines: &[Line<'_>]| rule(held(&play(delivery, lines), 6_000));
    // The screen shows the same question. Once it has left the screen, it is answered.
    let shown = play(asked(), &[seen(3_200, asks("permission: rm"), "")]);
    assert_eq!(
        shown.activity().activity,
        Activity::Blocked("Bash".to_owned())
    );
    assert_eq!(shown.activity().since, ms(3_000));
    let gone = seen(5_000, empty(), "");
    let settled = tick(5_100, "");
    assert_eq!(free(shown.clone(), &[gone, settled]), "-");
    // Another question follows, which the answer to the first has not answered.
    let next = play(shown, &[seen(5_000, asks("permission: mv"), "")]);
    let asks_next = Activity::Blocked("permission: mv".to_owned());
    assert_eq!(next.activity().activity, asks_next);
    // A screen that has never shown the question does not end it.
    let blind = seen(5_000, holds("x"), "");
    let empty = seen(5_100, empty(), "");
    assert_eq!(free(asked(), &[blind, empty]), "blocked");
    for (event, want) in [
        ("PostToolUse", "working"),
        ("Stop", "-"),
        (PROMPT, "working"),
        ("PreToolUse", "blocked"),
        ("PermissionRequest", "blocked"),
    ] {
        assert_eq!(free(asked(), &[hooked(5_000, event, "")]), want, "{event}");
    }
    // The hook of an earlier step comes late.
    assert_eq!(
        free(asked(), &[hooked(3_040, "PostToolUse", "")]),
        "blocked"
    );
}

/// A hook may report a question a second before it is drawn. Until then the text would go into the
/// box, and Enter to the question.
#[test]
fn an_answer_waits_until_its_question_is_shown() {
    let mut answer = raw(1);
    answer.message.created_at = ms(3_500).wall;
    let pending = [answer];
    let delivery = play(
        with(|_| ()),
        &[
            hooked(3_000, "PermissionRequest", ""),
            (3_501, Call::Act(&pending), ""),
        ],
    );
    assert!(matches!(
        delivery.answerable(ms(3_502)),
        Answerable::NotYet(_)
    ));
    let hold = delivery.hold(ms(3_502), &pending[0], &pending).unwrap();
    assert_eq!(
        (hold.rule, hold.reason.as_str()),
        (
            "blocked",
            "the program waits for an answer (Bash), and does not show its question yet"
        )
    );
    let told = Sighting {
        announced: true,
        ..asks("its status note says: state=blocked")
    };
    let shown = [
        seen(3_600, told.clone(), ""),
        (3_601, Call::Act(&pending), ""),
        seen(4_300, asks("permission: rm"), ""),
        (4_301, Call::Act(&pending), "offer 1"),
    ];
    play(delivery, &shown);
    // So it does where no hook tells of it, but its status note.
    let noted = [
        seen(3_400, told, ""),
        (3_601, Call::Act(&pending), ""),
        seen(4_300, asks("permission: rm"), ""),
        (4_301, Call::Act(&pending), "offer 1"),
    ];
    let delivery = play(with(|_| ()), &noted);
    let asked = Activity::Blocked("permission: rm".to_owned());
    assert_eq!(delivery.activity().activity, asked);
    assert_eq!(delivery.activity().since, ms(3_400));
    // If the harness has no dialog patterns, the hook's report is enough.
    let blind = with(|manifest| manifest.dialogs.clear());
    let asked = [
        hooked(3_000, "PermissionRequest", ""),
        (3_501, Call::Act(&pending), "offer 1"),
    ];
    play(blind, &asked);
}

#[test]
fn a_hook_shows_that_the_agent_is_ready() {
    let mut manifest = crate::harness::Manifest::generic();
    manifest.hook = like_claude();
    let mut delivery = beginning(manifest);
    delivery.on(ms(100), Input::OutputSeen);
    delivery.tick(ms(9_000));
    assert!(delivery.is_starting());
    delivery.on(ms(9_100), hook("SessionStart", &json!({"session_id": "a"})));
    assert!(!delivery.is_starting());
}

/// Build the event of a transcript with texts that the model was given, and texts that were taken
/// back.
fn transcript_shows(given: &str, withdrawn: &str) -> Input {
    transcript_read(transcript::Shown {
        given: given.to_owned(),
        withdrawn: withdrawn.to_owned(),
    })
}

fn by_transcript() -> Stage {
    with(|manifest| manifest.proof = vec![Proof::Transcript])
}

/// Name the transcript, as every hook of Claude Code does.
fn names_transcript(delivery: Stage) -> Stage {
    let start = hook(
        "SessionStart",
        &json!({"session_id": "a", "transcript_path": "/t"}),
    );
    play(delivery, &[on(2_600, start, "")])
}

#[test]
fn a_submitted_text_may_be_queued_and_only_the_transcript_proves_it() {
    let pending = [mail(1, "alice")];
    let ours = heads(&[("alice", 1)]);
    let submitted = hook(PROMPT, &json!({"session_id": "a", "prompt": ours}));
    let queued = || {
        let delivery = entered(names_transcript(by_transcript()), &pending);
        play(
            delivery,
            &[
                on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
                on(3_060, submitted.clone(), "offered 1"),
            ],
        )
    };
    assert!(queued().needs_transcript());
    let delivery = play(
        queued(),
        &[
            on(3_100, transcript_shows("[Request interrupted]", ""), ""),
            on(9_000, transcript_shows(&ours, ""), "accepted 1"),
            on(9_001, transcript_shows(&ours, ""), ""),
        ],
    );
    assert!(!delivery.needs_transcript());
    // A person removes the text from the queue, and may submit it after all.
    play(
        queued(),
        &[
            on(4_000, transcript_shows("", &ours), "uncertain 1"),
            on(9_000, transcript_shows(&ours, ""), "accepted 1"),
        ],
    );
    let both = transcript_shows(&ours, &ours);
    play(queued(), &[on(4_000, both, "accepted 1")]);
}

#[test]
fn a_hook_proves_that_the_model_was_given_a_message() {
    let pending = [mail(1, "alice")];
    let ours = heads(&[("alice", 1)]);
    let delivery = with(|manifest| {
        let given = "Given".to_owned().try_into().expect("a sign");
        manifest.hook.given = vec![given];
    });
    play(
        entered(delivery, &pending),
        &[
            on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
            on(3_060, hook_of(&ours, PROMPT), "offered 1"),
            on(9_000, hook_of(&ours, "Given"), "accepted 1"),
        ],
    );
}

/// Return a hook event that contains the text that the model was given.
fn hook_of(prompt: &str, event: &str) -> Input {
    let mut hooks = like_claude();
    hooks.given = vec!["Given".to_owned().try_into().expect("a sign")];
    let payload = json!({"prompt": prompt});
    hook_called(hooks.read(event, &payload.to_string()))
}

#[test]
fn why_names_a_message_that_is_too_old_to_be_proven() {
    let mut delivery = names_transcript(by_transcript());
    let awaits = |n| {
        let mut mail = mail(n, "alice");
        mail.status.proven = Proven::Unproven;
        mail
    };
    for n in 1..=257 {
        delivery.at.proof.typed.add(&MessageHeader::of(&awaits(n)));
    }
    let why = delivery.lacks_proof(&awaits(1)).unwrap_or_default();
    assert!(why.contains("more than 256 later messages"), "{why}");
    assert_eq!(delivery.lacks_proof(&awaits(2)), None);
    assert_eq!(delivery.lacks_proof(&mail(1, "alice")), None);
}

#[test]
fn a_proof_is_awaited_only_while_the_agent_can_give_it() {
    let pending = [mail(1, "alice")];
    let offered = |delivery: Stage| {
        let mut delivery = entered(delivery, &pending);
        delivery.on(ms(3_054), Input::EnterPressed(KeyboardUser::Turn));
        let effects = delivery.on(ms(3_060), Input::ScreenChanged(empty()));
        let [(_, &OfferReport::Offered { proof_awaited, .. })] = receipts(&effects)[..] else {
            panic!("{effects:?}");
        };
        (delivery, proof_awaited)
    };
    let (delivery, is_awaited) = offered(by_transcript());
    assert!(
        !is_awaited,
        "no hook was called, and the program has none of ours"
    );
    let why = delivery.lacks_proof(&pending[0]).unwrap_or_default();
    assert!(why.starts_with("; no transcript"), "{why}");
    assert!(offered(names_transcript(by_transcript())).1);
    // Our own hooks may be called first at the first prompt.
    let given = || {
        with(|manifest| {
            manifest.proof = vec![Proof::Transcript];
            manifest.start.hooks = true;
        })
    };
    let (mut delivery, is_awaited) = offered(given());
    assert!(is_awaited);
    let effects = delivery.tick(ms(63_060));
    let [(_, &OfferReport::Offered { proof_awaited, .. })] = receipts(&effects)[..] else {
        panic!("{effects:?}");
    };
    assert!(!proof_awaited, "no hook was called");
    let named = || {
        let payload = json!({"session_id": "a", "transcript_path": "/t"});
        hook("PreToolUse", &payload)
    };
    let effects = delivery.on(ms(64_000), named());
    let is_awaited = receipts(&effects).into_iter().any(
        |(_, report)| matches!(report, OfferReport::Offered { proof_awaited, .. } if *proof_awaited),
    );
    assert!(is_awaited, "{effects:?}");
    let (delivery, _) = offered(given());
    let delivery = play(delivery, &[on(3_500, named(), "")]);
    play(delivery, &[tick(63_060, "")]);
    // A harness without proofs awaits none.
    assert!(!offered(with(|manifest| manifest.proof.clear())).1);
}
