//! Drafts that a screen shows: held for, put aside, brought back.

use super::*;

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
