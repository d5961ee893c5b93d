//! Lines that are typed and are not messages.

use super::screen::{after_output, asks, empty, holds, seen, with};
use super::*;
use super::{Call, Line, mail, play};
use crate::activity::tests::ms;
use crate::harness::Wait;
use crate::priority::Priority;

const BY: KeyboardUser = KeyboardUser::Nudge;

fn requested<'a>(at: u64, token: u64, want: &'a str) -> Line<'a> {
    let request = NudgeRequest {
        token: RequestToken(token),
        text: "go on\r".to_owned(),
        expires_at: Some(ms(at + 3_000).wall),
    };
    (at, Call::On(Input::NudgeRequested(request)), want)
}

fn looked<'a>(at: u64, sighting: Sighting, want: &'a str) -> Line<'a> {
    let by = BY;
    (at, Call::On(Input::Looked { by, sighting }), want)
}

fn leased<'a>(at: u64, want: &'a str) -> Line<'a> {
    (at, Call::On(Input::KeyboardLeased(BY)), want)
}

fn on<'a>(at: u64, input: Input, want: &'a str) -> Line<'a> {
    (at, Call::On(input), want)
}

/// Play a nudge up to its Enter, which is pressed at 3,060 unless the look shows something else.
fn looked_before_enter(look: Sighting, want: &str) -> Stage {
    play(
        with(|manifest| manifest.submit.seen_within = Wait::millis(1_000)),
        &[
            requested(3_000, 1, "lease for a line"),
            leased(3_001, "look"),
            looked(3_002, empty(), "line go on"),
            on(3_003, Input::LineTyped, ""),
            seen(3_010, holds("go on"), ""),
            tick(3_060, "look"),
            looked(3_061, look, want),
        ],
    )
}

#[test]
fn a_line_is_typed_into_an_empty_box_and_submitted() {
    let pending = [mail(1, Priority::Normal)];
    let delivery = looked_before_enter(holds("go on"), "enter");
    let hold = delivery.hold(ms(3_062), &pending[0], &pending).unwrap();
    assert_eq!(hold.reason, "a nudge is on its way into the terminal");
    assert_eq!(delivery.turn_in_flight(), None);
    let mut delivery = play(
        delivery,
        &[
            (3_062, Call::Act(&pending), ""),
            on(3_063, Input::EnterPressed(BY), "nudge typed"),
        ],
    );
    assert!(!delivery.is_writing());
    let judged = delivery.activity();
    assert_eq!(judged.evidence, "a line was written to it");
    assert_eq!(delivery.on(ms(3_064), Input::EnterPressed(BY)), []);
}

#[test]
fn a_line_is_refused_where_a_message_would_wait() {
    let refused = |input: Input, why: &str| {
        let want = format!("nudge refused: {why}");
        play(
            with(|_| ()),
            &[on(2_900, input, ""), requested(3_000, 1, &want)],
        );
    };
    let pause = Input::Paused(PausedBy::Viewer);
    refused(pause, "delivery is paused");
    let typed = Input::KeysTyped { is_draft: true };
    let draft = "a person has typed something and not submitted it";
    refused(typed, draft);
    let dialog = Input::ScreenChanged(asks("Run rm?"));
    refused(dialog, "the program waits for an answer");
    // A rule comes while the keyboard is requested, or before the look.
    let lines = |look, want| {
        [
            requested(3_000, 1, "lease for a line"),
            leased(3_001, "look"),
            looked(3_002, look, want),
        ]
    };
    let asked = "nudge refused: the program waits for an answer";
    play(with(|_| ()), &lines(asks("Run rm?"), asked));
    let draft = format!("nudge refused: {draft}");
    play(with(|_| ()), &lines(holds("mine"), &draft));
    let person = [
        requested(3_000, 1, "lease for a line"),
        on(
            3_001,
            Input::KeyboardRefused(BY),
            "nudge refused: a person is typing",
        ),
    ];
    play(with(|_| ()), &person);
}

#[test]
fn a_line_waits_a_second_for_a_screen_that_changes() {
    let changing = || {
        let lines = [
            seen(2_990, after_output(1, empty()), ""),
            requested(3_000, 1, ""),
            seen(3_050, after_output(2, empty()), ""),
        ];
        play(with(|_| ()), &lines)
    };
    play(changing(), &[tick(3_150, "lease for a line")]);
    // The screen changes again while the keyboard is requested.
    let again = [
        tick(3_150, "lease for a line"),
        leased(3_160, "look"),
        looked(3_170, after_output(3, empty()), ""),
        seen(3_260, after_output(4, empty()), ""),
        seen(3_900, after_output(5, empty()), ""),
        seen(3_990, after_output(6, empty()), ""),
        tick(4_000, "nudge refused: the screen is changing"),
    ];
    let delivery = play(changing(), &again[..3]);
    assert!(!delivery.is_writing(), "the keyboard is released");
    play(delivery, &again[3..]);
}

#[test]
fn enter_is_withheld_from_a_line_that_the_box_does_not_show_alone() {
    let delivery = looked_before_enter(holds("go on, mine"), "");
    let not_alone = "nudge refused: the input box does not hold exactly this line; the line was \
                     typed, and Enter was not pressed";
    let late = 4_003;
    assert_eq!(delivery.next_wakeup(), Some(ms(late).mono));
    play(
        delivery,
        &[
            tick(late, "look"),
            looked(late + 1, holds("go on, mine"), not_alone),
        ],
    );
    let opened = "nudge refused: a question opened (Run rm?); the line was typed, and Enter was not \
                  pressed";
    let delivery = looked_before_enter(asks("Run rm?"), "");
    let asked = [
        tick(late, "look"),
        looked(late + 1, asks("Run rm?"), opened),
    ];
    assert!(!play(delivery, &asked).is_writing());
}

#[test]
fn the_sender_is_told_in_time() {
    let busy = "nudge refused: something else is still being typed, or has not been read";
    // Nobody grants the keyboard. The next line waits for the result of that request.
    let abandoned = [
        requested(3_000, 1, "lease for a line"),
        requested(4_000, 2, ""),
        tick(8_000, busy),
        tick(9_000, busy),
        leased(9_500, "look"),
        looked(9_501, empty(), ""),
    ];
    let delivery = play(with(|_| ()), &abandoned);
    assert_eq!(delivery.next_wakeup(), None);
    // The program does not read. The line is finished nevertheless.
    let unread = [
        requested(3_000, 1, "lease for a line"),
        leased(3_001, "look"),
        looked(3_002, empty(), "line go on"),
        tick(8_002, "nudge refused: the program does not read its input"),
        on(9_000, Input::LineTyped, ""),
        seen(9_010, holds("go on"), ""),
        tick(9_060, "look"),
        looked(9_061, holds("go on"), "enter"),
        on(9_062, Input::EnterPressed(BY), ""),
    ];
    play(with(|_| ()), &unread);
    // The program ends.
    let gone = "nudge refused: the terminal is gone";
    let both = format!("{gone}; {gone}");
    let ends = [
        requested(3_000, 1, "lease for a line"),
        requested(3_001, 2, ""),
        on(3_002, Input::Exited(Ending::Exit(0)), &both),
    ];
    play(with(|_| ()), &ends);
}
