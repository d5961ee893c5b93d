//! The route through the agent's API.

use super::screen::{asks, holds, manifest, on, resting, seen};
use super::*;
use super::{Call, direct_recorded, distinct_ids as ids, distinct_mail as mail, owed, play};
use crate::activity::tests::ms;
use crate::harness::hook::tests::like_claude;
use crate::harness::{Api, Proof, Route};
use crate::id::MessageId;
use crate::priority::Priority;
use serde_json::json;

fn api_refused(offer: u64, all: &[u128]) -> Input {
    let (ids, why) = (ids(all), "nobody answers".to_owned());
    Input::ApiRefused { offer, ids, why }
}

fn hook(delivery: &mut Stage, at: u64, event: &str, prompt: &str) -> Vec<Action> {
    let payload = json!({"session_id": "s1", "prompt": prompt, "source": "startup"});
    let report = like_claude().read(event, &payload.to_string());
    delivery.tell(ms(at), hook_called(report))
}

fn conversation(delivery: &Delivery) -> Option<&str> {
    delivery.http.conversation(&delivery.at)
}

/// Return a delivery whose agent is idle at 4,000, in a conversation that hooks have reported.
fn delivery() -> Stage {
    let mut manifest = manifest();
    manifest.hook = like_claude();
    manifest.hook.ready.clear();
    manifest.routes = vec![Route::Http, Route::Terminal];
    manifest.proof = vec![Proof::Hook];
    manifest.http.api = Some(Api::OpenCode);
    manifest.submit.while_working = false;
    let mut delivery = resting(manifest);
    assert_eq!(conversation(&delivery), None, "no hook has reported one");
    hook(&mut delivery, 3_000, "UserPromptSubmit", "a person's");
    hook(&mut delivery, 4_000, "Stop", "");
    assert_eq!(conversation(&delivery), Some("s1"));
    delivery
}

fn rule(delivery: &Delivery, at: u64, mail: &MessageState) -> &'static str {
    super::rule(delivery.hold(ms(at), mail, std::slice::from_ref(mail)))
}

#[test]
fn a_call_is_recorded_made_and_proven() {
    let pending = [mail(1, Priority::Normal), mail(2, Priority::Normal)];
    let mut delivery = play(
        delivery(),
        &[
            (5_000, Call::Act(&pending), "offer by API 1,2"),
            // One at a time.
            (5_010, Call::Act(&pending), ""),
            (5_020, direct_recorded(&[1, 2]), "send 1,2"),
        ],
    );
    let header = |id: &MessageId| format!("[ph message from: alice id: {}] hi", id.id8());
    let both: Vec<String> = ids(&[1, 2]).iter().map(header).collect();
    let proven = hook(&mut delivery, 5_030, "UserPromptSubmit", &both.join("\n"));
    let [(shown, OfferReport::Accepted { route, .. })] = receipts(&proven)[..] else {
        panic!("{proven:?}");
    };
    assert_eq!((shown, route.as_str()), (&ids(&[1, 2])[..], "http"));
    let offered = delivery.on(ms(5_040), Input::ApiAccepted(1));
    let [(_, OfferReport::Offered { route, .. })] = receipts(&offered)[..] else {
        panic!("{offered:?}");
    };
    assert_eq!(route, "http");
    assert_eq!(delivery.activity().activity, Activity::Working);
}

/// The reminder could come before the message that it is about.
#[test]
fn nothing_is_typed_while_mail_is_on_its_way_to_the_api() {
    let one = mail(1, Priority::Normal);
    let pending = std::slice::from_ref(&one);
    let owes = [owed(2, 0)];
    play(
        delivery(),
        &[
            (5_000, Call::Act(pending), "offer by API 1"),
            (5_001, Call::Remind(&owes), ""),
            (5_010, direct_recorded(&[1]), "send 1"),
            (5_011, Call::Remind(&owes), ""),
        ],
    );
    play(delivery(), &[(5_001, Call::Remind(&owes), "remind 2")]);
}

#[test]
fn a_question_holds_mail_for_the_api_and_a_draft_does_not() {
    let one = mail(1, Priority::Normal);
    let pending = std::slice::from_ref(&one);
    let mut drafted = delivery();
    drafted.on(ms(4_500), Input::KeysTyped { is_draft: true });
    drafted.on(ms(4_500), Input::ScreenChanged(holds("half")));
    play(drafted, &[(5_000, Call::Act(pending), "offer by API 1")]);

    let asked = play(delivery(), &[seen(4_500, asks("Run rm?"), "")]);
    assert_eq!(rule(&asked, 5_000, &one), "blocked");
    // The question opened while the offer was recorded.
    play(
        delivery(),
        &[
            (5_000, Call::Act(pending), "offer by API 1"),
            seen(5_010, asks("Run rm?"), ""),
            (5_020, direct_recorded(&[1]), "withdraw 1"),
        ],
    );
    let paused = play(
        delivery(),
        &[on(4_500, Input::Paused(PausedBy::Request), "")],
    );
    assert_eq!(rule(&paused, 5_000, &one), "paused");
    let raw = {
        let mut raw = mail(2, Priority::Normal);
        raw.message.envelope.raw = true;
        raw
    };
    let mut delivery = delivery();
    let actions = delivery.act(ms(5_000), &[raw]);
    assert_ne!(summary(&delivery, &actions), "offer by API 2");
}

/// An offer that begins must not be withdrawn by a rule that held before it began: the two would
/// alternate for ever.
#[test]
fn a_requested_pause_lets_an_interrupt_to_the_api_pass() {
    let urgent = [mail(1, Priority::Interrupt)];
    let with_pause = |by| [on(4_500, Input::Paused(by), "")];
    let offered = [
        (5_000, Call::Act(&urgent), "offer by API 1"),
        (5_010, direct_recorded(&[1]), "send 1"),
    ];
    play(play(delivery(), &with_pause(PausedBy::Request)), &offered);
    play(
        play(delivery(), &with_pause(PausedBy::Viewer)),
        &[(5_000, Call::Act(&urgent), "")],
    );
    // The viewer takes the keyboard while the offer is recorded.
    play(
        delivery(),
        &[
            (5_000, Call::Act(&urgent), "offer by API 1"),
            on(5_005, Input::Paused(PausedBy::Viewer), ""),
            (5_010, direct_recorded(&[1]), "withdraw 1"),
            (5_020, Call::Act(&urgent), ""),
        ],
    );
    // The agent begins to work while an idle message is recorded.
    let idle = [mail(1, Priority::Idle)];
    let mut delivery = play(delivery(), &[(5_000, Call::Act(&idle), "offer by API 1")]);
    hook(&mut delivery, 5_005, "UserPromptSubmit", "a person's");
    play(
        delivery,
        &[
            (5_010, direct_recorded(&[1]), "withdraw 1"),
            (5_020, Call::Act(&idle), ""),
        ],
    );
}

#[test]
fn an_api_that_does_not_answer_is_not_used_for_a_while() {
    let one = mail(1, Priority::Normal);
    let pending = std::slice::from_ref(&one);
    let refused = play(
        delivery(),
        &[
            (5_000, Call::Act(pending), "offer by API 1"),
            on(5_010, api_refused(1, &[]), ""),
            (5_020, Call::Act(pending), "offer 1"),
        ],
    );
    assert_eq!(conversation(&refused), None);
    let mut back = play(
        delivery(),
        &[
            (5_000, Call::Act(pending), "offer by API 1"),
            (5_010, direct_recorded(&[1]), "send 1"),
            on(5_020, api_refused(1, &[1]), "withdraw 1"),
            tick(35_000, ""),
        ],
    );
    assert_eq!(conversation(&back), None);
    back.tick(ms(35_020));
    assert_eq!(conversation(&back), Some("s1"));
}

#[test]
fn mail_without_an_answer_of_the_api_is_uncertain() {
    let one = mail(1, Priority::Normal);
    let pending = std::slice::from_ref(&one);
    let given = || {
        play(
            delivery(),
            &[
                (5_000, Call::Act(pending), "offer by API 1"),
                (5_010, direct_recorded(&[1]), "send 1"),
            ],
        )
    };
    play(given(), &[on(5_020, Input::ApiSilent(1), "uncertain 1")]);
    play(
        given(),
        &[
            tick(10_020, "uncertain 1"),
            on(10_030, Input::ApiAccepted(1), ""),
        ],
    );
    // By the time of the refusal, the terminal offers the message again.
    play(
        given(),
        &[
            tick(10_020, "uncertain 1"),
            (10_030, Call::Act(pending), "offer 1"),
            on(10_040, api_refused(1, &[1]), ""),
        ],
    );
}

#[test]
fn a_working_agent_is_given_mail_and_continues_with_it() {
    let one = mail(1, Priority::Normal);
    let pending = std::slice::from_ref(&one);
    let mut delivery = delivery();
    hook(&mut delivery, 5_000, "UserPromptSubmit", "a person's");
    assert_eq!(rule(&delivery, 5_100, &mail(2, Priority::Idle)), "working");
    let mut delivery = play(
        delivery,
        &[
            (5_100, Call::Act(pending), "offer by API 1"),
            (5_110, direct_recorded(&[1]), "send 1"),
            on(5_120, Input::ApiAccepted(1), "offered 1"),
        ],
    );
    let over = hook(&mut delivery, 9_000, "Stop", "");
    assert_eq!(summary(&delivery, &over), "continue");
    let again = hook(&mut delivery, 9_500, "Stop", "");
    assert_eq!(summary(&delivery, &again), "", "once");
}

#[test]
fn a_failed_continue_is_repeated_later() {
    let one = mail(1, Priority::Normal);
    let pending = std::slice::from_ref(&one);
    let mut delivery = delivery();
    hook(&mut delivery, 5_000, "UserPromptSubmit", "a person's");
    let mut delivery = play(
        delivery,
        &[
            (5_100, Call::Act(pending), "offer by API 1"),
            (5_110, direct_recorded(&[1]), "send 1"),
            on(5_120, Input::ApiAccepted(1), "offered 1"),
        ],
    );
    let over = hook(&mut delivery, 9_000, "Stop", "");
    assert_eq!(summary(&delivery, &over), "continue");
    let why = "it did not answer".to_owned();
    play(
        delivery,
        &[
            on(9_500, Input::ApiNotContinued { why }, ""),
            // The API is not used.
            tick(39_000, ""),
            tick(39_600, "continue"),
            tick(80_000, ""),
        ],
    );
}

/// A pause that a person asked for, or takes, must not be broken by a turn of the agent.
#[test]
fn the_agent_is_not_told_to_continue_in_a_pause() {
    let one = mail(1, Priority::Normal);
    let pending = std::slice::from_ref(&one);
    let mut delivery = delivery();
    hook(&mut delivery, 5_000, "UserPromptSubmit", "a person's");
    let mut delivery = play(
        delivery,
        &[
            (5_100, Call::Act(pending), "offer by API 1"),
            (5_110, direct_recorded(&[1]), "send 1"),
            on(5_120, Input::ApiAccepted(1), "offered 1"),
            on(8_000, Input::Paused(PausedBy::Viewer), ""),
        ],
    );
    let over = hook(&mut delivery, 9_000, "Stop", "");
    assert_eq!(summary(&delivery, &over), "");
    let release = Input::Unpaused(PausedBy::Viewer);
    play(delivery, &[on(9_500, release, "continue")]);
}

#[test]
fn an_interrupt_presses_no_key() {
    let urgent = mail(1, Priority::Interrupt);
    let pending = std::slice::from_ref(&urgent);
    let mut delivery = delivery();
    hook(&mut delivery, 5_000, "UserPromptSubmit", "a person's");
    let mut delivery = play(delivery, &[(5_500, Call::Act(pending), "abort")]);
    let called = hook(&mut delivery, 6_000, "Stop", "");
    assert_eq!(summary(&delivery, &called), "offer by API 1");
}

/// The interrupt's message makes the agent continue. A second continue would be an extra turn.
#[test]
fn an_interrupt_after_mail_in_mid_turn_replaces_the_continue() {
    let (one, urgent) = (mail(1, Priority::Normal), mail(2, Priority::Interrupt));
    let interrupted = || {
        let mut delivery = delivery();
        hook(&mut delivery, 5_000, "UserPromptSubmit", "a person's");
        let mut delivery = play(
            delivery,
            &[
                (
                    5_100,
                    Call::Act(std::slice::from_ref(&one)),
                    "offer by API 1",
                ),
                (5_110, direct_recorded(&[1]), "send 1"),
                on(5_120, Input::ApiAccepted(1), "offered 1"),
                (6_000, Call::Act(std::slice::from_ref(&urgent)), "abort"),
            ],
        );
        let called = hook(&mut delivery, 6_500, "Stop", "");
        assert_eq!(summary(&delivery, &called), "offer by API 2");
        delivery
    };
    let mut taken = play(
        interrupted(),
        &[
            (6_510, direct_recorded(&[2]), "send 2"),
            on(6_520, Input::ApiAccepted(3), "offered 2"),
        ],
    );
    let over = hook(&mut taken, 9_000, "Stop", "");
    assert_eq!(summary(&taken, &over), "");
    // If the interrupt was not delivered, the earlier mail still needs the continue.
    play(
        interrupted(),
        &[on(6_510, api_refused(3, &[]), ""), tick(36_520, "continue")],
    );
}

#[test]
fn a_hanging_call_is_explained() {
    let (one, urgent) = (mail(1, Priority::Normal), mail(2, Priority::Interrupt));
    let all = [urgent.clone(), one.clone()];
    let delivery = play(
        delivery(),
        &[
            (
                5_000,
                Call::Act(std::slice::from_ref(&one)),
                "offer by API 1",
            ),
            (5_010, direct_recorded(&[1]), "send 1"),
        ],
    );
    let told = |mail: &MessageState| {
        let hold = delivery.hold(ms(6_500), mail, &all).unwrap();
        (hold.rule, hold.reason)
    };
    let says = "it is on its way to the agent's own HTTP API, which has not answered yet";
    assert_eq!(told(&one), ("in-flight", says.to_owned()));
    let says = "another message is on its way to the agent's own HTTP API";
    assert_eq!(told(&urgent), ("in-flight", says.to_owned()));
}

#[test]
fn an_interrupt_by_the_api_is_explained() {
    let urgent = mail(1, Priority::Interrupt);
    let pending = std::slice::from_ref(&urgent);
    let mut delivery = delivery();
    hook(&mut delivery, 5_000, "UserPromptSubmit", "a person's");
    let delivery = play(delivery, &[(5_500, Call::Act(pending), "abort")]);
    let hold = delivery.hold(ms(5_600), &urgent, pending).unwrap();
    let by_api = "its own HTTP API was told 1 time(s) to stop it";
    assert_eq!((hold.rule, &*hold.evidence), ("interrupting", by_api));
}

#[test]
fn only_another_conversation_makes_a_failed_api_usable_early() {
    let one = mail(1, Priority::Normal);
    let mut delivery = play(
        delivery(),
        &[
            (
                5_000,
                Call::Act(std::slice::from_ref(&one)),
                "offer by API 1",
            ),
            on(5_010, api_refused(1, &[]), ""),
        ],
    );
    hook(&mut delivery, 6_000, "UserPromptSubmit", "typed");
    hook(&mut delivery, 7_000, "Stop", "");
    assert_eq!(conversation(&delivery), None);
    let payload = json!({"session_id": "s2", "source": "clear"});
    let report = like_claude().read("SessionStart", &payload.to_string());
    delivery.on(ms(8_000), hook_called(report));
    assert_eq!(conversation(&delivery), Some("s2"));
}

/// Mail of one conversation does not make the agent continue another one.
#[test]
fn another_conversation_is_not_continued() {
    let one = mail(1, Priority::Normal);
    let mut delivery = delivery();
    hook(&mut delivery, 5_000, "UserPromptSubmit", "a person's");
    let mut delivery = play(
        delivery,
        &[
            (
                5_100,
                Call::Act(std::slice::from_ref(&one)),
                "offer by API 1",
            ),
            (5_110, direct_recorded(&[1]), "send 1"),
            on(5_120, Input::ApiAccepted(1), "offered 1"),
        ],
    );
    let payload = json!({"session_id": "s2", "source": "clear"});
    let begun = hook_called(like_claude().read("SessionStart", &payload.to_string()));
    let idle = hook_called(like_claude().read("Stop", &json!({"session_id": "s2"}).to_string()));
    play(
        delivery.clone(),
        &[on(6_000, begun, ""), on(7_000, idle, "")],
    );
    let over = hook(&mut delivery, 7_000, "Stop", "");
    assert_eq!(summary(&delivery, &over), "continue");
}

#[test]
fn the_reason_not_to_use_the_api_is_explained() {
    let one = mail(1, Priority::Normal);
    let pending = std::slice::from_ref(&one);
    let mut delivery = play(
        delivery(),
        &[
            (5_000, Call::Act(pending), "offer by API 1"),
            on(5_010, api_refused(1, &[]), ""),
            on(5_100, Input::KeysTyped { is_draft: true }, ""),
        ],
    );
    let hold = delivery.hold(ms(5_200), &one, pending).unwrap();
    assert_eq!(hold.rule, "draft");
    let says = "; not by its own HTTP API: nobody answers";
    assert!(hold.evidence.ends_with(says), "{}", hold.evidence);
    delivery.tick(ms(35_020));
    assert_eq!(
        delivery.hold(ms(35_030), &one, pending),
        None,
        "the API is used again"
    );
}
