//! Work on the screen, and the keys that interrupt it.

use super::*;

#[test]
fn a_key_that_would_quit_needs_proof_of_work() {
    let urgent = [mail(1, Interrupt)];
    let delivery = || {
        with(|manifest| {
            manifest.interrupt.quits_when_idle = true;
            manifest.interrupt.dismiss = Some(keys("esc"));
        })
    };
    // Output is no proof of work.
    let mut busy = play(
        delivery(),
        &[
            on(3_000, Input::OutputSeen, ""),
            (3_001, Call::Act(&urgent), "look"),
            looked(3_002, empty(), "offer 1"),
            (3_003, recorded(&[1]), "look"),
            looked(3_003, empty(), "write 1"),
            on(3_004, wrote(), ""),
            tick(3_054, "look"),
            looked(3_055, holds("text"), "enter"),
            on(3_056, Input::EnterPressed(KeyboardUser::Turn), ""),
        ],
    );
    let effects = busy.on(ms(3_057), Input::ScreenChanged(empty()));
    assert!(evidence(&effects).ends_with("no interrupt key: it might have ended the program"));
    // The title is a proof of work, and each press needs a new one.
    let works = [
        seen(3_000, claims(Says::Working), ""),
        (3_001, Call::Act(&urgent), "look"),
        looked(3_002, claims(Says::Working), "key [3]"),
        tick(8_002, "look"),
        looked(8_003, claims(Says::Working), "key [3]"),
        tick(13_003, "look"),
        looked(13_004, claims(Says::Idle), "offer 1"),
    ];
    play(delivery(), &works);
    // A question is dismissed by the dismiss key.
    let asked = [
        seen(3_000, asks("Run rm?"), ""),
        (3_001, Call::Act(&urgent), "look"),
        looked(3_002, asks("Run rm?"), "key [27]"),
    ];
    play(delivery(), &asked);
    // An idle program gets no key.
    play(delivery(), &[(3_000, Call::Act(&urgent), "offer 1")]);
}

#[test]
fn the_keys_are_pressed_again_when_the_harness_says() {
    let urgent = [mail(1, Interrupt)];
    let delivery = with(|manifest| {
        manifest.interrupt.keys = keys("esc");
        manifest.interrupt.wait = Wait::millis(1_500);
    });
    let works = [
        seen(3_000, claims(Says::Working), ""),
        (3_001, Call::Act(&urgent), "look"),
        looked(3_001, claims(Says::Working), "key [27]"),
        tick(4_500, ""),
        tick(4_501, "look"),
        looked(4_501, claims(Says::Working), "key [27]"),
        seen(4_600, claims(Says::Idle), "offer 1"),
    ];
    play(delivery, &works);
}

/// Otherwise `ph why` would explain a text that has no Enter yet by the agent's work.
#[test]
fn an_agent_that_has_exited_is_not_at_work() {
    let mut delivery = play(with(|_| {}), &[seen(3_000, claims(Says::Working), "")]);
    assert!(delivery.at.agent.is_at_work());
    delivery.on(ms(3_100), Input::Exited(Ending::Exit(0)));
    assert!(!delivery.at.agent.is_at_work());
}

/// Play an interrupt up to its key, which is pressed while the agent works.
fn pressed(urgent: &[MessageState], change: impl FnOnce(&mut Manifest)) -> Stage {
    let lines = [
        seen(3_000, claims(Says::Working), ""),
        (3_001, Call::Act(urgent), "look"),
        looked(3_001, claims(Says::Working), "key [3]"),
    ];
    play(with(change), &lines)
}

fn restored() -> Sighting {
    Sighting {
        input_box: holds("the last prompt").input_box,
        ..claims(Says::Idle)
    }
}

#[test]
fn a_prompt_that_is_restored_after_an_interrupt_is_cleared() {
    let urgent = [mail(1, Interrupt)];
    let cleared = [
        seen(3_100, restored(), "clear [21]"),
        seen(3_103, claims(Says::Idle), ""),
        tick(3_202, ""),
        tick(3_203, "offer 1"),
        (3_204, recorded(&[1]), "look"),
        looked(3_205, claims(Says::Idle), "write 1"),
    ];
    play(pressed(&urgent, clearing), &cleared);
    // If the key has no effect, the text is a draft like any other.
    let stays = [
        seen(3_100, restored(), "clear [21]"),
        tick(5_100, ""),
        (5_101, Call::Act(&urgent), ""),
    ];
    let delivery = play(pressed(&urgent, clearing), &stays);
    assert_eq!(rule(delivery.hold(ms(5_102), &urgent[0], &urgent)), "draft");
    // A draft is not cleared.
    let typed = [
        on(3_050, Input::KeysTyped { is_draft: true }, ""),
        seen(3_100, restored(), ""),
        (9_000, Call::Act(&urgent), ""),
    ];
    play(pressed(&urgent, clearing), &typed);
}

/// The look before another interrupt key shows that the agent has stopped and has restored its
/// prompt. The message must not be typed after that prompt.
#[test]
fn a_prompt_that_the_look_before_a_key_finds_is_cleared_before_the_offer() {
    let urgent = [mail(1, Interrupt)];
    let busy_again = || {
        let delivery = pressed(&urgent, |manifest| {
            clearing(manifest);
            manifest.interrupt.quits_when_idle = true;
        });
        let works = |at| seen(at, claims(Says::Working), "");
        play(delivery, &[works(4_000), tick(8_001, "look")])
    };
    let cleared = [
        looked(8_002, restored(), "clear [21]"),
        seen(8_010, claims(Says::Idle), ""),
        tick(8_110, "offer 1"),
    ];
    play(busy_again(), &cleared);
    // If the key has no effect, the text is a draft like any other.
    let stays = [
        looked(8_002, restored(), "clear [21]"),
        tick(10_003, ""),
        (10_004, Call::Act(&urgent), ""),
    ];
    let delivery = play(busy_again(), &stays);
    assert_eq!(
        rule(delivery.hold(ms(10_005), &urgent[0], &urgent)),
        "draft"
    );
}

#[test]
fn an_offer_waits_for_a_prompt_that_is_restored_late() {
    let urgent = [mail(1, Interrupt)];
    let delivery = || {
        let delivery = pressed(&urgent, |manifest| {
            clearing(manifest);
            manifest.interrupt.settle = Wait::millis(500);
        });
        play(delivery, &[seen(3_100, claims(Says::Idle), "")])
    };
    let cleared = [
        seen(3_132, restored(), ""),
        tick(3_599, ""),
        tick(3_600, "clear [21]"),
    ];
    play(delivery(), &cleared);
    // Without a restored prompt, the message is offered then.
    let plain = [tick(3_599, ""), tick(3_600, "offer 1")];
    play(delivery(), &plain);
    // The agent works again: the wait for the key counts.
    let busy = [
        seen(3_200, claims(Says::Working), ""),
        tick(3_600, ""),
        tick(8_001, "look"),
    ];
    play(delivery(), &busy);
}

#[test]
fn the_screen_decides_what_is_work() {
    let later = [mail(1, Idle)];
    let delivery = play(with(|_| ()), &[seen(3_000, claims(Says::Working), "")]);
    let hold = delivery.hold(ms(9_000), &later[0], &later).unwrap();
    assert_eq!(
        (hold.rule, hold.evidence.as_str()),
        ("working", "its title says so")
    );
    let rests = [
        seen(9_001, claims(Says::Idle), ""),
        on(9_002, Input::OutputSeen, ""),
        (9_003, Call::Act(&later), "offer 1"),
    ];
    play(delivery, &rests);
    assert!(with(|_| ()).at.agent.knows_dialogs() && !super::starting().at.agent.knows_dialogs());
    assert_eq!(id(1), later[0].message.id);
}

#[test]
fn normal_mail_waits_for_the_end_of_work_if_the_harness_requires_it() {
    let (mail, urgent) = ([mail(1, Normal)], [mail(1, Interrupt)]);
    let waits = || {
        let delivery = with(|manifest| manifest.submit.while_working = false);
        play(delivery, &[seen(3_000, claims(Says::Working), "")])
    };
    let delivery = play(waits(), &[(3_001, Call::Act(&mail), "")]);
    let hold = delivery.hold(ms(3_002), &mail[0], &mail);
    assert_eq!(rule(hold), "working");
    let rests = [
        seen(9_001, claims(Says::Idle), ""),
        (9_003, Call::Act(&mail), "offer 1"),
    ];
    play(delivery, &rests);
    play(waits(), &[(3_001, Call::Act(&urgent), "look")]);
}

#[test]
fn nothing_is_typed_or_entered_while_any_sign_shows_work() {
    let pending = [mail(1, Normal)];
    let works = |sighting: Sighting| Sighting {
        claims: claims(Says::Working).claims,
        ..sighting
    };
    // Before the text.
    let before_text = [
        (3_000, Call::Act(&pending[..]), "offer 1"),
        (3_001, recorded(&[1]), "look"),
        looked(3_002, works(empty()), "withdraw 1"),
    ];
    play(with(|_| ()), &before_text);
    // Before Enter, the text waits in the box until the agent is idle.
    let before_enter = [looked(3_053, works(holds("text")), ""), tick(9_000, "")];
    let delivery = play(written(with(|_| ()), &pending), &before_enter);
    assert!(!delivery.is_writing());
    let hold = delivery.hold(ms(9_001), &pending[0], &pending).unwrap();
    assert_eq!(
        (hold.rule, hold.evidence.as_str()),
        ("working", "its title says so")
    );
    let rests = Sighting {
        claims: claims(Says::Idle).claims,
        ..holds("text")
    };
    play(delivery, &[seen(9_100, rests, "resume")]);
    // A sign of work on the screen counts even if a better source says "idle".
    let mut both = claims(Says::Idle);
    both.claims.push(Claim {
        source: Source::Screen,
        says: Says::Working,
        evidence: "its screen says: esc to interrupt".to_owned(),
    });
    let both = [seen(3_000, both, ""), (3_200, Call::Act(&pending), "")];
    let delivery = play(with(|_| ()), &both);
    assert_eq!(delivery.activity().activity, Activity::Idle);
    let hold = delivery.hold(ms(3_201), &pending[0], &pending).unwrap();
    assert_eq!(hold.evidence, "its screen says: esc to interrupt");
}

#[test]
fn an_agent_that_ignores_interrupts_is_not_typed_into() {
    let urgent = [mail(1, Interrupt)];
    let works = || claims(Says::Working);
    let ignored = [
        seen(3_000, works(), ""),
        (3_001, Call::Act(&urgent[..]), "look"),
        looked(3_002, works(), "key [3]"),
        tick(8_002, "look"),
        looked(8_003, works(), "key [3]"),
        tick(13_003, "look"),
        looked(13_004, works(), "key [3]"),
        tick(18_004, ""),
        (18_005, Call::Act(&urgent), ""),
    ];
    let delivery = play(with(|_| ()), &ignored);
    let hold = delivery.hold(ms(18_006), &urgent[0], &urgent).unwrap();
    assert_eq!(hold.rule, "working");
    assert!(hold.reason.contains("did not stop it"), "{hold:?}");
    let rests = [
        seen(20_000, claims(Says::Idle), ""),
        tick(20_100, ""),
        (20_101, Call::Act(&urgent), "offer 1"),
    ];
    play(delivery, &rests);
}
