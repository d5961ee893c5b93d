//! Offers, from the record to Enter, and events in between.

use super::*;

#[test]
fn an_offer_is_recorded_written_entered_and_proven() {
    use Call::{Act, On, Tick};
    let pending = [mail(1, Priority::Normal), mail(2, Priority::Normal)];
    let next = [mail(2, Priority::Idle)];
    let delivery = play(
        idle(),
        &[
            (3_000, Act(&pending), "offer 1"),
            (3_000, Act(&pending), ""),
            (3_001, recorded(&[1]), "write 1"),
            (3_002, On(Input::Typed(String::new())), ""),
            (3_051, Tick, ""),
            (3_052, Tick, "enter"),
            (3_052, Act(&next), ""),
            (
                3_053,
                On(Input::EnterPressed(KeyboardUser::Turn)),
                "offered 1",
            ),
            // The agent counts as working until it is silent.
            (3_054, Act(&next), ""),
            (5_052, Tick, ""),
            (5_052, Act(&next), ""),
            (5_053, Tick, ""),
            (5_053, Act(&next), "offer 2"),
        ],
    );
    assert!(!delivery.is_writing());
}

#[test]
fn a_message_that_was_handled_or_held_meanwhile_is_not_written() {
    use Call::{Act, On};
    let pending = [mail(1, Priority::Normal), mail(2, Priority::Normal)];
    let pasting = || after(idle(), &[Input::PasteMode(true)]);
    let begin = || (3_000, Act(&pending), "offer 1,2");
    play(pasting(), &[begin(), (3_001, recorded(&[2]), "write 2")]);
    play(pasting(), &[begin(), (3_001, recorded(&[]), "")]);
    // A rule forbids typing before the record is complete.
    for event in [
        Input::KeysTyped { is_draft: true },
        Input::Paused(PausedBy::Viewer),
        dialog("Run rm?"),
        Input::Exited(Ending::Exit(0)),
    ] {
        let lines = [
            begin(),
            (3_000, On(event), ""),
            (3_001, recorded(&[1, 2]), "withdraw 1,2"),
        ];
        play(pasting(), &lines);
    }
    let narrow = [
        begin(),
        (3_000, On(Input::PasteMode(false)), ""),
        (3_001, recorded(&[1, 2]), "withdraw 2; write 1"),
    ];
    play(pasting(), &narrow);
    // The question of an answer, which came while the program was starting, is closed.
    let answer = [raw(1)];
    let gone = [
        (3_000, Act(&answer[..]), "offer 1"),
        (3_000, On(Input::DialogChanged(None)), ""),
        (3_001, recorded(&[1]), "withdraw 1"),
    ];
    play(after(starting(), &[dialog("Trust this folder?")]), &gone);
    // Work that begins now does not hold an offer that has begun.
    let busy = [
        begin(),
        (3_000, On(Input::OutputSeen), ""),
        (3_001, recorded(&[1, 2]), "write 1,2"),
    ];
    play(pasting(), &busy);
}

#[test]
fn an_offer_that_is_cut_off_is_uncertain() {
    use Call::{Act, On, Tick};
    let pending = [mail(1, Priority::Normal)];
    let begin = [
        (3_000, Act(&pending), "offer 1"),
        (3_001, recorded(&[1]), "write 1"),
    ];
    let more = [
        (3_002, On(Input::Typed(String::new())), ""),
        (3_060, Tick, "enter"),
    ];
    for ending in [Input::Exited(Ending::Signal(9)), write_failed()] {
        for further in 0..=2 {
            let delivery = play(idle(), &begin);
            let delivery = play(delivery, &more[..further]);
            let end = [
                (3_061, On(ending.clone()), "uncertain 1"),
                (3_062, On(Input::EnterPressed(KeyboardUser::Turn)), ""),
            ];
            play(delivery, &end);
        }
    }
}

#[test]
fn enter_waits_for_drafts_and_questions() {
    use Call::{Act, On, Tick};
    let pending = [mail(1, Priority::Normal)];
    let check = |bar: Input, rule_name: &str| {
        let delivery = play(
            idle(),
            &[
                (3_000, Act(&pending), "offer 1"),
                (3_001, recorded(&[1]), "write 1"),
                (3_002, On(Input::Typed(String::new())), ""),
                (3_010, On(bar), ""),
                (3_020, On(Input::Paused(PausedBy::Viewer)), ""),
                (4_000, Tick, ""),
            ],
        );
        let hold = delivery.hold(ms(4_000), &pending[0], &[]);
        assert_eq!(rule(hold), rule_name);
        delivery
    };
    let drafted = check(Input::KeysTyped { is_draft: true }, "draft");
    assert!(drafted.is_writing());
    play(
        drafted,
        &[(4_001, On(Input::KeysTyped { is_draft: false }), "enter")],
    );
    // A person who answers needs the keyboard.
    let asked = check(dialog("Run rm?"), "blocked");
    assert!(!asked.is_writing());
    let answered = [
        (4_001, On(Input::DialogChanged(None)), "resume"),
        (4_002, On(Input::KeyboardLeased(KeyboardUser::Turn)), ""),
        (4_051, Tick, ""),
        (4_052, Tick, "enter"),
        (
            4_053,
            On(Input::EnterPressed(KeyboardUser::Turn)),
            "offered 1",
        ),
    ];
    play(asked, &answered);
}

#[test]
fn nothing_is_typed_behind_unread_input() {
    use Call::{Act, On, Tick};
    for priority in [Priority::Normal, Priority::IdleFirst, Priority::Idle] {
        let pending = [mail(1, priority)];
        let delivery = play(
            idle(),
            &[
                (3_000, On(Input::InputChecked { is_unread: true }), ""),
                (3_001, Act(&pending), ""),
            ],
        );
        let hold = delivery.hold(ms(3_002), &pending[0], &pending);
        assert_eq!(rule(hold), "not-reading");
        play(
            delivery,
            &[
                (3_010, On(Input::InputChecked { is_unread: false }), ""),
                (3_011, Act(&pending), "offer 1"),
            ],
        );
    }
    // The interrupt key may make the program read again. The offer waits for that, as it waits for
    // work to stop.
    let urgent = [mail(1, Priority::Interrupt)];
    let begin = [
        (3_000, On(Input::InputChecked { is_unread: true }), ""),
        (3_001, Act(&urgent), "key [3]"),
        (3_002, Tick, ""),
    ];
    let delivery = play(idle(), &begin);
    assert_eq!(delivery.next_wakeup(), Some(ms(8_001).mono));
    play(
        delivery,
        &[(
            3_500,
            On(Input::InputChecked { is_unread: false }),
            "offer 1",
        )],
    );
    let never = [
        (8_001, Tick, "key [3]"),
        (13_001, Tick, "key [3]"),
        (18_001, Tick, "offer 1"),
    ];
    play(play(idle(), &begin), &never);
}

#[test]
fn a_person_who_types_first_prevents_an_offer() {
    use Call::{Act, On, Tick};
    let pending = [mail(1, Priority::Normal)];
    let lines = [
        (3_000, Act(&pending[..]), "offer 1"),
        (3_001, On(Input::KeysTyped { is_draft: true }), ""),
        (3_002, On(Input::KeyboardRefused(KeyboardUser::Turn)), ""),
        (3_003, Act(&pending), ""),
    ];
    let delivery = play(idle(), &lines);
    assert_eq!(
        rule(delivery.hold(ms(3_003), &pending[0], &pending)),
        "draft"
    );
    let again = [
        (3_004, On(Input::KeysTyped { is_draft: false }), ""),
        (3_004, Act(&pending[..]), "offer 1"),
        (3_005, recorded(&[1]), "write 1"),
        // Too late for this offer.
        (3_006, On(Input::KeyboardRefused(KeyboardUser::Turn)), ""),
        (3_007, On(Input::Typed(String::new())), ""),
        (3_060, Tick, "enter"),
    ];
    play(delivery, &again);
}

#[test]
fn an_offer_is_retried_a_while_after_the_journal_failed() {
    use Call::{Act, NotRecorded, Tick};
    let pending = [mail(1, Priority::Normal)];
    let lines = [
        (3_000, Act(&pending[..]), "offer 1"),
        (3_001, NotRecorded("disk full"), ""),
        (3_002, Act(&pending), ""),
    ];
    let delivery = play(idle(), &lines);
    let hold = delivery.hold(ms(3_002), &pending[0], &pending).unwrap();
    assert_eq!(
        (hold.rule, hold.evidence.as_str()),
        ("storage", "disk full")
    );
    assert_eq!(delivery.next_wakeup(), Some(ms(4_001).mono));
    let again = [(4_001, Tick, ""), (4_001, Act(&pending[..]), "offer 1")];
    play(delivery, &again);
}
