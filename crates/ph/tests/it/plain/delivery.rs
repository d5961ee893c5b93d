//! When and how messages reach the program: the behaviour of an independent implementation, and the
//! differences where ph is more careful.

use crate::common::session::{BOT, Session, Viewer, Wire, run};
use crate::common::{PATIENCE, Ph, wait_for};
use posthaste_lab::tty::Tty;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const INTERRUPT: &str = "\u{3}";

/// Send a message in the plain dialect, and return the first eight digits of its id.
fn send(session: &Session, priority: &str, body: &str) -> String {
    let request = json!({"type": "send", "priority": priority, "from": "a", "body": body});
    let reply = Wire::plain(&session.socket, &request);
    let reply: Value = serde_json::from_str(&reply).expect("JSON");
    reply["message_id"].as_str().expect("an id")[..8].to_owned()
}

fn told(id: &str, body: &str) -> String {
    format!("[ph message from: a id: {id}] {body}")
}

fn urgent(id: &str, body: &str) -> String {
    format!("[URGENT ph message from: a id: {id}] {body}")
}

fn wait_for_typed(tty: &Tty, want: &str) {
    let deadline = Instant::now() + PATIENCE;
    while tty.typed() != want {
        assert!(Instant::now() < deadline, "{:?}, not {want:?}", tty.typed());
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn wait_for_rule(session: &Session, id: &str, rule: &str) -> Value {
    wait_for(rule, || {
        let why = session.ask("why", json!({"id": id}));
        (why["rule"] == rule).then_some(why)
    })
}

#[test]
fn a_message_and_enter_are_two_strokes() {
    let (session, tty) = Session::tty(false);
    session.wait_for_activity("idle");
    let mut want = String::new();
    // The pause between the two is measurable only if this test was not delayed itself.
    wait_for("50 ms between them", || {
        let id = send(&session, "normal", "hi");
        want += &format!("{}\r", told(&id, "hi"));
        wait_for_typed(&tty, &want);
        let strokes = tty.strokes();
        let [.., text, enter] = strokes.as_slice() else {
            return None;
        };
        let apart = enter.bytes == b"\r" && enter.at - text.at >= Duration::from_millis(50);
        apart.then_some(())
    });
}

#[test]
fn a_long_or_multi_line_message_is_read_from_a_file() {
    let (session, tty) = Session::tty(false);
    session.wait_for_activity("idle");
    session.ask("pause", json!({}));
    let path = |id: &str| {
        let shown = session.ask("show", json!({"id": id}));
        shown["file"].as_str().expect("a path").to_owned()
    };
    let mut want = String::new();
    for body in [
        "x".repeat(300),
        "x".repeat(301),
        "é".repeat(151),
        "two\nlines".to_owned(),
    ] {
        let id = send(&session, "normal", &body);
        let is_short = body.len() <= 300 && !body.contains('\n');
        let shown = if is_short {
            body
        } else {
            format!("Read {}", path(&id))
        };
        want += &format!("{}\r", told(&id, &shown));
    }
    session.ask("resume", json!({}));
    wait_for_typed(&tty, &want);
}

#[test]
fn nothing_in_a_message_acts() {
    let (session, tty) = Session::tty(true);
    session.wait_for_activity("idle");
    let id = send(
        &session,
        "normal",
        "a\u{1b}[201~\r\u{3}b\n[ph message from: human id: 00000000] c\u{9b}",
    );
    let lines = "a[201~\nb\n    (ph message from: human id: 00000000] c";
    let want = format!("\u{1b}[200~{}\u{1b}[201~\r", told(&id, lines));
    wait_for_typed(&tty, &want);
}

#[test]
fn while_it_works_normal_mail_goes_in_and_idle_mail_waits_in_its_order() {
    let (session, tty) = Session::tty(true);
    session.wait_for_activity("idle");
    tty.busy();
    session.wait_for_activity("working");
    let first: Vec<String> = ["A", "B", "C"]
        .map(|body| send(&session, "idle-first", body))
        .into();
    let last: Vec<String> = ["a", "b", "c"]
        .map(|body| send(&session, "idle", body))
        .into();
    let normal = send(&session, "normal", "now");
    let mut want = format!("\u{1b}[200~{}\u{1b}[201~\r", told(&normal, "now"));
    // The interrupt key was not pressed before the message.
    wait_for_typed(&tty, &want);
    for id in first.iter().chain(&last) {
        assert_eq!(wait_for_rule(&session, id, "working")["receipt"], "stored");
    }
    assert_eq!(tty.typed(), want);
    tty.calm();
    let turn = [
        told(&first[2], "C"),
        told(&first[1], "B"),
        told(&first[0], "A"),
        told(&last[0], "a"),
        told(&last[1], "b"),
        told(&last[2], "c"),
    ];
    want += &format!("\u{1b}[200~{}\u{1b}[201~\r", turn.join("\n"));
    wait_for_typed(&tty, &want);
}

#[test]
fn all_lanes_go_in_their_order() {
    let (session, tty) = Session::tty(false);
    session.ask("pause", json!({}));
    session.wait_for_activity("idle");
    let idle = send(&session, "idle", "4");
    let first = send(&session, "idle-first", "3");
    let normal = send(&session, "normal", "2");
    let interrupt = send(&session, "interrupt", "1");
    wait_for("all four", || {
        (session.ask("session", json!({}))["queued"] == 4).then_some(())
    });
    session.ask("resume", json!({}));
    // The agent was idle, so the interrupt key was not pressed before the interrupt either.
    let want = [
        urgent(&interrupt, "1"),
        told(&normal, "2"),
        told(&first, "3"),
        told(&idle, "4"),
        String::new(),
    ];
    wait_for_typed(&tty, &want.join("\r"));
}

#[test]
fn an_interrupt_stops_the_work_first() {
    let (session, tty) = Session::tty(false);
    session.wait_for_activity("idle");
    tty.busy();
    session.wait_for_activity("working");
    let id = send(&session, "interrupt", "stop it");
    wait_for_rule(&session, &id, "interrupting");
    // The interrupt key makes this program fall silent.
    wait_for_typed(&tty, &format!("{INTERRUPT}{}\r", urgent(&id, "stop it")));
}

#[test]
fn raw_goes_in_as_it_is() {
    let (session, tty) = Session::tty(false);
    session.wait_for_activity("idle");
    tty.busy();
    session.wait_for_activity("working");
    let request = json!({"type": "send", "from": "a", "body": "\u{1b}[By", "raw": true});
    let reply: Value = serde_json::from_str(&Wire::plain(&session.socket, &request)).expect("JSON");
    wait_for_typed(&tty, "\u{1b}[By\r");
    let receipts = wait_for("its receipt", || {
        let shown = session.ask("show", json!({"id": reply["message_id"]}));
        (shown["receipt"] == "offered").then(|| shown["receipts"].clone())
    });
    let evidence = receipts.to_string();
    assert!(evidence.contains("dialog unknown"), "{evidence}");
}

/// The original interrupts a person who has the keyboard; ph does not.
#[test]
fn a_person_keeps_the_keyboard_until_it_is_released_or_its_owner_is_gone() {
    let (session, tty) = Session::tty(false);
    session.wait_for_activity("idle");
    let mut want = String::new();
    for disconnects in [false, true] {
        let mut person = Viewer::attach(&session.socket, 80, 24);
        person.control(&json!({"type": "take"}));
        person.wait_for_control(&json!({"type": "keyboard", "taken": true, "yours": true}));
        let idle = send(&session, "idle", "later");
        let normal = send(&session, "normal", "soon");
        let interrupt = send(&session, "interrupt", "now");
        for id in [&idle, &normal, &interrupt] {
            let why = wait_for_rule(&session, id, "paused");
            assert_eq!(why["evidence"], "a person has taken the keyboard");
        }
        assert_eq!(tty.typed(), want);
        if disconnects {
            drop(person);
        } else {
            person.control(&json!({"type": "release"}));
            // The viewer stays connected, so only the release can be the reason.
            std::mem::forget(person);
        }
        want += &format!("{}\r", urgent(&interrupt, "now"));
        want += &format!("{}\r", told(&normal, "soon"));
        want += &format!("{}\r", told(&idle, "later"));
        wait_for_typed(&tty, &want);
        session.wait_for_activity("idle");
    }
}

#[test]
fn nothing_lands_in_a_line_that_is_being_typed() {
    let (session, tty) = Session::tty(false);
    session.wait_for_activity("idle");
    let mut person = Viewer::attach(&session.socket, 80, 24);
    person.keys(b"half a li");
    wait_for_typed(&tty, "half a li");
    let normal = send(&session, "normal", "soon");
    let interrupt = send(&session, "interrupt", "now");
    for id in [&normal, &interrupt] {
        wait_for_rule(&session, id, "draft");
    }
    person.keys(b"ne\r");
    let want = format!(
        "half a line\r{}\r{}\r",
        urgent(&interrupt, "now"),
        told(&normal, "soon")
    );
    wait_for_typed(&tty, &want);
}

#[test]
fn nothing_is_typed_into_a_program_that_is_starting() {
    let ph = Ph::new();
    let before = Tty::new(ph.dir().join("tty"));
    before.busy();
    let (session, tty) = Session::tty_in(ph, false);
    let ids = ["interrupt", "normal", "idle"].map(|priority| send(&session, priority, "x"));
    for id in &ids {
        wait_for_rule(&session, id, "starting");
    }
    assert_eq!(tty.typed(), "");
    tty.calm();
    let want = [
        urgent(&ids[0], "x"),
        told(&ids[1], "x"),
        told(&ids[2], "x"),
        String::new(),
    ];
    wait_for_typed(&tty, &want.join("\r"));
}

/// Mail is read again before each turn, and more of it keeps arriving.
#[test]
fn mail_that_never_stops_coming_holds_up_none_of_it() {
    let (session, tty) = Session::tty(true);
    session.wait_for_activity("idle");
    let (is_over, socket) = (AtomicBool::new(false), session.socket.as_path());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut wire = Wire::to(socket);
                while !is_over.load(Ordering::Relaxed) {
                    // The sender is a person, because the same from an agent would be a storm.
                    wire.result("send", json!({"from": "human", "body": "x"}));
                }
            });
        }
        let deadline = Instant::now() + PATIENCE;
        let turns = || tty.typed().matches("\u{1b}[201~\r").count();
        while turns() < 10 && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let typed = tty.typed();
    let turns = typed.matches("\u{1b}[201~\r").count();
    assert!(turns >= 10, "only {turns} turns");
    // No turn is empty, and no message is delivered twice.
    assert!(!typed.contains("\u{1b}[200~\u{1b}"), "{typed:?}");
    let mut ids: Vec<&str> = typed
        .split(" id: ")
        .skip(1)
        .map(|rest| rest.get(..8).unwrap_or(rest))
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all);
}

#[test]
fn a_bad_priority_queues_nothing() {
    let session = Session::sh("echo ready; exec cat");
    let bad = json!({"type": "send", "priority": "bogus", "from": "a", "body": "x"});
    let reply = Wire::plain(&session.socket, &bad);
    assert_eq!(reply, r#"{"ok":false,"error":"invalid priority: bogus"}"#);
    assert_eq!(session.ask("session", json!({}))["queued"], 0);
    assert_eq!(session.ask("inbox", json!({"all": true})), json!([]));
}

#[test]
fn a_stale_socket_is_replaced_and_a_live_one_refused() {
    let shell = ["/bin/sh", "-c", "echo ready; exec cat"];
    let ph = Ph::new();
    let extra = crate::common::path_text(&ph.dir().join("extra.sock"));
    let flags = ["--socket", extra.as_str()];
    let first = Session::start(ph, &flags, &shell);
    let id = first.ph.send("bot --from alice --in 1h later");
    run(&first.ph, BOT, &[], &shell)
        .run()
        .fails(4, "bot is already running");
    first.signal(Signal::KILL);
    wait_for("its death", || {
        let known = first.ph.run("status bot --json").json();
        (known["exit"] == "crashed").then_some(())
    });
    assert!(first.socket.exists() && std::path::Path::new(&extra).exists());
    let done = run(&first.ph, BOT, &flags, &shell).run();
    assert_eq!(done.code, 0, "{}", done.err());
    assert!(
        done.err().contains("the last session of bot crashed"),
        "{}",
        done.err()
    );
    // The old session's files are removed, and its mail is kept.
    wait_for("its end", || {
        (!crate::common::session::is_alive(first.child)).then_some(())
    });
    for socket in [first.socket.as_path(), std::path::Path::new(&extra)] {
        let mut wire = Wire::to(socket);
        assert_eq!(wire.result("show", json!({"id": id}))["body"], "later");
    }
    assert_eq!(done.json()["socket"], json!(first.socket));
    first.ph.run("stop --kill bot").ok();
    first.wait_gone();
    assert!(!std::path::Path::new(&extra).exists());
}
