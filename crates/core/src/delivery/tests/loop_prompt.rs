//! The delivery of a loop: nothing is typed or given to a hook, and each hold has its reason.

use super::*;
use super::{idle_at, mail, raw};
use crate::activity::tests::ms;
use crate::priority::Priority::{Idle, Interrupt, Normal};
use crate::session::Ending;

fn delivery() -> Stage {
    let config = DeliveryConfig {
        reach: Reach::Prompt,
        ..DeliveryConfig::generic(80)
    };
    idle_at(Stage::new(config, ms(0)))
}

#[test]
fn nothing_is_typed_into_a_loop() {
    let mut delivery = delivery();
    for mail in [mail(1, Normal), mail(2, Interrupt), mail(3, Idle), raw(4)] {
        let pending = [mail];
        assert_eq!(delivery.act(ms(3_000), &pending), [], "{pending:?}");
        assert_eq!(delivery.remind(ms(3_000), &pending), []);
    }
    assert!(
        delivery
            .at
            .line_refusal()
            .is_some_and(|why| why.contains("loop"))
    );
    let answerable = delivery.answerable(ms(3_000));
    assert!(matches!(answerable, Answerable::No(why) if why.contains("loop")));
    assert!(!delivery.is_writing());
}

/// An answer is never in a prompt, so it would wait forever.
#[test]
fn an_answer_to_a_loop_fails() {
    let delivery = delivery();
    let answer = raw(1);
    let pending = [answer.clone()];
    let reason = "this is a loop, and nothing is typed into it";
    let hold = delivery.hold(ms(3_000), &answer, &pending);
    assert_eq!(hold.map(|hold| hold.reason).as_deref(), Some(reason));
    assert_eq!(delivery.lapse(ms(3_000), &answer), Some(reason));
}

#[test]
fn mail_for_a_loop_waits_for_its_next_prompt() {
    let mut delivery = delivery();
    let hold = |delivery: &Delivery, priority| {
        let mail = mail(1, priority);
        let pending = [mail.clone()];
        delivery
            .hold(ms(3_000), &mail, &pending)
            .expect("it is held")
    };
    let normal = hold(&delivery, Normal);
    assert_eq!(normal.rule, "loop");
    assert!(
        normal.reason.contains("next iteration"),
        "{}",
        normal.reason
    );
    assert!(
        hold(&delivery, Interrupt)
            .reason
            .contains("it interrupts the iteration")
    );
    delivery.on(ms(3_000), Input::Exited(Ending::Exit(0)));
    assert_eq!(hold(&delivery, Normal).rule, "exited");
}

#[test]
fn the_reason_of_a_missing_prompt_is_named() {
    let mail = mail(1, Interrupt);
    let pending = [mail.clone()];
    let check = |wait: LoopWait, at: u64, reason: &str, release: &str| {
        let mut delivery = delivery();
        delivery.on(ms(2_500), Input::LoopChanged(wait.clone()));
        delivery.on(ms(2_600), Input::LoopChanged(wait));
        let hold = delivery.hold(ms(at), &mail, &pending).expect("it is held");
        assert_eq!(hold.rule, "loop");
        assert!(hold.reason.contains(reason), "{hold:?}");
        assert!(hold.release.contains(release), "{hold:?}");
        hold
    };
    let to = &mail.message.to;
    let resume = format!("'ph resume {to}'");
    let held = check(
        LoopWait::Checkpoint,
        3_000,
        "paused at a checkpoint",
        &resume,
    );
    assert_eq!(held.since, ms(2_500).wall.max(mail.message.created_at));
    let off = format!("'ph interactive {to} off'");
    check(LoopWait::CheckpointAsked, 3_000, "pauses at", &resume);
    let restart = format!("'ph restart {to}'");
    check(LoopWait::Stop, 3_000, "asked to stop", &restart);
    check(LoopWait::Last, 3_000, "the last one that", &restart);
    check(LoopWait::Interactive, 3_000, "interactive mode", &off);
    let until = ms(9_000).wall;
    let why = "iteration 3 failed: exit 1".to_owned();
    let failed = || LoopWait::Failure {
        until,
        why: why.clone(),
    };
    let at = until.strftime("waits until %Y-%m-%dT%H:%M:%SZ").to_string();
    assert_eq!(check(failed(), 3_000, &at, "that time").evidence, why);
    check(
        failed(),
        9_000,
        "it interrupts the iteration",
        "next iteration",
    );
    check(
        LoopWait::Turn,
        3_000,
        "it interrupts the iteration",
        "next iteration",
    );
}
