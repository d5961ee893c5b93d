//! Sessions that hang or have lost their sockets: other commands do not hang, the sessions can be
//! stopped, and they recover if possible.

#![cfg(target_os = "linux")] // Reads processes from /proc.

use crate::common::stage::{Stage, is_alive, kill, until, until_dead, until_so, wait_for_number};
use crate::common::{Call, Done, path_text, raise_open_file_limit};
use posthaste_lab::pty::Size;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

fn socket(stage: &Stage, name: &str) -> PathBuf {
    stage.home().join("sockets").join(format!("{name}.sock"))
}

/// Run a command. Panic if it hangs.
fn in_time(call: Call) -> Done {
    let mut child = call.spawn();
    let ended = || child.try_wait().expect("it can be waited for");
    until("an answer", ended);
    Done::of(child)
}

/// Connect until the listen backlog is full.
fn fill(socket: &Path) -> Vec<OwnedFd> {
    raise_open_file_limit(0);
    let address = SocketAddrUnix::new(socket).expect("a short path");
    let mut waiting = Vec::new();
    loop {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let fd = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
            .expect("one more");
        match rustix::net::connect(&fd, &address) {
            Ok(()) => waiting.push(fd),
            Err(Errno::AGAIN) => return waiting,
            Err(error) => panic!("after {}: {error}", waiting.len()),
        }
    }
}

fn is_socket(path: &Path) -> bool {
    path.symlink_metadata()
        .is_ok_and(|meta| meta.file_type().is_socket())
}

/// Commands on a hanging session fail within the timeout of `status`.
#[test]
fn a_hanging_session_is_reported_soon() {
    const SOON: Duration = Duration::from_secs(4);
    let stage = Stage::new();
    stage.script(
        "bot",
        "trap 'exit 5' TERM HUP; echo up; while :; do sleep 0.1; done",
    );
    stage.until_shown("bot", "up");
    stage.run("pause bot").ok();
    let id = stage.send("bot later");
    kill(stage.pid("bot"), Signal::STOP);
    let why = format!("why {}", id.trim());
    let asked: [(&str, i32, &str); 7] = [
        ("peek bot", 5, "bot: the session does not respond"),
        (
            "nudge bot hi",
            1,
            "not nudged: the session does not respond",
        ),
        ("send bot --raw y", 5, "the session of bot does not answer"),
        (
            "pause bot",
            5,
            "hint: 'ph status bot' shows whether it is paused; 'ph stop bot' ends it",
        ),
        ("checkpoint bot", 5, "the session does not respond"),
        (&why, 0, "runs and does not respond"),
        ("stop bot", 0, "stopping it by signals"),
    ];
    for (line, code, says) in asked {
        let begun = Instant::now();
        let done = in_time(stage.call(&stage.words(line)));
        let told = format!("{}{}", done.out(), done.err());
        assert_eq!(done.code, code, "{line}: {told}");
        assert!(told.contains(says), "{line}: {told}");
        assert!(begun.elapsed() < SOON, "{line}: {:?}", begun.elapsed());
    }
}

#[test]
fn a_stopped_session_delays_no_command() {
    let stage = Stage::new();
    stage.script(
        "bot",
        "trap 'exit 5' TERM HUP; echo up; while :; do sleep 0.1; done",
    );
    stage.until_shown("bot", "up");
    stage.rpc("bot", "pause", &json!({}));
    stage.send("bot first");
    let (pid, child) = (stage.pid("bot"), stage.child("bot"));
    kill(pid, Signal::STOP);
    let waiting = fill(&socket(&stage, "bot"));
    let run = |line: &str| in_time(stage.call(&stage.words(line)));

    let sent = run("send bot second").ok();
    assert_eq!(stage.receipt(sent.trim()), "stored");
    let status = run("status bot --json").json();
    assert_eq!(run("ls --json").json()[0]["activity"], "blocked");
    let known = |name: &str| status[name].clone();
    let evidence = "its lock is held, but it did not respond; the program's activity is unknown";
    assert_eq!(
        (known("activity"), known("blocked_on"), known("evidence")),
        (
            json!("blocked"),
            json!("the session does not respond"),
            json!(evidence)
        )
    );
    assert_eq!(
        (known("pid"), known("child_pid")),
        (json!(pid), json!(child))
    );
    assert_eq!((known("unread"), known("queued")), (json!(2), json!(2)));
    let says = "blocked: the session does not respond";
    for line in ["ls", "status bot"] {
        let shown = run(line).ok();
        assert!(shown.contains(says), "{shown}");
    }
    let nudged = run("nudge bot hi");
    assert_eq!(
        (nudged.code, nudged.out().as_str()),
        (1, "not nudged: the session does not respond\n")
    );
    let peeked = run("peek bot");
    peeked.fails(5, "bot: the session does not respond");
    peeked.fails(5, "hint: 'ph replay bot'");
    run("run --name bot --detach sleep 1000").fails(4, "bot is already running");
    // A socket of another session is not replaced, even if that session does not respond.
    let path = path_text(&socket(&stage, "bot"));
    run(&format!(
        "run --name other --socket {path} --detach sleep 1000"
    ))
    .fails(4, "another process listens on it and does not respond");
    assert!(is_socket(path.as_ref()));
    let mut terminal = stage.terminal("attach bot", Size::USUAL);
    terminal.wait_for_text("the session of bot does not answer");
    terminal.wait_exit();

    let stopped = run("stop bot");
    assert_eq!(
        (stopped.code, stopped.out().as_str()),
        (0, "bot has ended: exit 5\n")
    );
    [pid, child].into_iter().for_each(until_dead);
    drop(waiting);
}

/// The session accepts requests and sends no reply.
#[test]
fn commands_do_not_wait_for_a_hanging_session() {
    let stage = Stage::new();
    stage.script("bot", "echo up; while :; do sleep 0.1; done");
    stage.until_shown("bot", "up");
    let pid = stage.pid("bot");
    kill(pid, Signal::STOP);
    let within = |line: &str, most: Duration| {
        let begun = Instant::now();
        let done = in_time(stage.call(&stage.words(line)));
        let took = begun.elapsed();
        assert!(took < most, "{line}: {took:?}");
        done
    };
    let shown = within("status bot", Duration::from_secs(8)).ok();
    assert!(shown.contains("the session does not respond"), "{shown}");
    let answered = within("send bot --raw y", Duration::from_secs(12));
    answered.fails(5, "the session of bot does not answer");
    let hint = "hint: nothing was stored; 'ph status bot' shows more, 'ph stop bot' ends it";
    assert!(answered.err().contains(hint), "{}", answered.err());
    kill(pid, Signal::CONT);
    stage.run("stop bot").ok();
}

#[test]
fn an_unreachable_session_can_be_stopped() {
    let stage = Stage::new();
    let grandchild = stage.dir().join("grandchild");
    let script = format!(
        "trap '' HUP TERM; sh -c 'echo $$ > {}; sleep 1000; sleep 1000' & \
         echo up; while :; do sleep 0.1; done",
        path_text(&grandchild)
    );
    let begin = || {
        let _ = std::fs::remove_file(&grandchild);
        let done = stage.start("bot", &["/bin/sh", "-c", &script]);
        assert_eq!(done.code, 0, "{}", done.err());
        stage.until_shown("bot", "up");
        let all = [
            stage.pid("bot"),
            stage.child("bot"),
            wait_for_number(&grandchild),
        ];
        kill(all[0], Signal::STOP);
        std::fs::remove_file(socket(&stage, "bot")).unwrap();
        all
    };
    // A session that still handles a signal ends normally.
    let all = begin();
    let done = in_time(stage.call(&["stop", "--kill", "bot"]));
    assert_eq!(done.ok(), "bot has ended: signal 9 (KILL)\n");
    all.into_iter().for_each(until_dead);
    // A session that does nothing any more is killed. If this program is delayed, the session may
    // end normally between two stops.
    until_so("a session without a last word", || {
        let all = begin();
        let done = std::thread::scope(|scope| {
            scope.spawn(|| {
                while is_alive(all[0]) {
                    kill(all[0], Signal::STOP);
                }
            });
            in_time(stage.call(&["stop", "--kill", "bot"]))
        });
        all.into_iter().for_each(until_dead);
        let said = done.ok();
        assert!(
            said == "bot has ended: crashed\n" || said.contains("KILL"),
            "{said}"
        );
        said.contains("crashed")
    });
    let again = stage.start("bot", &["sleep", "1000"]);
    assert_eq!(again.code, 0, "{}", again.err());
}

#[test]
fn a_removed_socket_is_created_again() {
    let stage = Stage::new();
    let more = [
        stage.dir().join("more/one.sock"),
        stage.dir().join("two.sock"),
    ];
    let [one, two] = more.each_ref().map(|path| path_text(path));
    let run = [
        "run", "--name", "bot", "--detach", "--socket", &one, "--socket", &two, "cat",
    ];
    stage.call(&run).run().ok();
    let own = socket(&stage, "bot");
    let answers = |path: &Path| {
        let Ok(mut stream) = UnixStream::connect(path) else {
            return false;
        };
        stream.write_all(b"{\"type\":\"status\"}\n").unwrap();
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).unwrap();
        answer.contains("\"name\":\"bot\"")
    };
    let all = [&own, &more[0], &more[1]];
    assert!(all.iter().all(|path| answers(path)));
    for dir in [own.parent().unwrap(), more[0].parent().unwrap()] {
        std::fs::remove_dir_all(dir).unwrap();
    }
    // A socket of another process is kept.
    std::fs::remove_file(&more[1]).unwrap();
    let other = UnixListener::bind(&more[1]).unwrap();
    for path in [&own, &more[0]] {
        until_so("the socket", || answers(path));
    }
    assert!(is_socket(&more[1]));
    other.set_nonblocking(true).unwrap();
    drop(UnixStream::connect(&more[1]).unwrap());
    assert!(other.accept().is_ok());
    // A file in the place of its own socket is replaced.
    std::fs::remove_file(&own).unwrap();
    std::fs::write(&own, "").unwrap();
    until_so("the socket", || answers(&own));
    drop(other);
    std::fs::remove_file(&more[1]).unwrap();
    until_so("the socket", || answers(&more[1]));
    stage.run("stop bot --kill").ok();
    for path in all {
        assert!(!path.exists(), "{path:?}");
    }
}

#[test]
fn a_message_stored_by_a_slow_session_is_not_stored_twice() {
    let stage = Stage::new();
    stage.script("bot", "echo up; cat");
    stage.until_shown("bot", "up");
    // A proxy in front of the session: forwards requests, and delays replies for a long time.
    let own = socket(&stage, "bot");
    let slow = stage.dir().join("slow.sock");
    let listener = UnixListener::bind(&slow).unwrap();
    let record = stage.home().join("sessions/bot/run.json");
    let mut text: Value = serde_json::from_slice(&std::fs::read(&record).unwrap()).unwrap();
    text["socket"] = json!(path_text(&slow));
    std::fs::write(&record, text.to_string()).unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming() {
            let stream = stream.unwrap();
            let mut question = String::new();
            let mut reader = BufReader::new(stream);
            reader.read_line(&mut question).unwrap();
            let mut session = UnixStream::connect(&own).unwrap();
            session.write_all(question.as_bytes()).unwrap();
            BufReader::new(session)
                .read_line(&mut String::new())
                .unwrap();
            kept.push(reader);
        }
    });
    let check = |args: &str, note: &str| {
        let done = stage.run(&format!("send bot {args}"));
        assert_eq!((done.code, done.err().as_str()), (0, note), "{args}");
        done.out()
    };
    check("hello", "");
    let first = check("--key k hello", "");
    let note = "note: a message with this key was sent to bot already; nothing new was stored\n";
    assert_eq!(check("--key k hello", note), first);
    let count = stage.run("count bot --json").json();
    assert_eq!(count["total"], 2);
}

/// A refused request is not carried out later, and the errors about a hanging session are correct.
#[test]
fn an_expired_request_is_not_typed_after_a_hang() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    stage.run("pause bot").ok();
    let held = stage.send("bot before");
    stage.run("unpause bot").ok();
    stage.until_receipt(&held, "offered");
    stage.run("pause bot").ok();
    let held = stage.send("bot held");
    let pid = stage.pid("bot");
    kill(pid, Signal::STOP);
    let spawn = |line: &str| stage.call(&stage.words(line)).spawn();
    let (nudge, answer) = (
        spawn("nudge bot forget-me"),
        spawn("send bot --raw not-this"),
    );
    let (pause, why) = (spawn("pause bot"), spawn(&format!("why {held} --json")));

    let paused = Done::of(pause);
    paused.fails(5, "bot: the session does not respond");
    assert!(
        paused
            .err()
            .contains("hint: 'ph status bot' shows whether it is paused; 'ph stop bot' ends it"),
        "{}",
        paused.err()
    );
    let nudged = Done::of(nudge);
    assert_eq!(
        (nudged.code, nudged.out().as_str()),
        (1, "not nudged: the session does not respond\n")
    );
    let why = Done::of(why).json();
    let said = |name: &str| why[name].as_str().unwrap_or("").to_owned();
    assert_eq!(said("rule"), "silent-session");
    assert_eq!(
        said("reason"),
        "the session of bot runs and does not respond"
    );
    assert!(said("release").contains("'ph restart bot'"), "{why}");
    let answered = Done::of(answer);
    answered.fails(5, "the session of bot does not answer");

    kill(pid, Signal::CONT);
    stage.run("unpause bot").ok();
    stage.until_receipt(&held, "offered");
    let last = stage.send("bot the-last");
    stage.until_receipt(&last, "offered");
    agent.until_heard("the-last\r");
    let heard = agent.heard_text();
    assert!(!heard.contains("forget-me"), "{heard}");
    assert!(!heard.contains("not-this"), "{heard}");
}

/// The age of a request counts from its sending, not from its arrival.
#[test]
fn an_old_request_is_not_typed() {
    let stage = Stage::new();
    let agent = stage.agent("bot", "--raw");
    stage.until_activity("bot", "idle");
    let long_ago = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(60);
    let nudge = json!({"text": "too-late", "asked_at": long_ago});
    let reason = "it was requested too long ago, and its sender has given up";
    assert_eq!(
        stage.rpc("bot", "nudge", &nudge),
        json!({"status": "held", "reason": reason})
    );
    let raw = json!({"body": "too-late", "raw": true, "asked_at": long_ago});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "send", "params": raw});
    let refused = stage.ask("bot", &call);
    assert_eq!(refused["error"]["message"], format!("bot: {reason}"));
    // Mail has no such limit: it waits as long as necessary.
    let mail = json!({"body": "in-time", "asked_at": long_ago});
    stage.rpc("bot", "send", &mail);
    agent.until_heard("in-time\r");
    assert!(!agent.heard_text().contains("too-late"));
    let fresh = jiff::Timestamp::now() - jiff::SignedDuration::from_secs(1);
    let raw = json!({"body": "just-now", "raw": true, "asked_at": fresh});
    let sent = stage.rpc("bot", "send", &raw);
    assert_eq!(sent["created_at"], json!(fresh));
    agent.until_heard("just-now\r");
}
