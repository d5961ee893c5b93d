//! The look before Enter, and the input box after Enter.

use super::*;

#[test]
fn enter_follows_a_look_that_shows_the_text_alone() {
    let pending = [mail(1, Normal)];
    let check = |look: Sighting, want: &'static str| {
        play(
            written(with(|_| ()), &pending),
            &[looked(3_053, look, want)],
        )
    };
    check(holds("te\n xt"), "enter");
    for other in ["te", "text and mine", "mine text", "[Pasted text #1]"] {
        let delivery = check(holds(other), "");
        assert!(!delivery.is_writing(), "the person needs the keyboard");
        let hold = delivery.hold(ms(3_054), &pending[0], &[]).unwrap();
        let quote = format!("and holds \"{other}\"");
        assert!(hold.evidence.ends_with(&quote), "{hold:?}");
    }
    let delivery = check(hidden(), "");
    let hold = delivery.hold(ms(3_054), &pending[0], &[]).unwrap();
    assert_eq!(hold.evidence, "expected the input box, found \"Settings\"");
    // The text is gone: the message is offered again, marked as a repeat.
    check(empty(), "uncertain 1");
}

#[test]
fn a_text_that_waited_gets_its_enter_when_the_box_holds_it_alone() {
    let pending = [mail(1, Normal)];
    let awaiting_enter = || {
        let delivery = written(with(|_| ()), &pending);
        play(delivery, &[looked(3_053, hidden(), "")])
    };
    let resumed = [
        seen(4_000, holds("text"), "resume"),
        on(4_001, Input::KeyboardLeased(KeyboardUser::Turn), ""),
        tick(4_051, "look"),
        looked(4_052, holds("text"), "enter"),
    ];
    play(awaiting_enter(), &resumed);
    play(awaiting_enter(), &[seen(4_000, holds("text, mine"), "")]);
    // A person has typed since: the text is theirs to submit.
    let typed = [
        on(3_500, Input::KeysTyped { is_draft: true }, ""),
        seen(4_000, holds("text"), ""),
        tick(9_000, ""),
    ];
    let delivery = play(awaiting_enter(), &typed);
    assert_eq!(rule(delivery.hold(ms(9_001), &pending[0], &[])), "draft");
    assert!(!delivery.keys_missed_box());
}

#[test]
fn the_box_lets_go_of_a_submitted_text() {
    let pending = [mail(1, Normal)];
    let entered = [
        looked(3_053, holds("text"), "enter"),
        on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
    ];
    let mut delivery = play(written(with(|_| ()), &pending), &entered);
    assert!(
        delivery.is_writing(),
        "no person can type behind a text in the box"
    );
    let effects = delivery.on(ms(3_060), Input::ScreenChanged(empty()));
    assert!(evidence(&effects).ends_with("; the input box let go of it"));
}

#[test]
fn enter_is_pressed_again_and_the_text_is_never_typed_again() {
    let pending = [mail(1, Normal), mail(2, Normal)];
    let swallowed = || {
        let delivery = written(with(|_| ()), &pending[..1]);
        play(
            delivery,
            &[
                looked(3_053, holds("text"), "enter"),
                on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
                tick(4_053, ""),
                tick(4_054, "look"),
            ],
        )
    };
    let again = [
        looked(4_055, holds("text"), "enter"),
        on(4_056, Input::EnterPressed(KeyboardUser::Turn), ""),
    ];
    let mut delivery = play(swallowed(), &again);
    let effects = delivery.on(ms(4_060), Input::ScreenChanged(empty()));
    let says = evidence(&effects);
    assert!(
        says.ends_with("Enter pressed 2 times; the input box let go of it"),
        "{says}"
    );
    // The program was only slow.
    play(swallowed(), &[looked(4_055, empty(), "offered 1")]);
    // The second Enter has no effect: later messages wait.
    let delivery = play(swallowed(), &again);
    let mut delivery = play(delivery, &[tick(5_056, "look")]);
    let effects = delivery.on(ms(5_057), looked_at(holds("text")));
    assert!(evidence(&effects).ends_with("the input box still holds it"));
    let hold = delivery
        .hold(ms(5_058), &pending[1], &pending[1..])
        .unwrap();
    assert_eq!(hold.rule, "draft");
    assert!(hold.reason.starts_with("an earlier text"), "{hold:?}");
    // A dialog that opens and closes in between does not cause a third Enter.
    let asked = [
        seen(4_060, asks("Run rm?"), ""),
        seen(4_500, holds("text"), "resume"),
        on(4_501, Input::KeyboardLeased(KeyboardUser::Turn), ""),
        tick(4_551, "look"),
    ];
    let mut delivery = play(play(swallowed(), &again), &asked);
    let effects = delivery.on(ms(4_552), looked_at(holds("text")));
    assert!(evidence(&effects).ends_with("the input box still holds it"));
    // The program ends meanwhile: the text was written whole.
    play(
        swallowed(),
        &[on(4_055, Input::Exited(Ending::Exit(0)), "offered 1")],
    );
}

/// A dialog opened at the moment of Enter. Once it is answered, the box shows whether the dialog took
/// the key.
#[test]
fn a_dialog_after_enter_is_waited_for() {
    let pending = [mail(1, Normal)];
    let asked = || {
        let lines = [
            looked(3_053, holds("text"), "enter"),
            on(3_054, Input::EnterPressed(KeyboardUser::Turn), ""),
            seen(3_060, asks("Run rm?"), ""),
        ];
        let delivery = play(written(with(|_| ()), &pending), &lines);
        assert!(
            !delivery.is_writing(),
            "the person who answers needs the keyboard"
        );
        delivery
    };
    let resumed = |at, sighting: fn() -> Sighting, want| {
        [
            seen(at, sighting(), "resume"),
            on(at + 1, Input::KeyboardLeased(KeyboardUser::Turn), ""),
            tick(at + 51, "look"),
            looked(at + 52, sighting(), want),
        ]
    };
    play(asked(), &resumed(4_000, empty, "offered 1"));
    play(asked(), &resumed(4_000, || holds("text"), "enter"));
}

#[test]
fn enter_waits_for_a_text_that_is_shown_late() {
    let pending = [mail(1, Normal)];
    let delivery = || {
        let delivery = with(|manifest| manifest.submit.seen_within = Wait::millis(2_000));
        let written = [
            (3_001, Call::Act(&pending), "offer 1"),
            (3_002, recorded(&[1]), "look"),
            looked(3_002, empty(), "write 1"),
            on(3_003, wrote(), ""),
            tick(3_053, "look"),
            looked(3_054, empty(), ""),
            tick(3_500, ""),
        ];
        play(delivery, &written)
    };
    let late = [
        seen(4_000, holds("text"), ""),
        tick(4_050, "look"),
        looked(4_051, holds("text"), "enter"),
    ];
    play(delivery(), &late);
    // A text that is never shown gets no Enter, and is offered again.
    let never = [tick(5_003, "look"), looked(5_004, empty(), "uncertain 1")];
    play(delivery(), &never);
}
