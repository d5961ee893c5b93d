//! Readiness, work and idleness of an agent, as shown on its terminal.

use crate::common::stage::{Stage, is_alive, sleeps, until_so};
use crate::common::tui::{LAB, Tui, install_manifest, lab_with};
use serde_json::Value;

#[test]
fn nothing_is_typed_before_the_program_is_ready() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", LAB);
    let boot = stage.file("boot", "");
    let boot_text = crate::common::path_text(&boot);
    let tui = Tui::start(&stage, &["--title", "--paste", "--boot", &boot_text]);
    stage.until_shown("bot", "booting");
    let id = stage.send("bot hello");
    stage.until_rule(&id, "starting");
    let why = stage.why(&id);
    assert_eq!(
        why["release"],
        "the pattern that shows that it is ready appears"
    );
    // Silence does not show readiness: the program has been silent for longer than the idle limit.
    let started = time(&stage.status("bot")["started_at"]);
    until_so("some silence", || {
        jiff::Timestamp::now().duration_since(started).as_millis() > 700
    });
    assert_eq!(stage.rule(&id), "starting");
    std::fs::remove_file(boot).unwrap();
    stage.until_receipt(&id, "offered");
    assert_eq!(tui.until_logged("turn"), [Tui::turn(&id, "hello")]);
}

fn time(value: &Value) -> jiff::Timestamp {
    let text = value.as_str().expect("a text");
    text.parse().expect("a time")
}

#[test]
fn a_silent_program_with_a_working_title_is_working() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", LAB);
    let tui = Tui::ready(&stage, &["--title", "--paste", "--work", "--silent"]);
    let first = stage.send("bot first");
    stage.until_receipt(&first, "offered");
    let later = stage.send("bot --priority idle later");
    until_so("the title", || {
        stage.status("bot")["evidence"] == "its title says: ... busy"
    });
    let since = time(&stage.status("bot")["since"]);
    until_so("some silence", || {
        jiff::Timestamp::now().duration_since(since).as_millis() > 700
    });
    stage.until_rule(&later, "working");
    assert_eq!(stage.why(&later)["evidence"], "its title says: ... busy");
    tui.order("rest");
    stage.until_receipt(&later, "offered");
    until_so("both turns", || tui.turns().len() == 2);
}

#[test]
fn a_writing_program_with_an_idle_title_is_idle() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", LAB);
    let tui = Tui::ready(&stage, &["--title", "--paste"]);
    for n in 0..5 {
        tui.order(&format!("print line {n}"));
        stage.until_shown("bot", &format!("line {n}"));
        assert_eq!(stage.status("bot")["activity"], "idle");
    }
}

#[test]
fn a_status_report_beats_the_title() {
    let stage = Stage::new();
    let osc = "[activity.osc]\nnumber = 7501\nworking = ['state=working']\nidle = ['state=idle']\nblocked = ['state=blocked']\n";
    install_manifest(&stage, "lab", &lab_with(osc));
    let tui = Tui::ready(&stage, &["--title", "--paste"]);
    let evidence = |says: &str| {
        until_so(says, || stage.status("bot")["evidence"] == says);
    };
    tui.order("osc state=working");
    stage.until_activity("bot", "working");
    evidence("its status note says: state=working");
    tui.order("osc state=blocked");
    stage.until_activity("bot", "blocked");
    tui.order("osc state=idle\nwork");
    stage.until_activity("bot", "idle");
    evidence("its status note says: state=idle");
}

#[test]
fn an_interrupt_key_never_ends_an_idle_program() {
    let stage = Stage::new();
    let keys = "[interrupt]\nkeys = \"ctrl+c\"\nquits_when_idle = true\n";
    install_manifest(&stage, "lab", &lab_with(keys));
    let tui = Tui::ready(&stage, &["--title", "--paste", "--quit"]);
    let child = stage.child("bot");
    let urgent = |body: &str| {
        let id = stage.send(&format!("bot --priority interrupt {body}"));
        stage.until_receipt(&id, "offered");
        id
    };
    urgent("one");
    tui.order("work");
    stage.until_activity("bot", "working");
    urgent("two");
    until_so("both turns", || tui.turns().len() == 2);
    let log = tui.log();
    assert_eq!(log[1], "interrupted", "{log:?}");
    assert_eq!(log.len(), 3, "{log:?}");
    assert!(is_alive(child));
}

#[test]
fn a_key_that_may_end_the_program_is_not_pressed_on_output_alone() {
    let stage = Stage::new();
    let keys = "[interrupt]\nkeys = \"ctrl+c\"\nquits_when_idle = true\n";
    // Without a title, only output shows that the program works, and it might as well be idle. On a
    // busy machine it may pause while it draws, and still does not count as idle.
    let patient = lab_with(keys).replace("silence = \"300ms\"", "silence = \"2s\"");
    install_manifest(&stage, "lab", &patient);
    let tui = Tui::ready(&stage, &["--paste", "--quit"]);
    tui.order("work");
    stage.until_activity("bot", "working");
    let id = stage.send("bot --priority interrupt stop");
    // While it draws, nothing is typed.
    stage.until_rule(&id, "settling");
    tui.order("rest");
    stage.until_receipt(&id, "offered");
    let log = tui.until_logged("turn");
    assert_eq!(log.len(), 1, "{log:?}");
}

#[test]
fn an_unchanged_screen_is_not_read() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", LAB);
    let tui = Tui::ready(&stage, &["--title", "--paste"]);
    let id = stage.send("bot hello");
    stage.until_receipt(&id, "offered");
    tui.until_logged("turn");
    stage.until_activity("bot", "idle");
    let pid = stage.pid("bot");
    let (slept, since) = (sleeps(pid), jiff::Timestamp::now());
    until_so("a while", || {
        jiff::Timestamp::now().duration_since(since).as_millis() > 2_000
    });
    let woken = sleeps(pid) - slept;
    assert!(woken < 20, "woken {woken} times in 2 s");
}
