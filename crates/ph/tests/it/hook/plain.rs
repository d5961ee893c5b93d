//! Hooks that report to their session, and hooks that cannot.

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

/// Start a session whose harness maps hook events to states.
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

/// A hook that outlives its program reports about a run that has ended.
#[test]
fn a_hook_of_another_run_is_ignored() {
    let stage = session();
    let run = |name: &str| {
        let run = std::fs::read_to_string(stage.dir().join(name)).expect("its run");
        run.trim().to_owned()
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
    // A hook without PH_RUN is accepted.
    silent(&hook(&stage, "hook hooked --event Stop").run());
    assert!(evidence(&stage).contains("hook Stop"));
}

#[test]
fn a_hook_reports_its_event_to_the_session() {
    let stage = session();
    let tool = json!({"hook_event_name": "PreToolUse", "tool_name": "Bash"}).to_string();
    silent(&hook(&stage, "hook hooked").stdin(tool.clone()).run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
    // Ignored: the hook of an agent of another harness, which this agent has started.
    let stop = r#"{"hook_event_name":"Stop"}"#;
    silent(&hook(&stage, "hook other").stdin(stop).run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
    silent(&hook(&stage, "hook hooked --event Stop").run());
    assert!(evidence(&stage).contains("hook Stop"));
    // A command line for clap, and a payload that is too long to be forwarded whole.
    let output = "x".repeat(10_000_000);
    let tool = json!({"tool_response": output, "hook_event_name": "PreToolUse"});
    let call = hook(&stage, "hook --color=never hooked");
    silent(&call.stdin(tool.to_string()).run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
}

#[test]
fn an_installed_hook_does_nothing_if_the_session_has_injected_hooks() {
    let stage = session();
    let marked = |line| hook(&stage, line).env("PH_HOOKS", "injected");
    silent(&marked("hook hooked --event PreToolUse --injected").run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
    silent(&marked("hook hooked --event Stop").run());
    assert!(evidence(&stage).contains("hook PreToolUse"));
}

#[test]
fn a_hook_never_fails_and_prints_errors_only_for_a_log() {
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
    let logged = call("hook claude").stdin(stop).env("PH_LOG", "1").run();
    assert_eq!(
        logged.err(),
        "note: there is no session, and neither PH_AGENT nor --agent names an agent\n"
    );
    assert!(!ph.home().exists());
}

#[test]
fn a_hook_runs_with_standard_input_closed() {
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
fn a_hook_exits_soon_if_its_session_is_stopped_or_dead() {
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
    // A generous limit, because the machine may be busy.
    let [a, b] = [&small, &large].map(|text| timed(text));
    kill(pid, Signal::CONT);
    for took in [a, b] {
        assert!(took < Duration::from_secs(2), "{took:?}");
    }
    kill(pid, Signal::KILL);
    crate::common::stage::until_dead(pid);
    silent(&hook(&stage, "hook hooked --event Stop").run());
}
