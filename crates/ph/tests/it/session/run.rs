//! Starting, finding and ending sessions on the command line.

#![cfg(target_os = "linux")] // Reads processes from /proc.

use crate::common::stage::{Stage, is_alive, kill, until_dead, until_so};
use crate::common::{Call, Done, path_text};
use posthaste_lab::pty::Size;
use rustix::process::Signal;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::fs::Permissions;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A command that does nothing for a long time.
const SLEEP: &str = "sleep 1000";

#[test]
fn an_impossible_start_is_refused_and_leaves_no_trace() {
    let stage = Stage::new();
    let bad = stage.file("bin/My Agent.sh", "#!/bin/sh\n");
    let plain = stage.file("bin/plain", "#!/bin/sh\n");
    let lost = stage.file("bin/lost", "#!/no/such/interpreter\n");
    for path in [&bad, &lost] {
        std::fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let dir = path_text(stage.dir());
    let check = |args: &[&str], code: i32, says: &[&str]| {
        let args: Vec<_> = args.iter().map(|arg| arg.replace("DIR", &dir)).collect();
        let done = stage.call(&[&["run".to_owned()][..], &args].concat()).run();
        for says in says {
            assert!(done.err().contains(says), "{args:?}: {}", done.err());
        }
        done.fails(code, "");
    };
    check(&["--detach"], 2, &["COMMAND"]);
    check(
        &["--name", "x", "no-such-command"],
        2,
        &["no such command: no-such-command", "PATH"],
    );
    check(&["DIR/no-such"], 2, &["no such command"]);
    check(&["DIR/bin/plain"], 2, &["is not executable", "chmod"]);
    check(&["--name", "x", "DIR"], 2, &["is a directory"]);
    check(
        &["DIR/bin/My Agent.sh"],
        2,
        &["cannot be the agent's name", "--name my-agent.sh"],
    );
    check(&["DIR/bin/lost"], 2, &["cannot start", "interpreter"]);
    check(&[""], 2, &["the command is empty"]);
    check(&["--name", "human", "sleep"], 2, &["'human' is the person"]);
    check(&["--name", "../x", "sleep"], 2, &["name"]);
    check(
        &["--name", "UPPER", "sleep"],
        2,
        &["'upper' is a valid name"],
    );
    check(&["--name", "", "sleep"], 2, &["name"]);
    check(&["--name", ".hidden", "sleep"], 2, &["name"]);
    check(&["--name", &"x".repeat(65), "sleep"], 2, &["name"]);
    check(
        &["--cwd", "DIR/none", "sleep", "1"],
        2,
        &["is not a directory"],
    );
    check(
        &["--cwd", "DIR/bin/plain", "sleep", "1"],
        2,
        &["is not a directory"],
    );
    check(
        &["--harness", "none", "sleep", "1"],
        3,
        &["no harness is called 'none'"],
    );
    check(&["--env", "NOVALUE", "sleep", "1"], 2, &["NAME=VALUE"]);
    check(&["--env", "=x", "sleep", "1"], 2, &["NAME=VALUE"]);
    check(
        &[
            "--socket",
            &format!("/tmp/{}", "x".repeat(200)),
            "sleep",
            "1",
        ],
        2,
        &["socket"],
    );
    check(
        &["--socket", "DIR/bin/plain", "sleep", "1"],
        4,
        &["is not a socket"],
    );
    assert_eq!(stage.run("ls --all --json").json(), json!([]));
    assert_eq!(stage.run("ls").ok(), "no sessions are running\n");
    for dir in ["sockets", "sessions", "sessions/.children"] {
        let names = std::fs::read_dir(stage.home().join(dir))
            .into_iter()
            .flatten();
        let names = names.map(|entry| entry.unwrap().file_name());
        let left: Vec<_> = names.filter(|name| name != ".children").collect();
        assert!(left.is_empty(), "{dir}: {left:?}");
    }
    assert_eq!(std::fs::read(plain).unwrap(), b"#!/bin/sh\n");
    stage.until_nothing_runs();
}

#[test]
fn a_path_that_is_not_utf_8_is_refused() {
    let stage = Stage::new();
    let odd = stage.dir().join(OsStr::from_bytes(b"od\xff\x1bd"));
    std::fs::create_dir(&odd).unwrap();
    let run = ["run", "--name", "bot", "--detach"];
    let check = |call: Call, says: &str, hint: &str| {
        let done = call.args(&["sleep", "1000"]).run();
        done.fails(2, says);
        assert!(done.err().contains("od\u{fffd}\u{241b}d"), "{}", done.err());
        assert!(done.err().contains(hint), "{}", done.err());
    };
    let says = "the path of its directory is not UTF-8: ";
    check(
        stage
            .call(&run)
            .args(&[OsStr::new("--cwd"), odd.as_os_str()]),
        says,
        "--cwd",
    );
    check(stage.call(&run).within(&odd), says, "--cwd");
    let home = odd.join("home");
    let says = "the path of the home is not UTF-8: ";
    check(stage.call(&run).env("PH_HOME", &home), says, "PH_HOME");
    let says = "the path of a socket is not UTF-8: ";
    let socket = odd.join("s");
    let call = stage
        .call(&run)
        .args(&[OsStr::new("--socket"), socket.as_os_str()]);
    check(call, says, "--socket");
    assert!(!home.exists() && !stage.home().exists());
    // Sending needs no session.
    let call = |args: &[&str]| stage.call(args).env("PH_HOME", &home).run();
    call(&["send", "bot", "hi"]).ok();
    assert!(call(&["inbox", "bot"]).ok().contains("hi"));
}

#[test]
fn verbs_report_an_agent_that_never_ran() {
    let stage = Stage::new();
    let check = |line: &str, code: i32, says: &str| {
        let done = stage.run(line);
        assert_eq!(done.code, code, "{line}: {}", done.err());
        let said = done.out() + &done.err();
        assert!(said.contains(says), "{line}: {said}");
    };
    for _ in 0..2 {
        check("status nobody", 3, "nobody has never run");
        check("attach nobody", 3, "nobody has never run");
        check("peek nobody", 3, "nobody has never run");
        check("stop nobody", 3, "nobody has never run");
        check("restart nobody", 3, "nobody has never run");
        check("nudge nobody hi", 1, "not nudged: nobody is not running");
        check("nudge nobody ' '", 2, "the text to type is empty");
        // With mail, an agent still counts as never run.
        stage.send("nobody hi");
    }
}

#[test]
fn a_program_gets_its_arguments_directory_and_variables() {
    let stage = Stage::new();
    let elsewhere = stage.dir().join("else where");
    std::fs::create_dir(&elsewhere).unwrap();
    let script = "printf '%s|' \"$@\"; echo; pwd; stty size; \
        echo \"$PH_AGENT $PH_HOME $PH_SOCKET $TERM $COLORTERM\"; \
        echo \"[$A$TMUX$COLUMNS][$B][$EMPTY]\"; cat";
    let done = stage
        .call(&[
            "run",
            "--name",
            "bot",
            "--detach",
            "--cwd",
            "../else where",
            "--env",
            "A=0",
            "--env",
            "A=1=2",
            "--env",
            "EMPTY=",
            "--env",
            "PH_AGENT=other",
            "sh",
            "-c",
            script,
            "sh",
            "--json",
            "--home",
            "/x",
            "--",
            "--detach",
            "-n",
            "--help",
            "'",
            "$(x)",
        ])
        .env("B", "kept")
        .env("TMUX", "/tmp/tmux,1,0")
        .env("COLUMNS", "17")
        .run();
    assert_eq!(done.ok(), "bot is running; 'ph attach bot' shows it\n");
    stage.until_shown("bot", "[1=2][kept][]");
    let socket = path_text(&stage.home().join("sockets/bot.sock"));
    let shown = stage.run("peek bot --lines 500").ok().replace('\n', "");
    let home = path_text(&stage.home());
    let want = format!(
        "--json|--home|/x|--|--detach|-n|--help|'|$(x)|{}24 80bot {home} {socket} \
         xterm-256color truecolor[1=2][kept][]",
        path_text(&elsewhere)
    );
    assert!(shown.starts_with(&want), "{shown}\n{want}");
    // The double dash before a command is not part of the command.
    stage
        .start("dash", &["--name", "x"])
        .fails(2, "no such command: --name");
}

#[test]
fn a_name_has_at_most_one_session() {
    let stage = Stage::new();
    assert_eq!(
        stage.run("run --detach sleep 1000").ok(),
        "sleep is running; 'ph attach sleep' shows it\n"
    );
    let again = stage.run("run --detach sleep 1000");
    again.fails(4, "sleep is already running");
    assert!(again.err().contains("--name"), "{}", again.err());
    stage.run("run --name other --json sleep 1000").json();
    let names = |list: &Value| -> Vec<String> {
        let list = list.as_array().unwrap().iter();
        list.map(|s| s["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let listed = stage.run("ls --json").json();
    assert_eq!(names(&listed), ["other", "sleep"]);
    assert_eq!(stage.run("stop sleep --kill").code, 0);
    assert_eq!(names(&stage.run("ls --json").json()), ["other"]);
    assert_eq!(
        names(&stage.run("ls --all --json").json()),
        ["other", "sleep"]
    );
    stage.run("run --detach sleep 1000").ok();
    assert_eq!(names(&stage.run("ls --json").json()), ["other", "sleep"]);
}

#[test]
fn a_probe_of_the_lock_does_not_block_a_start() {
    let stage = Stage::new();
    stage.script("bot", SLEEP);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let lock = stage.home().join("sessions/bot/lock");
    std::thread::scope(|scope| {
        // A probe holds a lock briefly; it is not the session's.
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                let file = std::fs::File::open(&lock).unwrap();
                let _ = file.try_lock_shared();
            }
        });
        let ran: Vec<Done> = (0..20)
            .map(|_| {
                stage.run("stop bot --kill");
                stage.start("bot", &["sleep", "1000"])
            })
            .collect();
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        for done in ran {
            done.ok();
        }
    });
}

#[test]
fn without_a_terminal_a_session_runs_in_the_background() {
    let stage = Stage::new();
    let done = stage.run("run --name bot sleep 1000");
    assert_eq!(done.out(), "bot is running; 'ph attach bot' shows it\n");
    assert!(
        done.err().contains("this is not a terminal"),
        "{}",
        done.err()
    );
    let session = stage.run("run --name json --json sleep 1000");
    assert_eq!(session.err(), "");
    let session = session.json();
    let pid = session["pid"].as_i64().unwrap();
    assert!(is_alive(i32::try_from(pid).unwrap()));
    let mut known = session.clone();
    for changing in ["pid", "child_pid", "since", "started_at"] {
        assert!(!known[changing].is_null(), "{changing}");
        known[changing] = json!("…");
    }
    let want = json!({
        "name": "json", "activity": "starting", "blocked_on": null, "since": "…",
        "evidence": "it was started and has written nothing yet", "pid": "…", "child_pid": "…",
        "socket": path_text(&stage.home().join("sockets/json.sock")),
        "command": ["sleep", "1000"], "cwd": path_text(&stage.user()), "harness": "generic",
        "started_at": "…", "unread": 0, "queued": 0, "paused": null, "ended_at": null, "exit": null,
    });
    assert_eq!(known, want);
    let listed = stage.run("ls --json").json();
    assert_eq!(listed[1], session);
}

#[test]
fn a_session_listens_on_its_sockets() {
    let stage = Stage::new();
    let runtime = stage.dir().join("run");
    let long = stage.dir().join("long-".repeat(30)).join("home");
    let more = stage.dir().join("more/bot.sock");
    for dir in [&runtime, &stage.dir().join("more")] {
        std::fs::create_dir(dir).unwrap();
        std::fs::set_permissions(dir, Permissions::from_mode(0o700)).unwrap();
    }
    // A socket file of a process that has exited.
    drop(UnixListener::bind(&more).unwrap());
    let call = |home: &Path, args: &[&str]| {
        let call = stage.call(args).env("PH_HOME", home);
        call.env("XDG_RUNTIME_DIR", &runtime).run()
    };
    let run = [
        "run",
        "--name",
        "bot",
        "--json",
        "--socket",
        &path_text(&more),
        "cat",
    ];
    let session = call(&stage.home(), &run).json();
    let own = PathBuf::from(session["socket"].as_str().unwrap());
    assert!(own.starts_with(runtime.join("posthaste")), "{session}");
    let (_, far) = (
        call(&long, &["run", "--name", "far", "--detach", "cat"]).ok(),
        call(&long, &["status", "far", "--json"]).json(),
    );
    let short = stage
        .call(&["run", "--name", "near", "--json", "cat"])
        .env("PH_HOME", &long)
        .env("TMPDIR", stage.dir())
        .run()
        .json();
    let sockets = [&session, &far, &short].map(|s| PathBuf::from(s["socket"].as_str().unwrap()));
    assert!(sockets[2].as_os_str().len() <= 103, "{short}");
    for path in sockets.iter().chain([&more]) {
        let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(
            (mode(path), mode(path.parent().unwrap())),
            (0o600, 0o700),
            "{path:?}"
        );
    }
    let mut stream = UnixStream::connect(&more).unwrap();
    stream.write_all(b"{\"type\":\"status\"}\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"name\":\"bot\""), "{answer}");
    let other = [
        "run",
        "--name",
        "other",
        "--socket",
        &path_text(&more),
        "cat",
    ];
    call(&stage.home(), &other).fails(4, "another process listens");
    call(&stage.home(), &["stop", "bot", "--kill"]).ok();
    for name in ["far", "near"] {
        call(&long, &["stop", name, "--kill"]).ok();
    }
    for path in sockets.iter().chain([&more]) {
        assert!(!path.exists(), "{path:?}");
    }
    // A stray file is ignored.
    std::fs::write(stage.home().join("sessions/junk"), "").unwrap();
    assert_eq!(stage.run("ls").ok(), "no sessions are running\n");
    stage.run("status junk").fails(3, "junk has never run");
}

#[test]
fn the_end_of_a_program_is_reported() {
    let stage = Stage::new();
    let check = |name: &str, script: &str, want: &str| {
        stage.script(name, script);
        until_so(name, || stage.status(name)["activity"] == "exited");
        let status = stage.status(name);
        assert_eq!(status["exit"], want, "{status}");
        assert_eq!(status["evidence"], "its end is in the journal");
        assert!(
            status["pid"].is_null() && status["socket"].is_null(),
            "{status}"
        );
        assert!(!status["ended_at"].is_null());
        assert_eq!(stage.run(&format!("attach {name}")).code, 4);
        let nudged = stage.run(&format!("nudge {name} hi"));
        assert_eq!(
            (nudged.code, nudged.out()),
            (1, format!("not nudged: {name} is not running\n"))
        );
    };
    check("ok", "exit 0", "exit 0");
    check("no", "exit 7", "exit 7");
    check("killed", "kill -9 $$", "signal 9 (KILL)");
    check("broken", "kill -SEGV $$", "signal 11 (SEGV)");
    // A program that exits at once still counts as started.
    for _ in 0..5 {
        let done = stage.run("run --name quick --json true");
        assert_eq!(
            (done.code, done.json()["name"].as_str()),
            (0, Some("quick"))
        );
        until_so("its end", || stage.run("ls --json").json() == json!([]));
    }
    assert_eq!(stage.run("stop ok").ok(), "ok is not running\n");
    assert_eq!(stage.run("stop ok --json").json()["exit"], "exit 0");
    assert_eq!(stage.run("ls").ok(), "no sessions are running\n");
    let shown = stage.run("ls --all").ok();
    for row in ["exited: exit 7", "exited: signal 9 (KILL)", "NAME"] {
        assert!(shown.contains(row), "{shown}");
    }
    stage.until_nothing_runs();
}

#[test]
fn a_session_outlives_its_window() {
    let stage = Stage::new();
    let mut window = stage.terminal("run --name bot -- sh -c 'echo here; cat'", Size::USUAL);
    window.wait_for_text("here");
    let (pid, child) = (stage.pid("bot"), stage.child("bot"));
    window.hang_up();
    // Signals to the window's process group do not reach the session.
    let mut window = stage.terminal("attach bot", Size::USUAL);
    window.wait_for_text("here");
    window.signal(Signal::KILL);
    window.wait_exit();
    assert_eq!((stage.pid("bot"), stage.child("bot")), (pid, child));
    kill(pid, Signal::HUP);
    stage.run("nudge bot x");
    assert_eq!(stage.pid("bot"), pid);
    // SIGTERM ends the session normally.
    kill(pid, Signal::TERM);
    until_so("its end", || stage.status("bot")["activity"] == "exited");
    until_dead(child);
}

/// Replace values that change from run to run: process ids and ages.
fn steady(stage: &Stage, text: &str, pids: &[i32]) -> String {
    let mut text = stage.redact(text);
    for pid in pids {
        text = text.replace(&pid.to_string(), "[pid]");
    }
    let word = |word: &str| match word.strip_suffix('s').map(str::parse::<u32>) {
        Some(Ok(_)) => "[age]".to_owned(),
        Some(Err(_)) | None => word.to_owned(),
    };
    let line = |line: &str| {
        line.split_whitespace()
            .map(word)
            .collect::<Vec<_>>()
            .join(" ")
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn ls_and_status_describe_sessions() {
    let stage = Stage::new();
    stage.script("bot", "echo hello; exec sleep 1000");
    stage.send("later hi");
    stage.until_activity("bot", "idle");
    let pids = [stage.pid("bot"), stage.child("bot")];
    let said = |line: &str| steady(&stage, &stage.transcript(&[line]), &pids);
    insta::assert_snapshot!(said("ls"), @r"
    $ ph ls
    NAME ACTIVITY FOR UNREAD QUEUED COMMAND
    bot idle [age] 0 0 /bin/sh -c echo hello; exec sleep 1000
    ");
    insta::assert_snapshot!(said("status bot"), @r"
    $ ph status bot
    session bot
    activity idle
    since [time]
    evidence no output for 2 s
    unread 0
    queued 0
    command /bin/sh -c echo hello; exec sleep 1000
    directory [dir]/user
    harness generic
    started [time]
    processes [pid], its command [pid]
    socket [home]/sockets/bot.sock
    ");
    insta::assert_snapshot!(said("nudge bot hi"), @"$ ph nudge bot hi");
    insta::assert_snapshot!(said("stop bot"), @r"
    $ ph stop bot
    bot has ended: signal 1 (HUP)
    ");
    insta::assert_snapshot!(said("stop bot"), @"
    $ ph stop bot
    bot is not running
    ");
    insta::assert_snapshot!(said("status bot"), @r"
    $ ph status bot
    session bot
    activity exited: signal 1 (HUP)
    since [time]
    evidence its end is in the journal
    unread 0
    queued 0
    command /bin/sh -c echo hello; exec sleep 1000
    directory [dir]/user
    harness generic
    started [time]
    ");
    insta::assert_snapshot!(said("ls --all"), @r"
    $ ph ls --all
    NAME ACTIVITY FOR UNREAD QUEUED COMMAND
    bot exited: signal 1 (HUP) [age] 0 0 /bin/sh -c echo hello; exec sleep 1000
    ");
    insta::assert_snapshot!(said("attach bot"), @"
    $ ph attach bot
    ! error: no session of bot is running
    ! hint: 'ph peek bot' shows its last screen; 'ph restart bot' starts it again
    [exit 4]
    ");
}
