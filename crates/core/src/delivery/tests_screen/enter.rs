//! The look before Enter, and what the input box shows after it.

use super::*;

#[test]
fn enter_follows_a_look() {
    let pending = [letter(1, Normal)];
    let desk = written(with(|_| ()), &pending);
    let mut desk = play(
        desk,
        &[
            looked(3_053, holds("text"), "enter"),
            hear(3_054, Event::Entered, ""),
        ],
    );
    assert!(
        desk.is_writing(),
        "nobody types into a text that stands there"
    );
    let effects = desk.on(ms(3_060), Event::Seen(shows(Field::Empty)));
    assert!(evidence(&effects).ends_with("; the input box let go of it"));
    // What cannot be seen is not waited for.
    for unknown in [Field::Unseen, Field::Empty] {
        let desk = written(with(|_| ()), &pending);
        play(
            desk,
            &[
                looked(3_053, shows(unknown), "enter"),
                hear(3_054, Event::Entered, "offered 1"),
            ],
        );
    }
}

#[test]
fn a_text_that_is_shown_otherwise_is_not_let_go_of() {
    let pending = [letter(1, Normal)];
    let desk = written(with(|_| ()), &pending);
    let swallowed = [
        looked(
            3_053,
            holds("[ph message from: alice id: 00000000] hel"),
            "enter",
        ),
        hear(3_054, Event::Entered, ""),
        seen(
            3_060,
            holds("[ph message from: alice id: 00000000] hello"),
            "",
        ),
        hear(4_054, Event::Tick, "look"),
        looked(
            4_055,
            holds("[ph message from: alice id: 00000000] hello"),
            "enter",
        ),
        hear(4_056, Event::Entered, ""),
        hear(5_056, Event::Tick, "look"),
    ];
    let mut desk = play(desk, &swallowed);
    let still = holds("hello [ph message from: alice id: 00000000]");
    let effects = desk.on(ms(5_057), Event::Looked(still));
    assert!(evidence(&effects).ends_with("the input box still holds it"));
    let next = letter(2, Normal);
    let hold = desk.hold(ms(5_058), &next, std::slice::from_ref(&next));
    assert!(hold.unwrap().reason.starts_with("what was written before"));
}

#[test]
fn enter_is_pressed_again_and_the_text_never() {
    let pending = [letter(1, Normal), letter(2, Normal)];
    let swallowed = || {
        let desk = written(with(|_| ()), &pending[..1]);
        play(
            desk,
            &[
                looked(3_053, holds("text"), "enter"),
                hear(3_054, Event::Entered, ""),
                hear(4_053, Event::Tick, ""),
                hear(4_054, Event::Tick, "look"),
            ],
        )
    };
    let again = [
        looked(4_055, holds("text"), "enter"),
        hear(4_056, Event::Entered, ""),
    ];
    let mut desk = play(swallowed(), &again);
    let effects = desk.on(ms(4_060), Event::Seen(shows(Field::Empty)));
    let says = evidence(&effects);
    assert!(
        says.ends_with("Enter pressed 2 times; the input box let go of it"),
        "{says}"
    );
    // It was just slow.
    play(
        swallowed(),
        &[looked(4_055, shows(Field::Empty), "offered 1")],
    );
    // It does not help: what comes next waits.
    let desk = play(swallowed(), &again);
    let mut desk = play(desk, &[hear(5_056, Event::Tick, "look")]);
    let effects = desk.on(ms(5_057), Event::Looked(holds("text")));
    assert!(evidence(&effects).ends_with("the input box still holds it"));
    let hold = desk.hold(ms(5_058), &pending[1], &pending[1..]).unwrap();
    assert_eq!(hold.rule, "draft");
    assert!(
        hold.reason.starts_with("what was written before"),
        "{}",
        hold.reason
    );
    // A question opens meanwhile.
    let mut desk = swallowed();
    let asked = Sighting {
        dialog: Some("Run rm?".to_owned()),
        ..holds("text")
    };
    let effects = desk.on(ms(4_055), Event::Looked(asked));
    assert!(evidence(&effects).contains("a question opened"));
    // It ends meanwhile: it was written whole.
    play(
        swallowed(),
        &[hear(4_055, Event::Exited(Ending::Exit(0)), "offered 1")],
    );
}

#[test]
fn enter_waits_for_a_text_that_is_shown_late() {
    let pending = [letter(1, Normal)];
    let desk = || {
        let desk = with(|manifest| manifest.submit.seen_within = Wait::millis(2_000));
        let written = [
            (3_001, Doing::Act(&pending), "offer 1"),
            (3_002, recorded(&[1]), "write 1"),
            hear(3_003, Event::Wrote, ""),
            hear(3_053, Event::Tick, "look"),
            looked(3_054, shows(Field::Empty), ""),
            hear(3_500, Event::Tick, ""),
        ];
        play(desk, &written)
    };
    let holds = || shows(Field::Holds("[ph message".to_owned()));
    let late = [
        seen(4_000, holds(), ""),
        hear(4_050, Event::Tick, "look"),
        looked(4_051, holds(), "enter"),
    ];
    play(desk(), &late);
    // One that is never shown gets its Enter all the same.
    let never = [
        hear(5_003, Event::Tick, "look"),
        looked(5_004, shows(Field::Empty), "enter"),
    ];
    play(desk(), &never);
}
