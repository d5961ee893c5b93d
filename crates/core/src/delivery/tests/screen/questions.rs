//! Questions on the screen: texts that wait for an answer, and the answers.

use super::*;
use crate::message::Body;

#[test]
fn a_question_at_the_last_moment_keeps_the_text_waiting_for_enter() {
    let pending = [mail(1, Normal), raw(2)];
    let awaiting_enter = || {
        let delivery = written(with(|_| ()), &pending[..1]);
        let delivery = play(delivery, &[looked(3_053, asks("Run rm?"), "")]);
        assert!(
            !delivery.is_writing(),
            "the person who answers needs the keyboard"
        );
        let hold = delivery.hold(ms(3_060), &pending[0], &pending);
        assert_eq!(rule(hold), "blocked");
        let other = mail(3, Idle);
        let hold = delivery.hold(ms(3_060), &other, std::slice::from_ref(&other));
        assert_eq!(rule(hold), "blocked");
        delivery
    };
    let resume = |at| {
        [
            seen(at, holds("text"), "resume"),
            on(at + 1, Input::KeyboardLeased(KeyboardUser::Turn), ""),
            tick(at + 51, "look"),
        ]
    };
    let enter = [
        looked(4_060, holds("text"), "enter"),
        on(4_061, Input::EnterPressed(KeyboardUser::Turn), ""),
        seen(4_062, empty(), "offered 1"),
    ];
    play(play(awaiting_enter(), &resume(4_000)), &enter);
    // A person answers the dialog with a key, which is no draft.
    let typed = [
        on(3_100, Input::KeysTyped { is_draft: true }, ""),
        seen(3_200, holds("text"), ""),
    ];
    let delivery = play(awaiting_enter(), &typed);
    assert!(delivery.keys_missed_box(), "the key went to the question");
    play(
        delivery,
        &[on(4_200, Input::KeysTyped { is_draft: false }, "resume")],
    );
    // The key was late and went into the box: no Enter.
    let late = [
        on(3_100, Input::KeysTyped { is_draft: true }, ""),
        seen(3_200, holds("text1"), ""),
        on(4_200, Input::KeysTyped { is_draft: false }, ""),
    ];
    play(awaiting_enter(), &late);
    // The question has taken the text: the message becomes uncertain.
    let delivery = play(awaiting_enter(), &[seen(4_000, empty(), "resume")]);
    let gone = [
        on(4_001, Input::KeyboardLeased(KeyboardUser::Turn), ""),
        tick(4_051, "look"),
        looked(4_052, empty(), "uncertain 1"),
    ];
    play(delivery, &gone);
    let end = [on(4_000, Input::Exited(Ending::Exit(0)), "uncertain 1")];
    play(awaiting_enter(), &end);
}

/// Play an answer with these keys up to the look that follows them.
fn answered(keys: &str) -> Stage {
    answered_at(keys, "")
}

/// Like [`answered`], with a text before the cursor.
fn answered_at(keys: &str, before: &str) -> Stage {
    let mut pending = [raw(1)];
    pending[0].message.envelope.body = Body::Inline(keys.to_owned());
    let typed = [
        seen(2_900, at_cursor("Run rm?", before), ""),
        (3_000, Call::Act(&pending), "offer 1"),
        (3_001, recorded(&[1]), "write 1"),
        on(3_002, Input::Typed(keys.to_owned()), ""),
        tick(3_052, "look"),
    ];
    play(with(|_| ()), &typed)
}

fn at_cursor(what: &str, before: &str) -> Sighting {
    at_cursor_of(asks(what), before)
}

fn at_cursor_of(sighting: Sighting, before: &str) -> Sighting {
    Sighting {
        before: Some(before.to_owned()),
        ..sighting
    }
}

#[test]
fn an_answer_is_accepted_once_its_question_is_gone() {
    for after in [empty(), asks("Run all?"), hidden()] {
        let gone = [looked(3_053, after.clone(), "offered 1; accepted 1")];
        play(answered("2"), &gone);
        // Later, too.
        let later = [
            looked(3_053, asks("Run rm?"), ""),
            seen(3_500, after, "offered 1; accepted 1"),
        ];
        play(answered("2"), &later);
    }
}

#[test]
fn an_answer_without_effect_is_typed_once_more_and_then_fails() {
    let ignored = [
        looked(3_053, asks("Run rm?"), ""),
        tick(4_053, "look"),
        looked(4_054, asks("Run rm?"), "write 1"),
        on(4_055, Input::Typed("2".to_owned()), ""),
        tick(4_105, "look"),
        looked(4_106, asks("Run rm?"), ""),
    ];
    let again = play(answered("2"), &ignored);
    play(
        again.clone(),
        &[seen(4_200, empty(), "offered 1; accepted 1")],
    );
    let fails = [
        tick(5_106, "look"),
        looked(5_107, asks("Run rm?"), "fail 1"),
    ];
    play(again, &fails);
}

#[test]
fn an_answer_is_not_typed_again_while_a_person_has_the_keyboard() {
    let taken = [
        looked(3_053, asks("Run rm?"), ""),
        on(3_500, Input::Paused(PausedBy::Viewer), ""),
        tick(4_053, "look"),
        looked(4_054, asks("Run rm?"), "fail 1"),
    ];
    play(answered("2"), &taken);
}

/// After an ignored key, Enter would choose the first option of the dialog.
#[test]
fn enter_follows_an_answer_only_if_the_dialog_shows_it_at_the_cursor() {
    let check = |keys: &str, before: &str, after: &str, want: &'static str| {
        play(
            answered_at(keys, before),
            &[looked(3_053, at_cursor("Run rm?", after), want)],
        );
    };
    check("2", "Your choice:", "Your choice: 2", "enter");
    check("2", "Your choice:", "Your choice: 2  ", "enter");
    check("", "> 1. Yes", "> 1. Yes", "enter");
    check("2", "> 1. Yes", "> 1. Yes", "");
    check("2", "", "", "");
    check("\u{1b}[B", "", "", "");
    // A hidden cursor in a row that happens to end with the keys.
    check(
        "cancel",
        "Enter to confirm, esc to cancel",
        "Enter to confirm, esc to cancel",
        "",
    );
}

#[test]
fn an_answer_is_judged_only_after_the_program_has_read_it() {
    let unread = [
        on(3_060, Input::InputChecked { is_unread: true }, ""),
        looked(3_061, asks("Run rm?"), ""),
        tick(3_111, "look"),
    ];
    let delivery = play(answered("2"), &unread);
    assert!(delivery.awaits_reading());
    // A look that may be older than the read proves nothing.
    let read = [
        on(3_112, Input::InputChecked { is_unread: false }, ""),
        looked(3_113, asks("Run rm?"), ""),
        tick(3_163, "look"),
        looked(3_164, empty(), "offered 1; accepted 1"),
    ];
    play(delivery.clone(), &read);
    // A program that never reads it is not waited for without end.
    let never = [
        looked(4_000, asks("Run rm?"), ""),
        tick(4_050, "look"),
        looked(5_070, asks("Run rm?"), "fail 1"),
    ];
    play(delivery, &never);
}

#[test]
fn an_answer_goes_before_a_text_that_waits_for_enter() {
    let mut pending = [mail(1, Normal), raw(2)];
    pending[1].message.created_at = ms(3_060).wall;
    let delivery = written(with(|_| ()), &pending[..1]);
    let answering = [
        looked(3_053, asks("Run rm?"), ""),
        (3_100, Call::Act(&pending[1..]), "offer 2"),
        (3_101, recorded(&[2]), "write 2"),
        on(3_102, wrote(), ""),
        tick(3_152, "look"),
        looked(3_153, holds("text"), "offered 2; accepted 2; resume"),
    ];
    play(delivery, &answering);
}

#[test]
fn a_question_is_identified_by_its_full_text() {
    let long = |end: &str| Sighting {
        question: Some(format!("Run cd /a/long/way && {end}?")),
        before: Some("text".to_owned()),
        ..asks("Run cd /a/long…")
    };
    let mut pending = [raw(1)];
    pending[0].message.created_at = ms(3_000).wall;
    pending[0].message.envelope.body = Body::Inline("text".to_owned());
    let typed = [
        seen(2_900, at_cursor_of(long("ls"), ""), ""),
        (3_000, Call::Act(&pending), "offer 1"),
        (3_001, recorded(&[1]), "write 1"),
        on(3_002, wrote(), ""),
        tick(3_052, "look"),
    ];
    let delivery = play(with(|_| ()), &typed);
    play(delivery.clone(), &[looked(3_053, long("ls"), "enter")]);
    play(
        delivery,
        &[looked(3_053, long("rm -rf /"), "offered 1; accepted 1")],
    );
}

#[test]
fn a_repeated_question_is_another_question() {
    let check = |between: &[Sighting], last: &str, is_entered: bool| {
        let mut pending = [raw(1)];
        pending[0].message.envelope.body = Body::Inline("yes".to_owned());
        let typed = [
            seen(2_900, asks("Go on? [y/N]"), ""),
            (3_000, Call::Act(&pending), "offer 1"),
            (3_001, recorded(&[1]), "write 1"),
            on(3_002, Input::Typed("yes".to_owned()), ""),
        ];
        let mut delivery = play(with(|_| ()), &typed);
        for (at, sighting) in (3_010..).zip(between) {
            delivery.on(ms(at), Input::ScreenChanged(sighting.clone()));
        }
        let mut delivery = play(delivery, &[tick(3_052, "look")]);
        let effects = delivery.on(ms(3_053), looked_at(at_cursor(last, "yes")));
        let is_enter = summary(&delivery, &effects) == "enter";
        assert_eq!(is_enter, is_entered, "{between:?} {last}");
    };
    check(&[], "Go on? [y/N]", true);
    // The question closed for a moment.
    for gap in [empty(), hidden(), asks("Sure?")] {
        check(&[gap], "Go on? [y/N]", false);
    }
    // The dialog shows what we have typed as a part of its text.
    check(&[], "Go on? [y/N] yes", true);
    check(&[asks("Go on? [y/N] y")], "Go on? [y/N] yes", true);
    check(&[asks("Go on? [y/N] y…")], "Go on? [y/N] y…", true);
    check(&[], "Go on? [y/N] no", false);
    check(&[], "Go on? [y/N] yes, all", false);
}

#[test]
fn an_interrupt_dismisses_the_question_that_holds_another_message() {
    let pending = [mail(1, Normal)];
    let urgent = [mail(2, Interrupt)];
    let delivery = written(with(|_| ()), &pending);
    let pressed = [
        looked(3_053, asks("Run rm?"), ""),
        (3_100, Call::Act(&urgent), "look"),
        looked(3_101, asks("Run rm?"), "key [3]"),
    ];
    let delivery = play(delivery, &pressed);
    // The question closes: the text in the box goes first.
    let gone = [
        seen(3_200, holds("text"), "resume"),
        on(3_202, Input::KeyboardLeased(KeyboardUser::Turn), ""),
        tick(3_252, "look"),
        looked(3_253, holds("text"), "enter"),
        on(3_254, Input::EnterPressed(KeyboardUser::Turn), ""),
        seen(3_255, empty(), "offered 1"),
    ];
    play(delivery.clone(), &gone);
    // The question stays open: nothing is typed.
    let stays = [
        tick(8_101, "look"),
        looked(8_102, asks("Run rm?"), "key [3]"),
        tick(13_102, "look"),
        looked(13_103, asks("Run rm?"), "key [3]"),
        tick(18_103, ""),
        (18_104, Call::Act(&urgent), ""),
    ];
    let delivery = play(delivery, &stays);
    assert_eq!(
        rule(delivery.hold(ms(18_105), &urgent[0], &urgent)),
        "blocked"
    );
}

#[test]
fn a_question_is_answerable_once_it_has_stopped_changing() {
    let check = |lines: &[Line<'_>], at: u64, want: Answerable| {
        let delivery = play(with(|_| ()), lines);
        assert_eq!(delivery.answerable(ms(at)), want, "at {at}");
    };
    let none = Answerable::No("the program is not asking a question");
    let open = |number, since| OpenQuestion {
        number,
        since: ms(since).wall,
    };
    check(&[], 3_000, none);
    let opened = seen(3_000, asks("Run rm?"), "");
    check(&[opened], 3_499, Answerable::NotYet(open(1, 3_000)));
    let opened = seen(3_000, asks("Run rm?"), "");
    check(&[opened], 3_500, Answerable::Yes(Some(open(1, 3_000))));
    let drawn_in_parts = [
        seen(3_000, asks("Run rm?"), ""),
        seen(3_400, asks("Run rm? 1. Yes"), ""),
    ];
    check(&drawn_in_parts, 3_500, Answerable::NotYet(open(2, 3_400)));
    check(
        &drawn_in_parts,
        3_900,
        Answerable::Yes(Some(open(2, 3_400))),
    );
    let closed = [seen(3_000, asks("Run rm?"), ""), seen(3_400, empty(), "")];
    check(&closed, 3_900, none);
}
