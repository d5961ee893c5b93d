//! Text goes only into a box that two looks show to be empty, and Enter follows only if the box
//! holds that text alone.

use super::*;
use crate::harness::ProgramFacts;

#[test]
fn nothing_is_typed_into_an_unknown_view() {
    let pending = [mail(1, Normal), mail(2, Interrupt), mail(3, Idle)];
    let delivery = play(with(|_| ()), &[seen(2_600, hidden(), "")]);
    for mail in &pending {
        let own = std::slice::from_ref(mail);
        let delivery = play(delivery.clone(), &[(9_000, Call::Act(own), "")]);
        let hold = delivery.hold(ms(9_001), mail, own).unwrap();
        assert_eq!((hold.rule, hold.since), ("unrecognised", ms(2_600).wall));
        assert_eq!(hold.evidence, "expected the input box, found \"Settings\"");
    }
    // A title that shows "idle" changes nothing.
    let says_idle = Sighting {
        claims: claims(Says::Idle).claims,
        ..hidden()
    };
    let idle = [seen(3_000, says_idle, ""), (9_000, Call::Act(&pending), "")];
    play(delivery, &idle);
}

#[test]
fn no_interrupt_key_is_pressed_into_an_unknown_view() {
    let urgent = [mail(1, Interrupt)];
    let works = Sighting {
        claims: claims(Says::Working).claims,
        ..hidden()
    };
    let busy = [
        seen(3_000, works.clone(), ""),
        (3_001, Call::Act(&urgent), ""),
    ];
    let delivery = play(with(|_| ()), &busy);
    assert_eq!(
        rule(delivery.hold(ms(3_002), &urgent[0], &urgent)),
        "unrecognised"
    );
    // The view opens between the decision and the key.
    let late = [
        seen(3_000, claims(Says::Working), ""),
        (3_001, Call::Act(&urgent), "look"),
        looked(3_002, works, ""),
    ];
    play(with(|_| ()), &late);
}

#[test]
fn an_interrupt_cancels_a_dialog_and_its_receipt_says_so() {
    let urgent = [mail(1, Interrupt)];
    let cancelled = [
        seen(3_000, asks("Run rm?"), ""),
        (3_001, Call::Act(&urgent), "look"),
        looked(3_002, asks("Run rm?"), "key [3]"),
        seen(3_100, claims(Says::Idle), ""),
        tick(3_200, "offer 1"),
        (3_201, recorded(&[1]), "look"),
        looked(3_202, claims(Says::Idle), "write 1"),
        on(3_203, wrote(), ""),
        seen(3_210, holds("text"), ""),
        tick(3_260, "look"),
        looked(3_261, holds("text"), "enter"),
        on(3_262, Input::EnterPressed(KeyboardUser::Turn), ""),
    ];
    let mut delivery = play(with(|_| ()), &cancelled);
    let effects = delivery.on(ms(3_300), Input::ScreenChanged(empty()));
    let says = evidence(&effects);
    assert!(
        says.ends_with("a dialog was cancelled for it: Run rm?"),
        "{says}"
    );
}

#[test]
fn two_looks_without_output_between_them_come_before_a_text() {
    let pending = [mail(1, Normal)];
    let delivery = || play(with(|_| ()), &[seen(3_000, after_output(1, empty()), "")]);
    let early = play(
        delivery(),
        &[tick(3_099, ""), (3_099, Call::Act(&pending), "")],
    );
    assert_eq!(
        rule(early.hold(ms(3_099), &pending[0], &pending)),
        "settling"
    );
    assert_eq!(early.next_wakeup(), Some(ms(3_100).mono));
    let second = |look: Sighting, want: &'static str| {
        let lines = [
            tick(3_100, ""),
            (3_100, Call::Act(&pending), "offer 1"),
            (3_101, recorded(&[1]), "look"),
            looked(3_102, look, want),
        ];
        play(delivery(), &lines)
    };
    second(after_output(1, empty()), "write 1");
    // Any other screen withdraws the offer.
    second(after_output(2, empty()), "withdraw 1");
    second(after_output(1, holds("mine")), "withdraw 1");
    second(after_output(1, hidden()), "withdraw 1");
    second(after_output(1, asks("Run rm?")), "withdraw 1");
}

#[test]
fn a_question_of_a_hook_ends_once_the_box_is_visible_again() {
    let mut manifest = manifest();
    let sign = |event: &str| event.to_owned().try_into().unwrap();
    manifest.hook.blocked.push(sign("PermissionRequest"));
    let report = manifest.hook.read("PermissionRequest", "{}");
    let asked = [
        on(3_000, hook_called(report), ""),
        seen(3_100, hidden(), ""),
        seen(4_000, empty(), ""),
    ];
    let mut delivery = play(resting(manifest), &asked);
    assert!(matches!(delivery.activity().activity, Activity::Blocked(_)));
    assert_eq!(
        delivery
            .at
            .agent
            .question_ends_at(delivery.at.input_box.recognised_since()),
        Some(ms(7_000).mono)
    );
    delivery.tick(ms(6_999));
    assert!(matches!(delivery.activity().activity, Activity::Blocked(_)));
    delivery.tick(ms(7_000));
    assert_eq!(delivery.activity().activity, Activity::Idle);
}

/// Mark a sighting as handed over to another process.
fn handed_over(sighting: Sighting) -> Sighting {
    let facts = ProgramFacts {
        handed_over: Some("job 2d95".to_owned()),
        ..ProgramFacts::default()
    };
    Sighting {
        program: Arc::new(facts),
        ..sighting
    }
}

#[test]
fn nothing_is_typed_while_another_process_has_the_conversation() {
    let all = [mail(1, Normal), mail(2, Interrupt), mail(3, Idle), raw(4)];
    for screen in [empty(), asks("Run rm?"), claims(Says::Working)] {
        let delivery = play(
            with(|_| ()),
            &[seen(3_000, handed_over(screen.clone()), "")],
        );
        for mail in &all {
            let own = std::slice::from_ref(mail);
            let delivery = play(delivery.clone(), &[(9_000, Call::Act(own), "")]);
            let hold = delivery.hold(ms(9_001), mail, own).unwrap();
            assert_eq!((hold.rule, hold.since), ("handed-over", ms(3_000).wall));
            assert_eq!(hold.evidence, "the program's own record names job 2d95");
        }
        let moved = "the agent's conversation has moved to another process";
        assert!(delivery.at.line_refusal().unwrap().starts_with(moved));
        let answerable = delivery.answerable(ms(9_001));
        assert!(matches!(answerable, Answerable::No(why) if why.starts_with(moved)));
    }
    // Once the program has its conversation back, mail goes in.
    let pending = [mail(1, Normal)];
    let back = [
        seen(2_600, handed_over(empty()), ""),
        seen(3_000, empty(), ""),
        (3_100, Call::Act(&pending), "offer 1"),
    ];
    play(with(|_| ()), &back);
}

#[test]
fn a_handover_withdraws_an_offer_and_withholds_enter() {
    let pending = [mail(1, Normal)];
    let before_text = [
        (3_000, Call::Act(&pending[..]), "offer 1"),
        (3_001, recorded(&[1]), "look"),
        looked(3_002, handed_over(empty()), "withdraw 1"),
    ];
    play(with(|_| ()), &before_text);
    let before_enter = [
        looked(3_053, handed_over(holds("text")), ""),
        tick(9_000, ""),
    ];
    let delivery = play(written(with(|_| ()), &pending), &before_enter);
    let hold = delivery.hold(ms(9_001), &pending[0], &pending);
    assert_eq!(rule(hold), "handed-over");
}
