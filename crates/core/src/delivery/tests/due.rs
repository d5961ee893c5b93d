//! When messages are due, which messages share a turn, and the explanation of a hold.

use super::*;
use crate::message::Body;
use jiff::SignedDuration;

fn sized(n: u128, bytes: usize) -> MessageState {
    let mut mail = mail(n, Priority::Normal);
    mail.message.envelope.body = Body::Inline("x".repeat(bytes));
    mail
}

#[test]
fn each_lane_goes_or_is_held_in_each_state() {
    // The results for interrupt, normal, idle-first, idle and raw, each alone: it goes ("+"), it goes
    // after the interrupt key ("key"), or the rule that holds it.
    let check = |what: &str, delivery: &Delivery, want: [&str; 5]| {
        let lanes = Priority::ALL.map(|priority| mail(1, priority));
        let lanes = lanes.into_iter().chain([raw(1)]);
        for (mail, want) in lanes.zip(want) {
            let pending = [mail];
            let got = match delivery.next(ms(3_000), &pending) {
                Decision::Offer { interrupt, .. } if interrupt => "key",
                Decision::Offer { .. } => "+",
                Decision::Wait { .. } => rule(delivery.hold(ms(3_000), &pending[0], &pending)),
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
            Input::Paused(PausedBy::Request),
            Input::Paused(PausedBy::Viewer),
            Input::Unpaused(PausedBy::Viewer),
        ],
    );
    // Interrupts and answers pass a requested pause, but not a person at the keyboard.
    let [p, goes] = ["paused", "+"];
    check("paused by request", &two, [goes, p, p, p, goes]);
    let both = after(two.clone(), &[Input::Paused(PausedBy::Interactive)]);
    check("interactive too", &both, [p; 5]);
    let busy_then = after(two.clone(), &[Input::OutputSeen]);
    check("paused at work", &busy_then, ["key", p, p, p, goes]);
    let none = after(
        two,
        &[
            Input::Unpaused(PausedBy::Request),
            Input::Unpaused(PausedBy::Request),
        ],
    );
    check("released", &none, ["+"; 5]);
    let clear = after(drafting(), &[Input::KeysTyped { is_draft: false }]);
    check("draft gone", &clear, ["+"; 5]);
    check(
        "answered",
        &after(blocked(), &[Input::DialogChanged(None)]),
        busy,
    );
    // The interrupt key might end a program that is starting. Its question can be answered.
    let early = after(starting(), &[dialog("Trust this folder?")]);
    let [s, goes] = ["starting", "+"];
    check("asked while starting", &early, [s, s, s, s, goes]);
}

#[test]
fn messages_that_are_due_together_share_a_turn() {
    let check = |delivery: &Delivery, pending: &[MessageState], want: &[u128]| {
        let ids = match delivery.next(ms(3_000), pending) {
            Decision::Offer { ids, .. } => ids,
            Decision::Wait { .. } => Vec::new(),
        };
        let want: Vec<_> = want.iter().map(|n| id(*n)).collect();
        assert_eq!(ids, want);
    };
    use Priority::{Idle, IdleFirst, Interrupt, Normal};
    let pasting = |delivery| after(delivery, &[Input::PasteMode(true)]);
    let all = [
        mail(1, Interrupt),
        mail(2, Interrupt),
        mail(3, Normal),
        mail(4, Normal),
        mail(5, IdleFirst),
        mail(6, Idle),
    ];
    check(&pasting(idle()), &all, &[1]);
    check(&pasting(idle()), &all[2..], &[3, 4, 5, 6]);
    check(&pasting(working()), &all[2..], &[3, 4]);
    check(&pasting(working()), &all[4..], &[]);
    // Typed, one at a time: a line break would submit.
    check(&idle(), &all[2..], &[3]);
    let between = [mail(1, Normal), raw(2), mail(3, Normal)];
    check(&pasting(idle()), &between, &[1]);
    check(&pasting(idle()), &between[1..], &[2]);
    // Whole messages, up to 8 KiB.
    let many: Vec<_> = (1..=60).map(|n| sized(n, 300)).collect();
    let Decision::Offer { ids, .. } = pasting(idle()).next(ms(3_000), &many) else {
        panic!("nothing is due");
    };
    let one = turn::size(
        &many[0],
        turn::TextPlacement::Inline,
        InputMode::Pasted,
        PATH,
    );
    assert_eq!(ids.len(), turn::TURN / one);
    // Messages that were read or expired, or are not due yet, are left out.
    let mut later = mail(1, Normal);
    later.message.envelope.not_before = Some(ms(4_000).wall);
    let mut gone = mail(2, Normal);
    gone.message.envelope.expires_at = Some(ms(3_000).wall);
    let read = with_steps(&mail(3, Normal).message, &[Step::Read]);
    let shown = with_steps(&mail(4, Normal).message, &[Step::Shown]);
    let plain = mail(5, Normal);
    check(&pasting(idle()), &[later, gone, read, shown, plain], &[5]);
}

#[test]
fn a_deadline_ends_the_wait_for_an_idle_agent() {
    let mut late = mail(1, Priority::Idle);
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
    // A rule that holds normal mail holds the promoted message too, and names the promotion.
    let hold = blocked().hold(ms(3_000), &pending[0], &pending).unwrap();
    assert_eq!(hold.rule, "blocked");
    assert!(
        hold.evidence.contains("promoted from idle to normal"),
        "{}",
        hold.evidence
    );
}

#[test]
fn a_hold_has_its_beginning_evidence_and_release() {
    let check = |delivery: &Delivery,
                 mail: &MessageState,
                 others: &[MessageState],
                 want: [&str; 3],
                 since: u64| {
        let hold = delivery.hold(ms(3_500), mail, others).unwrap();
        assert_eq!([hold.rule, &hold.evidence, &hold.release], want);
        assert_eq!(hold.since, ms(since).wall, "{}", hold.rule);
    };
    let mut idle_mail = mail(9, Priority::Idle);
    let want = ["working", "output", "the agent is idle"];
    check(&working(), &idle_mail, &[], want, 3_000);
    let taken = "a person has taken the keyboard";
    let back = "the person gives the keyboard back, or detaches";
    check(&paused(), &idle_mail, &[], ["paused", taken, back], 3_000);
    let mut both = paused();
    both.on(ms(3_300), Input::Paused(PausedBy::Request));
    both.on(ms(3_400), Input::Paused(PausedBy::Checkpoint));
    let why =
        format!("{taken}; a client asked for a pause; a checkpoint was asked for, and reached");
    let end = format!("{back}, and 'ph unpause bob'");
    check(&both, &idle_mail, &[], ["paused", &why, &end], 3_000);
    // A rule cannot hold a message before the message exists.
    idle_mail.message.created_at = ms(3_200).wall;
    let want = ["working", "output", "the agent is idle"];
    check(&working(), &idle_mail, &[], want, 3_200);

    let plain = mail(8, Priority::Normal);
    let queue = [
        mail(1, Priority::Normal),
        mail(2, Priority::Normal),
        plain.clone(),
    ];
    let want = [
        "queue",
        "2 go before it in delivery order",
        "its turn comes",
    ];
    check(&idle(), &plain, &queue, want, 2_000);
    assert_eq!(idle().hold(ms(3_500), &queue[0], &queue), None);
    let mut delivery = idle();
    delivery.act(ms(3_000), &queue);
    let want = [
        "in-flight",
        "00000000 is being offered",
        "that one is written",
    ];
    check(&delivery, &plain, &queue, want, 3_000);
    assert_eq!(delivery.hold(ms(3_500), &queue[0], &queue), None);
    let want = [
        "not-reading",
        "its offer began 2 s ago",
        "the program reads its input, or ends",
    ];
    let slow = |delivery: &Delivery| {
        let hold = delivery.hold(ms(5_000), &queue[0], &queue).unwrap();
        assert_eq!([hold.rule, &hold.evidence, &hold.release], want);
        assert_eq!(hold.since, ms(3_000).wall);
    };
    slow(&delivery);
    delivery.recorded(ms(3_500), vec![queue[0].message.id]);
    slow(&delivery);
    assert_eq!(delivery.hold(ms(3_900), &queue[0], &queue), None);
    delivery.on(ms(3_900), Input::Typed(String::new()));
    assert_eq!(delivery.hold(ms(3_910), &queue[0], &queue), None);
    delivery.tick(ms(3_960));
    slow(&delivery);

    let mut later = mail(7, Priority::Normal);
    later.message.envelope.not_before = Some(ms(9_000).wall);
    assert_eq!(rule(idle().hold(ms(3_500), &later, &[])), "not-before");
    let read = with_steps(&plain.message, &[Step::Read]);
    assert_eq!(working().hold(ms(3_500), &read, &[]), None);
    let interrupt = mail(6, Priority::Interrupt);
    let hold = drafting().hold(ms(3_500), &interrupt, &[]).unwrap();
    let reason =
        "a person has typed something and not submitted it; an interrupt cannot set that aside";
    assert_eq!(hold.reason, reason);
}

#[test]
fn a_step_of_the_wall_clock_does_not_change_a_wait() {
    let pending = [mail(1, Priority::Normal)];
    let mut delivery = idle();
    delivery.act(ms(3_000), &pending);
    delivery.recorded(ms(3_001), vec![id(1)]);
    delivery.on(ms(3_002), Input::Typed(String::new()));
    let stepped = |millis: u64, hours: i64| Moment {
        wall: ms(millis).wall + SignedDuration::from_hours(hours),
        ..ms(millis)
    };
    let actions = delivery.tick(stepped(3_003, 5));
    assert_eq!(summary(&delivery, &actions), "");
    let actions = delivery.tick(stepped(3_060, -5));
    assert_eq!(summary(&delivery, &actions), "enter");
}
