//! Drafts that are put aside and come back, and what else the simulation has shown: each of these
//! went wrong once.

use super::tests::{Doing, id, letter, owed, play, raw, recorded, rule};
use super::tests_screen::{
    asks, claims, evidence, giving_way, hear, holds, keys, looked, seen, shows, stashing, with,
    written,
};
use super::*;
use crate::activity::tests::ms;
use crate::harness::{Field, Says, Sighting};
use crate::priority::Priority::{Interrupt, Normal};
use std::sync::Arc;

fn unread(is_so: bool) -> Event {
    Event::Unread(is_so)
}

/// A desk at rest, before a draft that can be put aside and brought back by a key.
fn drafted() -> Desk {
    let desk = with(stashing);
    let typed = [seen(2_600, holds("mine"), ""), hear(4_600, Event::Tick, "")];
    play(desk, &typed)
}

/// The draft is put aside for message 1, and that written.
fn aside(pending: &[Letter]) -> Desk {
    aside_at(drafted(), pending)
}

fn aside_at(desk: Desk, pending: &[Letter]) -> Desk {
    let begun = (Doing::Act(pending), "offer 1");
    let desk = play(desk, &giving_way(begun, recorded(&[1]), "write 1"));
    play(desk, &[looked(5_056, holds("text"), "enter")])
}

#[test]
fn a_reminder_puts_a_draft_aside_and_brings_it_back() {
    let owes = [owed(1, 0)];
    let begun = (Doing::Remind(&owes), "remind 1");
    let written = giving_way(begun, recorded(&[1]), "write reminder 1");
    let lines = [
        looked(5_056, holds("reminder"), "enter"),
        hear(5_057, Event::Entered, ""),
        seen(5_058, shows(Field::Empty), "strokes [25]"),
        // It was recorded before it was typed, and is not again.
        hear(5_059, Event::Stroked, ""),
        seen(5_060, holds("mine"), ""),
        (5_061, Doing::Remind(&owes), ""),
    ];
    let desk = play(play(drafted(), &written), &lines);
    assert!(!desk.is_writing());
}

#[test]
fn a_question_delays_a_draft_and_does_not_keep_it() {
    let pending = [letter(1, Normal)];
    let asked = [
        hear(5_057, Event::Entered, ""),
        seen(5_058, asks("Run rm?"), "offered 1"),
        seen(6_000, shows(Field::Empty), "resume"),
        hear(6_001, Event::Resumed, "strokes [25]"),
        hear(6_002, Event::Stroked, ""),
        seen(6_003, holds("mine"), ""),
        hear(9_000, Event::Tick, ""),
    ];
    play(aside(&pending), &asked);
    // Somebody types first: then after that.
    let typed = [
        hear(5_057, Event::Entered, ""),
        seen(5_058, asks("Run rm?"), "offered 1"),
        seen(6_000, shows(Field::Empty), "resume"),
        hear(6_001, Event::Barred, ""),
        hear(6_002, Event::Draft, ""),
        hear(6_003, Event::DraftGone, "resume"),
    ];
    play(aside(&pending), &typed);
    // So where the question opens before the text.
    let early = [
        (5_000, Doing::Act(&pending), "offer 1"),
        (5_001, recorded(&[1]), "strokes [19]"),
        hear(5_002, Event::Stroked, ""),
        seen(5_003, shows(Field::Empty), "look"),
        looked(5_004, asks("Run rm?"), "withdraw 1"),
        seen(5_005, shows(Field::Empty), "resume"),
    ];
    play(drafted(), &early);
}

#[test]
fn one_draft_is_put_aside_at_a_time() {
    let pending = [letter(1, Normal), letter(2, Normal)];
    let another = [
        hear(5_057, Event::Entered, ""),
        seen(5_058, asks("Run rm?"), "offered 1"),
        seen(6_000, holds("another"), ""),
        hear(9_000, Event::Tick, ""),
        (9_001, Doing::Act(&pending[1..]), ""),
    ];
    let desk = play(aside(&pending[..1]), &another);
    assert_eq!(
        rule(desk.hold(ms(9_001), &pending[1], &pending[1..])),
        "draft"
    );
    play(desk, &[seen(9_002, shows(Field::Empty), "resume")]);
}

#[test]
fn keys_that_are_read_late_put_a_draft_aside_all_the_same() {
    let pending = [letter(1, Normal)];
    let late = |is_unread, want| {
        let lines = [
            (5_000, Doing::Act(&pending), "offer 1"),
            (5_001, recorded(&[1]), "strokes [19]"),
            hear(5_002, Event::Stroked, ""),
            hear(5_003, unread(is_unread), ""),
            hear(7_002, Event::Tick, "look"),
            looked(7_003, holds("mine"), "withdraw 1"),
            hear(7_004, unread(false), ""),
            seen(7_005, shows(Field::Empty), want),
        ];
        play(drafted(), &lines);
    };
    late(true, "resume");
    // Read, and without effect: then a person has emptied the box.
    late(false, "");
}

#[test]
fn a_draft_behind_a_question_is_not_what_an_interrupt_puts_back() {
    let urgent = [letter(1, Interrupt)];
    let desk = with(|manifest| manifest.draft.clear = Some(keys("ctrl+u")));
    let hidden = [
        seen(3_000, holds("mine"), ""),
        seen(3_001, asks("Run rm?"), ""),
        (3_002, Doing::Act(&urgent), "key [3]"),
        seen(3_003, holds("mine"), ""),
        (9_000, Doing::Act(&urgent), ""),
    ];
    play(desk, &hidden);
    // Nor is what fills the box after a turn of ours.
    let desk = with(|manifest| manifest.draft.clear = Some(keys("ctrl+u")));
    let later = [
        seen(3_000, claims(Says::Working), ""),
        (3_001, Doing::Act(&urgent), "key [3]"),
        seen(3_002, claims(Says::Idle), "offer 1"),
        (3_003, recorded(&[1]), "write 1"),
        hear(3_004, Event::Wrote, ""),
        hear(3_054, Event::Tick, "look"),
        looked(3_055, holds("text"), "enter"),
        hear(3_056, Event::Entered, ""),
        seen(3_057, holds("mine"), "offered 1"),
    ];
    let desk = play(desk, &later);
    assert!(!desk.puts_aside());
}

/// The box is seen before the program has read the keys, and a question hides it before it shows
/// them.
#[test]
fn a_box_that_is_empty_until_keys_are_read_was_not_empty() {
    let urgent = [letter(1, Interrupt)];
    let desk = with(|manifest| manifest.draft.clear = Some(keys("ctrl+u")));
    let typed = [
        seen(2_900, shows(Field::Unseen), ""),
        hear(3_000, Event::Draft, ""),
        seen(3_001, shows(Field::Empty), ""),
        seen(3_100, asks("Run rm?"), ""),
        hear(3_200, Event::DraftGone, ""),
        (3_201, Doing::Act(&urgent), "key [3]"),
        seen(3_300, holds("mine"), ""),
    ];
    let desk = play(desk, &typed);
    assert!(!desk.puts_aside());
}

#[test]
fn nothing_is_typed_before_a_draft_that_comes_back_once_the_program_reads() {
    let pending = [letter(1, Normal)];
    let urgent = [letter(2, Interrupt)];
    let back = [
        hear(5_057, Event::Entered, ""),
        seen(5_058, shows(Field::Empty), "strokes [25]"),
        hear(5_059, Event::Stroked, "offered 1"),
        hear(5_060, unread(true), ""),
        (5_061, Doing::Act(&urgent), ""),
    ];
    let desk = play(aside(&pending), &back);
    assert_eq!(rule(desk.hold(ms(5_062), &urgent[0], &urgent)), "draft");
    // It is there, and holds what comes by itself.
    let read = [
        hear(5_070, unread(false), ""),
        seen(5_071, holds("mine"), ""),
        (5_072, Doing::Act(&urgent), ""),
    ];
    let desk = play(desk.clone(), &read);
    assert_eq!(rule(desk.hold(ms(5_073), &urgent[0], &urgent)), "draft");
    // Later, a program that does not read is interrupted as ever.
    let later = [
        seen(6_000, shows(Field::Empty), ""),
        seen(6_001, claims(Says::Working), ""),
        hear(6_002, unread(true), ""),
        (6_003, Doing::Act(&urgent), "key [3]"),
    ];
    play(desk, &later);
}

#[test]
fn what_comes_next_waits_until_a_draft_is_back() {
    let pending = [letter(1, Normal)];
    let next = [letter(2, Normal)];
    let back = [
        hear(5_057, Event::Entered, ""),
        seen(5_058, shows(Field::Empty), "strokes [25]"),
        hear(5_059, Event::Stroked, "offered 1"),
        (5_060, Doing::Act(&next), ""),
    ];
    let desk = play(aside(&pending), &back);
    assert!(desk.awaits_reading());
    let hold = desk.hold(ms(5_061), &next[0], &next).unwrap();
    let said = (hold.rule, hold.reason.as_str());
    assert_eq!(said, ("draft", "a draft that was put aside comes back"));
    // It is put aside again, once it is there and left alone.
    let there = [
        seen(5_100, holds("mine"), ""),
        (5_101, Doing::Act(&next), ""),
        hear(7_100, Event::Tick, ""),
        (7_101, Doing::Act(&next), "offer 2"),
    ];
    play(desk.clone(), &there);
    // One that does not come is not waited for without end, once the program has read the keys.
    let gone = [
        hear(5_062, unread(true), ""),
        hear(9_000, Event::Tick, ""),
        (9_001, Doing::Act(&next), ""),
        hear(9_100, unread(false), ""),
        (11_099, Doing::Act(&next), ""),
        hear(11_100, Event::Tick, ""),
        (11_101, Doing::Act(&next), "offer 2"),
    ];
    play(desk, &gone);
}

/// One that no key brings back, and whose turn may not have been submitted.
#[test]
fn none_is_put_in_the_place_of_a_draft_that_may_still_lie_aside() {
    let pending = [letter(1, Normal)];
    let desk = || {
        let mut desk = drafted();
        Arc::make_mut(&mut desk.manner.harness).draft.restore = None;
        let begun = (Doing::Act(&pending), "offer 1");
        play(desk, &giving_way(begun, recorded(&[1]), "write 1"))
    };
    let again = |entered: &[_]| {
        let desk = play(desk(), entered);
        let typed = [
            hear(8_000, Event::Draft, ""),
            seen(8_001, holds("another"), ""),
            hear(12_000, Event::Tick, ""),
        ];
        play(desk, &typed).puts_aside()
    };
    let unseen = [
        looked(5_056, shows(Field::Empty), "enter"),
        hear(5_057, Event::Entered, "offered 1"),
    ];
    assert!(!again(&unseen));
    let seen = [
        looked(5_056, holds("text"), "enter"),
        hear(5_057, Event::Entered, ""),
        seen(5_058, shows(Field::Empty), "offered 1"),
    ];
    assert!(again(&seen));
}

#[test]
fn a_draft_that_comes_back_is_not_what_an_interrupt_puts_back() {
    let pending = [letter(1, Normal)];
    let urgent = [letter(2, Interrupt)];
    let clears = || {
        let mut desk = drafted();
        Arc::make_mut(&mut desk.manner.harness).draft.clear = Some(keys("ctrl+u"));
        desk
    };
    // The key was pressed while it lay aside.
    let before = [
        (5_000, Doing::Act(&pending), "offer 1"),
        (5_001, recorded(&[1]), "strokes [19]"),
        hear(5_002, Event::Stroked, ""),
        seen(5_003, shows(Field::Empty), "look"),
        looked(5_004, asks("Run rm?"), "withdraw 1"),
        (5_005, Doing::Act(&urgent), "key [3]"),
        hear(5_006, Event::Paused(PausedBy::Viewer), ""),
        seen(5_007, shows(Field::Empty), "resume"),
        hear(5_008, Event::Released(PausedBy::Viewer), ""),
        hear(5_009, Event::Resumed, "strokes [25]"),
        hear(5_010, Event::Stroked, ""),
        seen(5_011, holds("mine"), ""),
    ];
    let desk = play(clears(), &before);
    assert!(!desk.puts_aside());
    // It is not pressed before the draft shows.
    let after = [
        hear(5_057, Event::Entered, ""),
        seen(5_058, shows(Field::Empty), "strokes [25]"),
        hear(5_059, Event::Stroked, "offered 1"),
        seen(5_060, claims(Says::Working), ""),
        (5_060, Doing::Act(&urgent), ""),
        seen(5_061, holds("mine"), ""),
    ];
    let desk = play(aside_at(clears(), &pending), &after);
    assert!(!desk.puts_aside());
}

#[test]
fn enter_is_not_pressed_again_before_the_first_is_read() {
    let pending = [letter(1, Normal)];
    let mut desk = play(
        written(with(|_| ()), &pending),
        &[
            looked(3_053, holds("text"), "enter"),
            hear(3_054, Event::Entered, ""),
            hear(3_055, unread(true), ""),
            hear(4_054, Event::Tick, "look"),
        ],
    );
    assert!(desk.awaits_reading());
    let effects = desk.on(ms(4_055), Event::Looked(holds("text")));
    assert!(evidence(&effects).ends_with("the program has not read its Enter yet"));
}

#[test]
fn what_the_box_shows_after_enter_is_said_and_no_more() {
    let pending = [letter(1, Normal)];
    let entered = || {
        let enter = [looked(3_053, holds("text"), "enter")];
        play(written(with(|_| ()), &pending), &enter)
    };
    let said = |desk: &mut Desk, event: Event, want: &str| {
        let effects = desk.on(ms(3_060), event);
        let says = evidence(&effects);
        assert!(says.ends_with(want), "{says}");
    };
    // It was seen before the terminal told that it has the key.
    let mut desk = play(entered(), &[seen(3_054, shows(Field::Empty), "")]);
    said(&mut desk, Event::Entered, "; the input box let go of it");
    // A question hides it.
    let mut desk = play(entered(), &[hear(3_054, Event::Entered, "")]);
    let hidden = Event::Seen(asks("Run rm?"));
    said(&mut desk, hidden, "the text may not be submitted");
    // Something else does.
    let hidden = [
        hear(3_054, Event::Entered, ""),
        seen(3_055, Sighting::default(), ""),
        hear(4_054, Event::Tick, "look"),
    ];
    let mut desk = play(entered(), &hidden);
    let unseen = Event::Looked(Sighting::default());
    said(&mut desk, unseen, "the input box is out of sight since");
}

#[test]
fn a_text_that_waited_is_submitted_alone() {
    let pending = [letter(1, Normal)];
    let park = || {
        let desk = written(with(|_| ()), &pending);
        play(desk, &[looked(3_053, asks("Run rm?"), "")])
    };
    for other in ["mine", "mine text"] {
        let mixed = [
            hear(3_100, Event::Draft, ""),
            seen(3_200, holds(other), ""),
            hear(3_300, Event::DraftGone, ""),
        ];
        let desk = play(park(), &mixed);
        let held = desk.hold(ms(3_301), &pending[0], &pending);
        assert_eq!(rule(held), "draft", "{other}");
        // The person has submitted it, or thrown it away: nobody knows which.
        let gone = [
            seen(3_400, shows(Field::Empty), "resume"),
            hear(3_401, Event::Resumed, ""),
            hear(3_451, Event::Tick, "look"),
            looked(3_452, shows(Field::Empty), "uncertain 1"),
        ];
        play(desk.clone(), &gone);
        // Only ours is left of it.
        let ours = [
            seen(3_400, holds("text"), "resume"),
            hear(3_401, Event::Resumed, ""),
            hear(3_451, Event::Tick, "look"),
            looked(3_452, holds("text"), "enter"),
        ];
        play(desk, &ours);
    }
    // That it holds our id does not make it ours alone.
    let added = format!("mine {}", id(1).id8());
    let desk = play(park(), &[seen(3_200, holds(&added), "")]);
    assert!(!desk.is_field_ours());
    // It goes on at once when the journal has had its rest.
    let mut answer = raw(2);
    answer.message.created_at = ms(3_060).wall;
    let rested = [
        (3_100, Doing::Act(std::slice::from_ref(&answer)), "offer 2"),
        hear(3_101, Event::NotRecorded("full".to_owned()), ""),
        seen(3_102, holds("text"), ""),
        hear(4_101, Event::Tick, "resume"),
    ];
    play(park(), &rested);
}

/// Two in one turn, that waits for its Enter: how a box would show them is not known.
fn unseen(pending: &[Letter; 2]) -> Desk {
    let lines = [
        hear(2_900, Event::Paste(true), ""),
        (3_000, Doing::Act(pending), "offer 1,2"),
        (3_001, recorded(&[1, 2]), "write 1,2"),
        hear(3_002, Event::Wrote, ""),
        hear(3_052, Event::Tick, "look"),
        looked(3_053, asks("Run rm?"), ""),
    ];
    play(with(|_| ()), &lines)
}

#[test]
fn a_text_that_was_never_seen_alone_gets_no_enter_once_a_person_has_typed() {
    let pending = [letter(1, Normal), letter(2, Normal)];
    let park = || unseen(&pending);
    // The person's Enter has answered the question; the key before it may stand in the box.
    let typed = [
        hear(3_100, Event::Draft, ""),
        hear(3_200, Event::DraftGone, ""),
        seen(3_300, holds("y text"), ""),
        hear(9_000, Event::Tick, ""),
    ];
    let desk = play(park(), &typed);
    assert_eq!(rule(desk.hold(ms(9_000), &pending[0], &pending)), "draft");
    // Nobody has typed: then it is ours.
    play(park(), &[seen(3_300, holds("text"), "resume")]);
}

#[test]
fn a_key_that_is_told_of_late_is_not_learnt_as_a_text_of_ours() {
    let pending = [letter(1, Normal), letter(2, Normal)];
    let late = [
        seen(3_300, holds("x"), "resume"),
        hear(3_310, Event::DraftGone, ""),
        hear(3_320, Event::Resumed, ""),
        hear(9_000, Event::Tick, ""),
    ];
    let desk = play(unseen(&pending), &late);
    assert_eq!(rule(desk.hold(ms(9_000), &pending[0], &pending)), "draft");
}

#[test]
fn a_text_that_waited_may_grow_while_the_keyboard_is_asked_for() {
    let pending = [letter(1, Normal), letter(2, Normal)];
    let whole = format!("{} {} whole", id(1).id8(), id(2).id8());
    let half = &whole[..12];
    let before = [
        seen(3_300, holds(half), "resume"),
        seen(3_310, holds(&whole), ""),
        hear(3_320, Event::Resumed, ""),
    ];
    let after = [
        seen(3_300, holds(half), "resume"),
        hear(3_310, Event::Resumed, ""),
        seen(3_320, holds(&whole), ""),
    ];
    for grows in [before, after] {
        let desk = play(unseen(&pending), &grows);
        let entered = [
            hear(3_400, Event::Tick, "look"),
            looked(3_401, holds(&whole), "enter"),
        ];
        play(desk, &entered);
    }
}

#[test]
fn the_keyboard_is_given_back_where_more_stands_beside_a_text_that_waited() {
    let pending = [letter(1, Normal), letter(2, Normal)];
    let joined = [
        seen(3_300, holds("text"), "resume"),
        hear(3_310, Event::Resumed, ""),
        seen(3_320, holds("text and more"), ""),
    ];
    let desk = play(unseen(&pending), &joined);
    assert!(!desk.is_writing());
    assert_eq!(rule(desk.hold(ms(3_320), &pending[0], &pending)), "draft");
    // Once it is gone, it goes on.
    play(desk, &[seen(3_500, holds("text"), "resume")]);
}

#[test]
fn an_answer_is_not_typed_into_another_question() {
    let mut answer = [raw(1)];
    answer[0].message.created_at = ms(3_001).wall;
    for other in [asks("Run all?"), shows(Field::Empty)] {
        let lines = [
            seen(3_000, asks("Run rm?"), ""),
            (3_002, Doing::Act(&answer), "offer 1"),
            seen(3_003, other, ""),
            (3_004, recorded(&[1]), "withdraw 1"),
        ];
        play(with(|_| ()), &lines);
    }
}

#[test]
fn before_its_key_an_interrupt_interrupts() {
    let urgent = [letter(1, Interrupt)];
    let desk = with(|manifest| manifest.interrupt.quits_when_idle = true);
    let looking = [
        seen(3_000, claims(Says::Working), ""),
        (3_001, Doing::Act(&urgent), "look"),
    ];
    let desk = play(desk, &looking);
    let hold = desk.hold(ms(9_000), &urgent[0], &urgent).unwrap();
    assert_eq!(hold.rule, "interrupting");
    assert_eq!(hold.evidence, "the interrupt key was pressed 0 time(s)");
}
