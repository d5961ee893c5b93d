use super::*;
use crate::activity::tests::ms;
use crate::id::MessageId;
use crate::mail::tests::{message, with_steps};
use crate::message::Body;
use crate::priority::Priority;
use crate::receipt::Step;
use crate::session::Ending;
use jiff::SignedDuration;
use proptest::prelude::*;
use uuid::Uuid;

const PATH: usize = 80;

pub(super) fn id(n: u128) -> MessageId {
    MessageId(Uuid::from_u128(n))
}

pub(super) fn letter(n: u128, priority: Priority) -> Letter {
    let mut message = message(n, "alice", "bob");
    message.envelope.priority = priority;
    with_steps(&message, &[])
}

pub(super) fn raw(n: u128) -> Letter {
    let mut raw = letter(n, Priority::Interrupt);
    raw.message.envelope.raw = true;
    raw.message.created_at = ms(3_000).wall;
    raw
}

fn sized(n: u128, bytes: usize) -> Letter {
    let mut letter = letter(n, Priority::Normal);
    letter.message.envelope.body = Body::Inline("x".repeat(bytes));
    letter
}

pub(super) fn starting() -> Desk {
    Desk::new(Manner::generic(PATH), ms(0))
}

/// Idle since 2 s.
fn idle() -> Desk {
    idle_at(starting())
}

/// The same of a desk that has just begun.
pub(super) fn idle_at(mut desk: Desk) -> Desk {
    desk.on(ms(0), Event::Output);
    desk.on(ms(2_000), Event::Tick);
    desk
}

fn after(mut desk: Desk, events: &[Event]) -> Desk {
    for event in events {
        desk.on(ms(3_000), event.clone());
    }
    desk
}

fn working() -> Desk {
    after(idle(), &[Event::Output])
}

fn blocked() -> Desk {
    after(working(), &[dialog("Run rm?")])
}

fn paused() -> Desk {
    after(idle(), &[Event::Paused(PausedBy::Viewer)])
}

fn drafting() -> Desk {
    after(idle(), &[Event::Draft])
}

fn exited() -> Desk {
    after(idle(), &[Event::Exited(Ending::Exit(0))])
}

fn dialog(what: &str) -> Event {
    Event::Dialog(Some(what.to_owned()))
}

pub(super) fn rule(hold: Option<crate::why::Hold>) -> &'static str {
    hold.map_or("-", |hold| hold.rule)
}

#[test]
fn what_goes_when() {
    // For interrupt, normal, idle-first, idle and raw, each alone: goes ("+"), goes after the
    // interrupt key ("key"), or the rule that holds it.
    let check = |what: &str, desk: &Desk, want: [&str; 5]| {
        let lanes = Priority::ALL.map(|priority| letter(1, priority));
        let lanes = lanes.into_iter().chain([raw(1)]);
        for (letter, want) in lanes.zip(want) {
            let pending = [letter];
            let got = match desk.next(ms(3_000), &pending) {
                Decision::Offer { interrupt, .. } if interrupt => "key",
                Decision::Offer { .. } => "+",
                Decision::Wait { .. } => rule(desk.hold(ms(3_000), &pending[0], &pending)),
            };
            assert_eq!(got, want, "{what}: {:?}", pending[0].message.envelope);
        }
    };
    check("starting", &starting(), ["starting"; 5]);
    check("idle", &idle(), ["+"; 5]);
    let busy = ["key", "+", "working", "working", "+"];
    check("working", &working(), busy);
    let asked = ["key", "blocked", "blocked", "blocked", "+"];
    check("blocked", &blocked(), asked);
    check("paused", &paused(), ["paused"; 5]);
    check("draft", &drafting(), ["draft"; 5]);
    check("exited", &exited(), ["exited"; 5]);
    let two = after(
        paused(),
        &[
            Event::Paused(PausedBy::Request),
            Event::Paused(PausedBy::Viewer),
            Event::Released(PausedBy::Viewer),
        ],
    );
    // What cannot wait passes a pause that was asked for, but no person at the keyboard.
    let [p, goes] = ["paused", "+"];
    check("paused by request", &two, [goes, p, p, p, goes]);
    let both = after(two.clone(), &[Event::Paused(PausedBy::Interactive)]);
    check("interactive too", &both, [p; 5]);
    let busy_then = after(two.clone(), &[Event::Output]);
    check("paused at work", &busy_then, ["key", p, p, p, goes]);
    let none = after(
        two,
        &[
            Event::Released(PausedBy::Request),
            Event::Released(PausedBy::Request),
        ],
    );
    check("released", &none, ["+"; 5]);
    let clear = after(drafting(), &[Event::DraftGone]);
    check("draft gone", &clear, ["+"; 5]);
    check("answered", &after(blocked(), &[Event::Dialog(None)]), busy);
    // Its key might end a program that has just begun; its question can be answered.
    let early = after(starting(), &[dialog("Trust this folder?")]);
    let [s, goes] = ["starting", "+"];
    check("asked while starting", &early, [s, s, s, s, goes]);
}

#[test]
fn one_turn_holds_what_is_due_together() {
    let check = |desk: &Desk, pending: &[Letter], want: &[u128]| {
        let ids = match desk.next(ms(3_000), pending) {
            Decision::Offer { ids, .. } => ids,
            Decision::Wait { .. } => Vec::new(),
        };
        let want: Vec<_> = want.iter().map(|n| id(*n)).collect();
        assert_eq!(ids, want);
    };
    use Priority::{Idle, IdleFirst, Interrupt, Normal};
    let pasting = |desk| after(desk, &[Event::Paste(true)]);
    let all = [
        letter(1, Interrupt),
        letter(2, Interrupt),
        letter(3, Normal),
        letter(4, Normal),
        letter(5, IdleFirst),
        letter(6, Idle),
    ];
    check(&pasting(idle()), &all, &[1]);
    check(&pasting(idle()), &all[2..], &[3, 4, 5, 6]);
    check(&pasting(working()), &all[2..], &[3, 4]);
    check(&pasting(working()), &all[4..], &[]);
    // Typed, one at a time: a line break would submit.
    check(&idle(), &all[2..], &[3]);
    let between = [letter(1, Normal), raw(2), letter(3, Normal)];
    check(&pasting(idle()), &between, &[1]);
    check(&pasting(idle()), &between[1..], &[2]);
    // Whole messages, up to 8 KiB.
    let many: Vec<_> = (1..=60).map(|n| sized(n, 300)).collect();
    let Decision::Offer { ids, .. } = pasting(idle()).next(ms(3_000), &many) else {
        panic!("nothing is due");
    };
    let one = turn::size(&many[0], turn::Telling::Here, Input::Pasted, PATH);
    assert_eq!(ids.len(), turn::TURN / one);
    // What was read, ran out or is not due yet since the look-up is left out.
    let mut later = letter(1, Normal);
    later.message.envelope.not_before = Some(ms(4_000).wall);
    let mut gone = letter(2, Normal);
    gone.message.envelope.expires_at = Some(ms(3_000).wall);
    let read = with_steps(&letter(3, Normal).message, &[Step::Read]);
    let shown = with_steps(&letter(4, Normal).message, &[Step::Shown]);
    let plain = letter(5, Normal);
    check(&pasting(idle()), &[later, gone, read, shown, plain], &[5]);
}

/// What is done to a desk, at which millisecond, and what it must say to it.
pub(super) type Line<'a> = (u64, Doing<'a>, &'a str);

pub(super) enum Doing<'a> {
    Hear(Event),
    Act(&'a [Letter]),
    Remind(&'a [Letter]),
}

fn said(effects: &[Effect]) -> String {
    let list = |ids: &[MessageId]| {
        // Those that have short ids of their own differ in their first digits alone.
        let number = |id: &MessageId| match id.0.as_u128() {
            high if high >> 96 > 0 => high >> 96,
            low => low,
        };
        let ids: Vec<_> = ids.iter().map(|id| number(id).to_string()).collect();
        ids.join(",")
    };
    let words = effects.iter().map(|effect| match effect {
        Effect::Key(key) => format!("key {key:?}"),
        Effect::Abort => "abort".to_owned(),
        Effect::GoOn => "go on".to_owned(),
        Effect::Call { ids, .. } => format!("call {}", list(ids)),
        Effect::Offer { ids } => format!("offer {}", list(ids)),
        Effect::Write { ids } => format!("write {}", list(ids)),
        Effect::Enter => "enter".to_owned(),
        Effect::Look => "look".to_owned(),
        Effect::Strokes(keys) => format!("strokes {keys:?}"),
        Effect::Resume => "resume".to_owned(),
        Effect::Offered { ids, .. } => format!("offered {}", list(ids)),
        Effect::Give { ids, .. } => format!("give {}", list(ids)),
        Effect::Accepted { ids, .. } => format!("accepted {}", list(ids)),
        Effect::Withdraw { ids, .. } => format!("withdraw {}", list(ids)),
        Effect::Uncertain { ids, .. } => format!("uncertain {}", list(ids)),
        Effect::Remind { ids } => format!("remind {}", list(ids)),
        Effect::WriteReminder { ids } => format!("write reminder {}", list(ids)),
        Effect::Fail { ids, .. } => format!("fail {}", list(ids)),
    });
    words.collect::<Vec<_>>().join("; ")
}

pub(super) fn play(mut desk: Desk, lines: &[Line<'_>]) -> Desk {
    for (at, doing, want) in lines {
        let (what, effects) = match doing {
            Doing::Hear(event) => (format!("{event:?}"), desk.on(ms(*at), event.clone())),
            Doing::Act(pending) => ("act".to_owned(), desk.act(ms(*at), pending)),
            Doing::Remind(owed) => ("remind".to_owned(), desk.remind(ms(*at), owed)),
        };
        assert_eq!(said(&effects), *want, "{what} at {at}");
    }
    desk
}

pub(super) fn recorded(ids: &[u128]) -> Doing<'static> {
    Doing::Hear(Event::Recorded(ids.iter().map(|n| id(*n)).collect()))
}

#[test]
fn an_offer_is_recorded_written_entered_and_proven() {
    use Doing::{Act, Hear};
    let pending = [letter(1, Priority::Normal), letter(2, Priority::Normal)];
    let next = [letter(2, Priority::Idle)];
    let desk = play(
        idle(),
        &[
            (3_000, Act(&pending), "offer 1"),
            (3_000, Act(&pending), ""),
            (3_001, recorded(&[1]), "write 1"),
            (3_002, Hear(Event::Wrote), ""),
            (3_051, Hear(Event::Tick), ""),
            (3_052, Hear(Event::Tick), "enter"),
            (3_052, Act(&next), ""),
            (3_053, Hear(Event::Entered), "offered 1"),
            // It counts as working until it is quiet.
            (3_054, Act(&next), ""),
            (5_052, Hear(Event::Tick), ""),
            (5_052, Act(&next), ""),
            (5_053, Hear(Event::Tick), ""),
            (5_053, Act(&next), "offer 2"),
        ],
    );
    assert!(!desk.is_writing());
}

pub(super) fn owed(n: u128, reminded: usize) -> Letter {
    let mut message = message(n, "alice", "bob");
    message.envelope.expects_reply = true;
    let steps = [&[Step::Offered][..], &vec![Step::Reminded; reminded]].concat();
    with_steps(&message, &steps)
}

#[test]
fn an_agent_is_reminded_each_time_it_becomes_idle_again() {
    use Doing::{Act, Hear, Remind};
    let owes = [owed(1, 0), owed(2, 9), owed(3, 10)];
    let mail = [letter(4, Priority::Normal)];
    let desk = play(
        idle(),
        &[
            (3_000, Remind(&owes), "remind 1,2"),
            (3_000, Remind(&owes), ""),
            (3_000, Act(&mail), ""),
            (3_001, recorded(&[1, 2]), "write reminder 1,2"),
            (3_002, Hear(Event::Wrote), ""),
            (3_052, Hear(Event::Tick), "enter"),
            (3_053, Hear(Event::Entered), ""),
            // It counts as working; then it is idle again.
            (3_054, Remind(&owes), ""),
            (5_053, Hear(Event::Tick), ""),
            // That was the end of a reminder: no reason for another so soon.
            (5_053, Remind(&owes[..1]), ""),
            (63_052, Remind(&owes[..1]), ""),
            (63_053, Hear(Event::Tick), ""),
            (63_053, Remind(&owes[..1]), "remind 1"),
            // It has answered meanwhile.
            (63_054, recorded(&[]), ""),
            (63_055, Remind(&owes[..1]), ""),
            (63_056, Act(&mail), "offer 4"),
        ],
    );
    assert!(!desk.is_writing());
    for desk in [
        starting(),
        working(),
        blocked(),
        paused(),
        drafting(),
        exited(),
    ] {
        play(desk, &[(3_000, Remind(&owes), "")]);
    }
    // What comes between the fact and the first byte goes before it.
    for event in [
        Event::Draft,
        Event::Paused(PausedBy::Request),
        dialog("Run rm?"),
    ] {
        let lines = [
            (3_000, Remind(&owes), "remind 1,2"),
            (3_000, Hear(event), ""),
            (3_001, recorded(&[1, 2]), ""),
            (3_002, Remind(&owes), ""),
        ];
        assert!(!play(idle(), &lines).is_writing());
    }
    let cut = [
        (3_000, Remind(&owes), "remind 1,2"),
        (3_001, recorded(&[1, 2]), "write reminder 1,2"),
        (3_002, Hear(Event::WriteFailed("EIO".into())), ""),
    ];
    assert!(!play(idle(), &cut).is_writing());
}

#[test]
fn reminders_in_a_row_come_further_and_further_apart() {
    let owes = [owed(1, 0)];
    let mail = [letter(4, Priority::Normal)];
    // When the next comes after a turn that ended at this time.
    let turn = |desk: &mut Desk, from: u64, effects: Vec<Effect>| {
        assert_eq!(effects.len(), 1, "at {from}");
        let ids = match &effects[0] {
            Effect::Remind { ids } | Effect::Offer { ids } => ids.clone(),
            other => panic!("{other:?}"),
        };
        desk.on(ms(from), Event::Recorded(ids));
        desk.on(ms(from), Event::Wrote);
        desk.on(ms(from + 50), Event::Tick);
        desk.on(ms(from + 50), Event::Entered);
        desk.on(ms(from + 2_050), Event::Tick);
        assert!(desk.remind(ms(from + 2_050), &owes).is_empty(), "at {from}");
    };
    let mut desk = idle();
    let mut now = 3_000;
    for minutes in [1, 2, 4, 8] {
        let effects = desk.remind(ms(now), &owes);
        turn(&mut desk, now, effects);
        now += 50 + minutes * 60_000;
        assert_eq!(desk.next_wakeup(), Some(ms(now).mono), "nothing sooner");
        assert!(desk.remind(ms(now - 1), &owes).is_empty());
        desk.on(ms(now), Event::Tick);
    }
    let effects = desk.remind(ms(now), &owes);
    turn(&mut desk, now, effects);
    // A turn of something else is a reason.
    now += 3_000;
    let effects = desk.act(ms(now), &mail);
    assert_eq!(effects.len(), 1);
    desk.on(ms(now), Event::Recorded(vec![id(4)]));
    desk.on(ms(now), Event::Wrote);
    desk.on(ms(now + 50), Event::Tick);
    desk.on(ms(now + 50), Event::Entered);
    desk.on(ms(now + 2_050), Event::Tick);
    assert_eq!(desk.remind(ms(now + 2_050), &owes).len(), 1);
}

#[test]
fn an_interrupt_key_needs_more_than_an_echo() {
    use Doing::{Act, Hear};
    let first = [letter(1, Priority::Normal)];
    let urgent = [letter(2, Priority::Interrupt)];
    let given = play(
        idle(),
        &[
            (3_000, Act(&first), "offer 1"),
            (3_001, recorded(&[1]), "write 1"),
            (3_002, Hear(Event::Output), ""),
            (3_003, Hear(Event::Wrote), ""),
            (3_053, Hear(Event::Tick), "enter"),
            (3_054, Hear(Event::Output), ""),
            (3_055, Hear(Event::Entered), "offered 1"),
            (3_056, Hear(Event::Output), ""),
        ],
    );
    assert_eq!(given.activity().activity, Activity::Working);
    play(given.clone(), &[(3_100, Act(&urgent), "offer 2")]);
    let works = [
        (3_600, Hear(Event::Output), ""),
        (3_601, Act(&urgent), "key [3]"),
    ];
    play(given, &works);
    // Nor is the echo of a person's keys.
    let typed = [
        (3_000, Hear(Event::Draft), ""),
        (3_001, Hear(Event::Output), ""),
        (3_100, Hear(Event::DraftGone), ""),
        (3_101, Hear(Event::Output), ""),
        (3_102, Act(&urgent), "offer 2"),
    ];
    play(idle(), &typed);
}

#[test]
fn a_deadline_ends_the_wait_for_an_idle_agent() {
    let mut late = letter(1, Priority::Idle);
    late.message.envelope.deadline = Some(ms(3_000).wall);
    let pending = [late];
    let busy = working();
    let Decision::Wait { until } = busy.next(ms(2_999), &pending) else {
        panic!("it is too early");
    };
    assert_eq!(until, Some(Duration::from_millis(3_000)));
    let hold = busy.hold(ms(2_999), &pending[0], &pending).unwrap();
    assert!(
        hold.release.contains("goes as a normal message"),
        "{}",
        hold.release
    );
    let goes = Decision::Offer {
        ids: vec![id(1)],
        interrupt: false,
    };
    assert_eq!(busy.next(ms(3_000), &pending), goes);
    // What holds normal mail holds it all the same, and says what became of it.
    let hold = blocked().hold(ms(3_000), &pending[0], &pending).unwrap();
    assert_eq!(hold.rule, "blocked");
    assert!(
        hold.evidence.contains("promoted from idle to normal"),
        "{}",
        hold.evidence
    );
}

#[test]
fn what_was_dealt_with_meanwhile_is_not_written() {
    use Doing::{Act, Hear};
    let pending = [letter(1, Priority::Normal), letter(2, Priority::Normal)];
    let pasting = || after(idle(), &[Event::Paste(true)]);
    let begin = || (3_000, Act(&pending), "offer 1,2");
    play(pasting(), &[begin(), (3_001, recorded(&[2]), "write 2")]);
    play(pasting(), &[begin(), (3_001, recorded(&[]), "")]);
    // In the moment in between, the way was barred.
    for event in [
        Event::Draft,
        Event::Paused(PausedBy::Viewer),
        dialog("Run rm?"),
        Event::Exited(Ending::Exit(0)),
    ] {
        let lines = [
            begin(),
            (3_000, Hear(event), ""),
            (3_001, recorded(&[1, 2]), "withdraw 1,2"),
        ];
        play(pasting(), &lines);
    }
    let narrow = [
        begin(),
        (3_000, Hear(Event::Paste(false)), ""),
        (3_001, recorded(&[1, 2]), "withdraw 2; write 1"),
    ];
    play(pasting(), &narrow);
    // So was the way of an answer, whose question came while the program was starting.
    let answer = [raw(1)];
    let gone = [
        (3_000, Act(&answer[..]), "offer 1"),
        (3_000, Hear(Event::Dialog(None)), ""),
        (3_001, recorded(&[1]), "withdraw 1"),
    ];
    play(after(starting(), &[dialog("Trust this folder?")]), &gone);
    // That it began to work is no reason to hold what is under way.
    let busy = [
        begin(),
        (3_000, Hear(Event::Output), ""),
        (3_001, recorded(&[1, 2]), "write 1,2"),
    ];
    play(pasting(), &busy);
}

#[test]
fn an_offer_that_is_cut_off_is_uncertain() {
    use Doing::{Act, Hear};
    let pending = [letter(1, Priority::Normal)];
    let begin = [
        (3_000, Act(&pending), "offer 1"),
        (3_001, recorded(&[1]), "write 1"),
    ];
    let more = [
        (3_002, Hear(Event::Wrote), ""),
        (3_060, Hear(Event::Tick), "enter"),
    ];
    for ending in [
        Event::Exited(Ending::Signal(9)),
        Event::WriteFailed("EIO".into()),
    ] {
        for further in 0..=2 {
            let desk = play(idle(), &begin);
            let desk = play(desk, &more[..further]);
            let end = [
                (3_061, Hear(ending.clone()), "uncertain 1"),
                (3_062, Hear(Event::Entered), ""),
            ];
            play(desk, &end);
        }
    }
}

#[test]
fn enter_is_pressed_onto_no_draft_and_into_no_question() {
    use Doing::{Act, Hear};
    let pending = [letter(1, Priority::Normal)];
    let check = |bar: Event, rule_name: &str| {
        let desk = play(
            idle(),
            &[
                (3_000, Act(&pending), "offer 1"),
                (3_001, recorded(&[1]), "write 1"),
                (3_002, Hear(Event::Wrote), ""),
                (3_010, Hear(bar), ""),
                (3_020, Hear(Event::Paused(PausedBy::Viewer)), ""),
                (4_000, Hear(Event::Tick), ""),
            ],
        );
        let hold = desk.hold(ms(4_000), &pending[0], &[]);
        assert_eq!(rule(hold), rule_name);
        desk
    };
    let drafted = check(Event::Draft, "draft");
    assert!(drafted.is_writing());
    play(drafted, &[(4_001, Hear(Event::DraftGone), "enter")]);
    // Who is to answer needs the keyboard.
    let asked = check(dialog("Run rm?"), "blocked");
    assert!(!asked.is_writing());
    let answered = [
        (4_001, Hear(Event::Dialog(None)), "resume"),
        (4_002, Hear(Event::Resumed), ""),
        (4_051, Hear(Event::Tick), ""),
        (4_052, Hear(Event::Tick), "enter"),
        (4_053, Hear(Event::Entered), "offered 1"),
    ];
    play(asked, &answered);
}

#[test]
fn nothing_is_typed_onto_input_that_nobody_has_read() {
    use Doing::{Act, Hear};
    for priority in [Priority::Normal, Priority::IdleFirst, Priority::Idle] {
        let pending = [letter(1, priority)];
        let desk = play(
            idle(),
            &[
                (3_000, Hear(Event::Unread(true)), ""),
                (3_001, Act(&pending), ""),
            ],
        );
        let hold = desk.hold(ms(3_002), &pending[0], &pending);
        assert_eq!(rule(hold), "not-reading");
        play(
            desk,
            &[
                (3_010, Hear(Event::Unread(false)), ""),
                (3_011, Act(&pending), "offer 1"),
            ],
        );
    }
    // The key that an interrupt presses may be what makes the program read again; it is waited
    // for, as for work that is to stop.
    let urgent = [letter(1, Priority::Interrupt)];
    let begin = [
        (3_000, Hear(Event::Unread(true)), ""),
        (3_001, Act(&urgent), "key [3]"),
        (3_002, Hear(Event::Tick), ""),
    ];
    let desk = play(idle(), &begin);
    assert_eq!(desk.next_wakeup(), Some(ms(8_001).mono));
    play(desk, &[(3_500, Hear(Event::Unread(false)), "offer 1")]);
    let never = [
        (8_001, Hear(Event::Tick), "key [3]"),
        (13_001, Hear(Event::Tick), "key [3]"),
        (18_001, Hear(Event::Tick), "offer 1"),
    ];
    play(play(idle(), &begin), &never);
}

#[test]
fn an_interrupt_presses_its_key_and_waits() {
    use Doing::{Act, Hear};
    let pending = [letter(1, Priority::Interrupt)];
    let begin = || (3_000, Act(&pending), "key [3]");
    let tick = |at, want| (at, Hear(Event::Tick), want);
    // It stops: 2 s without output.
    let stops = [begin(), tick(4_999, ""), tick(5_000, "offer 1")];
    play(working(), &stops);
    // It does not.
    let goes_on = |from: u64| {
        let spell = (0..5).map(move |s| (from + 1 + 1_000 * s, Hear(Event::Output), ""));
        spell.collect::<Vec<_>>()
    };
    let mut desk = play(working(), &[begin()]);
    desk = play(desk, &goes_on(3_000));
    desk = play(desk, &[tick(7_999, ""), tick(8_000, "key [3]")]);
    desk = play(desk, &goes_on(8_000));
    let hold = desk.hold(ms(12_500), &pending[0], &pending).unwrap();
    assert_eq!(hold.rule, "interrupting");
    assert_eq!(hold.evidence, "the interrupt key was pressed 2 time(s)");
    desk = play(desk, &[tick(13_000, "key [3]")]);
    desk = play(desk, &goes_on(13_000));
    desk = play(desk, &[tick(17_999, ""), tick(18_000, "offer 1")]);
    play(desk, &[(18_001, recorded(&[1]), "write 1")]);
    // Whoever takes the keyboard meanwhile has it.
    for event in [
        Event::Draft,
        Event::Paused(PausedBy::Viewer),
        Event::Exited(Ending::Exit(0)),
    ] {
        let lines = [
            begin(),
            (3_500, Hear(event), ""),
            (9_000, Act(&pending), ""),
        ];
        play(working(), &lines);
    }
}

#[test]
fn a_key_that_found_no_room_does_not_count() {
    let mut desk = working();
    let urgent = [letter(1, Priority::Interrupt)];
    let evidence = |desk: &Desk, at| {
        let hold = desk.hold(ms(at), &urgent[0], &urgent);
        hold.expect("it is held").evidence
    };
    desk.act(ms(3_000), &urgent);
    assert_eq!(
        evidence(&desk, 3_000),
        "the interrupt key was pressed 1 time(s)"
    );
    assert_eq!(said(&desk.on(ms(3_000), Event::Unpressed)), "");
    assert_eq!(
        evidence(&desk, 3_000),
        "the interrupt key was pressed 0 time(s)"
    );
    // Its time comes again, and not sooner.
    for at in (3_500..8_000).step_by(1_000) {
        assert_eq!(said(&desk.on(ms(at), Event::Output)), "");
    }
    let pressed = said(&desk.on(ms(8_000), Event::Tick));
    assert!(pressed.starts_with("key"), "{pressed}");
    assert_eq!(
        evidence(&desk, 8_000),
        "the interrupt key was pressed 1 time(s)"
    );
}

#[test]
fn an_interrupt_dismisses_a_question_or_is_held() {
    use Doing::{Act, Hear};
    let pending = [letter(1, Priority::Interrupt), raw(2)];
    let begin = || (3_000, Act(&pending), "key [3]");
    let tick = |at, want| (at, Hear(Event::Tick), want);
    let gone = [
        begin(),
        (3_100, Hear(Event::Dialog(None)), ""),
        tick(5_000, "offer 1"),
    ];
    play(blocked(), &gone);
    let stays = [
        begin(),
        tick(8_000, "key [3]"),
        tick(13_000, "key [3]"),
        tick(18_000, ""),
    ];
    let desk = play(blocked(), &stays);
    let hold = desk.hold(ms(18_000), &pending[0], &pending).unwrap();
    assert_eq!(
        (hold.rule, hold.reason.as_str()),
        (
            "blocked",
            "the program waits for an answer (Run rm?), and the interrupt key did not dismiss it"
        )
    );
    // The answer itself goes, and then so does the interrupt.
    let answer = [
        (18_001, Act(&pending), "offer 2"),
        (18_002, recorded(&[2]), "write 2"),
        (18_003, Hear(Event::Wrote), ""),
        (18_060, Hear(Event::Tick), "enter"),
    ];
    let mut desk = play(desk, &answer);
    let effects = desk.on(ms(18_061), Event::Entered);
    let evidence = "written whole to the terminal of the running program, in answer to: Run rm?";
    assert!(matches!(&effects[..], [Effect::Offered { evidence: e, .. }] if e == evidence));
    let after = [
        (18_062, Hear(Event::Dialog(None)), ""),
        // More than the echo of that shows that it works.
        (18_600, Hear(Event::Output), ""),
        (18_601, Act(&pending[..1]), "key [3]"),
    ];
    play(desk, &after);
}

#[test]
fn an_offer_that_a_person_was_faster_than_is_none() {
    use Doing::{Act, Hear};
    let pending = [letter(1, Priority::Normal)];
    let lines = [
        (3_000, Act(&pending[..]), "offer 1"),
        (3_001, Hear(Event::Draft), ""),
        (3_002, Hear(Event::Barred), ""),
        (3_003, Act(&pending), ""),
    ];
    let desk = play(idle(), &lines);
    assert_eq!(rule(desk.hold(ms(3_003), &pending[0], &pending)), "draft");
    let again = [
        (3_004, Hear(Event::DraftGone), ""),
        (3_004, Act(&pending[..]), "offer 1"),
        (3_005, recorded(&[1]), "write 1"),
        // Too late to mean this one.
        (3_006, Hear(Event::Barred), ""),
        (3_007, Hear(Event::Wrote), ""),
        (3_060, Hear(Event::Tick), "enter"),
    ];
    play(desk, &again);
}

#[test]
fn a_journal_that_fails_is_tried_again_in_a_while() {
    use Doing::{Act, Hear};
    let pending = [letter(1, Priority::Normal)];
    let lines = [
        (3_000, Act(&pending[..]), "offer 1"),
        (3_001, Hear(Event::NotRecorded("disk full".into())), ""),
        (3_002, Act(&pending), ""),
    ];
    let desk = play(idle(), &lines);
    let hold = desk.hold(ms(3_002), &pending[0], &pending).unwrap();
    assert_eq!(
        (hold.rule, hold.evidence.as_str()),
        ("storage", "disk full")
    );
    assert_eq!(desk.next_wakeup(), Some(ms(4_001).mono));
    let again = [
        (4_001, Hear(Event::Tick), ""),
        (4_001, Act(&pending[..]), "offer 1"),
    ];
    play(desk, &again);
}

#[test]
fn a_hold_says_since_when_and_on_what_evidence() {
    let check = |desk: &Desk, letter: &Letter, others: &[Letter], want: [&str; 3], since: u64| {
        let hold = desk.hold(ms(3_500), letter, others).unwrap();
        assert_eq!([hold.rule, &hold.evidence, &hold.release], want);
        assert_eq!(hold.since, ms(since).wall, "{}", hold.rule);
    };
    let mut idle_letter = letter(9, Priority::Idle);
    let want = ["working", "output", "the agent is idle"];
    check(&working(), &idle_letter, &[], want, 3_000);
    let taken = "a person has taken the keyboard";
    let back = "the person gives the keyboard back, or detaches";
    check(&paused(), &idle_letter, &[], ["paused", taken, back], 3_000);
    let mut both = paused();
    both.on(ms(3_300), Event::Paused(PausedBy::Request));
    both.on(ms(3_400), Event::Paused(PausedBy::Checkpoint));
    let why =
        format!("{taken}; a client asked for a pause; a checkpoint was asked for, and reached");
    let end = format!("{back}, and 'ph unpause bob'");
    check(&both, &idle_letter, &[], ["paused", &why, &end], 3_000);
    // A rule cannot hold what was not there yet.
    idle_letter.message.created_at = ms(3_200).wall;
    let want = ["working", "output", "the agent is idle"];
    check(&working(), &idle_letter, &[], want, 3_200);

    let plain = letter(8, Priority::Normal);
    let queue = [
        letter(1, Priority::Normal),
        letter(2, Priority::Normal),
        plain.clone(),
    ];
    let want = [
        "queue",
        "2 stand before it in delivery order",
        "its turn comes",
    ];
    check(&idle(), &plain, &queue, want, 2_000);
    assert_eq!(idle().hold(ms(3_500), &queue[0], &queue), None);
    let mut desk = idle();
    desk.act(ms(3_000), &queue);
    let want = [
        "in-flight",
        "00000000 is being offered",
        "that one is written",
    ];
    check(&desk, &plain, &queue, want, 3_000);
    assert_eq!(desk.hold(ms(3_500), &queue[0], &queue), None);
    let want = [
        "not-reading",
        "its way began 2 s ago",
        "the program reads its input, or ends",
    ];
    let slow = |desk: &Desk| {
        let hold = desk.hold(ms(5_000), &queue[0], &queue).unwrap();
        assert_eq!([hold.rule, &hold.evidence, &hold.release], want);
        assert_eq!(hold.since, ms(3_000).wall);
    };
    slow(&desk);
    desk.on(ms(3_500), Event::Recorded(vec![queue[0].message.id]));
    slow(&desk);
    assert_eq!(desk.hold(ms(3_900), &queue[0], &queue), None);
    desk.on(ms(3_900), Event::Wrote);
    assert_eq!(desk.hold(ms(3_910), &queue[0], &queue), None);
    desk.on(ms(3_960), Event::Tick);
    slow(&desk);

    let mut later = letter(7, Priority::Normal);
    later.message.envelope.not_before = Some(ms(9_000).wall);
    assert_eq!(rule(idle().hold(ms(3_500), &later, &[])), "not-before");
    let read = with_steps(&plain.message, &[Step::Read]);
    assert_eq!(working().hold(ms(3_500), &read, &[]), None);
    let interrupt = letter(6, Priority::Interrupt);
    let hold = drafting().hold(ms(3_500), &interrupt, &[]).unwrap();
    let reason =
        "a person has typed something and not submitted it; an interrupt cannot set that aside";
    assert_eq!(hold.reason, reason);
}

#[test]
fn a_step_of_the_wall_clock_moves_no_wait() {
    let pending = [letter(1, Priority::Normal)];
    let mut desk = idle();
    desk.act(ms(3_000), &pending);
    desk.on(ms(3_001), Event::Recorded(vec![id(1)]));
    desk.on(ms(3_002), Event::Wrote);
    let stepped = |millis: u64, hours: i64| Moment {
        wall: ms(millis).wall + SignedDuration::from_hours(hours),
        ..ms(millis)
    };
    assert_eq!(said(&desk.on(stepped(3_003, 5), Event::Tick)), "");
    assert_eq!(said(&desk.on(stepped(3_060, -5), Event::Tick)), "enter");
}

fn priorities() -> impl Strategy<Value = Vec<Priority>> {
    let priority = proptest::sample::select(&Priority::ALL[..]);
    proptest::collection::vec(priority, 0..40)
}

/// Sorted as the journal does.
fn in_order(priorities: &[Priority]) -> Vec<Letter> {
    let mut all: Vec<_> = (1..).zip(priorities).collect();
    all.sort_by_key(|(n, priority)| match priority {
        Priority::IdleFirst => (**priority, -*n),
        Priority::Interrupt | Priority::Normal | Priority::Idle => (**priority, *n),
    });
    let letters = all
        .iter()
        .map(|(n, priority)| letter(*n as u128, **priority));
    letters.collect()
}

fn happening() -> impl Strategy<Value = Option<Event>> {
    let who = proptest::sample::select(&[PausedBy::Viewer, PausedBy::Request][..]);
    prop_oneof![
        6 => Just(None),
        3 => Just(Some(Event::Tick)),
        3 => Just(Some(Event::Output)),
        1 => proptest::option::of(Just("Run rm?".to_owned())).prop_map(|d| Some(Event::Dialog(d))),
        1 => who.clone().prop_map(|by| Some(Event::Paused(by))),
        1 => who.prop_map(|by| Some(Event::Released(by))),
        1 => Just(Some(Event::Draft)),
        1 => Just(Some(Event::DraftGone)),
        1 => any::<bool>().prop_map(|on| Some(Event::Paste(on))),
        1 => Just(Some(Event::WriteFailed("EIO".into()))),
        1 => Just(Some(Event::NotRecorded("full".into()))),
    ]
}

proptest! {
    #[test]
    fn an_idle_agent_gets_everything_in_order(priorities in priorities(), paste: bool) {
        let mut pending = in_order(&priorities);
        let want: Vec<_> = pending.iter().map(|l| l.message.id).collect();
        let desk = after(idle(), &[Event::Paste(paste)]);
        let mut got = Vec::new();
        while let Decision::Offer { ids, interrupt } = desk.next(ms(3_000), &pending) {
            prop_assert!(!interrupt, "an idle agent gets no key");
            let size = |l: &Letter| turn::size(l, turn::Telling::Here, desk.input(), PATH);
            let turn: Vec<_> = pending.iter().filter(|l| ids.contains(&l.message.id)).collect();
            prop_assert!(turn.len() == 1 || turn.iter().map(|l| size(l)).sum::<usize>() <= turn::TURN);
            let alone = |l: &&Letter| l.message.envelope.priority == Priority::Interrupt;
            prop_assert!(turn.len() == 1 || !turn.iter().any(alone));
            pending.retain(|l| !ids.contains(&l.message.id));
            got.extend(ids);
        }
        prop_assert_eq!(got, want);
    }

    #[test]
    fn whatever_happens_no_offer_is_lost_doubled_or_made_in_a_bad_moment(
        priorities in priorities(),
        happenings in proptest::collection::vec((happening(), 0..3_000_u64), 1..120),
    ) {
        let mut pending = in_order(&priorities);
        let mut under_way: Vec<MessageId> = Vec::new();
        let mut todo: Vec<Event> = Vec::new();
        let mut desk = idle();
        let mut now = 2_000;
        let (mut is_written, mut is_urgent) = (false, false);
        // What cannot wait passes a pause that was asked for.
        let is_paused = |by: &[PausedBy], is_urgent: bool| {
            by.contains(&PausedBy::Viewer) || (!by.is_empty() && !is_urgent)
        };
        let (mut draft, mut paused, mut asked) = (false, Vec::<PausedBy>::new(), false);
        for (event, pass) in happenings {
            now += pass;
            // Nothing happens but time: then what was asked for is done.
            let event = match event {
                Some(event) => event,
                None if todo.is_empty() => Event::Tick,
                None => todo.remove(0),
            };
            match &event {
                Event::Draft => draft = true,
                Event::DraftGone => draft = false,
                Event::Dialog(what) => asked = what.is_some(),
                Event::Paused(by) => paused.push(*by),
                Event::Released(by) => paused.retain(|p| p != by),
                _ => {}
            }
            let mut effects = desk.on(ms(now), event);
            effects.extend(desk.act(ms(now), &pending));
            let barred = draft || asked;
            for effect in effects {
                match effect {
                    Effect::Key(_) => prop_assert!(!draft && !paused.contains(&PausedBy::Viewer)),
                    Effect::Offer { ids } => {
                        prop_assert!(under_way.is_empty(), "one at a time");
                        let urgent = |l: &Letter| l.message.envelope.priority == Priority::Interrupt;
                        let urgent = pending.iter().find(|l| l.message.id == ids[0]).map(urgent);
                        is_urgent = urgent.unwrap_or_default();
                        prop_assert!(!barred && !is_paused(&paused, is_urgent));
                        is_written = false;
                        todo = vec![Event::Recorded(ids.clone())];
                        pending.retain(|l| !ids.contains(&l.message.id));
                        under_way = ids;
                    }
                    Effect::Write { ids } => {
                        prop_assert!(!barred && !is_paused(&paused, is_urgent));
                        prop_assert_eq!(&ids, &under_way);
                        is_written = true;
                        todo = vec![Event::Wrote];
                    }
                    Effect::Enter => {
                        prop_assert!(!barred);
                        todo = vec![Event::Entered];
                    }
                    // It had to wait for an answer.
                    Effect::Resume => todo = vec![Event::Resumed],
                    Effect::Accepted { .. } => prop_assert!(false, "nothing proves it"),
                    Effect::Abort | Effect::GoOn | Effect::Call { .. } => {
                        prop_assert!(false, "it has no door");
                    }
                    Effect::Look | Effect::Strokes(_) => {
                        prop_assert!(false, "nothing is known of its screen");
                    }
                    Effect::Offered { ids, .. } => {
                        prop_assert_eq!(&ids, &under_way);
                        under_way.clear();
                        todo.clear();
                    }
                    Effect::Withdraw { ids, .. } => {
                        prop_assert!(!is_written, "nothing of it was written");
                        prop_assert!(ids.iter().all(|id| under_way.contains(id)));
                        under_way.retain(|id| !ids.contains(id));
                        if under_way.is_empty() {
                            todo.clear();
                        }
                    }
                    effect @ (Effect::Remind { .. }
                    | Effect::Give { .. }
                    | Effect::WriteReminder { .. }
                    | Effect::Fail { .. }) => panic!("{effect:?}"),
                    Effect::Uncertain { ids, .. } => {
                        prop_assert!(is_written, "else it is taken back");
                        prop_assert!(ids.iter().all(|id| under_way.contains(id)));
                        under_way.retain(|id| !ids.contains(id));
                        if under_way.is_empty() {
                            todo.clear();
                        }
                    }
                }
            }
            if let Phase::Resting { .. } = desk.phase {
                under_way.clear();
                todo.clear();
            }
            // Every wait has a reason.
            for letter in &pending {
                let is_due = matches!(desk.next(ms(now), &pending), Decision::Offer { .. });
                let held = desk.hold(ms(now), letter, &pending).is_some();
                prop_assert!(held || is_due, "{letter:?}");
            }
        }
    }
}
