//! Nudges obey the same rules as messages, also if something changes while they wait for the
//! keyboard.

use crate::common::stage::{Stage, until_so};
use crate::common::tui::{Tui, install_manifest, lab_with};
use serde_json::{Value, json};

/// Request a nudge while a message is in the box and its Enter is swallowed: delivery has the
/// keyboard until it gives up.
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
fn a_waiting_nudge_does_not_answer_a_new_question() {
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
fn a_nudge_does_not_submit_a_message_in_the_box() {
    let stage = Stage::new();
    let (tui, answer) = nudge_meanwhile(&stage, "and-more");
    let reason = "an earlier text is still in the input box, because Enter did not submit it";
    assert_eq!(answer(), json!({"status": "held", "reason": reason}));
    // A later nudge gets the same reason.
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
