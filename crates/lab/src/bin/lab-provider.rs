//! The mail provider in memory as a script: its state is in the directory `PH_PROVIDER_STATE`, and
//! calls are serialized.
//!
//! Logs every call as a line in `calls`. Waits for the milliseconds in the file `delay`, and fails
//! with the text of the file `broken` while it exists.

use posthaste_lab::MemoryProvider;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

fn main() -> ExitCode {
    let dir = std::env::var_os("PH_PROVIDER_STATE").expect("PH_PROVIDER_STATE names a directory");
    let dir = PathBuf::from(dir);
    fs::create_dir_all(&dir).expect("a directory");
    let mut words = std::env::args().skip(1);
    let [op, arg] = [(); 2].map(|()| words.next().unwrap_or_default());
    let mut stdin = String::new();
    if matches!(op.as_str(), "send" | "reply") {
        std::io::stdin().read_to_string(&mut stdin).expect("text");
    }
    let mut calls = File::options()
        .create(true)
        .append(true)
        .open(dir.join("calls"))
        .expect("a file");
    let line = format!("{op} {arg}\n");
    calls.write_all(line.as_bytes()).expect("a file");
    if let Ok(delay) = fs::read_to_string(dir.join("delay")) {
        let delay = delay.trim().parse().expect("milliseconds");
        std::thread::sleep(Duration::from_millis(delay));
    }
    if let Ok(why) = fs::read_to_string(dir.join("broken")) {
        std::io::stderr().write_all(why.as_bytes()).expect("stderr");
        return ExitCode::FAILURE;
    }
    let lock = File::create(dir.join("lock")).expect("a file");
    lock.lock().expect("a lock");
    let state = dir.join("state.json");
    let mut provider: MemoryProvider = match fs::read(&state) {
        Ok(bytes) => serde_json::from_slice(&bytes).expect("our own JSON"),
        Err(_) => MemoryProvider::default(),
    };
    let ended = provider.call(jiff::Timestamp::now(), &op, &arg, &stdin);
    let is_question = [
        "ensure-running",
        "inbox",
        "check",
        "all",
        "get",
        "thread",
        "count",
    ]
    .contains(&op.as_str());
    if !is_question {
        let draft = dir.join("state.new");
        fs::write(&draft, serde_json::to_vec(&provider).expect("JSON")).expect("a file");
        fs::rename(draft, state).expect("a file");
    }
    std::io::stdout()
        .write_all(ended.stdout.as_bytes())
        .expect("stdout");
    std::io::stderr()
        .write_all(ended.stderr.as_bytes())
        .expect("stderr");
    ExitCode::from(ended.code)
}
