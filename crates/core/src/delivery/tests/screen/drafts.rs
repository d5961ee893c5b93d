//! Drafts on the screen hold messages.

use super::*;

#[test]
fn a_draft_on_the_screen_holds_every_message() {
    let pending = [mail(1, Normal), mail(2, Interrupt)];
    let delivery = play(with(|_| ()), &[seen(2_600, holds("mine"), "")]);
    for mail in &pending {
        let hold = delivery.hold(ms(2_700), mail, &pending).unwrap();
        assert_eq!(hold.rule, "draft");
        assert_eq!(hold.since, ms(2_600).wall);
        assert!(!format!("{hold:?}").contains("mine"), "a draft is private");
    }
    let gone = [
        seen(3_000, empty(), ""),
        tick(3_100, ""),
        (3_100, Call::Act(&pending[..1]), "offer 1"),
    ];
    play(delivery, &gone);
}

#[test]
fn a_draft_holds_an_interrupt_of_work_and_of_a_dialog() {
    let urgent = [mail(1, Interrupt)];
    let busy = Sighting {
        input_box: holds("mine").input_box,
        ..claims(Says::Working)
    };
    let delivery = play(
        with(|_| ()),
        &[seen(3_000, busy, ""), (3_001, Call::Act(&urgent), "")],
    );
    assert_eq!(rule(delivery.hold(ms(3_002), &urgent[0], &urgent)), "draft");
    let typed = [
        on(3_000, Input::KeysTyped { is_draft: true }, ""),
        seen(3_001, asks("Run rm?"), ""),
        (3_002, Call::Act(&urgent), ""),
    ];
    let delivery = play(with(|_| ()), &typed);
    assert_eq!(rule(delivery.hold(ms(3_003), &urgent[0], &urgent)), "draft");
}

#[test]
fn an_empty_box_shows_that_keys_are_no_draft() {
    let check = |events: &[Line<'_>], want: bool| {
        let mut delivery = with(|_| ());
        for (at, doing, _) in events {
            if let Call::On(event) = doing {
                delivery.on(ms(*at), event.clone());
            }
        }
        assert_eq!(delivery.keys_missed_box(), want);
    };
    let key = |at| on(at, Input::KeysTyped { is_draft: true }, "");
    check(&[key(2_600), seen(2_700, empty(), "")], true);
    check(&[key(2_600), seen(2_700, holds("a"), "")], false);
    check(&[key(2_600), seen(2_700, hidden(), "")], false);
    check(&[key(2_600), seen(2_700, asks("Run rm?"), "")], false);
}
