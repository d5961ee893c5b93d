//! Faults of the original that must not occur here.

use crate::common::Ph;
use crate::common::session::{Session, Wire, originals_socket_path, run};
use serde_json::{Value, json};
use std::path::Path;

const QUIET: &str = "echo ready; exec cat";
/// Number of lines of a flood.
const FLOOD: usize = 100_000;

/// A program that prints a flood of numbered lines when Enter is pressed.
fn flood() -> String {
    let fill = "x".repeat(90);
    format!("stty -echo; echo ready; read x; seq -f '%.0f {fill}' 1 {FLOOD}; echo over; exec cat")
}

/// Return the received lines of a flood, without notices of missed lines. Reads as fast as possible
/// and parses afterwards, so that it does not fall behind.
fn hear_flood(wire: &mut Wire) -> Vec<String> {
    let lines = wire.lines_until(r#"{"line":"over"}"#);
    lines.iter().map(|line| output_of(line)).collect()
}

fn output_of(line: &str) -> String {
    let event: Value = serde_json::from_str(line).expect("JSON");
    let line = event["params"]["data"]["line"].as_str();
    line.unwrap_or_else(|| panic!("{event}")).to_owned()
}

#[test]
fn a_subscriber_that_never_reads_holds_nobody_back_and_costs_nothing() {
    let session = Session::sh(&flood());
    session.wait_for_text("ready");
    let mut stuck = session.wire();
    stuck.subscribe(&["output"]);
    let mut reader = session.wire();
    reader.subscribe(&["output"]);
    let before = session.memory();
    session.type_keys("\r");
    let lines = hear_flood(&mut reader);
    let number = |line: &String| line.split(' ').next().and_then(|n| n.parse().ok());
    let numbers: Vec<usize> = lines.iter().filter_map(number).collect();
    assert!(numbers.iter().copied().eq(1..=FLOOD), "{}", numbers.len());
    let grown = session.memory().saturating_sub(before);
    assert!(grown < 8 << 10, "it has grown by {grown} KiB");
    // Now the client reads: first the buffered lines, then the number of missed lines.
    let mut heard = 0;
    let missed = loop {
        let event = stuck.event();
        match event["data"]["missed"].as_u64() {
            Some(missed) => {
                assert_eq!(event["type"], "lagged");
                break missed;
            }
            None => heard += 1,
        }
    };
    // The whole flood, `over` included.
    assert_eq!(heard + missed, FLOOD as u64 + 1, "{heard} and {missed}");
    // From here on, the client receives events like any other.
    stuck.result("set_interactive_mode", json!({"enabled": true}));
    stuck.result("write_pty", json!({"data": "again\n"}));
    let told = stuck.wait_for_event("output", "line");
    assert_eq!(told, json!({"line": "again"}));
}

#[test]
fn a_reader_that_keeps_up_hears_even_the_shortest_lines() {
    // Lines of one byte are the most events per byte of output.
    let session = Session::sh(
        "stty -echo -opost; echo ready; read x; yes '' | head -n 200000; echo over; exec cat",
    );
    session.wait_for_text("ready");
    let mut wire = session.wire();
    wire.subscribe(&["output"]);
    session.type_keys("\r");
    let lines = hear_flood(&mut wire);
    let empty = lines.iter().filter(|line| line.is_empty()).count();
    assert_eq!((empty, lines.len()), (200_000, 200_001));
}

#[test]
fn output_is_told_line_by_line_while_the_agent_works_and_to_its_very_end() {
    let session = Session::sh(
        "stty -echo; printf 'begun '; while read x; do printf '%s\\n' \"$x\"; \
         [ \"$x\" = end ] && break; done; printf 'last words'; exit 0",
    );
    session.wait_for_text("begun");
    let mut wire = session.wire();
    wire.subscribe(&["output"]);
    // Each line arrives before the next is requested. The first began before the client subscribed.
    for (typed, want) in [
        ("one", "begun one"),
        ("", ""),
        ("two", "two"),
        ("end", "end"),
    ] {
        session.type_keys(&format!("{typed}\r"));
        assert_eq!(wire.wait_for_event("output", "line"), json!({"line": want}));
    }
    assert_eq!(
        wire.wait_for_event("output", "line"),
        json!({"line": "last words"})
    );
    assert_eq!(wire.wait_closed(), Vec::<Value>::new());
}

/// The last line has no line end. A client that connects afterwards receives it too.
#[test]
fn the_last_line_is_told_to_late_listeners_too() {
    let session = Session::sh("stty -echo; echo first; printf 'a prompt> '; read x");
    session.wait_for_text("a prompt>");
    let mut wire = session.wire();
    wire.subscribe(&["output"]);
    session.type_keys("\r");
    let told = wire.wait_for_event("output", "line");
    assert_eq!(told, json!({"line": "a prompt> "}));
}

#[test]
fn a_live_socket_is_left_alone_by_the_next_start() {
    let ph = Ph::new();
    let chosen = originals_socket_path(&ph, "bot");
    let flags = ["--socket", &chosen];
    let shell = ["/bin/sh", "-c", QUIET];
    let session = Session::start(ph, &flags, &shell);
    let ph = &session.ph;
    run(ph, "bot", &flags, &shell)
        .run()
        .fails(4, "bot is already running");
    run(ph, "bot", &[], &shell)
        .run()
        .fails(4, "bot is already running");
    run(ph, "other", &flags, &shell)
        .run()
        .fails(4, "another process listens on");
    for socket in [&session.socket, Path::new(&chosen)] {
        let status = Wire::to(socket).result("get_status", json!({}));
        assert_eq!(status["task_name"], "bot");
    }
    let file = ph.file("a file", "mine");
    let taken = file.to_str().expect("a path");
    run(ph, "other", &["--socket", taken], &shell)
        .run()
        .fails(4, "is not a socket");
    assert_eq!(std::fs::read(&file).expect("a file"), b"mine");
    // The socket and the session's record are removed when the session ends.
    ph.run("stop bot").ok();
    session.wait_gone();
    assert!(!Path::new(&chosen).exists());
}

#[test]
fn a_bad_event_name_leaves_nothing_subscribed() {
    let session = Session::sh(QUIET);
    let mut wire = session.wire();
    let bad = json!({"events": ["output", "state_change", "bogus"]});
    let (code, text) = wire.error("subscribe", bad.clone());
    assert_eq!(code, -32602);
    assert_eq!(
        text,
        "Invalid event type: 'bogus'. Valid: *, ask, message, output, state_change"
    );
    assert_eq!(
        wire.result("subscribe", json!({})),
        json!({"subscribed": []})
    );
    wire.subscribe(&["message"]);
    wire.error("subscribe", bad);
    assert_eq!(
        wire.result("subscribe", json!({})),
        json!({"subscribed": ["message"]})
    );
}

/// The original took these words in an agent's output for a failure or an exit.
#[test]
fn nothing_that_an_agent_prints_ends_it() {
    let session =
        Session::sh("echo '<promise>COMPLETE</promise>'; echo error: 429 timeout; exec cat");
    session.wait_for_text("429 timeout");
    session.wait_for_activity("idle");
    assert_eq!(session.ask("get_status", json!({}))["status"], "running");
}
