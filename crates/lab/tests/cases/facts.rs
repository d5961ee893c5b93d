//! Facts of the journal, read line by line from `ph log --follow`.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// Limit for lines that wait; beyond it, `ph log` blocks.
const MAX_WAITING_LINES: usize = 1024;
/// Time by which the record of a conversation can follow the request of its first prompt.
const HOOK_DELAY: SignedDuration = SignedDuration::from_millis(500);

pub(crate) struct Facts {
    follower: Child,
    lines: Option<Receiver<Value>>,
    reader: Option<JoinHandle<()>>,
    all: Vec<Value>,
}

impl Facts {
    pub(crate) fn follow(mut log: Command) -> Self {
        log.args(["log", "--follow", "--json"]);
        log.stdin(Stdio::null()).stdout(Stdio::piped());
        let mut follower = log.spawn().expect("ph can be started");
        let out = follower.stdout.take().expect("it was asked for");
        let (sender, lines) = sync_channel(MAX_WAITING_LINES);
        let reader = std::thread::spawn(move || {
            for line in BufReader::new(out).lines().map_while(Result::ok) {
                let Ok(fact) = serde_json::from_str(&line) else {
                    continue;
                };
                if sender.send(fact).is_err() {
                    return;
                }
            }
        });
        Self {
            follower,
            lines: Some(lines),
            reader: Some(reader),
            all: Vec::new(),
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.follower.id()
    }

    /// Read new facts.
    pub(crate) fn look(&mut self) {
        let new = self.lines.iter().flat_map(Receiver::try_iter);
        self.all.extend(new);
    }

    /// Return whether a message has this fact, as of the last read.
    pub(crate) fn has(&self, id: &str, kind: &str) -> bool {
        self.all
            .iter()
            .any(|fact| fact["kind"] == kind && fact["data"]["message"] == id)
    }
}

impl Facts {
    /// Return the position of a message's fact.
    pub(crate) fn place(&self, id: &str) -> Option<usize> {
        self.all.iter().position(|fact| fact["id"] == id)
    }

    /// Return the time of a message's first fact of this kind, and its evidence.
    pub(crate) fn first(&self, id: &str, kind: &str) -> Option<(Timestamp, &str)> {
        let is_it = |fact: &&Value| fact["kind"] == kind && fact["data"]["message"] == id;
        let fact = self.all.iter().find(is_it)?;
        Some((
            at(fact),
            fact["data"]["evidence"].as_str().unwrap_or_default(),
        ))
    }

    /// Return the id of the agent's conversation at this time, according to its hooks.
    pub(crate) fn conversation_at(&self, time: Timestamp) -> Option<String> {
        let is_entered = |fact: &&Value| {
            let is_entered = fact["data"]["not_resumed"] != true;
            fact["kind"] == "conversation" && is_entered && at(fact) <= time + HOOK_DELAY
        };
        let fact = self.all.iter().rfind(is_entered)?;
        fact["data"]["id"].as_str().map(str::to_owned)
    }

    /// Return the last facts about the agent's sessions, one per line.
    pub(crate) fn sessions(&self) -> String {
        let kinds = ["session_started", "session_ended", "conversation"];
        let of = |fact: &&Value| kinds.iter().any(|kind| fact["kind"] == *kind);
        let last = self.all.iter().rev().filter(of).take(6);
        let last = last.map(|fact| format!("{} {} {}", fact["at"], fact["kind"], fact["data"]));
        last.collect::<Vec<_>>().join("\n")
    }

    /// Return all facts of a message, one per line.
    pub(crate) fn journey(&self, id: &str) -> String {
        let of = |fact: &&Value| fact["id"] == id || fact["data"]["message"] == id;
        let facts = self.all.iter().filter(of);
        let facts = facts.map(|fact| format!("{} {} {}", fact["at"], fact["kind"], fact["data"]));
        facts.collect::<Vec<_>>().join("\n")
    }
}

fn at(fact: &Value) -> Timestamp {
    let at = fact["at"].as_str().and_then(|at| at.parse().ok());
    at.expect("a fact has a time")
}

impl Drop for Facts {
    fn drop(&mut self) {
        let _ = self.follower.kill();
        let _ = self.follower.wait();
        // A reader that waits for room gets an error.
        drop(self.lines.take());
        if let Some(reader) = self.reader.take() {
            let _ = reader.join();
        }
    }
}
