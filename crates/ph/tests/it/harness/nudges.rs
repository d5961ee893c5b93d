//! Lines that are no messages: they obey the same rules, also those that came while they waited for
//! the keyboard.

use crate::common::stage::{Stage, until_so};
use crate::common::tui::{Tui, install_manifest, lab_with};
use serde_json::{Value, json};

/// Asks for a line to be typed while a message of ours is written and its Enter swallowed: the
/// keyboard is ours until it is given up.
fn nudge_meanwhile<'a>(stage: &'a Stage, text: &str) -> (Tui<'a>, impl FnOnce() -> Value) {
    install_manifest(
        stage,
        "lab",
        &lab_with("[submit]\nretry_after = \"500ms\"\n"),
    );
    let tui = Tui::ready(stage, &["--title", "--paste", "--swallow", "9"]);
    stage.send("bot hello-again");
    tui.until_logged("swallowed");
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "nudge", "params": {"text": text}
    });
    let asked = stage.begin("bot", &call);
    (tui, move || asked.answer()["result"].clone())
}

#[test]
fn a_question_that_opens_while_a_line_waits_is_not_answered_by_it() {
    let stage = Stage::new();
    let (tui, answer) = nudge_meanwhile(&stage, "y");
    tui.order("ask delete everything");
    let want = json!({"status": "held", "reason": "the program waits for an answer"});
    assert_eq!(answer(), want);
    let log = tui.log();
    assert!(log.iter().all(|line| line == "swallowed"), "{log:?}");
    stage.until_activity("bot", "blocked");
}

#[test]
fn a_message_that_stays_in_the_box_is_not_submitted_by_a_line() {
    let stage = Stage::new();
    let (tui, answer) = nudge_meanwhile(&stage, "and-more");
    let reason = "an earlier text is still in the input box, because Enter did not submit it";
    assert_eq!(answer(), json!({"status": "held", "reason": reason}));
    // One who asks later hears the same.
    let nudged = stage.run("nudge bot and-more");
    assert_eq!(
        (nudged.code, nudged.out()),
        (1, format!("not nudged: {reason}\n"))
    );
    let shown = stage.peek("bot");
    assert!(shown.contains("hello-again"), "{shown}");
    assert!(!shown.contains("and-more"), "{shown}");
    tui.order("type !");
    until_so("the box as it was", || {
        stage.peek("bot").contains("hello-again!")
    });
}
