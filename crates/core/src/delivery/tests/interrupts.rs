//! The interrupt key: when and how often it is pressed.

use super::*;

#[test]
fn an_interrupt_key_needs_more_than_an_echo() {
    use Call::{Act, On, Tick};
    let first = [mail(1, Priority::Normal)];
    let urgent = [mail(2, Priority::Interrupt)];
    let given = play(
        idle(),
        &[
            (3_000, Act(&first), "offer 1"),
            (3_001, recorded(&[1]), "write 1"),
            (3_002, On(Input::OutputSeen), ""),
            (3_003, On(Input::Typed(String::new())), ""),
            (3_053, Tick, "enter"),
            (3_054, On(Input::OutputSeen), ""),
            (
                3_055,
                On(Input::EnterPressed(KeyboardUser::Turn)),
                "offered 1",
            ),
            (3_056, On(Input::OutputSeen), ""),
        ],
    );
    assert_eq!(given.activity().activity, Activity::Working);
    play(given.clone(), &[(3_100, Act(&urgent), "offer 2")]);
    let works = [
        (3_600, On(Input::OutputSeen), ""),
        (3_601, Act(&urgent), "key [3]"),
    ];
    play(given, &works);
    // The echo of a person's keys is no work either.
    let typed = [
        (3_000, On(Input::KeysTyped { is_draft: true }), ""),
        (3_001, On(Input::OutputSeen), ""),
        (3_100, On(Input::KeysTyped { is_draft: false }), ""),
        (3_101, On(Input::OutputSeen), ""),
        (3_102, Act(&urgent), "offer 2"),
    ];
    play(idle(), &typed);
}

#[test]
fn an_interrupt_presses_its_key_and_waits() {
    use Call::{Act, On, Tick};
    let pending = [mail(1, Priority::Interrupt)];
    let begin = || (3_000, Act(&pending), "key [3]");
    let tick = |at, want| (at, Tick, want);
    // The agent stops: 2 s without output.
    let stops = [begin(), tick(4_999, ""), tick(5_000, "offer 1")];
    play(working(), &stops);
    // The agent does not stop.
    let continues = |from: u64| {
        let spell = (0..5).map(move |s| (from + 1 + 1_000 * s, On(Input::OutputSeen), ""));
        spell.collect::<Vec<_>>()
    };
    let mut delivery = play(working(), &[begin()]);
    delivery = play(delivery, &continues(3_000));
    delivery = play(delivery, &[tick(7_999, ""), tick(8_000, "key [3]")]);
    delivery = play(delivery, &continues(8_000));
    let hold = delivery.hold(ms(12_500), &pending[0], &pending).unwrap();
    assert_eq!(hold.rule, "interrupting");
    assert_eq!(hold.evidence, "the interrupt key was pressed 2 time(s)");
    delivery = play(delivery, &[tick(13_000, "key [3]")]);
    delivery = play(delivery, &continues(13_000));
    delivery = play(delivery, &[tick(17_999, ""), tick(18_000, "offer 1")]);
    play(delivery, &[(18_001, recorded(&[1]), "write 1")]);
    // A person who takes the keyboard meanwhile has it.
    for event in [
        Input::KeysTyped { is_draft: true },
        Input::Paused(PausedBy::Viewer),
        Input::Exited(Ending::Exit(0)),
    ] {
        let lines = [begin(), (3_500, On(event), ""), (9_000, Act(&pending), "")];
        play(working(), &lines);
    }
}

#[test]
fn a_dropped_key_does_not_count() {
    let mut delivery = working();
    let urgent = [mail(1, Priority::Interrupt)];
    let evidence = |delivery: &Delivery, at| {
        let hold = delivery.hold(ms(at), &urgent[0], &urgent);
        hold.expect("it is held").evidence
    };
    delivery.act(ms(3_000), &urgent);
    assert_eq!(
        evidence(&delivery, 3_000),
        "the interrupt key was pressed 1 time(s)"
    );
    assert_eq!(delivery.on(ms(3_000), Input::KeysDropped), []);
    assert_eq!(
        evidence(&delivery, 3_000),
        "the interrupt key was pressed 0 time(s)"
    );
    // The key is pressed again at its next time, and not sooner.
    for at in (3_500..8_000).step_by(1_000) {
        assert_eq!(delivery.on(ms(at), Input::OutputSeen), []);
    }
    let pressed = delivery.tick(ms(8_000));
    let pressed = summary(&delivery, &pressed);
    assert!(pressed.starts_with("key"), "{pressed}");
    assert_eq!(
        evidence(&delivery, 8_000),
        "the interrupt key was pressed 1 time(s)"
    );
}

#[test]
fn an_interrupt_dismisses_a_question_or_is_held() {
    use Call::{Act, On, Tick};
    let pending = [mail(1, Priority::Interrupt), raw(2)];
    let begin = || (3_000, Act(&pending), "key [3]");
    let tick = |at, want| (at, Tick, want);
    let gone = [
        begin(),
        (3_100, On(Input::DialogChanged(None)), ""),
        tick(5_000, "offer 1"),
    ];
    play(blocked(), &gone);
    let stays = [
        begin(),
        tick(8_000, "key [3]"),
        tick(13_000, "key [3]"),
        tick(18_000, ""),
    ];
    let delivery = play(blocked(), &stays);
    let hold = delivery.hold(ms(18_000), &pending[0], &pending).unwrap();
    assert_eq!(
        (hold.rule, hold.reason.as_str()),
        (
            "blocked",
            "the program waits for an answer (Run rm?), and the interrupt key did not dismiss it"
        )
    );
    // The answer goes, and then the interrupt.
    let answer = [
        (18_001, Act(&pending), "offer 2"),
        (18_002, recorded(&[2]), "write 2"),
        (18_003, On(Input::Typed(String::new())), ""),
        (18_060, Tick, "enter"),
    ];
    let mut delivery = play(delivery, &answer);
    let effects = delivery.on(ms(18_061), Input::EnterPressed(KeyboardUser::Turn));
    let evidence = "written whole to the terminal of the running program, in answer to: Run rm?";
    assert!(screen::evidence(&effects) == evidence);
    let after = [
        (18_062, On(Input::DialogChanged(None)), ""),
        // Output beyond the echo shows that the agent works.
        (18_600, On(Input::OutputSeen), ""),
        (18_601, Act(&pending[..1]), "key [3]"),
    ];
    play(delivery, &after);
}
