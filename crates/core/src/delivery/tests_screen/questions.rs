//! Questions that a screen shows: texts that wait for their answer, and the answers.

use super::*;

#[test]
fn a_question_in_the_last_moment_parks_the_text() {
    let pending = [letter(1, Normal), raw(2)];
    let park = || {
        let desk = written(with(|_| ()), &pending[..1]);
        let desk = play(desk, &[looked(3_053, asks("Run rm?"), "")]);
        assert!(!desk.is_writing(), "whoever answers needs the keyboard");
        let hold = desk.hold(ms(3_060), &pending[0], &pending);
        assert_eq!(rule(hold), "blocked");
        let other = letter(3, Idle);
        let hold = desk.hold(ms(3_060), &other, std::slice::from_ref(&other));
        assert_eq!(rule(hold), "blocked");
        desk
    };
    let resume = |at| {
        [
            seen(at, holds("text"), "resume"),
            hear(at + 1, Event::Resumed, ""),
            hear(at + 51, Event::Tick, "look"),
        ]
    };
    let enter = [
        looked(4_060, holds("text"), "enter"),
        hear(4_061, Event::Entered, ""),
        seen(4_062, shows(Field::Empty), "offered 1"),
    ];
    let desk = play(park(), &resume(4_000));
    play(desk, &enter);
    // A person types: then not.
    let typed = [
        hear(3_100, Event::Draft, ""),
        seen(3_200, holds("text"), ""),
        hear(3_300, Event::DraftGone, "resume"),
        hear(3_301, Event::Barred, ""),
        hear(3_302, Event::Draft, ""),
    ];
    let desk = play(park(), &typed);
    assert!(desk.is_field_ours(), "the key went to the question");
    // The box is not in sight: then not yet.
    let desk = play(park(), &[seen(4_000, shows(Field::Unseen), "")]);
    let hold = desk.hold(ms(4_001), &pending[0], &[]).unwrap();
    assert_eq!(hold.release, "the input box is seen again");
    play(desk, &resume(4_002));
    // The question has eaten the text: it is not written again as if nothing had been.
    let desk = play(park(), &[seen(4_000, shows(Field::Empty), "resume")]);
    let gone = [
        hear(4_001, Event::Resumed, ""),
        hear(4_051, Event::Tick, "look"),
        looked(4_052, shows(Field::Empty), "uncertain 1"),
    ];
    play(desk, &gone);
    let end = [hear(4_000, Event::Exited(Ending::Exit(0)), "uncertain 1")];
    play(park(), &end);
}

/// A turn of several messages, seen with half of it there before the question.
#[test]
fn a_text_that_was_half_there_is_whole_after_the_question() {
    let pending = [1, 2].map(|n| letter(n << 96, Normal));
    let ids = [1, 2].map(|n| id(n << 96));
    let park = || {
        let mut desk = with(|_| ());
        desk.on(ms(2_900), Event::Paste(true));
        assert_eq!(desk.act(ms(3_000), &pending).len(), 1);
        desk.on(ms(3_001), Event::Recorded(ids.to_vec()));
        let lines = [
            hear(3_002, Event::Wrote, ""),
            seen(3_010, holds("[ph message from: alice id: 00000001]"), ""),
            seen(3_020, asks("Run rm?"), ""),
        ];
        play(desk, &lines)
    };
    let whole =
        "[ph message from: alice id: 00000001] hello [ph message from: alice id: 00000002] hello";
    play(park(), &[seen(4_000, holds(whole), "resume")]);
    // Not where somebody else has typed, nor where a part of it is all there is.
    let desk = play(
        park(),
        &[
            hear(3_100, Event::Draft, ""),
            hear(3_200, Event::DraftGone, ""),
            seen(4_000, holds(whole), ""),
        ],
    );
    assert_eq!(rule(desk.hold(ms(4_001), &pending[0], &[])), "draft");
    let part = "[ph message from: alice id: 00000001] hello [ph";
    play(park(), &[seen(4_000, holds(part), "")]);
}

#[test]
fn what_a_person_adds_to_a_text_that_waits_is_a_draft() {
    const OURS: &str = "[ph message from: alice id: 00000000] hello";
    let pending = [letter(1, Normal)];
    let park = |shown: Option<&str>| {
        let mut lines = vec![
            (3_000, Doing::Act(&pending), "offer 1"),
            (3_001, recorded(&[1]), "write 1"),
            hear(3_002, Event::Wrote, ""),
        ];
        lines.extend(shown.map(|text| seen(3_010, holds(text), "")));
        lines.push(seen(3_020, asks("Run rm?"), ""));
        play(with(|_| ()), &lines)
    };
    // Keys pressed; then the box holds this: are the keys forgotten, and what of Enter after that?
    let check = |shown: Option<&str>, held: &str, is_ours: bool, then: &str| {
        let typed = [
            hear(3_100, Event::Draft, ""),
            seen(3_110, holds(held), ""),
            hear(3_120, Event::Draft, ""),
        ];
        let desk = play(park(shown), &typed);
        assert_eq!(desk.is_field_ours(), is_ours, "{shown:?} {held:?}");
        assert_eq!(rule(desk.hold(ms(3_130), &pending[0], &[])), "draft");
        let desk = play(desk, &[hear(4_120, Event::DraftGone, then)]);
        if then.is_empty() {
            assert_eq!(rule(desk.hold(ms(4_130), &pending[0], &[])), "draft");
        }
    };
    let more = format!("{OURS} and my own words");
    let row = &OURS[..40];
    for shown in [None, Some(OURS)] {
        check(shown, OURS, true, "resume");
        check(shown, &more, false, "");
    }
    // More of it, and of the person's, may stand in the next row.
    check(Some(row), row, false, "resume");
    check(Some("[Pasted text #1]"), "[Pasted text #1]", true, "resume");
    check(Some("[Pasted text #1]"), "[Pasted text #1] no", false, "");
    // Seen in the last moment only: no Enter either.
    let joined = [
        seen(4_000, holds(OURS), "resume"),
        hear(4_001, Event::Resumed, ""),
        hear(4_051, Event::Tick, "look"),
        looked(4_052, holds(&more), ""),
    ];
    let desk = play(park(None), &joined);
    assert!(!desk.is_writing(), "the person needs the keyboard");
}

#[test]
fn an_answer_goes_past_a_text_that_waits() {
    let mut pending = [letter(1, Normal), raw(2)];
    pending[1].message.created_at = ms(3_060).wall;
    let desk = written(with(|_| ()), &pending[..1]);
    let answering = [
        looked(3_053, asks("Run rm?"), ""),
        (3_100, Doing::Act(&pending[1..]), "offer 2"),
        (3_101, recorded(&[2]), "write 2"),
        hear(3_102, Event::Wrote, ""),
        hear(3_152, Event::Tick, "look"),
    ];
    let asked = play(desk, &answering);
    // The same question still stands there: Enter belongs to it.
    play(asked.clone(), &[looked(3_153, asks("Run rm?"), "enter")]);
    // Another does, or none: Enter would answer that, or submit the text.
    for now in [asks("Run all?"), holds("text")] {
        let mut desk = asked.clone();
        let effects = desk.on(ms(3_153), Event::Looked(now));
        assert!(evidence(&effects).ends_with("answered before Enter, which was not pressed"));
    }
}

#[test]
fn an_answer_that_is_taken_gets_no_enter() {
    let mut pending = [raw(1)];
    pending[0].message.envelope.body = crate::message::Body::Inline("2".to_owned());
    let check = |output: bool, before: &str, want: &str| {
        let mut desk = play(with(|_| ()), &[seen(2_900, asks("Run rm?"), "")]);
        let typed = [
            (3_000, Doing::Act(&pending), "offer 1"),
            (3_001, recorded(&[1]), "write 1"),
            hear(3_002, Event::Wrote, ""),
        ];
        desk = play(desk, &typed);
        if output {
            desk = play(desk, &[hear(3_010, Event::Output, "")]);
        }
        let mut desk = play(desk, &[hear(3_052, Event::Tick, "look")]);
        let sighting = Sighting {
            before: Some(before.to_owned()),
            ..asks("Run rm?")
        };
        let effects = desk.on(ms(3_053), Event::Looked(sighting));
        let is_enter = effects == [Effect::Enter];
        assert_eq!(is_enter, want == "enter", "{output} {before:?}");
        assert!(is_enter || evidence(&effects).ends_with(want));
    };
    check(true, "Your choice: 2", "enter");
    check(true, "Your choice: 2  ", "enter");
    check(false, "", "enter");
    // The same words stand there again.
    let went_on = "the program went on before Enter, which was not pressed";
    check(true, "> 1. Yes", went_on);
    check(true, "", went_on);
}

/// Its first character may be all that the question takes, and Enter would go elsewhere.
#[test]
fn the_enter_of_an_answer_waits_until_its_text_is_read() {
    let pending = [raw(1)];
    let asked = play(with(|_| ()), &[seen(2_900, asks("Run rm?"), "")]);
    let typed = [
        (3_000, Doing::Act(&pending), "offer 1"),
        (3_001, recorded(&[1]), "write 1"),
        hear(3_002, Event::Wrote, ""),
    ];
    let desk = play(asked, &typed);
    assert!(desk.awaits_reading());
    let unread = [
        hear(3_010, Event::Unread(true), ""),
        hear(3_052, Event::Tick, "look"),
        looked(3_053, asks("Run rm?"), ""),
        hear(3_103, Event::Tick, "look"),
    ];
    let desk = play(desk, &unread);
    // A look that may be older than that says nothing of it.
    let read = [
        hear(3_104, Event::Unread(false), ""),
        looked(3_105, asks("Run rm?"), ""),
        hear(3_155, Event::Tick, "look"),
    ];
    let read = play(desk.clone(), &read);
    play(read.clone(), &[looked(3_156, asks("Run rm?"), "enter")]);
    play(read, &[looked(3_156, holds("mine"), "offered 1")]);
    // Who never reads it is not waited for without end, and nobody says yes twice.
    let never = [
        looked(4_000, asks("Run rm?"), ""),
        hear(4_050, Event::Tick, "look"),
        looked(5_010, asks("Run rm?"), "uncertain 1"),
    ];
    play(desk, &never);
}

#[test]
fn a_question_is_told_by_all_its_words() {
    let long = |end: &str| Sighting {
        question: Some(format!("Run cd /a/long/way && {end}?")),
        ..asks("Run cd /a/long…")
    };
    let mut pending = [raw(1)];
    pending[0].message.created_at = ms(3_000).wall;
    let typed = [
        seen(2_900, long("ls"), ""),
        (3_000, Doing::Act(&pending), "offer 1"),
        (3_001, recorded(&[1]), "write 1"),
        hear(3_002, Event::Wrote, ""),
        hear(3_052, Event::Tick, "look"),
    ];
    let desk = play(with(|_| ()), &typed);
    play(desk.clone(), &[looked(3_053, long("ls"), "enter")]);
    play(desk, &[looked(3_053, long("rm -rf /"), "offered 1")]);
}

#[test]
fn a_question_that_comes_again_is_another() {
    let mut pending = [raw(1)];
    pending[0].message.envelope.body = crate::message::Body::Inline("yes".to_owned());
    let typed = || {
        let desk = play(with(|_| ()), &[seen(2_900, asks("Go on? [y/N]"), "")]);
        play(
            desk,
            &[
                (3_000, Doing::Act(&pending), "offer 1"),
                (3_001, recorded(&[1]), "write 1"),
                hear(3_002, Event::Wrote, ""),
            ],
        )
    };
    let check = |between: &[Sighting], last: &str, is_entered: bool| {
        let mut desk = typed();
        for (at, sighting) in (3_010..).zip(between) {
            desk.on(ms(at), Event::Seen(sighting.clone()));
        }
        let mut desk = play(desk, &[hear(3_052, Event::Tick, "look")]);
        let effects = desk.on(ms(3_053), Event::Looked(asks(last)));
        let is_enter = effects == [Effect::Enter];
        assert_eq!(is_enter, is_entered, "{between:?} {last}");
        if !is_enter {
            assert!(evidence(&effects).ends_with("answered before Enter, which was not pressed"));
        }
    };
    check(&[], "Go on? [y/N]", true);
    // It closed for a moment.
    for gap in [shows(Field::Empty), shows(Field::Unseen), asks("Sure?")] {
        check(&[gap], "Go on? [y/N]", false);
    }
    // What we have typed stands behind it: that is no other.
    check(&[], "Go on? [y/N] yes", true);
    check(&[asks("Go on? [y/N] y")], "Go on? [y/N] yes", true);
    check(&[asks("Go on? [y/N] y…")], "Go on? [y/N] y…", true);
    check(&[], "Go on? [y/N] no", false);
    check(&[], "Go on? [y/N] yes, all", false);
}

#[test]
fn an_interrupt_dismisses_the_question_that_another_waits_for() {
    let pending = [letter(1, Normal)];
    let urgent = [letter(2, Interrupt)];
    let desk = written(with(|_| ()), &pending);
    let pressed = [
        looked(3_053, asks("Run rm?"), ""),
        (3_100, Doing::Act(&urgent), "key [3]"),
    ];
    let desk = play(desk, &pressed);
    // It is gone: first the one that stands in the box.
    let gone = [
        seen(3_200, holds("text"), ""),
        hear(3_201, Event::Tick, "resume"),
        hear(3_202, Event::Resumed, ""),
        hear(3_252, Event::Tick, "look"),
        looked(3_253, holds("text"), "enter"),
        hear(3_254, Event::Entered, ""),
        seen(3_255, shows(Field::Empty), "offered 1"),
    ];
    play(desk.clone(), &gone);
    // It stays: then nothing is typed.
    let stays = [
        hear(8_100, Event::Tick, "key [3]"),
        hear(13_100, Event::Tick, "key [3]"),
        hear(18_100, Event::Tick, ""),
        (18_101, Doing::Act(&urgent), ""),
    ];
    let desk = play(desk, &stays);
    assert_eq!(rule(desk.hold(ms(18_102), &urgent[0], &urgent)), "blocked");
}
