//! The model server as a program.

use super::{MESSAGES, answered, claude, send};
use posthaste_lab::model::Log;
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

fn post_to(port: u16, path: &str, body: &Value) -> String {
    answered(send(port, "POST", path, &body.to_string()))
}

/// A process that is killed when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

#[test]
fn the_server_runs_as_a_program() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    let mut command = Command::new(env!("CARGO_BIN_EXE_lab-model"));
    command.arg("0").arg(&log).stdout(Stdio::piped());
    let mut server = Server(command.spawn().unwrap());
    let mut port = String::new();
    let mut output = BufReader::new(server.0.stdout.take().unwrap());
    output.read_line(&mut port).unwrap();
    let body = claude("reply=hi", false);
    let answer = post_to(port.trim().parse().unwrap(), MESSAGES, &body);
    assert!(answer.contains(r#""text":"hi""#), "{answer}");
    assert_eq!(Log::at(log).prompts(), ["reply=hi"]);
}

#[track_caller]
fn not_started(args: &[&str], reason: &str) {
    let done = Command::new(env!("CARGO_BIN_EXE_lab-model"))
        .args(args)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(
        !done.status.success() && errors.contains(reason),
        "{errors}"
    );
}

#[test]
fn the_program_prints_its_usage() {
    not_started(&[], "usage: lab-model PORT LOGFILE");
    not_started(&["70000", "log"], "is not a port");
    not_started(&["0", "/nowhere/log"], "No such file or directory");
}
