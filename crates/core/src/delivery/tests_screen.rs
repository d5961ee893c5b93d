//! A desk that goes by what the screen shows.

use super::tests::{Doing, Line, id, idle_at, letter, play, raw, recorded, rule};
use super::*;
use crate::activity::tests::ms;
use crate::harness::{Claim, Field, Manifest, Says, Sighting, Source, Wait};
use crate::id::MessageId;
use crate::priority::Priority::{Idle, Interrupt, Normal};
use crate::session::Ending;
use proptest::prelude::*;
use std::sync::Arc;

/// A program whose input box, questions and work can be seen.
pub(super) fn manifest() -> Manifest {
    let pattern = |text: &str| text.to_owned().try_into().unwrap();
    let mut manifest = Manifest::generic();
    manifest.dialogs.push(crate::harness::Dialog {
        name: "permission".to_owned(),
        pattern: pattern("Do you want"),
        lines: 10,
    });
    manifest.draft.pattern = Some(pattern("^> (?<draft>.*)$"));
    manifest
}

pub(super) fn with(change: impl FnOnce(&mut Manifest)) -> Desk {
    let mut manifest = manifest();
    change(&mut manifest);
    manifest.check().unwrap();
    let harness = Arc::new(manifest);
    let desk = Desk::new(
        Manner {
            harness,
            path_bytes: 80,
            reach: crate::delivery::Reach::Terminal,
        },
        ms(0),
    );
    let mut desk = idle_at(desk);
    desk.on(ms(2_500), Event::Seen(shows(Field::Empty)));
    desk
}

pub(super) fn keys(said: &str) -> crate::harness::Keys {
    said.to_owned().try_into().unwrap()
}

pub(super) fn shows(field: Field) -> Sighting {
    Sighting {
        field,
        ..Sighting::default()
    }
}

pub(super) fn holds(text: &str) -> Sighting {
    shows(Field::Holds(text.to_owned()))
}

pub(super) fn asks(what: &str) -> Sighting {
    Sighting {
        dialog: Some(what.to_owned()),
        ..Sighting::default()
    }
}

pub(super) fn claims(says: Says) -> Sighting {
    Sighting {
        claims: vec![Claim {
            source: Source::Title,
            says,
            evidence: "its title says so".to_owned(),
        }],
        field: Field::Empty,
        ..Sighting::default()
    }
}

pub(super) fn seen<'a>(at: u64, sighting: Sighting, want: &'a str) -> Line<'a> {
    (at, Doing::Hear(Event::Seen(sighting)), want)
}

pub(super) fn looked<'a>(at: u64, sighting: Sighting, want: &'a str) -> Line<'a> {
    (at, Doing::Hear(Event::Looked(sighting)), want)
}

pub(super) fn hear<'a>(at: u64, event: Event, want: &'a str) -> Line<'a> {
    (at, Doing::Hear(event), want)
}

/// Up to the look before Enter.
pub(super) fn written(desk: Desk, pending: &[Letter]) -> Desk {
    play(
        desk,
        &[
            (3_000, Doing::Act(pending), "offer 1"),
            (3_001, recorded(&[1]), "write 1"),
            hear(3_002, Event::Wrote, ""),
            seen(3_010, holds("text"), ""),
            hear(3_052, Event::Tick, "look"),
        ],
    )
}

pub(super) fn evidence(effects: &[Effect]) -> &str {
    match effects {
        [Effect::Offered { evidence, .. }] => evidence,
        other => panic!("{other:?}"),
    }
}

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

#[test]
fn no_interrupt_key_destroys_a_draft() {
    let urgent = [letter(1, Interrupt)];
    let desk = with(|manifest| manifest.draft.stash = Some(keys("ctrl+s")));
    let busy = [
        seen(2_600, holds("mine"), ""),
        hear(5_000, Event::Tick, ""),
        hear(5_001, Event::Output, ""),
    ];
    let desk = play(desk, &busy);
    // It goes without; the draft comes back after it.
    let goes = [
        (5_002, Doing::Act(&urgent), "offer 1"),
        (5_003, recorded(&[1]), "strokes [19]"),
        hear(5_004, Event::Stroked, ""),
        seen(5_010, shows(Field::Empty), "look"),
        looked(5_011, shows(Field::Empty), "write 1"),
        hear(5_012, Event::Wrote, ""),
        hear(5_062, Event::Tick, "look"),
    ];
    play(desk.clone(), &goes);
    // Nor does it dismiss a question.
    let asks = Sighting {
        dialog: Some("Run command".to_owned()),
        ..holds("mine")
    };
    let asked = [seen(5_010, asks, ""), (5_011, Doing::Act(&urgent), "")];
    let desk = play(desk, &asked);
    let hold = desk.hold(ms(5_012), &urgent[0], &urgent).unwrap();
    assert_eq!(hold.rule, "draft");
    let harm = "the interrupt key might destroy that";
    assert!(hold.reason.ends_with(harm), "{hold:?}");
}

#[test]
fn a_draft_comes_back_when_the_box_is_free_again() {
    let pending = [letter(1, Normal)];
    let next = [letter(2, Normal)];
    let desk = with(|manifest| {
        manifest.draft.stash = Some(keys("ctrl+s"));
        manifest.draft.restore = Some(keys("ctrl+y"));
        manifest.submit.retries = 0;
    });
    let swallowed = [
        seen(2_600, holds("mine"), ""),
        hear(5_000, Event::Tick, ""),
        (5_000, Doing::Act(&pending), "offer 1"),
        (5_001, recorded(&[1]), "strokes [19]"),
        hear(5_002, Event::Stroked, ""),
        seen(5_010, shows(Field::Empty), "look"),
        looked(5_011, shows(Field::Empty), "write 1"),
        hear(5_012, Event::Wrote, ""),
        hear(5_062, Event::Tick, "look"),
        looked(5_063, holds("text"), "enter"),
        hear(5_064, Event::Entered, ""),
        hear(6_064, Event::Tick, "look"),
        looked(6_065, holds("text"), "offered 1"),
        (6_066, Doing::Act(&next), ""),
    ];
    let desk = play(desk, &swallowed);
    let hold = desk.hold(ms(6_067), &next[0], &next).unwrap();
    assert!(hold.release.contains("comes back then"), "{hold:?}");
    let back = || {
        [
            seen(7_000, shows(Field::Empty), "resume"),
            (7_001, Doing::Act(&next), ""),
        ]
    };
    let returned = [
        hear(7_002, Event::Resumed, "strokes [25]"),
        hear(7_003, Event::Stroked, ""),
        seen(7_004, holds("mine"), ""),
        seen(7_100, shows(Field::Empty), ""),
        (7_101, Doing::Act(&next), "offer 2"),
    ];
    play(play(desk.clone(), &back()), &returned);
    // A person was faster: then after that.
    let barred = [
        hear(7_002, Event::Barred, ""),
        hear(7_003, Event::Draft, ""),
        hear(8_000, Event::DraftGone, "resume"),
    ];
    play(play(desk, &back()), &barred);
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
fn a_draft_on_the_screen_is_one() {
    let pending = [letter(1, Normal), letter(2, Interrupt)];
    let desk = play(with(|_| ()), &[seen(2_600, holds("mine"), "")]);
    for letter in &pending {
        let hold = desk.hold(ms(2_700), letter, &pending).unwrap();
        assert_eq!(hold.rule, "draft");
        assert_eq!(hold.since, ms(2_600).wall);
        assert!(!format!("{hold:?}").contains("mine"), "it is the person's");
    }
    let gone = [
        seen(3_000, shows(Field::Empty), ""),
        (3_000, Doing::Act(&pending[..1]), "offer 1"),
    ];
    play(desk, &gone);
}

#[test]
fn an_empty_box_tells_of_keys_only_where_it_shows_them() {
    let check = |events: &[Line<'_>], want: bool| {
        let mut desk = with(|_| ());
        for (at, doing, _) in events {
            if let Doing::Hear(event) = doing {
                desk.on(ms(*at), event.clone());
            }
        }
        assert_eq!(desk.is_field_ours(), want);
    };
    let empty = |at| seen(at, shows(Field::Empty), "");
    let key = |at| hear(at, Event::Draft, "");
    // Nothing it ever showed: what is typed may be hidden.
    check(&[key(2_600), empty(2_700)], false);
    check(
        &[key(2_600), seen(2_650, holds("a"), ""), empty(2_700)],
        true,
    );
    // A question was answered.
    let asked = || seen(2_550, asks("Run rm?"), "");
    check(&[asked(), key(2_600), empty(2_700)], true);
    check(&[asked(), key(2_600), empty(2_700), key(2_800)], false);
    check(&[key(2_500), asked(), key(2_600), empty(2_700)], false);
    check(&[asked(), key(2_600)], false);
}

#[test]
fn a_draft_is_put_aside_once_it_is_left_alone() {
    let pending = [letter(1, Normal)];
    let desk = |restore: Option<&str>| {
        let desk = with(|manifest| {
            manifest.draft.stash = Some(keys("ctrl+s"));
            manifest.draft.restore = restore.map(keys);
        });
        let desk = play(
            desk,
            &[
                hear(2_600, Event::Draft, ""),
                seen(2_610, holds("mine"), ""),
                hear(3_000, Event::Draft, ""),
                (4_999, Doing::Act(&pending), ""),
            ],
        );
        assert_eq!(rule(desk.hold(ms(4_999), &pending[0], &pending)), "draft");
        assert_eq!(desk.next_wakeup(), Some(ms(5_000).mono));
        play(
            desk,
            &[
                hear(5_000, Event::Tick, ""),
                (5_000, Doing::Act(&pending), "offer 1"),
                (5_001, recorded(&[1]), "strokes [19]"),
                hear(5_002, Event::Stroked, ""),
            ],
        )
    };
    assert!(desk(None).is_writing());
    let submit = || {
        [
            seen(5_010, shows(Field::Empty), "look"),
            looked(5_011, shows(Field::Empty), "write 1"),
            hear(5_012, Event::Wrote, ""),
            hear(5_062, Event::Tick, "look"),
            looked(5_063, holds("text"), "enter"),
            hear(5_064, Event::Entered, ""),
        ]
    };
    // By itself.
    let aside = play(desk(None), &submit());
    play(aside, &[seen(5_065, holds("mine"), "offered 1")]);
    // By a key.
    let aside = play(desk(Some("ctrl+y")), &submit());
    let back = [
        seen(5_065, shows(Field::Empty), "strokes [25]"),
        hear(5_066, Event::Stroked, "offered 1"),
    ];
    play(aside, &back);
    // It does not work: nothing was written, and it is not tried again on the same draft.
    let fails = [
        hear(7_001, Event::Tick, ""),
        hear(7_002, Event::Tick, "look"),
        looked(7_003, holds("mine"), "withdraw 1"),
        (9_900, Doing::Act(&pending), ""),
    ];
    let stuck = play(desk(None), &fails);
    assert_eq!(rule(stuck.hold(ms(9_901), &pending[0], &pending)), "draft");
    // Whatever breaks off before the text leaves nothing behind.
    let broken = Event::WriteFailed("EIO".to_owned());
    play(desk(None), &[hear(5_003, broken, "withdraw 1")]);
}

#[test]
fn a_key_that_would_quit_needs_proof_of_work() {
    let urgent = [letter(1, Interrupt)];
    let desk = || {
        with(|manifest| {
            manifest.interrupt.quits_when_idle = true;
            manifest.interrupt.dismiss = Some(keys("esc"));
        })
    };
    // Output is none.
    let mut busy = play(
        desk(),
        &[
            hear(3_000, Event::Output, ""),
            (3_001, Doing::Act(&urgent), "look"),
            looked(3_002, shows(Field::Empty), "offer 1"),
            (3_003, recorded(&[1]), "write 1"),
            hear(3_004, Event::Wrote, ""),
            hear(3_054, Event::Tick, "look"),
            looked(3_055, shows(Field::Empty), "enter"),
        ],
    );
    let effects = busy.on(ms(3_056), Event::Entered);
    assert!(evidence(&effects).ends_with("no interrupt key: it might have ended the program"));
    // Its title is. Each press needs it anew.
    let works = [
        seen(3_000, claims(Says::Working), ""),
        (3_001, Doing::Act(&urgent), "look"),
        looked(3_002, claims(Says::Working), "key [3]"),
        hear(8_002, Event::Tick, "look"),
        looked(8_003, claims(Says::Working), "key [3]"),
        hear(13_003, Event::Tick, "look"),
        looked(13_004, claims(Says::Idle), "offer 1"),
    ];
    play(desk(), &works);
    // A question is dismissed by its own key.
    let asked = [
        seen(3_000, asks("Run rm?"), ""),
        (3_001, Doing::Act(&urgent), "key [27]"),
    ];
    play(desk(), &asked);
    // An idle program gets none.
    play(desk(), &[(3_000, Doing::Act(&urgent), "offer 1")]);
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

#[test]
fn the_keys_are_pressed_again_when_the_harness_says() {
    let urgent = [letter(1, Interrupt)];
    let desk = with(|manifest| {
        manifest.interrupt.keys = keys("esc");
        manifest.interrupt.wait = Wait::millis(1_500);
    });
    let works = [
        seen(3_000, claims(Says::Working), ""),
        (3_001, Doing::Act(&urgent), "key [27]"),
        hear(4_500, Event::Tick, ""),
        hear(4_501, Event::Tick, "key [27]"),
        seen(4_600, claims(Says::Idle), "offer 1"),
    ];
    play(desk, &works);
}

#[test]
fn what_an_interrupt_puts_back_is_cleared() {
    let urgent = [letter(1, Interrupt)];
    let desk = || {
        let desk = with(|manifest| manifest.draft.clear = Some(keys("ctrl+u")));
        play(
            desk,
            &[
                seen(3_000, claims(Says::Working), ""),
                (3_001, Doing::Act(&urgent), "key [3]"),
            ],
        )
    };
    let put_back = Sighting {
        field: Field::Holds("the last prompt".to_owned()),
        ..claims(Says::Idle)
    };
    let cleared = [
        seen(3_100, put_back.clone(), "offer 1"),
        (3_101, recorded(&[1]), "strokes [21]"),
        hear(3_102, Event::Stroked, ""),
        seen(3_103, shows(Field::Empty), "look"),
        looked(3_104, shows(Field::Empty), "write 1"),
    ];
    play(desk(), &cleared);
    // What a person has typed is not.
    let typed = [
        hear(3_050, Event::Draft, ""),
        seen(3_100, put_back, ""),
        (9_000, Doing::Act(&urgent), ""),
    ];
    play(desk(), &typed);
}

#[test]
fn what_comes_back_late_is_waited_for() {
    let urgent = [letter(1, Interrupt)];
    let desk = || {
        let desk = with(|manifest| {
            manifest.draft.clear = Some(keys("ctrl+u"));
            manifest.interrupt.settle = Wait::millis(500);
        });
        let begun = [
            seen(3_000, claims(Says::Working), ""),
            (3_001, Doing::Act(&urgent), "key [3]"),
            seen(3_100, claims(Says::Idle), ""),
        ];
        let desk = play(desk, &begun);
        assert_eq!(desk.next_wakeup(), Some(ms(3_600).mono));
        desk
    };
    let held = Field::Holds("the last prompt".to_owned());
    let put_back = Sighting {
        field: held,
        ..claims(Says::Idle)
    };
    let cleared = [
        seen(3_132, put_back, ""),
        hear(3_599, Event::Tick, ""),
        hear(3_600, Event::Tick, "offer 1"),
        (3_601, recorded(&[1]), "strokes [21]"),
    ];
    play(desk(), &cleared);
    // Where nothing comes back, it goes in then.
    let plain = [
        hear(3_600, Event::Tick, "offer 1"),
        (3_601, recorded(&[1]), "write 1"),
    ];
    play(desk(), &plain);
    // It works again: the key's own time counts.
    let busy = [
        seen(3_200, claims(Says::Working), ""),
        hear(3_600, Event::Tick, ""),
        hear(8_001, Event::Tick, "key [3]"),
    ];
    play(desk(), &busy);
}

#[test]
fn the_screen_decides_what_is_work() {
    let later = [letter(1, Idle)];
    let desk = play(with(|_| ()), &[seen(3_000, claims(Says::Working), "")]);
    let hold = desk.hold(ms(9_000), &later[0], &later).unwrap();
    assert_eq!(
        (hold.rule, hold.evidence.as_str()),
        ("working", "its title says so")
    );
    let rests = [
        seen(9_001, claims(Says::Idle), ""),
        hear(9_002, Event::Output, ""),
        (9_003, Doing::Act(&later), "offer 1"),
    ];
    play(desk, &rests);
    assert!(with(|_| ()).knows_dialogs() && !super::tests::starting().knows_dialogs());
    assert_eq!(id(1), later[0].message.id);
}

#[test]
fn normal_mail_waits_for_the_end_of_work_where_the_harness_says_so() {
    let (mail, urgent) = ([letter(1, Normal)], [letter(1, Interrupt)]);
    let waits = || {
        let desk = with(|manifest| manifest.submit.while_working = false);
        play(desk, &[seen(3_000, claims(Says::Working), "")])
    };
    let desk = play(waits(), &[(3_001, Doing::Act(&mail), "")]);
    let hold = desk.hold(ms(3_002), &mail[0], &mail);
    assert_eq!(rule(hold), "working");
    let rests = [
        seen(9_001, claims(Says::Idle), ""),
        (9_003, Doing::Act(&mail), "offer 1"),
    ];
    play(desk, &rests);
    play(waits(), &[(3_001, Doing::Act(&urgent), "key [3]")]);
}

/// What can be seen at any moment.
fn sighting() -> impl Strategy<Value = Sighting> {
    let field = prop_oneof![
        3 => Just(Field::Empty),
        1 => Just(Field::Unseen),
        2 => Just(Field::Holds("text".to_owned())),
        1 => Just(Field::Holds("mine".to_owned())),
    ];
    let says = prop_oneof![
        Just(vec![]),
        Just(claims(Says::Working).claims),
        Just(claims(Says::Idle).claims),
    ];
    let dialog = prop_oneof![3 => Just(None), 1 => Just(Some("Run rm?".to_owned()))];
    (field, says, dialog).prop_map(|(field, claims, dialog)| Sighting {
        ready: false,
        claims,
        field: if dialog.is_some() {
            Field::Unseen
        } else {
            field
        },
        announced: false,
        dialog,
        ..Sighting::default()
    })
}

fn happening() -> impl Strategy<Value = Option<Event>> {
    prop_oneof![
        8 => Just(None),
        2 => Just(Some(Event::Tick)),
        1 => Just(Some(Event::Output)),
        4 => sighting().prop_map(|sighting| Some(Event::Seen(sighting))),
        1 => Just(Some(Event::Draft)),
        1 => Just(Some(Event::DraftGone)),
        1 => Just(Some(Event::Paste(true))),
        1 => Just(Some(Event::WriteFailed("EIO".to_owned()))),
    ]
}

proptest! {
    /// Whatever a screen shows and whenever: one turn at a time, written once and ended once;
    /// Enter only right after a look that shows no question.
    #[test]
    fn no_screen_misleads_a_desk(
        lanes in proptest::collection::vec(
            proptest::sample::select(&[Normal, Interrupt, Idle][..]), 1..6),
        happenings in proptest::collection::vec((happening(), sighting(), 0..1_500_u64), 1..200),
        quits: bool,
    ) {
        let mut pending: Vec<_> = (1..).zip(&lanes).map(|(n, lane)| letter(n, *lane)).collect();
        pending.sort_by_key(|letter| letter.message.envelope.priority);
        let mut desk = with(|manifest| {
            manifest.draft.stash = Some(keys("ctrl+s"));
            manifest.draft.restore = Some(keys("ctrl+y"));
            manifest.draft.clear = Some(keys("ctrl+u"));
            manifest.interrupt.quits_when_idle = quits;
        });
        let mut now = 3_000;
        let mut todo: Option<Event> = None;
        let mut under_way: Vec<MessageId> = Vec::new();
        let mut has_written = false;
        for (event, shown, pass) in happenings {
            now += pass;
            let event = match (event, &todo) {
                (Some(event), _) => event,
                (None, Some(Event::Looked(_))) => {
                    todo = None;
                    Event::Looked(shown)
                }
                (None, Some(_)) => todo.take().expect("it is there"),
                (None, None) => Event::Tick,
            };
            let last = match &event {
                Event::Looked(sighting) => Some(sighting.clone()),
                _ => None,
            };
            let is_failure = matches!(event, Event::WriteFailed(_));
            let mut effects = desk.on(ms(now), event);
            if is_failure && !effects.is_empty() {
                todo = None;
            }
            effects.extend(desk.act(ms(now), &pending));
            for effect in effects {
                match effect {
                    Effect::Offer { ids } => {
                        prop_assert!(under_way.is_empty(), "one at a time");
                        pending.retain(|l| !ids.contains(&l.message.id));
                        todo = Some(Event::Recorded(ids.clone()));
                        under_way = ids;
                        has_written = false;
                    }
                    Effect::Write { ids } => {
                        prop_assert!(!std::mem::replace(&mut has_written, true), "once");
                        prop_assert_eq!(&ids, &under_way);
                        todo = Some(Event::Wrote);
                    }
                    Effect::Enter => {
                        prop_assert!(has_written);
                        let last = last.as_ref().expect("Enter follows a look");
                        prop_assert_eq!(&last.dialog, &None);
                        todo = Some(Event::Entered);
                    }
                    Effect::Look => todo = Some(Event::Looked(Sighting::default())),
                    Effect::Strokes(_) => todo = Some(Event::Stroked),
                    Effect::Resume => todo = Some(Event::Resumed),
                    Effect::Abort | Effect::GoOn | Effect::Call { .. } => {
                        prop_assert!(false, "it has no door");
                    }
                    Effect::Key(_) => {
                        let sure = last.as_ref().is_some_and(|seen| {
                            seen.dialog.is_some() || seen.claims == claims(Says::Working).claims
                        });
                        let is_blocked = matches!(desk.activity().activity, Activity::Blocked(_));
                        prop_assert!(!quits || sure || is_blocked, "it might quit");
                    }
                    Effect::Withdraw { ids, .. } => {
                        prop_assert!(!has_written);
                        under_way.retain(|id| !ids.contains(id));
                    }
                    Effect::Offered { ids, .. } | Effect::Uncertain { ids, .. } => {
                        prop_assert!(has_written);
                        prop_assert_eq!(&ids, &under_way, "each once");
                        under_way.clear();
                    }
                    Effect::Accepted { .. } => prop_assert!(false, "nothing proves it"),
                    Effect::Remind { .. }
                    | Effect::WriteReminder { .. }
                    | Effect::Give { .. }
                    | Effect::Fail { .. } => {
                        panic!("nobody owes an answer here, and none is raw: {effect:?}")
                    }
                }
            }
            // Every wait has a reason, and whoever waits for somebody's answer lets him type.
            for letter in &pending {
                let is_due = matches!(desk.next(ms(now), &pending), Decision::Offer { .. });
                let held = desk.hold(ms(now), letter, &pending).is_some();
                prop_assert!(held || is_due, "{letter:?}");
            }
            let is_blocked = matches!(desk.activity().activity, Activity::Blocked(_));
            prop_assert!(todo.is_some() || !is_blocked || !desk.is_writing());
        }
    }
}
