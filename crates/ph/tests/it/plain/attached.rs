//! Attached terminals, in the original's frames.

use crate::common::session::{Session, Viewer};
use crate::common::wait_for;
use posthaste_wire::frames::{CONTROL, DATA, encode};
use serde_json::json;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A program that echoes keys as they are typed.
const ECHO: &str = "echo ready; exec cat";

/// Read the reply like the original's client: through a buffer whose remaining content is
/// discarded.
fn attach_through_a_buffer(session: &Session, reads_after: Duration) -> Viewer {
    let mut stream = UnixStream::connect(&session.socket).expect("a session");
    stream
        .write_all(b"{\"type\":\"attach\",\"cols\":80,\"rows\":24}\n")
        .expect("a session");
    let reply = b"{\"ok\":true}\n";
    // While the client waits, no data follows the reply.
    let begun = Instant::now();
    wait_for("the client's leisure", || {
        let waiting = rustix::io::ioctl_fionread(&stream).expect("a socket");
        assert!(waiting <= reply.len() as u64, "{waiting} bytes");
        (waiting > 0 && begun.elapsed() >= reads_after).then_some(())
    });
    let mut buffer = vec![0; 64 << 10];
    let count = stream.read(&mut buffer).expect("a reply");
    assert_eq!(&buffer[..count], reply);
    Viewer::over(stream)
}

#[test]
fn a_client_that_drops_buffered_data_after_its_reply_sees_whole_frames() {
    let session = Session::sh("while :; do echo line after line; done");
    for reads_after in [0, 0, 50, 800] {
        let mut viewer = attach_through_a_buffer(&session, Duration::from_millis(reads_after));
        for _ in 0..50 {
            assert!(viewer.next_frame());
        }
        viewer.wait_for("line after line");
        viewer.leave();
    }
}

#[test]
fn keys_go_in_and_output_comes_out() {
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let mut viewer = Viewer::attach(&session.socket, 80, 24);
    viewer.wait_for("ready");
    viewer.keys(b"hel");
    viewer.keys(b"");
    viewer.keys("lo é\n".as_bytes());
    viewer.wait_for("hello é\r\nhello é\r\n");
    // Single bytes, and several at once with control bytes in between.
    for byte in encode(DATA, b"slow\n") {
        viewer.stream.write_all(&[byte]).expect("a session");
    }
    viewer.wait_for("slow\r\nslow\r\n");
    let many = [
        encode(DATA, b"a"),
        encode(7, b"of another kind"),
        encode(0xff, b""),
        encode(CONTROL, b"no json"),
        encode(CONTROL, b"{\"type\":\"unknown\"}"),
        encode(
            CONTROL,
            b"{\"type\":\"resize\",\"cols\":\"wide\",\"rows\":1}",
        ),
        encode(CONTROL, b""),
        encode(DATA, b"b\n"),
    ];
    viewer.stream.write_all(&many.concat()).expect("a session");
    viewer.wait_for("ab\r\nab\r\n");
    viewer.leave();
}

#[test]
fn frames_may_follow_the_request_at_once() {
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let mut stream = UnixStream::connect(&session.socket).expect("a session");
    let request = b"{\"type\":\"attach\",\"cols\":80,\"rows\":24}\n".to_vec();
    let all = [request, encode(DATA, b"early\n"), encode(DATA, b"bird\n")].concat();
    stream.write_all(&all).expect("a session");
    let mut reply = [0; 12];
    stream.read_exact(&mut reply).expect("a reply");
    assert_eq!(&reply, b"{\"ok\":true}\n");
    let mut viewer = Viewer::over(stream);
    viewer.wait_until("both, twice", |viewer| {
        let output = String::from_utf8_lossy(&viewer.output);
        ["early", "bird"]
            .iter()
            .all(|word| output.matches(word).count() == 2)
    });
}

#[test]
fn a_false_length_ends_that_client_alone() {
    let session = Session::sh(ECHO);
    session.wait_for_text("ready");
    let mut good = Viewer::attach(&session.socket, 80, 24);
    for length in [(10 << 20) + 1, u32::MAX, 1 << 31] {
        for kind in [DATA, CONTROL, 9] {
            let mut bad = Viewer::attach(&session.socket, 80, 24);
            let mut header = vec![kind];
            header.extend(length.to_be_bytes());
            bad.stream.write_all(&header).expect("a session");
            while bad.next_frame() {}
        }
    }
    // A client that announces a long frame and sends little of it just waits.
    let mut waits = Viewer::attach(&session.socket, 80, 24);
    waits
        .stream
        .write_all(&[DATA, 0, 0xa0, 0, 0, b'x'])
        .expect("a session");
    waits.wait_for("ready");
    good.keys(b"still here\n");
    good.wait_for("still here\r\nstill here");
    waits.wait_for("still here\r\nstill here");
}

#[test]
fn ten_mebibytes_are_a_frame() {
    // The program reads no input until it is told to.
    let session = Session::sh(
        "stty raw -echo; echo ready; while [ ! -e go ]; do sleep 0.05; done; head -c 10485760 | wc -c; exec cat",
    );
    session.wait_for_text("ready");
    let before = session.memory();
    let mut viewer = Viewer::attach(&session.socket, 80, 24);
    viewer.keys(&vec![b'x'; 10 << 20]);
    // Input of other viewers waits meanwhile, and uses no more memory than necessary.
    let mut others: Vec<Viewer> = (0..3)
        .map(|_| Viewer::attach(&session.socket, 80, 24))
        .collect();
    for other in &mut others {
        other.keys(&vec![b'y'; 4 << 20]);
    }
    // The session keeps working meanwhile.
    assert_eq!(session.ask("get_status", json!({}))["status"], "running");
    let grown = session.memory().saturating_sub(before);
    assert!(grown < 64 << 10, "it has grown by {grown} KiB");
    std::fs::write(session.ph.user().join("go"), "").expect("a file");
    viewer.wait_for("10485760");
}

#[test]
fn the_terminal_is_as_large_as_its_smallest_viewer() {
    let (session, tty) = Session::tty(false);
    let wait_for_size = |want: &str| {
        wait_for(want, || {
            (tty.sizes().last().map(String::as_str) == Some(want)).then_some(())
        });
    };
    wait_for_size("80x24");
    let mut one = Viewer::attach(&session.socket, 120, 40);
    wait_for_size("120x40");
    one.control(&json!({"type": "resize", "cols": 100, "rows": 50}));
    wait_for_size("100x50");
    let mut two = Viewer::attach(&session.socket, 140, 30);
    wait_for_size("100x30");
    two.control(&json!({"type": "resize", "cols": 60, "rows": 20}));
    wait_for_size("60x20");
    // One viewer leaves. The other stays, and the terminal fits the remaining one.
    two.leave();
    wait_for_size("100x50");
    tty.busy();
    let seen = one.output.len();
    one.wait_until("more", |viewer| viewer.output.len() > seen + 10);
    tty.calm();
    one.leave();
    // A terminal without viewers keeps its size.
    let mut last = Viewer::attach(&session.socket, 90, 25);
    wait_for_size("90x25");
    assert!(!tty.sizes().contains(&"140x30".to_owned()));
    // A size of zero means the default size. Sizes are limited in both directions.
    last.control(&json!({"type": "resize", "cols": 0, "rows": 0}));
    wait_for_size("80x24");
    last.control(&json!({"type": "resize", "cols": 65535, "rows": 65535}));
    wait_for_size("1000x500");
    last.control(&json!({"type": "resize", "cols": 1, "rows": 1}));
    wait_for_size("2x1");
    let huge = json!({"type": "attach", "cols": -5, "rows": 1_000_000});
    let huge = Viewer::with(&session.socket, &huge);
    last.leave();
    wait_for_size("80x500");
    drop(huge);
}

#[test]
fn a_viewer_is_told_how_it_ended() {
    let session = Session::sh("echo ready; read x; printf 'last words'; exit 3");
    session.wait_for_text("ready");
    let mut viewer = Viewer::attach(&session.socket, 80, 24);
    viewer.keys(b"\r");
    while viewer.next_frame() {}
    assert!(String::from_utf8_lossy(&viewer.output).contains("last words"));
    assert_eq!(viewer.controls, [json!({"type": "ended", "how": "exit 3"})]);
    session.wait_gone();
}

#[test]
fn a_viewer_that_only_watches_or_is_locked_out_types_nothing() {
    let (session, tty) = Session::tty(false);
    let attach = |more: &str, yes: bool| {
        let mut request = json!({"type": "attach", "cols": 80, "rows": 24});
        request[more] = json!(yes);
        Viewer::with(&session.socket, &request)
    };
    let mut watches = attach("read_only", true);
    let mut types = attach("read_only", false);
    let mut takes = attach("take", true);
    let taken = |yours: bool| json!({"type": "keyboard", "taken": true, "yours": yours});
    takes.wait_for_control(&taken(true));
    types.wait_for_control(&taken(false));
    watches.control(&json!({"type": "take"}));
    watches.keys(b"watches");
    types.keys(b"types");
    takes.keys(b"takes");
    wait_for("its keys", || (tty.typed() == "takes").then_some(()));
    takes.control(&json!({"type": "release"}));
    let free = json!({"type": "keyboard", "taken": false, "yours": false});
    types.wait_for_control(&free);
    types.keys(b"!");
    wait_for("the other's", || (tty.typed() == "takes!").then_some(()));
    // The last viewer that asks gets the keyboard. When that viewer leaves, no viewer has it.
    takes.control(&json!({"type": "take"}));
    takes.wait_for_control(&taken(true));
    types.control(&json!({"type": "take"}));
    types.wait_for_control(&taken(true));
    drop(types);
    let since = takes.controls.len();
    takes.wait_until("freedom", |viewer| viewer.controls[since..].contains(&free));
    drop(watches);
}
