//! The route through the agent's hook.

use super::screen::{asks, claims, holds, manifest, on, resting, seen};
use super::*;
use super::{Call, direct_recorded, distinct_ids as ids, distinct_mail as mail, play};
use crate::activity::tests::ms;
use crate::harness::hook::tests::like_claude;
use crate::harness::{Proof, Report, Route, Says, Source, transcript};
use crate::priority::Priority;
use serde_json::json;

const TOOL: &str = "PostToolUse";

fn report(event: &str, payload: &serde_json::Value) -> Report {
    like_claude().read(event, &payload.to_string())
}

fn delivery(change: impl FnOnce(&mut crate::harness::Manifest)) -> Stage {
    let mut manifest = manifest();
    manifest.hook = like_claude();
    manifest.hook.ready.clear();
    manifest.routes = vec![Route::Hook, Route::Terminal];
    manifest.proof = vec![Proof::Hook, Proof::Transcript];
    change(&mut manifest);
    let mut delivery = resting(manifest);
    delivery.on(ms(2_500), Input::PasteMode(true));
    delivery
}

/// Return a delivery whose agent works since a hook at 3,000.
fn working() -> Stage {
    let mut delivery = delivery(|_| ());
    call(&mut delivery, 3_000, "UserPromptSubmit", &[]);
    delivery
}

fn rule(
    delivery: &Delivery,
    at: u64,
    mail: &MessageState,
    pending: &[MessageState],
) -> &'static str {
    super::rule(delivery.hold(ms(at), mail, pending))
}

/// Call a hook that can take mail. Return the messages that are offered to it.
fn call(
    delivery: &mut Stage,
    at: u64,
    event: &str,
    pending: &[MessageState],
) -> Option<Vec<MessageId>> {
    call_with(delivery, at, event, &json!({}), pending)
}

fn call_with(
    delivery: &mut Stage,
    at: u64,
    event: &str,
    payload: &serde_json::Value,
    pending: &[MessageState],
) -> Option<Vec<MessageId>> {
    let called = Input::HookCalled {
        call: HookCall(at),
        report: Box::new(report(event, payload)),
        takes_mail: true,
    };
    let mut actions = delivery.on(ms(at), called);
    actions.extend(delivery.answer_hook(ms(at), pending));
    let mut offers = receipts(&actions).into_iter();
    let offer = offers.find(|(_, report)| matches!(report, OfferReport::Offering { .. }));
    let offer = offer.map(|(ids, _)| ids.to_vec());
    let without_mail = Action::AnswerHook {
        call: HookCall(at),
        mail: None,
    };
    assert_ne!(offer.is_some(), actions.contains(&without_mail));
    offer
}

#[test]
fn normal_mail_waits_for_the_hook_of_a_working_agent() {
    let pending = [mail(1, Priority::Normal), mail(2, Priority::Idle)];
    let mut delivery = working();
    assert_eq!(rule(&delivery, 3_100, &pending[0], &pending), "hook");
    assert_eq!(rule(&delivery, 3_100, &pending[1], &pending), "working");
    assert_eq!(delivery.act(ms(3_100), &pending), []);
    let offer = call(&mut delivery, 4_000, TOOL, &pending).unwrap();
    assert_eq!(offer, ids(&[1]));
    // Meanwhile no other route or hook gets the message.
    assert_eq!(call(&mut delivery, 4_050, TOOL, &pending), None);
    assert_eq!(delivery.act(ms(4_050), &pending), []);
    play(
        delivery,
        &[
            (4_100, direct_recorded(&[1]), "send 1"),
            on(4_260, Input::HookPassedOn(1), "offered 1"),
            on(4_270, Input::HookPassedOn(1), ""),
            on(4_280, Input::HookGone(1), ""),
        ],
    );
}

#[test]
fn a_subagent_is_given_nothing() {
    let pending = [mail(1, Priority::Normal)];
    let tool = |name: &str| json!({"tool_name": name});
    // Two subagents run, each with a tool; then the agent continues.
    let mut delivery = working();
    for (at, event, name, is_given) in [
        (4_000, "PreToolUse", "Within", false),
        (4_200, "PreToolUse", "Within", false),
        (4_400, TOOL, "Bash", false),
        (4_600, TOOL, "Within", false),
        (4_800, TOOL, "Read", false),
        (5_000, TOOL, "Within", true),
    ] {
        let payload = json!({"tool_name": name, "at": at});
        let offer = call_with(&mut delivery, at, event, &payload, &pending);
        assert_eq!(offer.is_some(), is_given, "{event} {name} at {at}");
    }
    // A subagent that was interrupted, and a new prompt.
    let mut delivery = working();
    call_with(
        &mut delivery,
        4_000,
        "PreToolUse",
        &tool("Within"),
        &pending,
    );
    assert!(call(&mut delivery, 5_000, "UserPromptSubmit", &pending).is_some());
}

#[test]
fn work_after_a_question_leaves_mail_to_the_hook() {
    let pending = [mail(1, Priority::Normal)];
    let mut delivery =
        delivery(|manifest| manifest.activity.order = vec![Source::Title, Source::Hook]);
    for (at, event) in [
        (3_000, "UserPromptSubmit"),
        (3_100, "PreToolUse"),
        (3_200, "PermissionRequest"),
    ] {
        call(&mut delivery, at, event, &[]);
    }
    assert_eq!(rule(&delivery, 3_300, &pending[0], &pending), "blocked");
    let mut delivery = play(
        delivery,
        &[
            seen(3_400, asks("Run rm?"), ""),
            // An approval, which no hook reports.
            seen(9_000, claims(Says::Working), ""),
            (9_100, Call::Act(&pending), ""),
        ],
    );
    assert_eq!(rule(&delivery, 9_200, &pending[0], &pending), "hook");
    let offer = call(&mut delivery, 9_500, TOOL, &pending).unwrap();
    assert_eq!(offer, ids(&[1]));
}

#[test]
fn an_interrupt_does_not_wait_for_a_hook() {
    let pending = [mail(1, Priority::Interrupt), mail(2, Priority::Normal)];
    let mut delivery = working();
    let offer = call(&mut delivery, 4_000, TOOL, &pending).unwrap();
    assert_eq!(offer, ids(&[2]));
    let due = delivery.next(ms(4_000), &pending);
    let [first, _] = ids(&[1, 2])[..] else {
        panic!("two");
    };
    assert!(matches!(due, Decision::Offer { ids, interrupt: true } if ids == [first]));
}

#[test]
fn a_working_agent_is_never_typed_into_and_an_idle_one_is() {
    let pending = [mail(1, Priority::Normal)];
    // The last hook was called long ago, and the agent still streams its answer.
    let mut delivery = working();
    delivery.tick(ms(600_000));
    assert_eq!(rule(&delivery, 600_000, &pending[0], &pending), "hook");
    assert!(matches!(
        delivery.next(ms(600_000), &pending),
        Decision::Wait { .. }
    ));
    // The agent is idle again.
    let mut delivery = working();
    call(&mut delivery, 4_000, "Stop", &[]);
    assert!(matches!(
        delivery.next(ms(4_000), &pending),
        Decision::Offer { .. }
    ));
    // If the manifest prefers the terminal, mail waits for the end of the turn.
    let mut other = self::delivery(|manifest| manifest.routes = vec![Route::Terminal, Route::Hook]);
    assert_eq!(call(&mut other, 3_000, "UserPromptSubmit", &pending), None);
    assert_eq!(rule(&other, 3_000, &pending[0], &pending), "working");
}

#[test]
fn a_hook_is_given_mail_only_if_its_event_and_the_rules_allow_it() {
    let pending = [mail(1, Priority::Normal)];
    let check = |event: &str, payload: serde_json::Value, want: bool| {
        let mut delivery = working();
        let offer = call_with(&mut delivery, 4_000, event, &payload, &pending);
        assert_eq!(offer.is_some(), want, "{event} {payload}");
    };
    check(TOOL, json!({}), true);
    check("UserPromptSubmit", json!({"prompt": "x"}), true);
    // These hooks cannot pass text to the model.
    check("PreToolUse", json!({}), false);
    check("Stop", json!({}), false);
    check("Unknown", json!({}), false);
    // A subagent.
    check(TOOL, json!({"agent_id": "a1"}), false);
    // Another session.
    let mut delivery = working();
    call_with(&mut delivery, 4_000, TOOL, &json!({"session_id": "a"}), &[]);
    let other = json!({"session_id": "b"});
    assert_eq!(
        call_with(&mut delivery, 5_000, TOOL, &other, &pending),
        None
    );
    // Delivery is paused, or a question is open.
    let mut delivery = working();
    delivery.on(ms(3_500), Input::Paused(PausedBy::Request));
    assert_eq!(call(&mut delivery, 4_000, TOOL, &pending), None);
    assert_eq!(rule(&delivery, 4_000, &pending[0], &pending), "paused");
    let mut delivery = working();
    let asks = json!({"tool_name": "Bash"});
    call_with(&mut delivery, 3_500, "PermissionRequest", &asks, &[]);
    assert_eq!(call(&mut delivery, 4_000, "PostToolUse", &pending), None);
    // A draft does not hold the mail, because nothing is typed.
    let mut delivery = play(working(), &[seen(3_500, holds("a draft"), "")]);
    assert!(call(&mut delivery, 4_000, TOOL, &pending).is_some());
}

#[test]
fn unconfirmed_mail_is_uncertain_and_unsent_mail_is_withdrawn() {
    let pending = [mail(1, Priority::Normal)];
    let begun = || {
        let mut delivery = working();
        call(&mut delivery, 4_000, TOOL, &pending).unwrap();
        delivery
    };
    let given = || play(begun(), &[(4_010, direct_recorded(&[1]), "send 1")]);
    play(given(), &[on(4_020, Input::HookGone(1), "uncertain 1")]);
    let late = [
        tick(9_000, ""),
        tick(9_010, "uncertain 1"),
        on(9_020, Input::HookPassedOn(1), ""),
    ];
    play(given(), &late);
    let unanswered = Input::HookUnanswered {
        offer: 1,
        ids: ids(&[1]),
        why: "the disk fails".to_owned(),
    };
    play(given(), &[on(4_200, unanswered, "withdraw 1")]);
    // The journal takes longer than the hook waits.
    let late = [
        tick(4_119, ""),
        tick(4_120, ""),
        (4_130, direct_recorded(&[1]), "withdraw 1"),
    ];
    play(begun(), &late);
    let free = play(begun(), &[(4_100, Call::NotRecorded("full"), "")]);
    assert_eq!(rule(&free, 4_300, &pending[0], &pending), "hook");
    // The journal has refused the offer.
    play(begun(), &[(4_200, direct_recorded(&[]), "")]);
    let paused = [
        on(4_100, Input::Paused(PausedBy::Request), ""),
        (4_200, direct_recorded(&[1]), "withdraw 1"),
    ];
    play(begun(), &paused);
    // A program that has ended is given nothing.
    let over = Input::Exited(crate::session::Ending::Exit(0));
    play(
        begun(),
        &[
            on(4_100, over, ""),
            (4_200, direct_recorded(&[1]), "withdraw 1"),
        ],
    );
}

/// A person may submit the part of the repeat that is in the input box.
#[test]
fn the_rest_of_a_typed_repeat_does_not_prove_the_offer_of_a_hook() {
    let message = mail(1, Priority::Normal).message;
    let pending = [with_steps(&message, &[Step::Offering, Step::Uncertain])];
    let ours = format!("[ph message from: alice id: 00000001{}] hi", turn::REPEAT);
    let check = |is_cut_off: bool, want: &str| {
        let mut delivery = working();
        if is_cut_off {
            let typed = &mut delivery.at.proof;
            typed.typed.add_all(&pending);
            typed.forget_cut_off(&ids(&[1]));
        }
        call(&mut delivery, 4_000, TOOL, &pending).unwrap();
        let shown = transcript::Shown {
            given: ours.clone(),
            ..transcript::Shown::default()
        };
        let read = Input::TranscriptsRead {
            shown,
            trouble: None,
            is_complete: true,
        };
        play(
            delivery,
            &[
                (4_010, direct_recorded(&[1]), "send 1"),
                on(4_020, Input::HookPassedOn(1), "offered 1"),
                on(4_030, read, want),
            ],
        );
    };
    check(false, "accepted 1");
    check(true, "");
}

#[test]
fn the_transcript_proves_mail_that_a_hook_passed_on() {
    let pending = [mail(1, Priority::Normal)];
    let mut delivery = working();
    assert!(!delivery.needs_transcript());
    call(&mut delivery, 4_000, TOOL, &pending).unwrap();
    let shows = |text: &str| {
        transcript_read(transcript::Shown {
            given: text.to_owned(),
            ..transcript::Shown::default()
        })
    };
    let ours = "[ph message from: alice id: 00000001] hi\n";
    let lines = [
        // Before the mail is passed on, the transcript proves nothing.
        on(4_005, shows(ours), ""),
        (4_010, direct_recorded(&[1]), "send 1"),
        on(4_020, Input::HookPassedOn(1), "offered 1"),
        on(4_030, shows("[ph message from: bob id: 00000001] hi"), ""),
        on(
            4_040,
            shows("so: [ph message from: alice id: 00000001] hi"),
            "",
        ),
    ];
    let delivery = play(delivery, &lines);
    assert!(delivery.needs_transcript());
    let delivery = play(
        delivery,
        &[
            on(4_050, shows(ours), "accepted 1"),
            on(4_060, shows(ours), ""),
        ],
    );
    assert!(!delivery.needs_transcript());
}
