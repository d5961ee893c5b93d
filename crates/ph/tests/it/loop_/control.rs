//! Control of a live loop: every method of the original's socket, and the verbs for them.

use super::stage::{Stage, TAKES, tool};
use crate::common::session::Wire;
use crate::common::{PATIENCE, wait_for};
use serde_json::{Value, json};
use std::io::BufRead;

#[test]
fn the_loop_state_is_reported() {
    let stage = Stage::new()
        .prd(r#"{"id": "US-7"}"#)
        .flags(&["--iterations", "9"]);
    let dir = stage.path("");
    let looped = stage.start();
    looped.prompt(1);
    let mut wire = looped.session.wire();
    let status = wire.result("get_status", json!({}));
    let want = json!({
        "task_name": "bot", "task_dir": dir.trim_end_matches('/'), "iteration": 1,
        "max_iterations": 9, "current_story": "US-7", "agent": "generic", "status": "running",
        "interactive_mode": false, "mode_indicator": "autonomous",
    });
    for (name, value) in want.as_object().expect("fields") {
        assert_eq!(&status[name], value, "{name}: {status}");
    }
    wire.subscribe(&["state_change", "output"]);
    let two = super::stage::prd(r#"{"id":"US-8"}"#);
    looped.go(&format!(
        "echo 'a line of work'; echo '{two}' > \"$DIR/prd.json\""
    ));
    let mut seen = Vec::new();
    while !(seen.contains(&"line") && seen.contains(&"iteration")) {
        let event = wire.event();
        if event["data"]["line"] == "a line of work" {
            seen.push("line");
        }
        if event["data"]["iteration"] == 2 {
            assert_eq!(event["data"]["current_story"], "US-8", "{event}");
            seen.push("iteration");
        }
    }
    looped.prompt(2);
    let unsubscribed = wire.result("unsubscribe", json!({"events": ["output"]}));
    assert_eq!(unsubscribed, json!({"subscribed": ["state_change"]}));
}

#[test]
fn a_stop_lets_the_iteration_finish() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let mut wire = looped.session.wire();
    wire.subscribe(&["state_change"]);
    let answer = wire.result("stop", json!({}));
    assert_eq!(answer, json!({"status": "stop_requested"}));
    assert!(looped.outcomes().is_empty(), "it is not cut short");
    looped.go("true");
    let last = wire.wait_for_event("state_change", "status");
    assert_eq!(last["status"], "stopped");
    assert_eq!(looped.ending(), "\"stopped\"");
    assert_eq!(looped.outcomes(), ["1 \"ended\""]);
}

#[test]
fn a_stop_now_does_not_wait_for_the_iteration() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let done = looped.ph().run("stop bot --now");
    assert!(done.ok().contains("has ended"), "{}", done.err());
    assert_eq!(looped.outcomes(), ["1 \"stopped\""]);
    // A second stop finds no session.
    let again = looped.ph().run("stop bot").ok();
    assert!(again.contains("is not running"), "{again}");
}

#[test]
fn a_stop_by_the_loops_own_agent_returns_at_once() {
    let looped = Stage::new().start();
    looped.prompt(1);
    looped.go(r#""$PH" stop "$PH_AGENT" > "$DIR/told" 2>&1"#);
    assert_eq!(looped.ending(), "\"stopped\"");
    assert_eq!(looped.outcomes(), ["1 \"ended\""]);
    let told = std::fs::read_to_string(looped.ph().dir().join("told")).expect("its answer");
    assert_eq!(
        told,
        "stop requested; bot ends after iteration 1 ('--now' ends it at once)\n"
    );
}

#[test]
fn a_stop_names_the_iteration_that_it_waits_for() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let mut waits = looped.ph().call(&["stop", "bot"]).spawn();
    let stderr = waits.stderr.take().expect("its words");
    let told = first_line(stderr);
    let want = "stop requested; bot ends after iteration 1 ('--now' ends it at once)";
    if told.as_deref() != Some(&format!("note: {want}\n")) {
        // Without this, the command waits for a loop that never ends.
        waits.kill().expect("it can be ended");
        waits.wait().expect("it has ended");
        panic!("who stops a loop was told: {told:?}");
    }
    looped.go("true");
    let done = crate::common::Done::of(waits);
    assert!(done.ok().contains("bot has ended"), "{}", done.out());
}

/// Return the first line, or `None` after a long timeout.
fn first_line(from: std::process::ChildStderr) -> Option<String> {
    let (tell, told) = std::sync::mpsc::sync_channel(1);
    // The thread ends with the process that writes to `from`.
    let reader = std::thread::spawn(move || {
        let mut line = String::new();
        let read = std::io::BufReader::new(from).read_line(&mut line);
        let _ = tell.send(read.map(|_| line));
    });
    let line = told.recv_timeout(PATIENCE).ok()?;
    reader.join().expect("it reads");
    Some(line.expect("text"))
}

/// An acknowledged request is visible to the next query on any connection.
#[test]
fn an_acknowledged_request_is_visible_at_once() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let mut wire = looped.session.wire();
    // A batch, so that nothing comes between the request and the query.
    let mut check = |method: &str, params: Value, field: &str, want: Value| {
        let order = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let ask = json!({"jsonrpc": "2.0", "id": 2, "method": "session"});
        wire.send_line(json!([order, ask]).to_string());
        let replies = wire.json();
        assert!(replies[0]["error"].is_null(), "{method}: {replies}");
        let looped = &replies[1]["result"]["loop"];
        assert_eq!(looped[field], want, "{method}: {looped}");
    };
    check("checkpoint", json!({}), "checkpoint_requested", json!(true));
    check("resume", json!({}), "checkpoint_requested", json!(false));
    let text = json!({"prompt": "and the roof"});
    check("inject_prompt", text, "injected", json!(1));
    let mode = |on: bool| json!({"enabled": on});
    for on in [true, false] {
        check(
            "set_interactive_mode",
            mode(on),
            "interactive_mode",
            json!(on),
        );
    }
    check("stop", json!({}), "stop_requested", json!(true));
    let list = looped.ph().run("ls").ok();
    assert!(list.contains("to stop after this"), "{list}");
    looped.go("true");
    assert_eq!(looped.ending(), "\"stopped\"");
}

#[test]
fn a_checkpoint_pauses_the_loop_and_a_resume_continues_it() {
    let stage = Stage::new().prd(r#"{"id": "US-1"}"#);
    let progress = stage.path("progress.txt");
    let looped = stage.start();
    looped.prompt(1);
    let mut wire = looped.session.wire();
    wire.subscribe(&["state_change"]);
    let (code, says) = wire.error("resume", json!({}));
    assert_eq!(
        (code, says.as_str()),
        (-32602, "the loop of bot is not paused")
    );
    let answer = wire.result("checkpoint", json!({}));
    assert_eq!(answer, json!({"status": "checkpoint_requested"}));
    assert_eq!(looped.status()["status"], "running");
    looped.go("true");
    let change = wire.wait_for_event("state_change", "status");
    assert_eq!(change["status"], "checkpointed");
    wait_for("a block in progress.txt", || {
        let told = std::fs::read_to_string(&progress).ok()?;
        told.contains("CHECKPOINT at").then_some(())
    });
    let list = looped.ph().run("ls").ok();
    assert!(list.contains("paused at a checkpoint"), "{list}");
    looped.session.wait_for_text("ph resume bot");
    assert!(looped.ph().run("resume bot").ok().contains("bot continues"));
    let change = wire.wait_for_event("state_change", "status");
    assert_eq!(change["status"], "running");
    looped.prompt(2);
}

#[test]
fn a_checkpoint_can_be_cancelled_and_is_requested_once() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let told = looped.ph().run("checkpoint bot").ok();
    assert!(told.contains("pauses after this"), "{told}");
    assert!(looped.ph().run("resume bot").ok().contains("bot continues"));
    looped.ph().run("resume bot").fails(4, "ph status bot");
    looped.go("true");
    looped.prompt(2);
    looped.ph().run("checkpoint bot").ok();
    looped.go("true");
    looped.wait_for_status("checkpointed");
    let told = looped.ph().run("checkpoint bot").ok();
    assert_eq!(told, "bot is paused; 'ph resume bot' continues it\n");
    let told = looped.ph().run("checkpoint bot --json").json();
    assert_eq!(told, json!({"name": "bot", "status": "checkpointed"}));
    looped.ph().run("resume bot").ok();
    looped.prompt(3);
}

#[test]
fn injected_texts_come_first_in_order_and_once() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let mut wire = looped.session.wire();
    wire.subscribe(&["state_change"]);
    let text = "  Fix the type errors first.  ";
    let answer = wire.result("inject_prompt", json!({"prompt": text}));
    assert_eq!(
        answer,
        json!({"status": "prompt_injected", "prompt": "Fix the type errors first."})
    );
    let change = wire.wait_for_event("state_change", "injected_prompt");
    assert_eq!(change["injected_prompt"], "Fix the type errors first.");
    looped.ph().run("inject bot 'Then the docs {{tasks}}'").ok();
    let (code, says) = wire.error("inject_prompt", json!({"prompt": "  "}));
    assert_eq!(
        (code, says.as_str()),
        (-32602, "Missing or empty 'prompt' parameter")
    );
    looped.go("true");
    let second = looped.prompt(2);
    let (first, then) = (
        second.find("Fix the type errors"),
        second.find("Then the docs {{tasks}}"),
    );
    assert!(first.is_some() && first < then, "{second}");
    assert!(then < second.find("## Context"), "{second}");
    looped.go("true");
    let third = looped.prompt(3);
    assert!(
        !third.contains("Fix the type errors") && !third.contains("Then the docs"),
        "{third}"
    );
}

#[test]
fn interactive_mode_holds_the_loop_and_passes_keys() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let mut wire = looped.session.wire();
    wire.subscribe(&["state_change"]);
    let ignored = wire.result("write_pty", json!({"data": "x"}));
    let reason = "not in interactive mode";
    assert_eq!(ignored, json!({"status": "ignored", "reason": reason}));
    let on = wire.result("set_interactive_mode", json!({"enabled": true}));
    assert_eq!(on, json!({"interactive_mode": true}));
    let change = wire.wait_for_event("state_change", "interactive_mode");
    assert_eq!(change["interactive_mode"], true);
    // The mode outlives the connection that set it.
    let status = Wire::to(&looped.session.socket).result("get_status", json!({}));
    assert_eq!(status["mode_indicator"], "interactive");
    looped.go("read -r key < /dev/tty; echo \"<$key>\"; echo '<promise>COMPLETE</promise>'");
    let answer = wire.result("write_pty", json!({"data": "yes\n"}));
    assert_eq!(answer, json!({"status": "forwarded"}));
    looped.session.wait_for_text("<yes>");
    looped.session.wait_for_text("ph interactive bot off");
    assert_eq!(
        looped.outcomes(),
        ["1 \"ended\""],
        "the token counts for nothing"
    );
    assert!(looped.facts("loop_ended").is_empty());
    looped.ph().run("interactive bot off").ok();
    looped.prompt(2);
}

#[test]
fn completion_in_interactive_mode_counts_after_it() {
    let looped = Stage::new().start();
    looped.prompt(1);
    looped.ph().run("interactive bot on").ok();
    looped.go(&tool("session_complete", &json!({"session_name": "bot"})));
    let outcomes = looped.wait_for_outcomes(1);
    assert_eq!(looped.facts("session_complete").len(), 1);
    assert_eq!(outcomes, ["1 \"ended\""], "it is not looked at");
    assert!(looped.facts("loop_ended").is_empty());
    looped.ph().run("interactive bot off").ok();
    assert_eq!(looped.ending(), "{\"complete\":\"tool\"}");
}

#[test]
fn keys_between_iterations_are_not_forwarded() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let mut wire = looped.session.wire();
    wire.result("set_interactive_mode", json!({"enabled": true}));
    looped.go("true");
    looped.wait_for_outcomes(1);
    let ignored = wire.result("write_pty", json!({"data": "x"}));
    let reason = "no iteration runs";
    assert_eq!(ignored, json!({"status": "ignored", "reason": reason}));
}

#[test]
fn keys_and_size_of_an_attached_terminal_reach_the_agent() {
    let looped = Stage::new().start();
    looped.prompt(1);
    // A new size may interrupt a read, so the reads are not counted.
    looped.go(
        "trap 'echo \"size $(stty size < /dev/tty)\"' WINCH; echo waiting; \
         until [ \"$key\" = two ]; do read -r key < /dev/tty; done; echo \"<$key>\"",
    );
    looped.session.wait_for_text("waiting");
    let mut viewer = crate::common::session::Viewer::attach(&looped.session.socket, 100, 30);
    // The shell notices a signal between two reads only at the next key.
    wait_for("the new size", || {
        viewer.keys(b"one\r");
        let screen = looped.session.ask("peek", json!({})).to_string();
        screen.contains("size 30 100").then_some(())
    });
    viewer.keys(b"two\r");
    viewer.leave();
    looped.session.wait_for_text("<two>");
    looped.prompt(2);
}

#[test]
fn only_a_persons_keys_are_typed_into_a_loop() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let mut wire = looped.session.wire();
    let nudged = wire.result("nudge", json!({"text": "hello"}));
    assert_eq!(nudged["status"], "held", "{nudged}");
    let (_, says) = wire.error("send", json!({"body": "y", "raw": true}));
    assert!(says.contains("loop"), "{says}");
    let (_, says) = wire.error("pause", json!({}));
    assert!(says.contains("checkpoint"), "{says}");
    let refused = looped.ph().run("pause bot");
    refused.fails(4, "checkpoint");
}

/// Status of a loop that runs, is about to pause, is paused or waits, and since when.
#[test]
fn status_shows_what_a_loop_does_and_since_when() {
    let looped = Stage::new()
        .flags(&["--iterations", "9", "--failures", "0"])
        .start();
    let told = |want: &str| {
        wait_for(want, || {
            let list = looped.ph().run("ls").ok();
            let status = looped.ph().run("status bot").ok();
            (list.contains(want) && status.contains(want)).then_some(())
        });
        looped.ph().run("status bot --json").json()
    };
    looped.prompt(1);
    let session = told("iteration 1 of 9 runs; tasks 0 done, 0 open");
    let started = looped.facts("iteration_started").remove(0)["at"].clone();
    assert_eq!(session["since"], started, "{session}");
    looped.ph().run("interactive bot on").ok();
    told("iteration 1 of 9 runs, interactive; tasks");
    looped.ph().run("interactive bot off").ok();
    looped.ph().run("checkpoint bot").ok();
    told("iteration 1 of 9 runs, to pause after this; tasks");
    looped.go("true");
    let session = told("iteration 1 of 9 over, paused at a checkpoint; tasks");
    let paused = looped.facts("loop_checkpointed").remove(0)["at"].clone();
    assert_eq!(session["since"], paused, "{session}");
    looped.ph().run("resume bot").ok();
    // The wait grows with each failure, until it is long enough to be observed.
    let seen = (1..=6).any(|failures| {
        looped.prompt(2);
        looped.go("exit 3");
        looped.wait_for_outcomes(1 + failures);
        wait_for("how it stands", || {
            let list = looped.ph().run("ls").ok();
            let waits = list.contains("iteration 2 of 9 failed, again in ");
            let started = looped.facts("iteration_started").len();
            (waits || started > 1 + failures).then_some(waits)
        })
    });
    assert!(seen);
}

#[test]
fn loop_verbs_print_json() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let json = |line: &str| -> Value { looped.ph().run(line).json() };
    let want = json!({"name": "bot", "status": "checkpoint_requested"});
    assert_eq!(json("checkpoint bot --json"), want);
    let want = json!({"status": "prompt_injected", "prompt": "x"});
    assert_eq!(json("inject bot x --json"), want);
    assert_eq!(
        json("interactive bot off --json"),
        json!({"interactive_mode": false})
    );
    looped.go("true");
    looped.wait_for_status("checkpointed");
    let want = json!({"name": "bot", "status": "running"});
    assert_eq!(json("resume bot --json"), want);
    looped.ph().run("resume nobody").fails(3, "never run");
    looped
        .ph()
        .run("inject bot ''")
        .fails(2, "the instructions are empty");
    looped.ph().run("interactive bot maybe").fails(2, "maybe");
}

#[test]
fn background_processes_of_an_agent_do_not_prolong_its_iteration() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let inner = r#"echo "<${PH_ITERATION-none}>" > "$DIR/inner""#;
    looped.ph().file("inner.sh", inner);
    looped.go("\"$PH\" run --name inner --detach -- /bin/sh \"$DIR/inner.sh\"");
    let told = looped.ph().dir().join("inner");
    wait_for("its word", || {
        let told = std::fs::read_to_string(&told).ok()?;
        (told == "<none>\n").then_some(())
    });
    looped.prompt(2);
}

/// JSON output is displayed as text, and completion is judged from the raw output.
#[test]
fn the_json_output_of_an_agent_is_shown_as_text() {
    let stage = Stage::new().flags(&["--harness", "claude"]);
    let command = ["/bin/sh", "-c", TAKES, "sh", "{prompt}"];
    let looped = stage.command(&command).start();
    looped.prompt(1);
    let said = |block: Value| json!({"type": "assistant", "message": {"content": [block]}});
    let token = "<promise>COMPLETE</promise>";
    let gave = json!({"type": "tool_result", "content": format!("the spec\n{token}")});
    let events = [
        said(json!({"type": "tool_use", "name": "Read", "input": {"path": "spec.md"}})),
        json!({"type": "user", "message": {"content": [gave]}}),
        json!({"type": "result", "is_error": false, "num_turns": 2}),
    ];
    let write = |name: &str, events: &[Value]| {
        let lines: String = events.iter().map(|event| format!("{event}\n")).collect();
        looped.ph().file(name, lines);
        looped.go(&format!("cat \"$DIR/{name}\""));
    };
    write("first", &events);
    looped
        .session
        .wait_for_text("> Read {\"path\":\"spec.md\"}");
    looped.session.wait_for_text(&format!("< the spec {token}"));
    looped.session.wait_for_text("done, 2 turns");
    // A tool's result is not the agent's text, however it is displayed.
    looped.prompt(2);
    let done = json!({"type": "text", "text": format!("It stands.\n{token}")});
    write("second", &[said(done)]);
    assert_eq!(looped.ending(), "{\"complete\":\"token\"}");
    let shown = looped.ph().run("peek bot").ok();
    assert!(
        shown.contains("It stands.") && !shown.contains("\"type\""),
        "{shown}"
    );
}
