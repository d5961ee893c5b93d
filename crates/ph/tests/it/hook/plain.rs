//! A hook that tells its session, and one that cannot.

use crate::common::stage::{Stage, kill};
use crate::common::{Call, Done, Ph, path_text};
use rustix::process::Signal;
use serde_json::json;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const MANIFEST: &str = r#"
name = "hooked"
description = "A test's own"

[activity]
silence = "100ms"

[hook]
tool = ["PreToolUse"]
idle = ["Stop"]
"#;

/// A session that knows what hooks mean.
fn session() -> Stage {
    let stage = Stage::new();
    stage.file("user/.config/posthaste/harness/hooked.toml", MANIFEST);
    let args = ["run", "--detach", "--name", "bot", "--harness", "hooked"];
    let command = ["--", "/bin/sh", "-c", "echo ready; exec sleep 1000"];
    let args = [&args[..], &command].concat();
    stage.call(&args).run().ok();
    stage.until_activity("bot", "idle");
    stage
}

fn hook(stage: &Stage, line: &str) -> Call {
    let socket = stage.home().join("sockets/bot.sock");
    stage.call(&stage.words(line)).env("PH_SOCKET", socket)
}

fn silent(done: &Done) {
    assert_eq!(done.ok(), "");
}

fn evidence(stage: &Stage) -> String {
    stage.status("bot")["evidence"].to_string()
}

/// One that outlives its program speaks of a run that is over.
#[test]
fn a_hook_of_another_run_is_not_heard() {
    let stage = session();
    let run = |name: &str| {
        let said = std::fs::read_to_string(stage.dir().join(name)).expect("its run");
        said.trim().to_owned()
    };
    let script = |name: &str| {
        let file = path_text(&stage.dir().join(name));
        format!("echo \"$PH_RUN\" > '{file}'; echo ready; exec sleep 1000")
    };
    for name in ["first", "second"] {
        stage.run("stop bot").ok();
        let args = ["run", "--detach", "--name", "bot", "--harness", "hooked"];
        let command = ["--", "/bin/sh", "-c", &script(name)];
        stage.call(&[&args[..], &command].concat()).run().ok();
        stage.until_activity("bot", "idle");
    }
    assert_ne!(run("first"), run("second"));
    let tool = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash"}).to_string();
    let of = |run: &str| hook(&stage, "hook hooked").env("PH_RUN", run);
    silent(&of(&run("first")).stdin(tool.clone()).run());
    assert!(!evidence(&stage).contains("hook"), "{}", evidence(&stage));
    silent(&of(&run("second")).stdin(tool).run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
    // One that does not know is believed.
    silent(&hook(&stage, "hook hooked --event Stop").run());
    assert!(evidence(&stage).contains("hook Stop"));
}

#[test]
fn a_session_hears_of_it() {
    let stage = session();
    let tool = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash"}).to_string();
    silent(&hook(&stage, "hook hooked").stdin(tool.clone()).run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
    // An agent of another kind that this one has started.
    let stop = r#"{"hook_event_name":"Stop"}"#;
    silent(&hook(&stage, "hook other").stdin(stop).run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
    silent(&hook(&stage, "hook hooked --event Stop").run());
    assert!(evidence(&stage).contains("hook Stop"));
    // Through the whole of the parser, and with far more than is passed on.
    let output = "x".repeat(10_000_000);
    let tool = json!({"tool_response": output, "hook_event_name": "PreToolUse"});
    let call = hook(&stage, "hook --color=never hooked");
    silent(&call.stdin(tool.to_string()).run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
}

#[test]
fn one_that_a_person_installed_is_silent_where_the_session_has_its_own() {
    let stage = session();
    let marked = |line| hook(&stage, line).env("PH_HOOKS", "injected");
    silent(&marked("hook hooked --event PreToolUse --injected").run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
    silent(&marked("hook hooked --event Stop").run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
}

#[test]
fn nothing_makes_it_fail_or_speak() {
    let ph = Ph::new();
    let stop = r#"{"hook_event_name":"Stop"}"#;
    let call = |line: &str| ph.call(&ph.words(line));
    silent(&call("hook claude").run());
    silent(&call("hook claude").stdin(stop).run());
    silent(&call("hook claude").stdin(stop).without("HOME").run());
    silent(&call("hook claude").stdin("no JSON \u{1b}[2J").run());
    silent(&call("hook claude").stdin(vec![0xff; 10_000_000]).run());
    silent(&call("hook no/such-agent").stdin(stop).run());
    let nowhere = ph.dir().join("nowhere.sock");
    silent(
        &call("hook claude")
            .stdin(stop)
            .env("PH_SOCKET", nowhere)
            .run(),
    );
    silent(
        &call("hook claude")
            .stdin(stop)
            .env("PH_SOCKET", ph.dir())
            .run(),
    );
    for misspelt in [
        "hook",
        "hook a b",
        "hook claude --no-such-flag",
        "hook claude --event",
    ] {
        silent(&call(misspelt).stdin(stop).run());
    }
    let told = call("hook claude").stdin(stop).env("PH_LOG", "1").run();
    assert_eq!(
        told.err(),
        "note: there is no session, and neither PH_AGENT nor --agent names an agent\n"
    );
    assert!(!ph.home().exists());
}

/// With standard input closed, not empty.
#[test]
fn it_needs_no_standard_input() {
    let ph = Ph::new();
    let script = format!("exec {} hook claude <&-", env!("CARGO_BIN_EXE_ph"));
    let done = Command::new("/bin/sh")
        .args(["-c", &script])
        .env_clear()
        .env("PH_SOCKET", path_text(&ph.dir().join("nowhere.sock")))
        .stdin(Stdio::null())
        .output()
        .expect("a shell");
    assert_eq!(
        (done.status.code(), done.stdout, done.stderr),
        (Some(0), vec![], vec![])
    );
}

#[test]
fn a_session_that_is_stopped_costs_a_moment_and_one_that_is_dead_none() {
    let stage = session();
    let pid = stage.pid("bot");
    let (small, large) = ("x".to_owned(), "x".repeat(200_000));
    let timed = |text: &str| {
        let payload = json!({"hook_event_name": "Stop", "text": text}).to_string();
        let call = hook(&stage, "hook hooked").stdin(payload);
        let begun = Instant::now();
        silent(&call.run());
        begun.elapsed()
    };
    kill(pid, Signal::STOP);
    // Generous, because others use this machine too.
    let [a, b] = [&small, &large].map(|text| timed(text));
    kill(pid, Signal::CONT);
    for took in [a, b] {
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
    kill(pid, Signal::KILL);
    crate::common::stage::until_dead(pid);
    silent(&hook(&stage, "hook hooked --event Stop").run());
}
