//! Known failures that can only be prevented by reading the program's screen, with the lab's
//! scripted agent.

use crate::common::stage::{Stage, until_so};
use crate::common::tui::{LAB, Tui, install_manifest, lab_with};

const FLAGS: [&str; 3] = ["--title", "--paste", "--keep-box"];

/// Start the scripted agent with additional flags.
fn tui<'a>(stage: &'a Stage, manifest: &str, more: &[&str]) -> Tui<'a> {
    install_manifest(stage, "lab", manifest);
    Tui::ready(stage, &[&FLAGS, more].concat())
}

#[test]
fn regression_02_an_enter_that_is_swallowed_leaves_the_text_standing() {
    let stage = Stage::new();
    let manifest = lab_with("[submit]\nretry_after = \"100ms\"\n");
    let tui = tui(&stage, &manifest, &["--swallow", "1"]);
    let id = stage.send("bot 'one line\nand another'");
    stage.until_receipt(&id, "offered");
    // Enter was pressed again and the text was not typed again; "offered" was recorded only then.
    let log = tui.until_logged("turn");
    let turn = Tui::turn(&id, "one line\\nand another");
    assert_eq!(log, ["swallowed".to_owned(), turn]);
    let shown = stage.show(&id);
    let says = shown["receipts"][2]["evidence"].as_str().expect("a text");
    let end = "Enter pressed 2 times; the input box let go of it";
    assert!(says.ends_with(end), "{says}");
}

#[test]
fn regression_03_a_message_merges_with_a_draft_that_only_the_screen_shows() {
    let stage = Stage::new();
    let tui = tui(&stage, LAB, &[]);
    // No key went through the session: the program restored the text itself.
    tui.order("type rm -rf ");
    let ids = ["normal", "interrupt"].map(|lane| {
        let id = stage.send(&format!("bot --priority {lane} {lane}"));
        stage.until_rule(&id, "draft");
        id
    });
    let mut person = tui.person();
    person.wait_for_text("> rm -rf");
    person.type_keys("\x15");
    for id in &ids {
        stage.until_receipt(id, "offered");
    }
    until_so("both turns", || tui.turns().len() == 2);
    let [normal, urgent] = ids;
    let want = [
        "cleared \"rm -rf \"".to_owned(),
        Tui::turn(&urgent, "interrupt").replace("[ph", "[URGENT ph"),
        Tui::turn(&normal, "normal"),
    ];
    assert_eq!(tui.log(), want);
}

#[test]
fn regression_04_an_injected_enter_approves_a_permission_dialog() {
    // The dialog is open before anything is typed.
    let stage = Stage::new();
    let tui_one = tui(&stage, LAB, &[]);
    tui_one.order("ask delete all");
    stage.until_activity("bot", "blocked");
    let ids = ["normal", "idle-first", "idle"]
        .map(|lane| stage.send(&format!("bot --priority {lane} {lane}")));
    for id in &ids {
        stage.until_rule(id, "blocked");
    }
    assert_eq!(stage.run("nudge bot hi").code, 1);
    // The dialog stays unanswered: the log would show any key that was typed into it.
    tui_one.order("answer");
    for id in &ids {
        stage.until_receipt(id, "offered");
    }
    let log = tui_one.until_logged("turn");
    assert_eq!(log.len(), 1, "{log:?}");
    // An interrupt cancels the dialog and never agrees.
    tui_one.order("ask delete all");
    stage.until_activity("bot", "blocked");
    let urgent = stage.send("bot --priority interrupt stop");
    stage.until_receipt(&urgent, "offered");
    let log = tui_one.until_logged("turn \"[URGENT");
    assert_eq!(log[1..log.len() - 1], ["no \"delete all\""]);
    // The dialog opens between a text and its Enter.
    for lane in ["interrupt", "normal", "idle-first", "idle"] {
        let stage = Stage::new();
        let tui = tui(&stage, LAB, &["--ask-on-text", "delete all"]);
        let id = stage.send(&format!("bot --priority {lane} hello"));
        stage.until_rule(&id, "blocked");
        assert_eq!(stage.receipts(&id), ["stored", "offering"]);
        tui.order("answer");
        stage.until_receipt(&id, "offered");
        let log = tui.until_logged("turn");
        assert_eq!(log.len(), 1, "{lane}: {log:?}");
    }
}

#[test]
fn regression_12_false_idle_or_blocked_detection() {
    let stage = Stage::new();
    let quick = LAB.replace("300ms", "50ms");
    let tui = tui(&stage, &quick, &["--silent"]);
    // Ordinary output is not a question, and an answered question is closed.
    tui.order("print Do you want to remove it?\nprint * 1. No");
    stage.until_shown("bot", "Do you want to remove it?");
    let passing = stage.send("bot --priority idle passing");
    stage.until_receipt(&passing, "offered");
    tui.order("ask remove it");
    stage.until_activity("bot", "blocked");
    let after = stage.send("bot --priority idle after");
    stage.until_rule(&after, "blocked");
    tui.order("answer");
    stage.until_receipt(&after, "offered");
    // Silence does not mean idle while the title says that the program works.
    until_so("both turns", || tui.turns().len() == 2);
    tui.order("work");
    let says = "its title says: ... busy";
    until_so(says, || stage.status("bot")["evidence"] == says);
    let held = stage.send("bot --priority idle held");
    let since = jiff::Timestamp::now();
    until_so("much more silence than counts as rest", || {
        jiff::Timestamp::now().duration_since(since).as_millis() > 500
    });
    assert_eq!(stage.rule(&held), "working");
    assert_eq!(stage.receipts(&held), ["stored"]);
    tui.order("rest");
    stage.until_receipt(&held, "offered");
    // Output does not mean work while the title says that the program is idle.
    stage.until_activity("bot", "idle");
    for n in 0..5 {
        tui.order(&format!("print line {n}"));
        stage.until_shown("bot", &format!("line {n}"));
        assert_eq!(stage.status("bot")["activity"], "idle");
    }
    until_so("all turns", || tui.turns().len() == 3);
    assert_eq!(tui.log().len(), 3, "{:?}", tui.log());
}
