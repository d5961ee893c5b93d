//! Cost of a hook: `ph hook` with a session and without one, compared with a process that opens the
//! journal.

use super::setup::stage::Stage;
use posthaste_lab::bench::{Goal, Table, median, time};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 300;
/// Payloads like a real agent's.
const EVENT: &str = r#"{"session_id":"6f1c","transcript_path":"/home/me/.claude/x.jsonl","cwd":"/home/me/project","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"cargo test"},"tool_response":{"stdout":"ok","stderr":""}}"#;

/// Return the time from the start to the end of a process with input.
fn to_end(mut command: Command) -> Duration {
    command.stdin(Stdio::piped());
    time(|| {
        let mut child = command.spawn().unwrap();
        // A process that reads no input may have ended.
        let _ = child.stdin.take().unwrap().write_all(EVENT.as_bytes());
        assert!(child.wait().unwrap().success());
    })
}

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    let _player = stage.session("hooked");
    let socket = stage.socket("hooked");
    let hook = |stage: &Stage| stage.ph(&["hook", "generic", "--injected"]);
    let [mut opened, mut reported, mut gone] = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        let mut open = stage.command(&stage.open);
        open.arg(stage.dir().join("home"));
        opened.push(to_end(open));
        let mut command = hook(stage);
        command.env("PH_SOCKET", &socket);
        reported.push(to_end(command));
        let mut command = hook(stage);
        command.env("PH_SOCKET", stage.dir().join("nowhere.sock"));
        gone.push(to_end(command));
    }
    let opened = median(opened);
    let goal = Goal::AtMost(2.0);
    table.row(
        "ph hook, its session answers, against opening the journal",
        median(reported),
        opened,
        &goal,
    );
    table.row(
        "ph hook, its session is gone, against the same",
        median(gone),
        opened,
        &goal,
    );
}
