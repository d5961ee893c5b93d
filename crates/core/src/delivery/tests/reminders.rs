//! Reminders of replies that an agent is expected to send.

use super::*;

#[test]
fn an_agent_is_reminded_each_time_it_becomes_idle_again() {
    use Call::{Act, On, Remind, Tick};
    let owes = [owed(1, 0), owed(2, 9), owed(3, 10)];
    let mail = [mail(4, Priority::Normal)];
    let delivery = play(
        idle(),
        &[
            (3_000, Remind(&owes), "remind 1,2"),
            (3_000, Remind(&owes), ""),
            (3_000, Act(&mail), ""),
            (3_001, recorded(&[1, 2]), "write reminder 1,2"),
            (3_002, On(Input::Typed(String::new())), ""),
            (3_052, Tick, "enter"),
            (3_053, On(Input::EnterPressed(KeyboardUser::Turn)), ""),
            // The agent counts as working; then it is idle again.
            (3_054, Remind(&owes), ""),
            (5_053, Tick, ""),
            // The end of a reminder is no reason for another.
            (5_053, Remind(&owes[..1]), ""),
            (63_052, Remind(&owes[..1]), ""),
            (63_053, Tick, ""),
            (63_053, Remind(&owes[..1]), "remind 1"),
            // The agent has replied meanwhile.
            (63_054, recorded(&[]), ""),
            (63_055, Remind(&owes[..1]), ""),
            (63_056, Act(&mail), "offer 4"),
        ],
    );
    assert!(!delivery.is_writing());
    for delivery in [
        starting(),
        working(),
        blocked(),
        paused(),
        drafting(),
        exited(),
    ] {
        play(delivery, &[(3_000, Remind(&owes), "")]);
    }
    // An event between the record and the first byte prevents the reminder.
    for event in [
        Input::KeysTyped { is_draft: true },
        Input::Paused(PausedBy::Request),
        dialog("Run rm?"),
    ] {
        let lines = [
            (3_000, Remind(&owes), "remind 1,2"),
            (3_000, On(event), ""),
            (3_001, recorded(&[1, 2]), ""),
            (3_002, Remind(&owes), ""),
        ];
        assert!(!play(idle(), &lines).is_writing());
    }
    let cut = [
        (3_000, Remind(&owes), "remind 1,2"),
        (3_001, recorded(&[1, 2]), "write reminder 1,2"),
        (3_002, On(write_failed()), ""),
    ];
    assert!(!play(idle(), &cut).is_writing());
}

/// The message came back from the agent's queue meanwhile.
#[test]
fn a_reminder_does_not_count_as_the_message_on_its_way() {
    let owes = [owed(1, 0)];
    let message = message(1, "alice", "bob");
    let withdrawn = with_steps(&message, &[Step::Offering, Step::Uncertain]);
    let pending = [withdrawn.clone()];
    let reason = |delivery: &Delivery| {
        let hold = delivery.hold(ms(9_000), &withdrawn, &pending);
        hold.map(|hold| (hold.rule, hold.reason))
    };
    let behind = "a reminder is on its way into the terminal".to_owned();
    let delivery = play(
        idle(),
        &[
            (3_000, Call::Remind(&owes), "remind 1"),
            (3_001, recorded(&[1]), "write reminder 1"),
        ],
    );
    assert_eq!(reason(&delivery), Some(("in-flight", behind)));
    let delivery = play(
        delivery,
        &[
            (3_002, Call::On(Input::Typed(String::new())), ""),
            (3_010, Call::On(dialog("Run rm?")), ""),
        ],
    );
    let asked = "the program waits for an answer (Run rm?)".to_owned();
    assert_eq!(reason(&delivery), Some(("blocked", asked)));
}

#[test]
fn reminders_in_a_row_come_further_and_further_apart() {
    let owes = [owed(1, 0)];
    let mail = [mail(4, Priority::Normal)];
    // Play a turn from this time, and check that no reminder follows at once.
    let turn = |delivery: &mut Stage, from: u64, effects: Vec<Action>| {
        let ids = delivery.turn_in_flight().map(|turn| turn.ids);
        assert!(!effects.is_empty(), "at {from}");
        delivery.recorded(ms(from), ids.expect("a turn"));
        delivery.on(ms(from), Input::Typed(String::new()));
        delivery.tick(ms(from + 50));
        delivery.on(ms(from + 50), Input::EnterPressed(KeyboardUser::Turn));
        delivery.tick(ms(from + 2_050));
        assert!(
            delivery.remind(ms(from + 2_050), &owes).is_empty(),
            "at {from}"
        );
    };
    let mut delivery = idle();
    let mut now = 3_000;
    for minutes in [1, 2, 4, 8] {
        let effects = delivery.remind(ms(now), &owes);
        turn(&mut delivery, now, effects);
        now += 50 + minutes * 60_000;
        assert_eq!(delivery.next_wakeup(), Some(ms(now).mono), "nothing sooner");
        assert!(delivery.remind(ms(now - 1), &owes).is_empty());
        delivery.tick(ms(now));
    }
    let effects = delivery.remind(ms(now), &owes);
    turn(&mut delivery, now, effects);
    // A turn of messages is a reason for a reminder.
    now += 3_000;
    let effects = delivery.act(ms(now), &mail);
    assert_eq!(summary(&delivery, &effects), "offer 4");
    delivery.recorded(ms(now), vec![id(4)]);
    delivery.on(ms(now), Input::Typed(String::new()));
    delivery.tick(ms(now + 50));
    delivery.on(ms(now + 50), Input::EnterPressed(KeyboardUser::Turn));
    delivery.tick(ms(now + 2_050));
    let effects = delivery.remind(ms(now + 2_050), &owes);
    assert_eq!(summary(&delivery, &effects), "remind 1");
}
