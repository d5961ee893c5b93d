//! Misbehaving clients and crowds of clients delay nobody but themselves; other users cannot
//! connect.

#![cfg(target_os = "linux")] // Reads memory and users as on Linux.

use crate::common::session::{BOT, KillOnDrop, Session, Viewer, Wire, run};
use crate::common::{Ph, path_text, raise_open_file_limit, skip, wait_for};
use posthaste_wire::frames;
use rustix::process::{Pid, Resource, Rlimit, Uid};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::io::{BufRead, BufReader, ErrorKind, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const ECHO: &str = "echo ready; exec cat";
const SHELL: [&str; 3] = ["/bin/sh", "-c", ECHO];
const STATUS: &str = r#"{"jsonrpc":"2.0","id":1,"method":"get_status"}"#;

/// Check that the session answers, and that its terminal accepts and shows keys.
fn assert_healthy(session: &Session) {
    assert_eq!(session.ask("get_status", json!({}))["status"], "running");
    let mut viewer = Viewer::attach(&session.socket, 80, 24);
    viewer.keys(b"well\n");
    viewer.wait_for("well");
    viewer.leave();
}

/// Write until writing would block. Return the number of bytes.
fn write_until_full(stream: &UnixStream, bytes: &[u8]) -> usize {
    stream.set_nonblocking(true).expect("a socket");
    let mut poured = 0;
    while poured < bytes.len() {
        match (&*stream).write(&bytes[poured..]) {
            Ok(count) => poured += count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    poured
}

#[test]
fn an_incomplete_line_is_not_processed() {
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let (head, tail) = STATUS.split_at(20);
    let mut halves: Vec<Wire> = (0..20).map(|_| session.wire()).collect();
    for wire in &mut halves {
        wire.send_bytes(head);
    }
    let mut begun = session.wire();
    begun.send_bytes(r#"{"type":"sta"#);
    assert_healthy(&session);
    for wire in &mut halves {
        wire.send_line(tail);
        assert_eq!(wire.json()["result"]["task_name"], BOT);
    }
    begun.send_line(r#"tus"}"#);
    assert_eq!(begun.json()["ok"], true);
    // A client that exits in the middle of a line leaves nothing.
    session
        .wire()
        .send_bytes(r#"{"jsonrpc":"2.0","id":1,"method":"stop""#);
    assert_healthy(&session);
}

#[test]
fn invalid_input_gets_an_error_or_ends_the_connection() {
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |length: usize| -> Vec<u8> {
        let next = |_| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed.to_le_bytes()[3]
        };
        (0..length).map(next).collect()
    };
    for length in [1, 10, 1_000, 100_000] {
        let mut wire = session.wire();
        let mut rubbish = random(length);
        rubbish.extend(b"\n");
        wire.send_bytes(&rubbish);
        wire.close_write();
        let lines = wire.wait_closed();
        assert!(
            lines.iter().all(|reply| reply["error"]["code"].is_i64()),
            "{lines:?}"
        );
        // Send random bytes as an attached terminal.
        let mut viewer = Viewer::attach(&session.socket, 80, 24);
        let mut rubbish = random(length);
        // An unknown frame type, so that the program gets nothing.
        rubbish[0] = 0xff;
        viewer.stream.write_all(&rubbish).expect("a session");
        viewer.leave();
    }
    assert_healthy(&session);
}

#[test]
fn silent_connections_do_not_block_requests() {
    if !raise_open_file_limit(6_000) {
        return skip("there may not be some thousand open files");
    }
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    // More than the listen backlog, at once.
    let mut crowd: Vec<Wire> = (0..3_000).map(|_| session.wire()).collect();
    crowd[1].send_bytes("{\"jsonrpc\"");
    assert_eq!(session.ask("get_status", json!({}))["task_name"], BOT);
    // Connections beyond the limit get the short timeout and an error.
    let mut last = crowd.pop().expect("a connection");
    let told = last.json();
    let why = told["error"]["message"].as_str().expect("a reason");
    assert!(why.contains("no request arrived in time"), "{told}");
    assert_eq!(last.next_line(), None);
    // The first connections still have the full timeout.
    crowd[0].send_line(STATUS);
    assert_eq!(crowd[0].json()["result"]["task_name"], BOT);
}

#[test]
fn silent_connections_make_room_if_no_descriptor_is_free() {
    if !raise_open_file_limit(2_000) {
        return skip("there may not be a thousand open files");
    }
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let few = Rlimit {
        current: Some(256),
        maximum: Some(256),
    };
    let pid = i32::try_from(session.pid).ok().and_then(Pid::from_raw);
    rustix::process::prlimit(pid, Resource::Nofile, few).expect("a limit");
    let mut crowd: Vec<Wire> = (0..1_000).map(|_| session.wire()).collect();
    assert_eq!(session.ask("get_status", json!({}))["task_name"], BOT);
    // The oldest are closed first.
    for wire in &mut crowd[..500] {
        let told = wire.json();
        let why = told["error"]["message"].as_str().expect("a reason");
        assert!(why.contains("too many connections are silent"), "{told}");
        assert_eq!(wire.next_line(), None);
    }
    crowd[999].send_line(STATUS);
    assert_eq!(crowd[999].json()["result"]["task_name"], BOT);
    drop(crowd);
    assert_healthy(&session);
}

#[test]
fn a_thousand_simultaneous_connections_are_answered() {
    if !raise_open_file_limit(6_000) {
        return skip("there may not be a thousand open files");
    }
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let before = session.memory();
    let mut crowd: Vec<Wire> = (0..1_000).map(|_| session.wire()).collect();
    for wire in &mut crowd {
        wire.send_line(STATUS);
    }
    for wire in &mut crowd {
        assert_eq!(wire.json()["result"]["task_name"], BOT);
    }
    for wire in &mut crowd {
        wire.send_bytes(
            r#"{"jsonrpc":"2.0","id":2,"method":"subscribe","params":{"events":["message"]}}"#,
        );
        wire.send_line("");
    }
    for wire in &mut crowd {
        assert_eq!(wire.json()["id"], 2);
    }
    // Each connection gets the event of a message.
    let id = session.ph.send("bot --from alice --in 1h hello");
    for wire in &mut crowd {
        let told = wire.wait_for_event("message", "receipt");
        assert_eq!(
            (&told["id"], &told["receipt"]),
            (&json!(id), &json!("stored"))
        );
    }
    let grown = session.memory().saturating_sub(before);
    assert!(grown < 64 << 10, "it has grown by {grown} KiB");
    drop(crowd);
    assert_healthy(&session);
}

#[test]
fn a_viewer_that_stops_reading_delays_nobody_and_is_redrawn() {
    let session = Session::sh(
        "stty -echo; echo ready; while read x; do \
         seq -f \"$x %.0f xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" 1 100000; \
         echo over $x; done",
    );
    session.wait_for_text("ready");
    let mut reads = Viewer::attach(&session.socket, 80, 24);
    reads.keys(b"first\n");
    reads.wait_for("over first");
    reads.output.clear();
    let before = session.memory();
    let mut stuck = Viewer::attach(&session.socket, 80, 24);
    // A viewer of another size gets redraws instead of output; it can fall behind, too.
    let mut painted = Viewer::attach(&session.socket, 100, 30);
    let mut deaf = session.wire();
    deaf.subscribe(&["*"]);
    reads.keys(b"second\n");
    reads.wait_for("over second");
    session.ph.run("peek bot").ok();
    let grown = session.memory().saturating_sub(before);
    assert!(grown < 16 << 10, "it has grown by {grown} KiB");
    let shown = session.ph.run("peek bot").ok();
    assert!(shown.contains("over second"), "{shown}");
    // Most output was dropped for them, but they show the final screen.
    for viewer in [&mut stuck, &mut painted] {
        viewer.wait_for("over second");
        assert!(viewer.output.len() < 4 << 20, "{}", viewer.output.len());
    }
}

#[test]
fn endless_frames_of_one_client_delay_no_other() {
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let viewer = Viewer::attach(&session.socket, 80, 24);
    // The frames request nothing, so the session never has to wait.
    let frames = frames::encode(frames::CONTROL, b"{}").repeat(20_000);
    check_others_are_answered(&session, &viewer.stream, frames);
}

#[test]
fn endless_empty_lines_of_one_client_delay_no_other() {
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let wire = session.wire();
    check_others_are_answered(&session, &wire.stream, vec![b'\n'; 200_000]);
}

/// Check that other clients are answered while one sends this endlessly.
fn check_others_are_answered(session: &Session, stream: &UnixStream, flood: Vec<u8>) {
    let mut flooded = stream.try_clone().expect("a socket");
    let taken = Arc::new(AtomicUsize::new(0));
    let counted = taken.clone();
    let flood = std::thread::spawn(move || {
        while flooded.write_all(&flood).is_ok() {
            counted.fetch_add(flood.len(), Ordering::Relaxed);
        }
    });
    wait_for("a flood", || {
        (taken.load(Ordering::Relaxed) > 0).then_some(())
    });
    let before = taken.load(Ordering::Relaxed);
    for _ in 0..3 {
        assert_healthy(session);
    }
    // Count the bytes that were read before the others were answered, not the time.
    let taken = taken.load(Ordering::Relaxed) - before;
    assert!(
        taken < 16 << 20,
        "{taken} bytes were heard before the others"
    );
    stream.shutdown(Shutdown::Both).expect("a socket");
    flood.join().expect("it ends with its connection");
}

#[test]
fn a_lagging_subscriber_is_told_how_much_it_missed() {
    let session = Session::sh("echo ready; read go; seq 100000; echo over; exec cat");
    session.wait_for_text("ready");
    let mut viewer = Viewer::attach(&session.socket, 80, 24);
    let mut listeners: Vec<Wire> = (0..3).map(|_| session.wire()).collect();
    for wire in &mut listeners {
        wire.subscribe(&["output"]);
    }
    // The session cannot open any more descriptors.
    let open = std::fs::read_dir(format!("/proc/{}/fd", session.pid)).expect("a process");
    let most = Some(open.count() as u64);
    let none_left = Rlimit {
        current: most,
        maximum: most,
    };
    let pid = i32::try_from(session.pid).ok().and_then(Pid::from_raw);
    rustix::process::prlimit(pid, Resource::Nofile, none_left).expect("a limit");
    // The viewer does not wait for the subscribers, so they lag.
    viewer.keys(b"go\n");
    viewer.wait_for("over");
    for wire in &mut listeners {
        let missed = wire.wait_for_event("lagged", "missed");
        assert!(missed["missed"].as_u64() > Some(0), "{missed}");
    }
    viewer.keys(b"still here\n");
    for wire in &mut listeners {
        wire.lines_until("still here");
    }
}

#[test]
fn a_client_that_reads_no_replies_delays_no_other() {
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let before = session.memory();
    let questions = format!("{STATUS}\n").repeat(20_000);
    let crowd: Vec<Wire> = (0..10).map(|_| session.wire()).collect();
    for wire in &crowd {
        write_until_full(&wire.stream, questions.as_bytes());
    }
    assert_healthy(&session);
    let grown = session.memory().saturating_sub(before);
    assert!(grown < 48 << 10, "it has grown by {grown} KiB");
    // A client that starts to read gets every reply.
    let mut late = crowd.into_iter().next().expect("one of them");
    late.stream.set_nonblocking(false).expect("a socket");
    for _ in 0..1_000 {
        assert_eq!(late.json()["id"], 1);
    }
}

#[test]
fn the_buffers_of_all_connections_have_a_common_limit() {
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let before = session.memory();
    let piece = vec![b'x'; 9 << 20];
    let mut wires: Vec<Wire> = (0..12).map(|_| session.wire()).collect();
    let mut refused = 0;
    for wire in &mut wires {
        // A client without room gets an error and is disconnected while it still writes.
        match wire.stream.write_all(&piece) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::BrokenPipe => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!((1..=6).contains(&refused), "{refused}");
    let said = wires.last_mut().expect("the last").wait_closed();
    assert!(
        said[0]
            .to_string()
            .contains("buffers of this session are full"),
        "{said:?}"
    );
    let grown = session.memory().saturating_sub(before);
    assert!(grown < 160 << 10, "it has grown by {grown} KiB");
    assert_healthy(&session);
    // Attached terminals share the limit.
    let mut viewer = Viewer::attach(&session.socket, 80, 24);
    let header = [0, 0, 0x9f, 0xff, 0xff];
    viewer.stream.write_all(&header).expect("a session");
    let _ = viewer.stream.write_all(&piece);
    while viewer.next_frame() {}
    // When the connections close, there is room again.
    drop(wires);
    wait_for("room", || {
        let mut wire = session.wire();
        wire.stream.write_all(&piece).ok()?;
        wire.stream.write_all(b"\n").ok()?;
        let reply = wire.next_line()?;
        reply.contains("Parse error").then_some(())
    });
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path)
        .expect("it is there")
        .permissions()
        .mode()
        & 0o7777
}

#[test]
fn sockets_are_private_to_the_user() {
    let ph = Ph::new();
    let extra = ph.user().join(".local/share/ralph/sockets/bot.sock");
    let session = Session::start(ph, &["--socket", &path_text(&extra)], &SHELL);
    for socket in [&session.socket, &extra] {
        assert_eq!(mode(socket), 0o600, "{}", socket.display());
        let dir = socket.parent().expect("a directory");
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
    }
    let runtime = session.ph.dir().join("run");
    std::fs::create_dir(&runtime).expect("a new directory");
    std::fs::set_permissions(&runtime, Permissions::from_mode(0o700)).expect("ours");
    let other = run(&session.ph, "other", &[], &SHELL).env("XDG_RUNTIME_DIR", &runtime);
    let done = other.run();
    let _ends = KillOnDrop::processes_of(&done);
    let socket = PathBuf::from(done.json()["socket"].as_str().expect("a socket"));
    assert!(
        socket.starts_with(runtime.join("posthaste")),
        "{}",
        socket.display()
    );
    assert!(socket.ends_with("other.sock"), "{}", socket.display());
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().expect("a directory")), 0o700);
    session.ph.run("send other hello").ok();
    session.ph.run("stop --kill other").ok();
    assert!(!socket.exists());
}

/// Other users are refused even if the file permissions allow them.
#[test]
fn other_users_are_refused() {
    if !rustix::process::geteuid().is_root() {
        return skip("only root can be another user");
    }
    let session = Session::sh(ECHO);
    let as_nobody = |socket: PathBuf| {
        // The user id applies to this thread only.
        let asking = std::thread::spawn(move || {
            rustix::thread::set_thread_uid(Uid::from_raw(65_534)).expect("root may");
            let mut stream = UnixStream::connect(socket)?;
            stream.set_read_timeout(Some(crate::common::PATIENCE))?;
            let _ = stream.write_all(format!("{STATUS}\n").as_bytes());
            let mut said = String::new();
            BufReader::new(stream).read_line(&mut said).map(|_| said)
        });
        asking.join().expect("a thread")
    };
    let denied = as_nobody(session.socket.clone()).map_err(|error| error.kind());
    assert_eq!(denied, Err(ErrorKind::PermissionDenied));
    for dir in session.socket.ancestors().skip(1) {
        if dir.starts_with(session.ph.dir()) {
            std::fs::set_permissions(dir, Permissions::from_mode(0o755)).expect("ours");
        }
    }
    std::fs::set_permissions(&session.socket, Permissions::from_mode(0o666)).expect("ours");
    let said = as_nobody(session.socket.clone()).expect("the file lets it in");
    let said: Value = serde_json::from_str(&said).expect("one line");
    assert_eq!(
        said["error"]["message"],
        "this session belongs to another user"
    );
    assert_healthy(&session);
}

#[test]
fn a_socket_path_that_is_too_long_is_refused() {
    let ph = Ph::new();
    for path in ["x".repeat(200), format!("{}/x.sock", "d".repeat(110))] {
        let done = run(&ph, BOT, &["--socket", &path], &SHELL).run();
        done.fails(2, "the system allows 103");
        done.fails(2, "choose a shorter path for --socket");
    }
    assert_eq!(ph.run("ls --json").json(), json!([]));
}

#[test]
fn a_deep_home_gets_a_short_socket_path() {
    let ph = Ph::new();
    let deep = ph.dir().join("d".repeat(100)).join("e".repeat(100));
    let at_home = |words: &[&str]| ph.call(words).env("PH_HOME", &deep);
    let start = |home: &Path| {
        let call = run(&ph, BOT, &[], &SHELL).env("PH_HOME", home);
        call.env("TMPDIR", ph.dir()).run()
    };
    let done = start(&deep);
    let _ends = KillOnDrop::processes_of(&done);
    let known = done.json();
    let socket = PathBuf::from(known["socket"].as_str().expect("a socket"));
    assert!(socket.as_os_str().len() <= 103, "{}", socket.display());
    assert_eq!(mode(&socket), 0o600);
    assert_eq!(mode(socket.parent().expect("a directory")), 0o700);
    let mut wire = Wire::to(&socket);
    wire.subscribe(&["message"]);
    let id = at_home(&["send", BOT, "hello"]).run().ok();
    let told = wire.wait_for_event("message", "receipt");
    assert_eq!(told["id"], id.trim());
    wait_for("its screen", || {
        let shown = at_home(&["peek", BOT]).run().ok();
        shown.contains("ready").then_some(())
    });
    // An agent of the same name in another home has another socket.
    let other = ph.dir().join("d".repeat(100)).join("f".repeat(100));
    let done = start(&other);
    let _ends = KillOnDrop::processes_of(&done);
    assert_ne!(done.json()["socket"], known["socket"]);
    for home in [&deep, &other] {
        let stop = ph.call(&["stop", "--kill", BOT]).env("PH_HOME", home);
        assert_eq!(stop.run().code, 0);
    }
    assert!(!socket.exists());
    // Only events of this message arrive.
    for told in wire.wait_closed() {
        assert_eq!(told["data"]["id"], id.trim(), "{told}");
    }
}
