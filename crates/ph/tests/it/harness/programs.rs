//! Tests for the files of a program: its version, and the record of a handover.

use crate::common::stage::{Stage, until_so};
use crate::common::tui::{Tui, install_manifest, lab_with};

#[test]
fn an_untested_version_is_named() {
    let stage = Stage::new();
    let version = "[version]\ntested = ['1.0']\npath = '/(?<version>lab-tui)$'\n";
    install_manifest(&stage, "lab", &lab_with(version));
    let _tui = Tui::ready(&stage, &["--title", "--paste"]);
    let said = "lab-tui (not tested; tested with 1.0)";
    assert!(stage.run("status bot").ok().contains(said));
    assert!(stage.run("doctor").out().contains(said));
    let listed = stage.run("ls");
    assert!(listed.err().contains(said), "{}", listed.err());
    let status = stage.status("bot");
    assert_eq!(status["version"], "lab-tui");
    assert_eq!(status["tested_versions"][0], "1.0");
}

#[test]
fn the_version_is_read_from_the_banner() {
    let stage = Stage::new();
    let version = "[version]\ntested = ['lab-tui']\nbanner = '(?<version>lab-tui)'\n";
    install_manifest(&stage, "lab", &lab_with(version));
    let _tui = Tui::ready(&stage, &["--title", "--paste"]);
    let status = stage.status("bot");
    assert_eq!(status["version"], "lab-tui");
    assert!(status.get("tested_versions").is_none(), "{status}");
    assert!(!stage.run("status bot").ok().contains("not tested"));
}

#[test]
fn a_handed_over_conversation_gets_no_text_and_no_end() {
    let stage = Stage::new();
    let handover = "[handover]\ndir = '.lab'\nfile = 'sessions/{pid}.json'\nfield = 'movedTo'\n";
    install_manifest(&stage, "lab", &lab_with(handover));
    let tui = Tui::ready(&stage, &["--title", "--paste"]);
    let record = |text: &str| {
        let dir = stage.user().join(".lab/sessions");
        std::fs::create_dir_all(&dir).unwrap();
        let file = dir.join(format!("{}.json", stage.child("bot")));
        std::fs::write(file, text).unwrap();
        // The program draws, so the session reads the file.
        tui.order("print drawn");
    };
    record(r#"{"movedTo":"job7"}"#);
    until_so("the session to know", || {
        stage.status("bot")["handed_over"] == "job job7"
    });
    assert!(stage.run("status bot").ok().contains("moved  "));
    assert!(stage.run("ls").err().contains("conversation of bot"));
    let id = stage.send("bot hello");
    stage.until_rule(&id, "handed-over");
    let why = stage.why(&id);
    assert_eq!(why["evidence"], "the program's own record names job job7");
    let nudged = stage.run("nudge bot look");
    assert_eq!(nudged.code, 1);
    assert!(
        nudged.out().contains("moved to another process"),
        "{}",
        nudged.out()
    );
    stage
        .run("send bot --raw 1")
        .fails(4, "moved to another process");
    assert_eq!(tui.turns(), Vec::<String>::new());
    // An incomplete or missing record ends nothing.
    record(r#"{"movedTo":"#);
    assert_eq!(stage.status("bot")["handed_over"], "job job7");
    assert_eq!(stage.rule(&id), "handed-over");
    // The program takes its conversation back.
    record(r#"{"pid":1}"#);
    stage.until_receipt(&id, "offered");
    tui.until_logged("turn");
    record(r#"{"movedTo":"job7"}"#);
    until_so("the session to know again", || {
        stage.status("bot")["handed_over"] == "job job7"
    });
    let stopped = stage.run("stop bot");
    assert_eq!(stopped.code, 1);
    let said = stopped.out();
    assert!(
        said.contains("its conversation continues in another process"),
        "{said}"
    );
    assert!(!said.starts_with("bot has ended"), "{said}");
}
