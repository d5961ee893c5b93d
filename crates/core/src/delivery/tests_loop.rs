//! A loop's desk: it types nothing, hands nothing to a hook, and says why.

use super::tests::{idle_at, letter, raw};
use super::*;
use crate::activity::tests::ms;
use crate::priority::Priority::{Idle, Interrupt, Normal};
use crate::session::Ending;

fn desk() -> Desk {
    let manner = Manner {
        reach: Reach::Prompt,
        ..Manner::generic(80)
    };
    idle_at(Desk::new(manner, ms(0)))
}

#[test]
fn nothing_is_ever_typed() {
    let mut desk = desk();
    for letter in [
        letter(1, Normal),
        letter(2, Interrupt),
        letter(3, Idle),
        raw(4),
    ] {
        let pending = [letter];
        assert_eq!(desk.act(ms(3_000), &pending), [], "{pending:?}");
        assert_eq!(desk.remind(ms(3_000), &pending), []);
    }
    assert!(desk.bars_a_nudge().is_some_and(|why| why.contains("loop")));
    assert!(
        desk.bars_an_answer()
            .is_some_and(|why| why.contains("loop"))
    );
    assert!(!desk.is_writing());
}

#[test]
fn what_waits_waits_for_a_prompt() {
    let mut desk = desk();
    let hold = |desk: &Desk, priority| {
        let letter = letter(1, priority);
        let pending = [letter.clone()];
        desk.hold(ms(3_000), &letter, &pending).expect("it is held")
    };
    let normal = hold(&desk, Normal);
    assert_eq!(normal.rule, "loop");
    assert!(
        normal.reason.contains("next iteration"),
        "{}",
        normal.reason
    );
    assert!(
        hold(&desk, Interrupt)
            .reason
            .contains("ends what the loop is doing")
    );
    desk.on(ms(3_000), Event::Exited(Ending::Exit(0)));
    assert_eq!(hold(&desk, Normal).rule, "exited");
}
