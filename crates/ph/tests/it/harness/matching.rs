//! `ph harness match`: what a manifest recognises on a captured screen.

use crate::common::stage::Stage;
use crate::common::tui::{LAB, Tui, install_manifest, lab_with};

const RULE: &str = "--------------------";
const FOOT: &str = "? for help";

/// A screen that ends in the lab's input box.
fn screen(above: &str, text: &str) -> String {
    format!("{above}\n{RULE}\n> {text}\n{RULE}\n{FOOT}\n")
}

/// A stage with the lab's harness.
fn stage() -> Stage {
    let stage = Stage::new();
    let osc = "[activity.osc]\nnumber = 7501\nblocked = ['state=blocked']\n";
    let version = "[version]\ntested = ['1.0']\nbanner = '^Lab v(?<version>\\S+)'\n";
    install_manifest(&stage, "lab", &lab_with(&format!("{osc}{version}")));
    stage
}

#[test]
fn a_captured_screen_is_explained() {
    let stage = stage();
    stage.file("user/empty", screen("Lab v1.0", ""));
    stage.file("user/hint", screen("Lab v1.1", "Type a message"));
    stage.file("user/draft", screen("> old", "hello\n  you"));
    stage.file("user/below", format!("{}1. Yes\n", screen("", "")));
    let asks = "Do you want to run rm?\n* 1. Yes\n  2. No\n";
    stage.file("user/asks", asks);
    insta::assert_snapshot!(stage.transcript(&[
        "harness match lab empty --cursor 2,2 --title '* lab'",
        "harness match lab empty",
        "harness match lab hint",
        "harness match lab draft --cursor 5,3",
        "harness match lab empty --cursor 3,2",
        "harness match lab below",
        "harness match lab asks --title '... busy'",
        "harness match lab empty --note state=blocked",
        "harness match generic empty",
    ]), @r#"
    $ ph harness match lab empty --cursor 2,2 --title * lab
    input box  empty
    cursor     2,2
    dialog     none
    activity   idle: its title says: * lab
    version    1.0
    $ ph harness match lab empty
    input box  empty
    cursor     2,2 (assumed)
    dialog     none
    activity   no claim
    version    1.0
    $ ph harness match lab hint
    input box  empty
    cursor     2,2 (assumed)
    dialog     none
    activity   no claim
    version    1.1 (not tested; tested with 1.0)
    $ ph harness match lab draft --cursor 5,3
    input box  holds: hello you
    cursor     5,3
    dialog     none
    activity   no claim
    version    not shown
    [exit 1]
    $ ph harness match lab empty --cursor 3,2
    input box  unrecognised: expected the cursor at the beginning of the input box, found ">"
    cursor     3,2
    dialog     none
    activity   no claim
    version    1.0
    [exit 1]
    $ ph harness match lab below
    input box  unrecognised: expected only listed rows below the input box (allow a status line with [harness.lab] status_rows in config.toml), found "1. Yes"
    cursor     2,2 (assumed)
    dialog     none
    activity   no claim
    version    not shown
    [exit 1]
    $ ph harness match lab asks --title ... busy
    input box  unrecognised: expected the input box and no dialog, found "permission: run rm"
    cursor     7,2 (assumed)
    dialog     permission: run rm
    activity   working: its title says: ... busy
    version    not shown
    [exit 1]
    $ ph harness match lab empty --note state=blocked
    input box  unrecognised: expected the input box and no dialog, found "its status note says: state=blocked"
    cursor     2,2 (assumed)
    dialog     its status note says: state=blocked
    activity   blocked: its status note says: state=blocked
    version    1.0
    [exit 1]
    $ ph harness match generic empty
    input box  undescribed: the harness has no [input_box]
    cursor     10,4 (assumed)
    dialog     none
    activity   no claim
    version    not shown
    [exit 1]
    "#);
}

#[test]
fn a_person_can_allow_status_rows() {
    let stage = stage();
    stage.file("user/below", format!("{}my status\n", screen("", "")));
    let check = |config: &str, project: &str, code: i32| {
        stage.file("user/.config/posthaste/config.toml", config);
        stage.file("user/.posthaste/config.toml", project);
        let args = ["harness", "match", "lab", "below"];
        let done = stage.call(&args).without("PH_HOME").run();
        assert_eq!(done.code, code, "{config} {project}: {}", done.out());
    };
    check("", "", 1);
    check("[harness.lab]\nstatus_rows = 1\n", "", 0);
    check("[harness.lab]\nstatus_rows = 0\n", "", 1);
    check("[harness.codex]\nstatus_rows = 1\n", "", 1);
    // A project's settings may come from anybody.
    check("", "[harness.lab]\nstatus_rows = 1\n", 1);
    check(
        "harness.lab.status_rows = 1",
        "harness.lab.status_rows = 0",
        0,
    );
    let shown = stage.call(&["config", "show"]).without("PH_HOME").run();
    let shown = stage.redact(&shown.out());
    let shown: Vec<_> = shown
        .lines()
        .filter(|line| line.contains("harness."))
        .collect();
    insta::assert_snapshot!(shown.join("\n"), @"
    harness.lab.status_rows = 1  ([dir]/user/.config/posthaste/config.toml)
    harness.lab.status_rows = 0  ([dir]/user/.posthaste/config.toml), ignored: a project cannot set it
    ");
    // The home's own settings belong to the person, too.
    stage.file(
        "home/config.toml",
        "[harness.lab]\nstatus_rows = 2\n[harness.labb]\nstatus_rows = 1\n",
    );
    let json = stage.run("config show --json").json();
    assert_eq!(json["harness"][0]["key"], "harness.lab.status_rows");
    assert_eq!(json["harness"][0]["value"], "2");
    let listed = stage.run("harness ls");
    assert!(
        listed
            .err()
            .contains("unknown harness 'labb' in the settings ([harness.labb])"),
        "{}",
        listed.err()
    );
    let shown = stage.run("harness show lab --json").json();
    assert_eq!(shown["manifest"]["input_box"]["status_rows"], 2);
}

#[test]
fn a_status_row_holds_mail_until_it_is_allowed() {
    let stage = Stage::new();
    let (known, _) = LAB.split_once("footer = ").expect("a footer");
    install_manifest(&stage, "lab", known);
    Tui::start(&stage, &[]);
    stage.until_shown("bot", FOOT);
    let id = stage.send("bot hello");
    stage.until_rule(&id, "starting");
    stage.file(
        "user/.config/posthaste/config.toml",
        "[harness.lab]\nstatus_rows = 1\n",
    );
    stage.run("restart bot --detach").ok();
    stage.until_receipt(&id, "offered");
}

#[test]
fn a_match_is_printed_as_json() {
    let stage = stage();
    let check = |input: &str, args: &str, code: i32, want: serde_json::Value| {
        let words = stage.words(&format!("harness match lab - --json {args}"));
        let done = stage.call(&words).stdin(input).run();
        assert_eq!(done.code, code, "{input} {}", done.err());
        let got: serde_json::Value = serde_json::from_str(&done.out()).unwrap();
        assert_eq!(got, want, "{input}");
    };
    let at = |column: u32, row: u32, assumed: bool| serde_json::json!({"column": column, "row": row, "assumed": assumed});
    check(
        &screen("Lab v1.1", ""),
        "--title '* lab' --cursor 2,2 --columns 80",
        0,
        serde_json::json!({
            "harness": "lab", "columns": 80, "cursor": at(2, 2, false),
            "input_box": {"state": "empty"}, "dialog": null, "version": "1.1", "untested": true,
            "claims": [{"source": "title", "says": "idle", "evidence": "its title says: * lab"}],
        }),
    );
    check(
        &screen("", "a\r\n  b")
            .replace('\n', "\r\n")
            .replace("\r\r", "\r"),
        "",
        1,
        serde_json::json!({
            "harness": "lab", "columns": 20, "cursor": at(3, 2, true),
            "input_box": {"state": "holds", "text": "a\nb", "scrolled": false},
            "dialog": null, "claims": [], "version": null,
        }),
    );
    check(
        "hello",
        "",
        1,
        serde_json::json!({
            "harness": "lab", "columns": 20, "cursor": at(5, 0, true),
            "input_box": {
                "state": "unrecognised", "expected": "the prompt of the input box at the cursor",
                "found": "\"hello\"",
            },
            "dialog": null, "claims": [], "version": null,
        }),
    );
}

#[test]
fn a_bad_capture_is_refused() {
    let stage = stage();
    let check = |input: &[u8], args: &str, says: &str| {
        let words = stage.words(&format!("harness match {args}"));
        let done = stage.call(&words).stdin(input).run();
        done.fails(2, says);
        let shown = format!("{}{}", done.out(), done.err());
        let acts = |c: char| c.is_control() && c != '\n';
        assert!(!shown.contains(acts), "{shown:?}");
    };
    check(b"> ", "lab nowhere", "cannot read nowhere");
    check(b"> ", "lab .", "cannot read .: Is a directory");
    check(b"", "lab -", "standard input is empty");
    check(b"a\xff", "lab -", "is not UTF-8: see byte 2");
    check(
        b"a\n\x1b[2J> ",
        "lab -",
        "row 1 of standard input has a control character",
    );
    check(
        "a\u{9b}2J".as_bytes(),
        "lab -",
        "control character (\\u{9b})",
    );
    check(&b"x\n".repeat(1_001), "lab -", "has more than 1000 rows");
    check(&b"x".repeat((1 << 20) + 1), "lab -", "has more than 1 MiB");
    check(
        &b"x".repeat(1_001),
        "lab -",
        "row 0 of standard input is 1001 columns wide",
    );
    check(
        &b"x".repeat(30),
        "lab - --columns 20",
        "the screen has at most 20",
    );
    check(b"> ", "lab - --columns 0", "0 is not in 1..=1000");
    check(b"> ", "lab - --cursor 2", "write --cursor as COLUMN,ROW");
    check(b"> ", "lab - --cursor=-1,0", "write --cursor as COLUMN,ROW");
    check(
        b"> ",
        "lab - --cursor 0,1",
        "--cursor row 1 is outside standard input: its last row is 0",
    );
    check(
        b"> ",
        "lab - --cursor 2000,0",
        "--cursor column 2000 is outside the screen: it has 1000 columns",
    );
    check(
        b"> ",
        "generic - --note x",
        "harness generic does not read OSC status notes",
    );
    let title = ["harness", "match", "lab", "-", "--title", "a\u{1b}]0;b"];
    stage
        .call(&title)
        .stdin("> ")
        .run()
        .fails(2, "the value contains a control character");
    let done = stage.run("harness match labb -");
    done.fails(3, "did you mean lab?");
}

/// A person's capture of a real agent is recognised like the session's own screen.
#[test]
fn the_captures_of_real_agents_are_recognised() {
    let stage = Stage::new();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/fixtures/agents");
    let check = |agent: &str, state: &str, code: i32, says: &str| {
        let file = format!("{fixtures}/{agent}/80x24/{state}");
        let beside = std::fs::read_to_string(format!("{file}.json")).unwrap();
        let beside: serde_json::Value = serde_json::from_str(&beside).unwrap();
        let place = |at: usize| beside["cursor"][at].as_u64().unwrap();
        let cursor = format!("{},{}", place(1), place(0));
        let file = format!("{file}.txt");
        let args = [
            "harness",
            "match",
            agent,
            &file,
            "--cursor",
            &cursor,
            "--columns",
            "80",
        ];
        let done = stage.call(&args).run();
        assert_eq!(
            done.code,
            code,
            "{agent} {state}: {}{}",
            done.out(),
            done.err()
        );
        assert!(done.out().contains(says), "{agent} {state}: {}", done.out());
    };
    check("claude", "idle", 0, "input box  empty\n");
    check("claude", "draft", 1, "input box  holds: ");
    check("claude", "dialog", 1, "dialog     permission");
    check("codex", "idle", 0, "input box  empty\n");
    check("codex", "dialog", 1, "input box  unrecognised: ");
    check("gemini", "idle", 0, "input box  empty\n");
    check("opencode", "idle", 0, "input box  empty\n");
}
