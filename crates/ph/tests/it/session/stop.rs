//! Stopping and restarting sessions.

#![cfg(target_os = "linux")] // Reads processes from /proc.

use crate::common::stage::{Stage, kill, until, until_dead, wait_for_number};
use crate::common::{executable, path_text};
use rustix::process::Signal;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

/// A command that does nothing for a long time.
const SLEEP: &str = "sleep 1000";

#[test]
fn a_stop_asks_first_and_kills_later() {
    let stage = Stage::new();
    let file = |name: &str| stage.dir().join(name);
    let put = |name: &str| path_text(&file(name));
    // Exits when asked; its background process, in its own process group, does not.
    let kind = format!(
        "set -m; (trap '' HUP TERM INT; sh -c 'echo $$ > {0}; {SLEEP}; {SLEEP}') & \
         trap 'echo asked > {1}; exit 5' HUP TERM; echo up; while :; do sleep 0.1; done",
        put("kind.pid"),
        put("kind.asked")
    );
    stage.script("kind", &kind);
    let stubborn = format!(
        "trap '' HUP TERM; sh -c 'echo $$ > {}; {SLEEP}; {SLEEP}' & echo up; while :; do sleep 0.1; done",
        put("stubborn.pid")
    );
    stage.script("stubborn", &stubborn);
    let killed = format!(
        "trap 'echo asked > {}' TERM HUP; sh -c 'echo $$ > {}; {SLEEP}; {SLEEP}' & echo up; \
         while :; do sleep 0.1; done",
        put("killed.asked"),
        put("killed.pid")
    );
    stage.script("killed", &killed);
    // Processes that a program leaves when it exits get SIGHUP.
    stage.script(
        "left",
        &format!(
            "sh -c 'echo $$ > {}; {SLEEP}; {SLEEP}' & echo up; cat",
            put("left.pid")
        ),
    );
    for name in ["kind", "stubborn", "killed", "left"] {
        stage.until_shown(name, "up");
    }
    let grandchild = |name: &str| wait_for_number(&file(&format!("{name}.pid")));
    let child = stage.child("kind");
    let done = stage.run("stop kind");
    assert_eq!(done.ok(), "kind has ended: exit 5\n");
    assert_eq!(
        std::fs::read_to_string(file("kind.asked")).unwrap(),
        "asked\n"
    );
    until_dead(child);
    until_dead(grandchild("kind"));

    let begun = Instant::now();
    let done = stage.run("stop stubborn --json");
    assert_eq!(done.json()["exit"], "signal 9 (KILL)");
    assert!(
        begun.elapsed() >= Duration::from_secs(5),
        "{:?}",
        begun.elapsed()
    );
    until_dead(grandchild("stubborn"));

    let done = stage.run("stop killed --kill");
    assert_eq!(done.ok(), "killed has ended: signal 9 (KILL)\n");
    assert!(!file("killed.asked").exists());
    until_dead(grandchild("killed"));

    kill(stage.child("left"), Signal::KILL);
    until_dead(grandchild("left"));
    stage.until_nothing_runs();
}

#[test]
fn a_restart_runs_the_same_command() {
    let stage = Stage::new();
    let log = stage.dir().join("log");
    let script = format!("echo \"$0 $1 $PWD $A\" >> {}; cat", path_text(&log));
    stage
        .call(&[
            "run", "--name", "bot", "--detach", "--cwd", "/", "--env", "A=x y", "sh", "-c",
        ])
        .args(&[&script, "zero", "--one"])
        .run()
        .ok();
    let lines = |count: usize| {
        until("a line", || {
            let text = std::fs::read_to_string(&log).ok()?;
            (text.lines().count() == count && text.ends_with('\n')).then_some(text)
        })
    };
    assert_eq!(lines(1), "zero --one / x y\n");
    let first = stage.pid("bot");
    let done = stage
        .call(&["restart", "bot", "--detach"])
        .within(stage.dir())
        .run();
    assert_eq!(done.ok(), "bot is running; 'ph attach bot' shows it\n");
    assert_eq!(lines(2), "zero --one / x y\n".repeat(2));
    until_dead(first);
    assert_ne!(stage.pid("bot"), first);
    stage.run("stop bot --kill").ok();
    let session = stage.run("restart bot --json").json();
    assert_eq!(session["name"], "bot");
    lines(3);
    // All of its mail is kept.
    let id = stage.send("bot hello");
    stage.run("restart bot --kill --detach").ok();
    lines(4);
    assert_eq!(stage.status("bot")["unread"], 1);
    stage.until_receipt(&id, "offered");
}

#[test]
fn a_failed_restart_leaves_the_old_session_running() {
    let stage = Stage::new();
    let (bin, dir) = (stage.dir().join("bin"), stage.dir().join("work"));
    for dir in [&bin, &dir] {
        std::fs::create_dir(dir).unwrap();
    }
    let tool = bin.join("tool");
    executable(&tool, "#!/bin/sh\nexec sleep 1000\n");
    let path = format!("PATH={}:/bin:/usr/bin", path_text(&bin));
    let run = |name: &str, command: &str| {
        let head = ["run", "--name", name, "--detach", "--env", &path];
        let call = stage.call(&head).args(&["--cwd", &path_text(&dir)]);
        call.args(&["--", command]).run().ok();
        stage.pid(name)
    };
    let pids = [
        ("by-path", run("by-path", &path_text(&tool))),
        ("relative", run("relative", "../bin/tool")),
        ("by-name", run("by-name", "tool")),
    ];
    let check = |says: &str| {
        for (name, pid) in pids {
            let done = stage.run(&format!("restart {name} --detach"));
            done.fails(4, &format!("cannot restart {name}: "));
            assert!(done.err().contains(says), "{}", done.err());
            assert_eq!(stage.pid(name), pid);
        }
    };
    std::fs::set_permissions(&tool, Permissions::from_mode(0o644)).unwrap();
    check("no such command: ");
    std::fs::remove_file(&tool).unwrap();
    check("no such command: ");
    executable(&tool, "#!/bin/sh\nexec sleep 1000\n");
    std::fs::remove_dir(&dir).unwrap();
    check("work is not a directory");
    std::fs::create_dir(&dir).unwrap();
    for (name, pid) in pids {
        stage.run(&format!("restart {name} --detach")).ok();
        assert_ne!(stage.pid(name), pid);
    }
}
