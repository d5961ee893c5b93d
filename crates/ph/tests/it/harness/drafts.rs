//! Text in the program's input box: a person's draft, or a text that Enter did not submit.

use crate::common::stage::{Stage, until_so};
use crate::common::tui::{LAB, Tui, install_manifest, lab_with, lab_without_box};

#[test]
fn a_draft_on_the_screen_holds_mail_until_it_is_gone() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", LAB);
    let tui = Tui::ready(&stage, &["--title", "--paste"]);
    // The program shows a draft that nobody typed in this session.
    tui.order("type half a thought");
    let id = stage.send("bot --priority interrupt hello");
    stage.until_rule(&id, "draft");
    let why = stage.why(&id);
    assert_eq!(why["evidence"], "the screen shows text in the input box");
    assert_eq!(why["release"], "it is submitted or cleared");
    assert!(!why.to_string().contains("half a thought"), "{why}");
    let mut person = tui.person();
    person.wait_for_text("half a thought");
    person.type_keys("\r");
    stage.until_receipt(&id, "offered");
    let log = tui.until_logged("turn \"[URGENT");
    assert_eq!(log[0], "turn \"half a thought\"");
    assert_eq!(log.len(), 2, "{log:?}");
    // Edited with keys from which the contents cannot be known.
    person.type_keys("\x1b[Aabc");
    person.wait_for_text("> abc");
    let id = stage.send("bot again");
    stage.until_rule(&id, "draft");
    person.type_keys("\x15");
    stage.until_receipt(&id, "offered");
    let log = tui.until_logged("turn \"[ph");
    assert_eq!(
        log[2..],
        ["cleared \"abc\"".to_owned(), Tui::turn(&id, "again")]
    );
}

#[test]
fn a_swallowed_enter_is_pressed_again_and_the_text_is_not_retyped() {
    let stage = Stage::new();
    let retry = "[submit]\nretries = 2\nretry_after = \"100ms\"\n";
    install_manifest(&stage, "lab", &lab_with(retry));
    let tui = Tui::ready(&stage, &["--title", "--paste", "--swallow", "2"]);
    let id = stage.send("bot hello");
    stage.until_receipt(&id, "offered");
    let log = tui.until_logged("turn");
    let want = [
        "swallowed".to_owned(),
        "swallowed".to_owned(),
        Tui::turn(&id, "hello"),
    ];
    assert_eq!(log, want);
    let evidence = stage.show(&id)["receipts"][2]["evidence"].clone();
    assert_eq!(
        evidence,
        "written whole to the terminal of the running program, Enter pressed 3 times; the input \
         box let go of it"
    );
}

#[test]
fn a_text_that_is_never_submitted_stays_offered_and_holds_later_mail() {
    let stage = Stage::new();
    let retry = "[submit]\nretry_after = \"100ms\"\n";
    install_manifest(&stage, "lab", &lab_with(retry));
    let tui = Tui::ready(&stage, &["--title", "--paste", "--swallow", "2"]);
    let id = stage.send("bot hello");
    stage.until_receipt(&id, "offered");
    let evidence = stage.show(&id)["receipts"][2]["evidence"].clone();
    let says = evidence.as_str().unwrap();
    assert!(
        says.ends_with("Enter pressed 2 times; the input box still holds it"),
        "{says}"
    );
    let next = stage.send("bot next");
    stage.until_rule(&next, "draft");
    let reason = "an earlier text is still in the input box, because Enter did not submit it";
    assert_eq!(stage.why(&next)["reason"], reason);
    assert_eq!(tui.log(), ["swallowed", "swallowed"]);
    // A person submits the text.
    let mut person = tui.person();
    person.type_keys("\r");
    stage.until_receipt(&next, "offered");
    until_so("both turns", || tui.turns().len() == 2);
    assert_eq!(
        tui.log()[2..],
        [Tui::turn(&id, "hello"), Tui::turn(&next, "next")]
    );
}

#[test]
fn a_prompt_that_an_interrupt_restores_is_cleared() {
    let stage = Stage::new();
    let more = "clear = \"ctrl+u\"\n[interrupt]\nkeys = \"esc\"\n";
    install_manifest(&stage, "lab", &lab_with(more));
    let tui = Tui::ready(&stage, &["--title", "--paste", "--work", "--put-back"]);
    let first = stage.send("bot first");
    stage.until_receipt(&first, "offered");
    stage.until_activity("bot", "working");
    let urgent = stage.send("bot --priority interrupt stop");
    stage.until_receipt(&urgent, "offered");
    until_so("both turns", || tui.turns().len() == 2);
    let log = tui.log();
    assert_eq!(log[1], "interrupted");
    assert!(log[2].starts_with("cleared \"[ph message"), "{log:?}");
    assert!(log[3].starts_with("turn \"[URGENT ph message"), "{log:?}");
    assert_eq!(log.len(), 4, "{log:?}");
}

#[test]
fn an_agent_without_a_described_box_gets_mail() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", &lab_without_box(""));
    let tui = Tui::ready(&stage, &["--hide", "--alt"]);
    let ids = ["one", "two"].map(|body| {
        let id = stage.send(&format!("bot {body}"));
        stage.until_receipt(&id, "offered");
        Tui::turn(&id, body)
    });
    until_so("both turns", || tui.turns().len() == 2);
    assert_eq!(tui.log(), ids);
}
