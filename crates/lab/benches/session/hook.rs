//! What an agent pays for each of its hooks: `ph hook` with a session that answers, and without
//! one, against a process that does nothing.

use super::stage::Stage;
use posthaste_lab::bench::{Goal, Table, median, time};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

const ROUNDS: usize = 300;
/// Like those of a real agent.
const EVENT: &str = r#"{"session_id":"6f1c","transcript_path":"/home/me/.claude/x.jsonl","cwd":"/home/me/project","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{"command":"cargo test"},"tool_response":{"stdout":"ok","stderr":""}}"#;

/// From its start to its end, its input included.
fn to_end(mut command: Command) -> Duration {
    command.stdin(Stdio::piped());
    time(|| {
        let mut child = command.spawn().unwrap();
        // An empty process may be gone by then.
        let _ = child.stdin.take().unwrap().write_all(EVENT.as_bytes());
        assert!(child.wait().unwrap().success());
    })
}

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    let _player = stage.session("hooked");
    let socket = stage.socket("hooked");
    let hook = |stage: &Stage| stage.ph(&["hook", "generic", "--injected"]);
    let [mut empty, mut told, mut gone] = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        empty.push(to_end(stage.command(&stage.empty)));
        let mut command = hook(stage);
        command.env("PH_SOCKET", &socket);
        told.push(to_end(command));
        let mut command = hook(stage);
        command.env("PH_SOCKET", stage.dir().join("nowhere.sock"));
        gone.push(to_end(command));
    }
    let empty = median(empty);
    let goal = Goal::AtMost(2.0);
    table.row(
        "ph hook, its session answers, against an empty process",
        median(told),
        empty,
        &goal,
    );
    table.row(
        "ph hook, its session is gone, against the same",
        median(gone),
        empty,
        &goal,
    );
}
