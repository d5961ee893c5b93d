//! Killed and crowded sessions, and sessions without a home or disk space: no mail is lost, no
//! other session is affected, and the next start cleans up.

#![cfg(target_os = "linux")] // Reads processes from /proc.

use crate::common::stage::{
    Stage, is_alive, kill, sleeps, ticks, until, until_dead, until_so, wait_for_number,
};
use crate::common::{Done, path_text, skip};
use posthaste_lab::pty::Size;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::process::Command;

fn names(list: &Value) -> Vec<&str> {
    let list = list.as_array().expect("an array").iter();
    list.map(|s| s["name"].as_str().expect("a name")).collect()
}

#[test]
fn a_killed_session_affects_no_other_and_its_files_are_removed() {
    let stage = Stage::new();
    let grandchild = stage.dir().join("grandchild");
    // Neither the child nor its background process, in its own process group, exits on SIGHUP. A
    // process group needs the terminal, which is gone then.
    let script = format!(
        "trap '' HUP TERM; set -m; sh -c 'echo $$ > {}; sleep 1000; sleep 1000' & \
         set +m; echo up; while :; do sleep 0.1; done",
        path_text(&grandchild)
    );
    stage.script("bad", &script);
    stage.script("soft", "echo up; sleep 1000");
    stage.script("other", "echo up; cat");
    stage.until_shown("bad", "up");
    let kept = stage.send("bad --priority idle kept");
    let (bad, child) = (stage.pid("bad"), stage.child("bad"));
    let other = (stage.pid("other"), stage.child("other"));
    let soft = (stage.pid("soft"), stage.child("soft"));
    kill(bad, Signal::KILL);
    kill(soft.0, Signal::KILL);
    until_dead(bad);
    // A program that does not ignore SIGHUP ends at once.
    until_dead(soft.1);
    let grandchild = wait_for_number(&grandchild);
    assert!(is_alive(child) && is_alive(grandchild));

    let listed = stage.run("ls");
    assert!(listed.out().contains("other"), "{}", listed.out());
    assert!(
        listed.out().contains("crashed, orphaned"),
        "{}",
        listed.out()
    );
    assert!(!listed.out().contains("soft"), "{}", listed.out());
    let says = format!("still runs without its session (processes {child}, ");
    assert!(listed.err().contains(&says), "{}", listed.err());
    let says = "the session of bad has crashed; 'ph restart bad' starts it again";
    assert!(listed.err().contains(says), "{}", listed.err());
    assert_eq!(names(&stage.run("ls --json").json()), ["bad", "other"]);
    let all = stage.run("ls --all --json").json();
    assert_eq!(names(&all), ["bad", "other", "soft"]);
    assert_eq!(all[0]["exit"], "crashed");
    let status = stage.status("bad");
    assert_eq!(
        (&status["activity"], &status["exit"]),
        (&json!("exited"), &json!("crashed"))
    );
    assert_eq!(
        status["evidence"],
        "its lock is free, and the journal does not contain its end"
    );
    assert_eq!(status["unread"], 1);
    assert_eq!(stage.run("stop soft").ok(), "soft is not running\n");
    assert_eq!(stage.run("attach bad").code, 4);
    assert_eq!(stage.run("nudge bad hi").code, 1);
    assert_eq!((stage.pid("other"), stage.child("other")), other);
    // A message is stored without any session.
    let new = stage.send("bad hello");
    assert_eq!(stage.rule(&new), "no-session");

    let (agent, started) = stage.agent_after_crash("bad", "--raw --paste");
    let says = "note: the last session of bad crashed; ended its processes (";
    assert!(started.err().starts_with(says), "{}", started.err());
    until_dead(child);
    until_dead(grandchild);
    for id in [&kept, &new] {
        stage.until_receipt(id, "offered");
    }
    let heard = agent.heard_text();
    assert!(
        heard.contains("hello") && !heard.contains("repeat"),
        "{heard:?}"
    );
    // The records of the old processes are deleted.
    let notes = std::fs::read_dir(stage.home().join("sessions/.children")).unwrap();
    let notes: Vec<_> = notes.map(|note| note.unwrap().file_name()).collect();
    for gone in [bad, child] {
        assert!(!notes.contains(&gone.to_string().into()), "{notes:?}");
    }
    // The note is printed once.
    stage.run("stop bad --kill").ok();
    stage.start("bad", &["sleep", "1000"]).ok();
    assert_eq!((stage.pid("other"), stage.child("other")), other);
    stage.assert_no_zombies();
}

#[test]
fn a_stop_ends_the_program_of_a_crashed_session() {
    let stage = Stage::new();
    stage.script(
        "gentle",
        "trap '' HUP; echo up; while :; do sleep 0.1; done",
    );
    stage.script(
        "stubborn",
        "trap '' HUP TERM; echo up; while :; do sleep 0.1; done",
    );
    for name in ["gentle", "stubborn"] {
        stage.until_shown(name, "up");
        let (session, child) = (stage.pid(name), stage.child(name));
        kill(session, Signal::KILL);
        until_so("the crash", || stage.status(name)["exit"] == "crashed");
        assert!(is_alive(child));
        let status = stage.run(&format!("status {name} --json")).json();
        assert_eq!(status["orphans"][0], child, "{status}");
        let said = stage.run(&format!("stop {name}")).ok();
        let says = format!("the session of {name} had crashed; ended its program (process");
        assert!(said.starts_with(&says), "{said}");
        until_dead(child);
        let again = stage.run(&format!("stop {name}")).ok();
        assert_eq!(again, format!("{name} is not running\n"));
    }
    stage.assert_no_zombies();
}

#[test]
fn an_interrupted_offer_is_repeated_and_marked() {
    let stage = Stage::new();
    let mut journal = stage.journal();
    stage.agent("bot", "--raw --paste");
    let cut = until("a session that is killed in the middle", || {
        stage.until_activity("bot", "idle");
        let id = stage.catch_offering("bot", &mut journal);
        kill(stage.pid("bot"), Signal::KILL);
        until_so("the crash", || stage.status("bot")["exit"] == "crashed");
        if stage.receipt(&id) == "offering" {
            return Some(id);
        }
        // The offer was completed before the kill: try again.
        stage.agent_after_crash("bot", "--raw --paste");
        None
    });
    assert_eq!(stage.rule(&cut), "offering");
    let fresh = stage.send("bot fresh");
    let (agent, _) = stage.agent_after_crash("bot", "--raw --paste");
    for id in [&cut, &fresh] {
        stage.until_receipt(id, "offered");
    }
    let again = ["stored", "offering", "uncertain", "offering", "offered"];
    assert_eq!(stage.receipts(&cut), again);
    until_so("all of it", || agent.heard_text().contains("fresh"));
    let heard = agent.heard_text();
    let repeat = format!("id: {} (repeat: may have been shown before)]", &cut[..8]);
    assert!(heard.contains(&repeat), "{heard:?}");
    // A message that was never offered is not a repeat.
    assert_eq!(heard.matches("(repeat").count(), 1, "{heard:?}");
}

#[test]
fn one_of_ten_simultaneous_starts_wins() {
    let stage = Stage::new();
    for _ in 0..3 {
        let args = ["run", "--name", "bot", "--detach", "--", "sleep", "1000"];
        let starts: Vec<_> = (0..10).map(|_| stage.call(&args).spawn()).collect();
        let done: Vec<_> = starts.into_iter().map(Done::of).collect();
        let won = done.iter().filter(|done| done.code == 0).count();
        for done in done.iter().filter(|done| done.code != 0) {
            done.fails(4, "bot is already running");
        }
        assert_eq!(won, 1);
        let (pid, child) = (stage.pid("bot"), stage.child("bot"));
        until_so("the others to be gone", || {
            let left = stage.processes();
            left.iter().all(|left| [pid, child].contains(left))
        });
        stage.run("stop bot --kill").ok();
    }
}

#[test]
fn failed_starts_block_no_later_start() {
    let stage = Stage::new();
    let start = |command: &[&str]| {
        let head = ["run", "--name", "bot", "--detach", "--"];
        stage.call(&[&head[..], command].concat()).spawn()
    };
    for _ in 0..5 {
        let fail = || start(&["no-such-command"]);
        let before: Vec<_> = (0..4).map(|_| fail()).collect();
        let good = [start(&["sleep", "1000"]), start(&["sleep", "1000"])];
        let after: Vec<_> = (0..4).map(|_| fail()).collect();
        for done in before.into_iter().chain(after).map(Done::of) {
            assert_ne!(done.code, 0);
            let says = ["no such command", "bot is already running"];
            let err = done.err();
            assert!(says.iter().any(|says| err.contains(says)), "{err}");
        }
        // One of the two sessions runs and has the name.
        let good = good.map(Done::of);
        let won = good.iter().filter(|done| done.code == 0).count();
        assert_eq!(won, 1, "{good:?}");
        let pid = stage.pid("bot");
        start_again(&stage);
        assert_eq!(stage.pid("bot"), pid);
        let log = stage.home().join("sessions/bot/log");
        let at = std::fs::read_link(format!("/proc/{pid}/fd/2")).unwrap();
        assert_eq!(at, log);
        stage.run("stop bot --kill").ok();
        std::fs::remove_dir_all(stage.home().join("sessions/bot")).unwrap();
    }
}

fn start_again(stage: &Stage) {
    let again = stage.start("bot", &["sleep", "1000"]);
    again.fails(4, "bot is already running");
}

#[test]
fn twenty_sessions_run_side_by_side() {
    let stage = Stage::new();
    let every = |args: &dyn Fn(usize) -> Vec<String>| -> Vec<Done> {
        let all: Vec<_> = (0..20).map(|n| stage.call(&args(n)).spawn()).collect();
        all.into_iter().map(Done::of).collect()
    };
    let words = |line: String| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    for done in every(&|n| words(format!("run --name bot-{n} --detach -- cat"))) {
        done.ok();
    }
    let listed = stage.run("ls --json").json();
    assert_eq!(names(&listed).len(), 20);
    let pids: Vec<_> = (0..20).map(|n| stage.pid(&format!("bot-{n}"))).collect();
    for done in every(&|n| words(format!("send bot-{n} hello"))) {
        done.ok();
    }
    stage.assert_no_zombies();
    for done in every(&|n| words(format!("stop bot-{n}"))) {
        assert!(done.ok().contains("has ended"), "{}", done.out());
    }
    assert_eq!(stage.run("ls --json").json(), json!([]));
    pids.into_iter().for_each(until_dead);
    assert_eq!(stage.run("count bot-7").ok().matches('1').count(), 2);
    stage.until_nothing_runs();
    let sockets = std::fs::read_dir(stage.home().join("sockets")).unwrap();
    assert_eq!(sockets.count(), 0);
}

#[test]
fn a_session_of_a_deleted_home_stays_quiet_and_creates_nothing() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    let (pid, child) = (stage.pid("bot"), stage.child("bot"));
    let mut log = File::open(stage.home().join("sessions").join("bot").join("log")).unwrap();
    let mut line = UnixStream::connect(stage.home().join("sockets").join("bot.sock")).unwrap();
    std::fs::rename(stage.home(), stage.dir().join("gone")).unwrap();
    std::fs::remove_dir_all(stage.dir().join("gone")).unwrap();
    agent.say("on and on");
    assert_eq!(stage.run("stop bot").code, 3);
    assert_eq!(stage.run("ls --json").json(), json!([]));
    // It does not busy-wait: until its timer has fired a few times, it uses little CPU time.
    let (before, slept) = (ticks(pid), sleeps(pid));
    let used = || ticks(pid) - before;
    until_so("its clock", || sleeps(pid) > slept + 3 || used() > 60);
    assert!(used() <= 60, "{} ticks", used());
    assert!(!stage.home().exists());
    // A new session of the same name is independent of the old one.
    stage.start("bot", &["sleep", "1000"]).ok();
    // A client of the old session is told that its message is not stored.
    let send = json!({"jsonrpc": "2.0", "id": 1, "method": "send", "params": {"body": "hi"}});
    line.write_all(format!("{send}\n").as_bytes()).unwrap();
    let mut answer = String::new();
    BufReader::new(line).read_line(&mut answer).unwrap();
    let trouble = "journal.db was removed or replaced while this process had it open";
    assert!(
        answer.contains("error") && answer.contains(trouble),
        "{answer}"
    );
    assert_eq!(stage.run("inbox bot --all --json").json(), json!([]));
    kill(pid, Signal::TERM);
    until_dead(pid);
    let mut said = String::new();
    log.read_to_string(&mut said).unwrap();
    let looks = said.matches("the mail cannot be read").count();
    assert!(looks == 1 && said.contains(trouble), "{said}");
    until_dead(child);
    assert_eq!(stage.status("bot")["activity"], "starting");
    stage.run("nudge bot hi");
    assert_ne!(stage.pid("bot"), pid);
}

#[test]
fn a_session_that_has_lost_its_home_ends_in_order() {
    let stage = Stage::new();
    let said = stage.dir().join("said");
    let script = format!(
        "trap 'echo bye > {}; exit 0' TERM; trap '' HUP; echo up; while :; do sleep 0.1; done",
        path_text(&said)
    );
    let run = [
        "run", "--name", "bot", "--detach", "--", "sh", "-c", &script,
    ];
    let run = stage.call(&run).env("PH_SESSION_WITHOUT_HOME", "50ms");
    run.run().ok();
    stage.until_shown("bot", "up");
    let (pid, child) = (stage.pid("bot"), stage.child("bot"));
    let mut viewer = stage.terminal("attach bot", Size::USUAL);
    viewer.wait_for_text("up");
    let gone = stage.dir().join("gone");
    std::fs::rename(stage.home(), &gone).unwrap();
    viewer.wait_until("a notice", |terminal| {
        String::from_utf8_lossy(terminal.output()).contains("the home is gone: nothing can be")
    });
    viewer.wait_exit();
    assert!(viewer.is_sane());
    until_dead(child);
    until_dead(pid);
    assert_eq!(std::fs::read_to_string(&said).unwrap(), "bye\n");
    let log = std::fs::read_to_string(gone.join("sessions").join("bot").join("log")).unwrap();
    assert!(log.contains("the home has not come back"), "{log}");
    assert!(!stage.home().exists());
}

#[test]
fn a_home_without_write_permission_is_reported() {
    let stage = Stage::new();
    stage.send("bot hi");
    let set = |path: &std::path::Path, mode| {
        std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
    };
    set(stage.dir(), 0o711);
    set(&stage.home(), 0o555);
    // Root may write everywhere, so another user runs the command.
    let is_root = rustix::process::geteuid().is_root();
    let run = |args: &[&str]| {
        let call = stage.call(args).within("/".as_ref());
        if is_root {
            call.user(65_534).run()
        } else {
            call.run()
        }
    };
    let started = run(&["run", "--detach", "sleep", "1000"]);
    let listed = run(&["ls"]);
    set(&stage.home(), 0o700);
    started.fails(4, "home");
    assert_eq!(listed.code, 4, "{}", listed.err());
    stage.until_nothing_runs();
    // A file has the place of the directory.
    std::fs::write(stage.home().join("sessions"), "").unwrap();
    stage.start("bot", &["sleep", "1000"]).fails(5, "sessions");
    assert_eq!(stage.run("ls").code, 0);
}

/// In a container, the leader of a process session and a parent can be invisible: their ids are 0.
#[test]
fn sessions_work_in_a_container_with_hidden_parents() {
    const SCRIPT: &str = r#"
        "$PH" run --name bot --detach -- cat || exit 10
        "$PH" send bot hello > /dev/null || exit 11
        "$PH" status bot > /dev/null || exit 12
        "$PH" stop bot
    "#;
    let stage = Stage::new();
    let output = Command::new("unshare")
        .args(["--map-root-user", "--pid", "--fork", "--mount-proc"])
        .args(["sh", "-c", SCRIPT])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", stage.user())
        .env("PH", env!("CARGO_BIN_EXE_ph"))
        .env("PH_HOME", stage.home())
        .current_dir(stage.dir())
        .output();
    let Ok(output) = output else {
        return skip("there is no 'unshare' to make a container with");
    };
    if output.status.code() == Some(1) && output.stdout.is_empty() {
        return skip("this machine lets nobody make a container");
    }
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {said}{errors}", output.status);
    assert!(said.contains("bot has ended"), "{said}{errors}");
}

/// A disk of two megabytes, in its own mount namespace, is filled while a session runs.
#[test]
fn a_full_disk_loses_no_acknowledged_message() {
    const SCRIPT: &str = r#"
        mkdir "$PH_HOME"
        mount -t tmpfs -o size=2m,mode=700 none "$PH_HOME" || exit 9
        "$PH" run --name bot --detach -- cat || exit 10
        cat /dev/zero > "$PH_HOME/filler" 2> /dev/null
        while "$PH" send bot "message" > /dev/null 2> send; do :; done
        "$PH" run --name other --detach -- cat 2> run; echo "run $?"
        "$PH" status bot > /dev/null; echo "status $?"
        "$PH" peek bot > /dev/null; echo "peek $?"
        rm "$PH_HOME/filler"
        id=$("$PH" send bot last) || exit 11
        for i in $(seq 1000); do
            "$PH" show "$id" | grep -q '^receipt *offered' && break
            sleep 0.02
        done
        "$PH" show "$id" | grep '^receipt'
        cat /dev/zero > "$PH_HOME/filler" 2> /dev/null
        "$PH" stop bot > /dev/null; echo "stop $?"
        rm "$PH_HOME/filler"
        "$PH" run --name bot --detach -- cat 2> /dev/null || exit 12
        "$PH" stop bot > /dev/null || exit 13
    "#;
    let stage = Stage::new();
    let output = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", SCRIPT])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", stage.user())
        .env("PH", env!("CARGO_BIN_EXE_ph"))
        .env("PH_HOME", stage.home())
        .current_dir(stage.dir())
        .output();
    let Ok(output) = output else {
        return skip("there is no 'unshare' to mount a small disk with");
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if output
        .status
        .code()
        .is_none_or(|code| code == 1 || code == 9)
    {
        return skip("this machine lets nobody mount a small disk");
    }
    assert!(output.status.success(), "{}: {said}{errors}", output.status);
    let want = "bot is running; 'ph attach bot' shows it\nrun 5\nstatus 0\npeek 0\n\
        receipt    offered\nstop 0\n";
    assert!(said.starts_with(want), "{said}{errors}");
    for name in ["send", "run"] {
        let error = std::fs::read_to_string(stage.dir().join(name)).unwrap();
        assert!(
            error.contains("full") || error.contains("No space left"),
            "{name}: {error}"
        );
    }
}
