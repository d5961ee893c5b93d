//! A session's status and control: the original's eight methods.

use crate::common::session::{BOT, Session, Wire, run};
use crate::common::{Ph, wait_for};
use serde_json::{Value, json};

const QUIET: &str = "echo ready; exec cat";

/// Compares the reply to `get_status` without the parts that change from run to run.
#[test]
fn the_status_has_the_originals_fields_in_its_order() {
    let ph = Ph::new();
    let call = run(&ph, BOT, &[], &["/bin/sh", "-c", QUIET]).env("TZ", "XST-9:30");
    let session = Session::begin(ph, call);
    session.wait_for_text("ready");
    let mut wire = session.wire();
    wire.send_line(r#"{"jsonrpc":"2.0","id":1,"method":"get_status"}"#);
    let line = wire.line();
    let reply: Value = serde_json::from_str(&line).expect("JSON");
    let status = &reply["result"];
    // The time zone is the session's; the session's record has the same moment in UTC.
    let known = session.ask("session", json!({}));
    let began: jiff::Timestamp =
        serde_json::from_value(known["started_at"].clone()).expect("a time");
    let zone = jiff::tz::TimeZone::fixed(
        jiff::tz::Offset::constant(9).saturating_add(jiff::Span::new().minutes(30)),
    );
    let local = zone.to_datetime(began).strftime("%Y-%m-%dT%H:%M:%S%.6f");
    assert_eq!(status["started_at"], local.to_string());
    let updated = status["updated_at"].as_str().expect("a time");
    assert!(updated >= local.to_string().as_str(), "{updated}");
    assert_eq!(updated.len(), "2026-01-23T10:15:30.000000".len());
    let shown = line
        .replace(updated, "[updated]")
        .replace(&local.to_string(), "[started]");
    assert_eq!(
        session.ph.redact(&shown),
        r#"{"jsonrpc":"2.0","id":1,"result":{"task_name":"bot","task_dir":"[dir]/user","iteration":0,"max_iterations":0,"current_story":null,"agent":"generic","status":"running","interactive_mode":false,"mode_indicator":"autonomous","started_at":"[started]","updated_at":"[updated]","recent_output":["ready"]}}"#
    );
}

#[test]
fn events_have_local_times_without_a_zone() {
    let ph = Ph::new();
    let call = run(&ph, BOT, &[], &["/bin/sh", "-c", QUIET]).env("TZ", "XST+11");
    let session = Session::begin(ph, call);
    let mut wire = session.wire();
    wire.subscribe(&["state_change"]);
    let before = jiff::Timestamp::now();
    wire.result("set_interactive_mode", json!({"enabled": true}));
    let event = wire.event();
    let after = jiff::Timestamp::now();
    let text = event["timestamp"].as_str().expect("a time");
    assert_eq!(text.len(), "2026-01-23T10:15:30.123456".len(), "{text}");
    let local: jiff::civil::DateTime = text.parse().expect("a time without a zone");
    let zone = jiff::tz::TimeZone::fixed(jiff::tz::Offset::constant(-11));
    let at = zone.to_timestamp(local).expect("a moment");
    let micro = jiff::SignedDuration::from_micros(1);
    assert!(before - micro <= at && at <= after, "{before} {at} {after}");
}

#[test]
fn the_status_has_the_last_two_hundred_lines() {
    let session = Session::sh(
        "i=1; while [ $i -le 300 ]; do echo line $i; i=$((i+1)); done; printf 'prompt> '; exec cat",
    );
    session.wait_for_text("prompt>");
    let status = session.ask("get_status", json!({}));
    let recent: Vec<&str> = status["recent_output"]
        .as_array()
        .expect("lines")
        .iter()
        .map(|line| line.as_str().expect("a text").trim_end())
        .collect();
    assert_eq!(recent.len(), 200);
    assert_eq!((recent[0], recent[198]), ("line 102", "line 300"));
    assert_eq!(recent[199], "prompt>");
}

#[test]
fn a_subscriber_that_has_received_output_learns_that_the_agent_works() {
    let session = Session::sh("stty -echo; echo ready; while read line; do echo got $line; done");
    session.wait_for_text("ready");
    let mut wire = session.wire();
    for line in ["one", "two"] {
        session.wait_for_activity("idle");
        wire.subscribe(&["output"]);
        session.type_keys(&format!("{line}\r"));
        assert_eq!(wire.event()["data"]["line"], format!("got {line}"));
        let known = wire.result("session", json!({}));
        assert_eq!(known["activity"], "working", "{known}");
        wire.result("unsubscribe", json!({"events": ["output"]}));
    }
}

/// The program writes for longer than the silence that would make it idle.
#[test]
fn an_agent_that_goes_on_writing_goes_on_working() {
    let session = Session::sh(
        "stty -echo; echo ready; read go; \
         i=1; while [ $i -le 10 ]; do echo tick $i; sleep 0.3; i=$((i+1)); done; exec cat",
    );
    session.wait_for_text("ready");
    session.wait_for_activity("idle");
    let mut wire = session.wire();
    wire.subscribe(&["output", "state_change"]);
    session.type_keys("go\r");
    let mut told = Vec::new();
    loop {
        let event = wire.event();
        let data = &event["data"];
        told.extend(data["activity"].as_str().map(str::to_owned));
        if data["line"] == "tick 10" {
            break;
        }
    }
    assert_eq!(told, ["working"]);
    assert_eq!(wire.result("session", json!({}))["activity"], "working");
    let then = wire.wait_for_event("state_change", "activity");
    assert_eq!(then["activity"], "idle");
}

/// Single outputs are not reported, and a silence must not be detected between two of them.
#[test]
fn a_program_that_never_pauses_goes_on_starting() {
    let session = Session::sh(
        "sleep 1; end=$(($(date +%s) + 6)); \
         while [ $(date +%s) -lt $end ]; do echo more; done; echo done; exec cat",
    );
    let mut wire = session.wire();
    wire.subscribe(&["output", "state_change"]);
    let mut told = Vec::new();
    loop {
        let event = wire.event();
        let data = &event["data"];
        told.extend(data["activity"].as_str().map(str::to_owned));
        if data["line"] == "done" {
            break;
        }
    }
    assert_eq!(told, [""; 0]);
    let then = wire.wait_for_event("state_change", "activity");
    assert_eq!(then["activity"], "idle");
}

/// The program may close its terminal at the end and go on running.
#[test]
fn the_last_output_is_told_as_soon_as_any() {
    let session = Session::sh(
        "stty -echo; echo ready; read go; printf over; exec >/dev/null 2>&1 </dev/null; sleep 60",
    );
    session.wait_for_text("ready");
    session.wait_for_activity("idle");
    let mut wire = session.wire();
    wire.subscribe(&["state_change"]);
    session.type_keys("go\r");
    let told = wire.wait_for_event("state_change", "activity");
    assert_eq!(told["activity"], "working");
}

#[test]
fn a_reply_comes_before_its_event_and_an_unchanged_state_causes_none() {
    let session = Session::sh(QUIET);
    session.wait_for_activity("idle");
    let mut wire = session.wire();
    let mut other = session.wire();
    for wire in [&mut wire, &mut other] {
        wire.subscribe(&["state_change"]);
    }
    let call = |id: u32, enabled: bool| {
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"method":"set_interactive_mode","params":{{"enabled":{enabled}}}}}"#
        )
    };
    // Sent without waiting: the mode twice, the other mode, and the first mode again.
    wire.send_line([call(1, true), call(2, true), call(3, false), call(4, false)].join("\n"));
    let mut heard = Vec::new();
    while heard.len() < 6 {
        let said = wire.json();
        let data = &said["params"]["data"];
        if let Some(id) = said["id"].as_u64() {
            assert_eq!(said["result"]["interactive_mode"], id < 3);
            heard.push(format!("answer {id}"));
        } else if let Some(mode) = data["interactive_mode"].as_bool() {
            assert_eq!(
                data.as_object().map(serde_json::Map::len),
                Some(1),
                "{said}"
            );
            heard.push(format!("event {mode}"));
        }
    }
    let place = |what: &str| heard.iter().position(|h| h == what).expect(what);
    assert!(place("answer 1") < place("event true"), "{heard:?}");
    assert!(place("answer 3") < place("event false"), "{heard:?}");
    assert!(place("event true") < place("event false"), "{heard:?}");
    assert_eq!(
        other.wait_for_event("state_change", "interactive_mode"),
        json!({"interactive_mode": true})
    );
    assert_eq!(
        other.wait_for_event("state_change", "interactive_mode"),
        json!({"interactive_mode": false})
    );
    let sure = other.result("set_interactive_mode", json!({"enabled": false}));
    assert_eq!(sure, json!({"interactive_mode": false}));
    other.result("inject_prompt", json!({"prompt": "last"}));
    // No event about the mode comes in between.
    loop {
        let event = other.event();
        assert_eq!(event["data"].get("interactive_mode"), None, "{event}");
        if event["data"].get("injected_prompt").is_some() {
            break;
        }
    }
}

/// A complete line, as the original's protocol shows it, is submitted. No part of it stays behind
/// as a draft that would delay mail.
#[test]
fn a_line_that_is_written_whole_leaves_no_draft() {
    // One program reads whole lines from the terminal, the other reads key by key.
    for command in [&["/bin/cat"][..], &["/bin/bash", "--norc", "-i"]] {
        if !std::path::Path::new(command[0]).exists() {
            crate::common::skip(command[0]);
            continue;
        }
        let session = Session::start(Ph::new(), &[], command);
        session.wait_for_activity("idle");
        let mut wire = session.wire();
        wire.result("set_interactive_mode", json!({"enabled": true}));
        let write = json!({"data": "ls -la\n"});
        let written = wire.result("write_pty", write);
        assert_eq!(written, json!({"status": "forwarded"}));
        wire.result("set_interactive_mode", json!({"enabled": false}));
        let id = session.ph.send("bot hello");
        wait_for("a delivery", || {
            let shown = session.ask("show", json!({"id": id}));
            (shown["receipt"] == "offered").then_some(())
        });
    }
}

#[test]
fn half_a_line_that_is_written_is_a_draft() {
    let session = Session::sh(QUIET);
    session.wait_for_activity("idle");
    let mut wire = session.wire();
    wire.result("set_interactive_mode", json!({"enabled": true}));
    wire.result("write_pty", json!({"data": "one\nls -la"}));
    wire.result("set_interactive_mode", json!({"enabled": false}));
    let id = session.ph.send("bot hello");
    wait_for("the draft's rule", || {
        let why = wire.result("why", json!({"id": id}));
        (why["rule"] == "draft").then_some(())
    });
}

#[test]
fn a_message_without_text_is_refused() {
    let session = Session::sh(QUIET);
    let facts = session.ph.facts();
    let why = "the text of a message cannot be empty";
    for body in ["", " \n"] {
        let send = json!({"type": "send", "from": "x", "body": body});
        let reply = Wire::plain(&session.socket, &send);
        let reply: Value = serde_json::from_str(&reply).expect("JSON");
        assert_eq!(
            (&reply["ok"], &reply["error"]),
            (&json!(false), &json!(why))
        );
        let (code, said) = session.wire().error("send", json!({"body": body}));
        assert_eq!((code, said.as_str()), (-32602, why));
    }
    assert_eq!(session.ph.facts(), facts);
}

#[test]
fn keys_are_forwarded_in_interactive_mode_only() {
    let (session, tty) = Session::tty(false);
    let mut wire = session.wire();
    let write = json!({"data": "ls -la\n\u{3}\u{1b}[Aé"});
    assert_eq!(
        wire.result("write_pty", write.clone()),
        json!({"status": "ignored", "reason": "not in interactive mode"})
    );
    wire.result("set_interactive_mode", json!({"enabled": true}));
    assert_eq!(
        wire.result("write_pty", write.clone()),
        json!({"status": "forwarded"})
    );
    wait_for("the keys", || (!tty.typed().is_empty()).then_some(()));
    wire.result("set_interactive_mode", json!({"enabled": false}));
    assert_eq!(wire.result("write_pty", write)["status"], "ignored");
    wire.result("set_interactive_mode", json!({"enabled": true}));
    wire.result("write_pty", json!({"data": "end"}));
    wait_for("the last", || tty.typed().ends_with("end").then_some(()));
    assert_eq!(tty.typed(), "ls -la\n\u{3}\u{1b}[Aéend");
}

#[test]
fn interactive_mode_holds_mail_back() {
    let (session, tty) = Session::tty(false);
    let mut wire = session.wire();
    wire.result("set_interactive_mode", json!({"enabled": true}));
    session.wait_for_activity("idle");
    let id = session.ph.send("bot --from alice hello");
    let why = wait_for("a reason", || {
        let why = wire.result("why", json!({"id": id}));
        (why["rule"] == "paused").then_some(why)
    });
    assert_eq!(why["evidence"], "interactive mode is on");
    assert_eq!(tty.typed(), "");
    wire.result("set_interactive_mode", json!({"enabled": false}));
    let want = format!("[ph message from: alice id: {}] hello\r", &id[..8]);
    wait_for("the message", || (tty.typed() == want).then_some(()));
}

#[test]
fn prompts_are_messages_from_the_person_and_none_is_lost() {
    let (session, tty) = Session::tty(true);
    let mut wire = session.wire();
    wire.subscribe(&["state_change", "message"]);
    // Both arrive before the agent is ready, the second directly after the first.
    for (prompt, trimmed) in [
        ("  first thing \n", "first thing"),
        ("second\nthing", "second\nthing"),
    ] {
        assert_eq!(
            wire.result("inject_prompt", json!({"prompt": prompt})),
            json!({"status": "prompt_injected", "prompt": trimmed})
        );
        let told = wire.wait_for_event("state_change", "injected_prompt");
        assert_eq!(told, json!({"injected_prompt": trimmed}));
    }
    let inbox = wire.result("inbox", json!({}));
    let inbox = inbox.as_array().expect("a list");
    let seen: Vec<_> = inbox
        .iter()
        .map(|m| (&m["from"], &m["body"], &m["priority"]))
        .collect();
    assert_eq!(
        seen,
        [
            (&json!("human"), &json!("first thing"), &json!("normal")),
            (&json!("human"), &json!("second\nthing"), &json!("normal"))
        ]
    );
    let id8 = |n: usize| inbox[n]["id"].as_str().expect("an id")[..8].to_owned();
    let want = format!(
        "\u{1b}[200~[ph message from: human id: {}] first thing\n[ph message from: human id: {}] second\nthing\u{1b}[201~\r",
        id8(0),
        id8(1)
    );
    wait_for("both", || (tty.typed() == want).then_some(()));
}

#[test]
fn a_checkpoint_pauses_after_the_turn_until_it_is_resumed() {
    let (session, tty) = Session::tty(false);
    session.wait_for_activity("idle");
    tty.busy();
    session.wait_for_activity("working");
    let mut wire = session.wire();
    wire.subscribe(&["state_change"]);
    assert_eq!(
        wire.result("checkpoint", json!({})),
        json!({"status": "checkpoint_requested"})
    );
    // The agent still works, so its turn is not over, and messages that may join a turn still go
    // in.
    assert_eq!(wire.result("get_status", json!({}))["status"], "running");
    let first = session.ph.send("bot --from alice first");
    let first = format!("[ph message from: alice id: {}] first\r", &first[..8]);
    wait_for("the first", || (tty.typed() == first).then_some(()));
    tty.calm();
    let told = wire.wait_for_event("state_change", "status");
    assert_eq!(told, json!({"status": "checkpointed"}));
    assert_eq!(
        wire.result("get_status", json!({}))["status"],
        "checkpointed"
    );
    let second = session.ph.send("bot --from alice second");
    let why = wait_for("a reason", || {
        let why = wire.result("why", json!({"id": second}));
        (why["rule"] == "paused").then_some(why)
    });
    assert_eq!(why["evidence"], "a checkpoint was asked for, and reached");
    assert_eq!(tty.typed(), first);
    assert_eq!(wire.result("resume", json!({})), json!({"paused": false}));
    let told = wire.wait_for_event("state_change", "status");
    assert_eq!(told, json!({"status": "running"}));
    let second = format!("[ph message from: alice id: {}] second\r", &second[..8]);
    wait_for("the second", || {
        tty.typed().ends_with(&second).then_some(())
    });
}

#[test]
fn the_end_is_told_and_the_connection_closes() {
    let check = |method: &str, script: &str, want: &str| {
        let session = Session::sh(script);
        session.wait_for_text("ready");
        let mut wire = session.wire();
        wire.subscribe(&["state_change"]);
        let mut silent = session.wire();
        silent.result("get_status", json!({}));
        if method.is_empty() {
            session.type_keys("\r");
        } else {
            let answer = wire.result(method, json!({}));
            let word = if method == "kill" {
                "killed"
            } else {
                "stop_requested"
            };
            assert_eq!(answer, json!({"status": word}));
        }
        let last = wire.wait_closed();
        let runs: Vec<_> = last
            .iter()
            .filter_map(|e| e["data"].get("status"))
            .collect();
        assert_eq!(runs, [want], "{method}: {last:?}");
        assert_eq!(silent.wait_closed(), Vec::<Value>::new());
        session.wait_gone();
        assert_eq!(
            session.ph.run("status bot --json").json()["activity"],
            "exited"
        );
    };
    check("stop", QUIET, "stopped");
    // This program ignores the first signal.
    check("stop", "trap '' HUP; echo ready; exec cat", "stopped");
    check("kill", "trap '' HUP TERM; echo ready; exec cat", "stopped");
    check("", "echo ready; read x; exit 0", "completed");
    check("", "echo ready; read x; exit 3", "failed");
}

/// The client sends both requests at once and takes the first line for the status.
#[test]
fn the_originals_attach_client_hears_its_status_first() {
    let session = Session::sh("while :; do echo noise; done");
    for _ in 0..20 {
        let mut wire = session.wire();
        wire.send_bytes(concat!(
            r#"{"jsonrpc":"2.0","id":1,"method":"get_status"}"#,
            "\n",
            r#"{"jsonrpc":"2.0","id":2,"method":"subscribe","params":{"events":["*"]}}"#,
            "\n"
        ));
        let first = wire.json();
        assert_eq!(
            (&first["id"], &first["result"]["task_name"]),
            (&json!(1), &json!("bot"))
        );
        let second = wire.json();
        assert_eq!(
            (&second["id"], &second["result"]),
            (&json!(2), &json!({"subscribed": ["*"]}))
        );
        assert_eq!(
            wire.wait_for_event("output", "line"),
            json!({"line": "noise"})
        );
    }
}
