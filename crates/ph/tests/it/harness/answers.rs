//! Raw answers (`ph send --raw`) reach the question that they were given for, and
//! nothing else.

use crate::common::stage::{Stage, until_so};
use crate::common::tui::{LAB, Tui, install_manifest};

/// A manifest for the lab's agent that prints its input.
const ASKS: &str = r#"
name = "asks"
description = "The lab's agent that logs every byte"
commands = ["lab-agent"]

[activity]
silence = "300ms"

[[dialog]]
name = "permission"
pattern = 'May I (?<what>.+)\?'
"#;
const CLEAR: &str = "\x1b[2J\x1b[H";

#[test]
fn a_permission_request_holds_normal_mail_and_passes_answers_and_interrupts() {
    let stage = Stage::new();
    install_manifest(&stage, "asks", ASKS);
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    agent.say("May I run it?");
    stage.until_activity("bot", "blocked");
    assert_eq!(stage.status("bot")["blocked_on"], "permission: run it");
    let normal = stage.send("bot normal");
    stage.until_rule(&normal, "blocked");
    // No Enter follows, because it would choose the dialog's default. The end of the question is
    // the proof.
    let id = stage.run("send bot --raw y").ok().trim().to_owned();
    agent.until_heard("y");
    assert_eq!(stage.receipts(&normal), ["stored"]);
    agent.say(CLEAR);
    stage.until_receipt(&id, "accepted");
    assert_eq!(agent.heard().first(), Some(&b'y'));
    assert_ne!(agent.heard().get(1), Some(&b'\r'), "no header, no Enter");
    let shown = stage.show(&id);
    let says = |at: usize| shown["receipts"][at]["evidence"].as_str().expect("a text");
    assert!(
        says(2).ends_with("in answer to: permission: run it"),
        "{shown}"
    );
    assert_eq!(says(3), "the question closed after the answer was typed");
    stage.until_receipt(&normal, "offered");
    agent.until_heard("] normal\r");
    assert!(!agent.heard().contains(&3));
    // The key dismisses the question; nothing is typed before the question is closed.
    agent.say("May I stop it?");
    stage.until_activity("bot", "blocked");
    let urgent = stage.send("bot --priority interrupt now");
    agent.until_heard("\x03");
    assert!(agent.heard().ends_with(b"\x03"));
    assert_eq!(stage.receipts(&urgent), ["stored"]);
    agent.say(CLEAR);
    stage.until_receipt(&urgent, "offered");
    let header = format!("\x03[URGENT ph message from: human id: {}", &urgent[..8]);
    agent.until_heard(&format!("{header}] now\r"));
}

#[test]
fn an_answer_without_a_question_is_refused_and_not_stored() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", LAB);
    let tui = Tui::ready(&stage, &["--title", "--paste", "--work"]);
    let check = |line: &str| {
        let facts = stage.facts();
        let done = stage.run(line);
        done.fails(4, "bot: the program is not asking a question");
        let hint = "hint: 'ph peek bot' shows its screen; 'ph send bot' leaves a message";
        assert!(done.err().contains(hint), "{}", done.err());
        assert_eq!(stage.facts(), facts, "{line}");
    };
    check("send bot --raw y");
    check("send bot --raw y --wait offered --timeout 1s");
    check("send bot --raw y");
    // An answer is refused while the agent works, too.
    let id = stage.send("bot hello");
    stage.until_receipt(&id, "offered");
    tui.until_logged("turn");
    stage.until_activity("bot", "working");
    check("send bot --raw y");
    assert_eq!(tui.log(), [Tui::turn(&id, "hello")]);
}

#[test]
fn an_answer_to_a_closed_question_fails_and_is_not_typed() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", LAB);
    let tui = Tui::ready(&stage, &["--title", "--paste"]);
    for (order, verb) in [
        ("answer", "send bot --raw y"),
        ("answer\nask pay", "send bot --raw y"),
    ] {
        // A requested pause would let an answer pass.
        let mut person = stage.terminal("attach bot --take", posthaste_lab::pty::Size::USUAL);
        until_so("the keyboard to be taken", || {
            let status = stage.run("status bot").ok();
            status.contains("a person has taken the keyboard")
        });
        tui.order("ask remove it");
        stage.until_activity("bot", "blocked");
        let id = stage.run(verb).ok().trim().to_owned();
        stage.until_rule(&id, "paused");
        // The question closes, or another replaces it, before the answer is typed.
        tui.order(order);
        stage.until_receipt(&id, "failed");
        let why = stage.run(&format!("why {id}")).ok();
        let says = "not held   it is failed: the question that it was to answer is gone\n";
        assert!(why.starts_with(says), "{why}");
        person.type_keys("\x1cd");
        person.wait_exit();
    }
    tui.order("answer");
    let next = stage.send("bot next");
    stage.until_receipt(&next, "offered");
    assert_eq!(tui.until_logged("turn"), [Tui::turn(&next, "next")]);
}

#[test]
fn an_answer_gets_no_enter_if_the_question_is_asked_again() {
    let stage = Stage::new();
    install_manifest(&stage, "lab", LAB);
    let tui = Tui::ready(&stage, &["--title", "--paste", "--again"]);
    tui.order("ask push it");
    stage.until_activity("bot", "blocked");
    let id = stage.run("send bot --raw n").ok().trim().to_owned();
    // Whether it is the same question is unknown, so the answer is not repeated.
    stage.until_receipt(&id, "failed");
    let shown = stage.show(&id);
    let reason = shown["receipts"][2]["evidence"].as_str().expect("a text");
    assert!(reason.ends_with("still shows the same question"), "{shown}");
    // The second question is still open.
    assert_eq!(tui.log(), ["no \"push it\""]);
    assert_eq!(stage.status("bot")["activity"], "blocked");
}
