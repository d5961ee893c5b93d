//! Offers, from the record to Enter, and what comes between.

use super::*;

#[test]
fn an_offer_is_recorded_written_entered_and_proven() {
    use Call::{Act, On};
    let pending = [
        message_state(1, Priority::Normal),
        message_state(2, Priority::Normal),
    ];
    let next = [message_state(2, Priority::Idle)];
    let delivery = play(
        idle(),
        &[
            (3_000, Act(&pending), "offer 1"),
            (3_000, Act(&pending), ""),
            (3_001, recorded(&[1]), "write 1"),
            (3_002, On(DeliveryEvent::Wrote(String::new())), ""),
            (3_051, On(DeliveryEvent::Tick), ""),
            (3_052, On(DeliveryEvent::Tick), "enter"),
            (3_052, Act(&next), ""),
            (3_053, On(DeliveryEvent::Entered), "offered 1"),
            // It counts as working until it is quiet.
            (3_054, Act(&next), ""),
            (5_052, On(DeliveryEvent::Tick), ""),
            (5_052, Act(&next), ""),
            (5_053, On(DeliveryEvent::Tick), ""),
            (5_053, Act(&next), "offer 2"),
        ],
    );
    assert!(!delivery.is_writing());
}

#[test]
fn what_was_dealt_with_meanwhile_is_not_written() {
    use Call::{Act, On};
    let pending = [
        message_state(1, Priority::Normal),
        message_state(2, Priority::Normal),
    ];
    let pasting = || after(idle(), &[DeliveryEvent::PasteMode(true)]);
    let begin = || (3_000, Act(&pending), "offer 1,2");
    play(pasting(), &[begin(), (3_001, recorded(&[2]), "write 2")]);
    play(pasting(), &[begin(), (3_001, recorded(&[]), "")]);
    // In the moment in between, the way was barred.
    for event in [
        DeliveryEvent::DraftTyped,
        DeliveryEvent::Paused(PausedBy::Viewer),
        dialog("Run rm?"),
        DeliveryEvent::Exited(Ending::Exit(0)),
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
        (3_000, On(DeliveryEvent::PasteMode(false)), ""),
        (3_001, recorded(&[1, 2]), "withdraw 2; write 1"),
    ];
    play(pasting(), &narrow);
    // So was the way of an answer, whose question came while the program was starting.
    let answer = [raw(1)];
    let gone = [
        (3_000, Act(&answer[..]), "offer 1"),
        (3_000, On(DeliveryEvent::DialogChanged(None)), ""),
        (3_001, recorded(&[1]), "withdraw 1"),
    ];
    play(after(starting(), &[dialog("Trust this folder?")]), &gone);
    // That it began to work is no reason to hold what is under way.
    let busy = [
        begin(),
        (3_000, On(DeliveryEvent::Output), ""),
        (3_001, recorded(&[1, 2]), "write 1,2"),
    ];
    play(pasting(), &busy);
}

#[test]
fn an_offer_that_is_cut_off_is_uncertain() {
    use Call::{Act, On};
    let pending = [message_state(1, Priority::Normal)];
    let begin = [
        (3_000, Act(&pending), "offer 1"),
        (3_001, recorded(&[1]), "write 1"),
    ];
    let more = [
        (3_002, On(DeliveryEvent::Wrote(String::new())), ""),
        (3_060, On(DeliveryEvent::Tick), "enter"),
    ];
    for ending in [
        DeliveryEvent::Exited(Ending::Signal(9)),
        DeliveryEvent::WriteFailed("EIO".into()),
    ] {
        for further in 0..=2 {
            let delivery = play(idle(), &begin);
            let delivery = play(delivery, &more[..further]);
            let end = [
                (3_061, On(ending.clone()), "uncertain 1"),
                (3_062, On(DeliveryEvent::Entered), ""),
            ];
            play(delivery, &end);
        }
    }
}

#[test]
fn enter_is_pressed_onto_no_draft_and_into_no_question() {
    use Call::{Act, On};
    let pending = [message_state(1, Priority::Normal)];
    let check = |bar: DeliveryEvent, rule_name: &str| {
        let delivery = play(
            idle(),
            &[
                (3_000, Act(&pending), "offer 1"),
                (3_001, recorded(&[1]), "write 1"),
                (3_002, On(DeliveryEvent::Wrote(String::new())), ""),
                (3_010, On(bar), ""),
                (3_020, On(DeliveryEvent::Paused(PausedBy::Viewer)), ""),
                (4_000, On(DeliveryEvent::Tick), ""),
            ],
        );
        let hold = delivery.hold(ms(4_000), &pending[0], &[]);
        assert_eq!(rule(hold), rule_name);
        delivery
    };
    let drafted = check(DeliveryEvent::DraftTyped, "draft");
    assert!(drafted.is_writing());
    play(drafted, &[(4_001, On(DeliveryEvent::DraftEnded), "enter")]);
    // Who is to answer needs the keyboard.
    let asked = check(dialog("Run rm?"), "blocked");
    assert!(!asked.is_writing());
    let answered = [
        (4_001, On(DeliveryEvent::DialogChanged(None)), "resume"),
        (4_002, On(DeliveryEvent::Resumed), ""),
        (4_051, On(DeliveryEvent::Tick), ""),
        (4_052, On(DeliveryEvent::Tick), "enter"),
        (4_053, On(DeliveryEvent::Entered), "offered 1"),
    ];
    play(asked, &answered);
}

#[test]
fn nothing_is_typed_onto_input_that_nobody_has_read() {
    use Call::{Act, On};
    for priority in [Priority::Normal, Priority::IdleFirst, Priority::Idle] {
        let pending = [message_state(1, priority)];
        let delivery = play(
            idle(),
            &[
                (3_000, On(DeliveryEvent::UnreadInput(true)), ""),
                (3_001, Act(&pending), ""),
            ],
        );
        let hold = delivery.hold(ms(3_002), &pending[0], &pending);
        assert_eq!(rule(hold), "not-reading");
        play(
            delivery,
            &[
                (3_010, On(DeliveryEvent::UnreadInput(false)), ""),
                (3_011, Act(&pending), "offer 1"),
            ],
        );
    }
    // The key that an interrupt presses may be what makes the program read again; it is waited
    // for, as for work that is to stop.
    let urgent = [message_state(1, Priority::Interrupt)];
    let begin = [
        (3_000, On(DeliveryEvent::UnreadInput(true)), ""),
        (3_001, Act(&urgent), "key [3]"),
        (3_002, On(DeliveryEvent::Tick), ""),
    ];
    let delivery = play(idle(), &begin);
    assert_eq!(delivery.next_wakeup(), Some(ms(8_001).mono));
    play(
        delivery,
        &[(3_500, On(DeliveryEvent::UnreadInput(false)), "offer 1")],
    );
    let never = [
        (8_001, On(DeliveryEvent::Tick), "key [3]"),
        (13_001, On(DeliveryEvent::Tick), "key [3]"),
        (18_001, On(DeliveryEvent::Tick), "offer 1"),
    ];
    play(play(idle(), &begin), &never);
}

#[test]
fn an_offer_that_a_person_was_faster_than_is_none() {
    use Call::{Act, On};
    let pending = [message_state(1, Priority::Normal)];
    let lines = [
        (3_000, Act(&pending[..]), "offer 1"),
        (3_001, On(DeliveryEvent::DraftTyped), ""),
        (3_002, On(DeliveryEvent::KeyboardRefused), ""),
        (3_003, Act(&pending), ""),
    ];
    let delivery = play(idle(), &lines);
    assert_eq!(
        rule(delivery.hold(ms(3_003), &pending[0], &pending)),
        "draft"
    );
    let again = [
        (3_004, On(DeliveryEvent::DraftEnded), ""),
        (3_004, Act(&pending[..]), "offer 1"),
        (3_005, recorded(&[1]), "write 1"),
        // Too late to mean this one.
        (3_006, On(DeliveryEvent::KeyboardRefused), ""),
        (3_007, On(DeliveryEvent::Wrote(String::new())), ""),
        (3_060, On(DeliveryEvent::Tick), "enter"),
    ];
    play(delivery, &again);
}

#[test]
fn a_journal_that_fails_is_tried_again_in_a_while() {
    use Call::{Act, On};
    let pending = [message_state(1, Priority::Normal)];
    let lines = [
        (3_000, Act(&pending[..]), "offer 1"),
        (
            3_001,
            On(DeliveryEvent::NotRecorded("disk full".into())),
            "",
        ),
        (3_002, Act(&pending), ""),
    ];
    let delivery = play(idle(), &lines);
    let hold = delivery.hold(ms(3_002), &pending[0], &pending).unwrap();
    assert_eq!(
        (hold.rule, hold.evidence.as_str()),
        ("storage", "disk full")
    );
    assert_eq!(delivery.next_wakeup(), Some(ms(4_001).mono));
    let again = [
        (4_001, On(DeliveryEvent::Tick), ""),
        (4_001, Act(&pending[..]), "offer 1"),
    ];
    play(delivery, &again);
}
