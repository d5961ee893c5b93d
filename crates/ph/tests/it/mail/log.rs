//! The log, and following it.

use super::shape::keys;
use crate::common::{self, Ph};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::process::Child;
use std::sync::mpsc::{Receiver, channel};

#[test]
fn the_log() {
    let ph = Ph::new();
    ph.send("bob hi");
    ph.send("alice 'two\nlines' --subject s");
    ph.run("read {1} --body").ok();
    ph.run("archive {2}").ok();
    insta::assert_snapshot!(ph.transcript(&["log", "log --after 2", "log --agent alice", "log --after 9", "log --agent nobody"]), @"
    $ ph log
         1  [time]  bob           message    [id1]  from human: hi
         2  [time]  alice         message    [id2]  from human: two lines
         3  [time]  bob           read       [id1]  by human
         4  [time]  alice         archived   [id2]  by human
    $ ph log --after 2
         3  [time]  bob           read       [id1]  by human
         4  [time]  alice         archived   [id2]  by human
    $ ph log --agent alice
         2  [time]  alice         message    [id2]  from human: two lines
         4  [time]  alice         archived   [id2]  by human
    $ ph log --after 9
    ! error: there is no fact 9: the last one is 4
    ! hint: 'ph log' prints all facts with their numbers
    [exit 2]
    $ ph log --agent nobody
    ");
    let facts = ph.facts();
    let facts: Vec<Value> = facts
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    let seqs: Vec<_> = facts
        .iter()
        .map(|fact| fact["seq"].as_u64().unwrap())
        .collect();
    assert_eq!(seqs, [1, 2, 3, 4]);
    assert_eq!(
        keys(ph.facts().lines().next().unwrap()),
        ["seq", "origin", "id", "at", "agent", "kind", "data"]
    );
    assert_eq!(facts[1]["data"]["body"], "two\nlines");
    assert_eq!(ph.run("log --after 3 --json").ok().lines().count(), 1);
}

/// A run that goes on, line by line; ended when it is dropped.
struct Running {
    child: Child,
    lines: Receiver<String>,
}

impl Running {
    fn new(mut child: Child) -> Self {
        let stdout = BufReader::new(child.stdout.take().expect("its output is a pipe"));
        let (tell, lines) = channel();
        std::thread::spawn(move || {
            for line in stdout.lines().map_while(Result::ok) {
                if tell.send(line).is_err() {
                    return;
                }
            }
        });
        Self { child, lines }
    }

    fn line(&self) -> String {
        self.lines.recv_timeout(common::PATIENCE).expect("a line")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn following_prints_history_a_mark_and_new_facts() {
    let ph = Ph::new();
    ph.send("bob one");
    ph.send("alice two");
    let all = Running::new(ph.call(&["log", "--follow"]).spawn());
    let json = Running::new(
        ph.call(&["log", "--follow", "--json", "--after", "1"])
            .spawn(),
    );
    let bob = Running::new(ph.call(&["log", "-f", "--agent", "bob"]).spawn());
    let mut seen = String::new();
    for _ in 0..3 {
        seen.push_str(&all.line());
        seen.push('\n');
    }
    assert!(json.line().contains(r#""seq":2"#));
    assert_eq!(json.line(), r#"{"mark":{"seq":2}}"#);
    bob.line();
    assert_eq!(bob.line(), "-- live after 2 --");
    ph.send("alice three");
    ph.run("read {1} --body").ok();
    for _ in 0..2 {
        seen.push_str(&all.line());
        seen.push('\n');
    }
    let live: Value = serde_json::from_str(&json.line()).unwrap();
    assert_eq!(
        (live["seq"].as_u64(), live["data"]["body"].as_str()),
        (Some(3), Some("three"))
    );
    assert!(
        bob.line().contains("bob           read"),
        "another's mail is passed over"
    );
    insta::assert_snapshot!(ph.redact(&seen), @"
         1  [time]  bob           message    [id1]  from human: one
         2  [time]  alice         message    [id2]  from human: two
    -- live after 2 --
         3  [time]  alice         message    [id3]  from human: three
         4  [time]  bob           read       [id1]  by human
    ");
}

#[test]
fn following_an_empty_home_waits_for_the_first_fact() {
    let ph = Ph::new();
    let follow = Running::new(ph.call(&["log", "--follow"]).spawn());
    assert_eq!(follow.line(), "-- live after 0 --");
    ph.send("bob first");
    assert!(follow.line().ends_with("from human: first"));
}
