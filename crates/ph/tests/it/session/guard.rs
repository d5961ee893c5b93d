//! A session never keeps inherited descriptors, shows itself to itself, accepts a false sender,
//! types into a draft, or waits for a viewer that has left.

use crate::common::session::{Session, Viewer};
use crate::common::stage::{Stage, until_so};
use crate::common::{Ph, wait_for};
use serde_json::json;
use std::io::Read;
use std::process::{Command, Stdio};

#[test]
fn inherited_pipes_are_closed() {
    let stage = Stage::new();
    let ph = env!("CARGO_BIN_EXE_ph");
    // Descriptor 3 of the shell is the pipe; it closes only when no process holds it.
    let mut shell = Command::new("/bin/sh")
        .args(["-c", &format!("'{ph}' run --name bot --detach -- cat 3>&1")])
        .env("PH_HOME", stage.home())
        .env("HOME", stage.user())
        .env_remove("XDG_RUNTIME_DIR")
        .stdout(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut said = String::new();
    let mut pipe = shell.stdout.take().expect("a pipe");
    pipe.read_to_string(&mut said).expect("its end");
    assert_eq!(said, "bot is running; 'ph attach bot' shows it\n");
    assert!(shell.wait().expect("a child").success());
}

#[test]
fn a_session_cannot_be_attached_from_inside_itself() {
    let ph = Ph::new();
    let binary = env!("CARGO_BIN_EXE_ph");
    let session = Session::start(
        ph,
        &[],
        &[
            "/bin/sh",
            "-c",
            &format!(
                "until [ -e \"$PH_HOME/sessions/bot/run.json\" ]; do :; done; \
                 '{binary}' attach bot; echo over; exec cat"
            ),
        ],
    );
    session.wait_for_text("this terminal is in that session");
    session.wait_for_text("over");
}

#[test]
fn an_agents_child_process_cannot_use_another_name() {
    let claim = r#"{"jsonrpc":"2.0","id":1,"method":"send","params":{"body":"hi","from":"human","from_evidence":"ancestry"}}"#;
    let script = format!(
        "import json, os, socket\n\
         s = socket.socket(socket.AF_UNIX)\n\
         s.connect(os.environ['PH_SOCKET'])\n\
         s.sendall(b'''{claim}\\n''')\n\
         print(json.loads(s.recv(4096))['error']['message'], flush=True)\n\
         input()\n"
    );
    if Command::new("python3").arg("-V").output().is_err() {
        return crate::common::skip("there is no python3");
    }
    let session = Session::start(Ph::new(), &[], &["python3", "-c", &script]);
    session.wait_for_text("it cannot send as human");
    assert_eq!(session.ask("inbox", json!({})), json!([]));
    // A false claim to descend from a session is rejected, too.
    let sent = session.ask(
        "send",
        json!({"body": "hi", "from": "other", "from_evidence": "ancestry"}),
    );
    assert_eq!(sent["from_evidence"], "flag");
}

#[test]
fn a_recalled_line_is_a_draft() {
    let session = Session::start(Ph::new(), &[], &["/bin/sh", "-c", "echo ready; exec cat"]);
    session.wait_for_activity("idle");
    session.type_keys("\x1b[A");
    let id = session.ph.send("bot hello");
    wait_for("the reason", || {
        let why = session.ask("why", json!({"id": id}));
        (why["rule"] == "draft").then_some(())
    });
    session.type_keys("\r");
    wait_for("its delivery", || {
        let shown = session.ask("show", json!({"id": id}));
        (shown["receipt"] == "offered").then_some(())
    });
}

#[test]
fn a_viewer_can_leave_while_its_keys_are_unread() {
    let session = Session::sh("stty raw -echo; echo ready; exec sleep 1000");
    session.wait_for_text("ready");
    let size = || {
        let screen = session.ask("peek", json!({}));
        (screen["cols"].clone(), screen["rows"].clone())
    };
    let mut viewer = Viewer::attach(&session.socket, 40, 10);
    viewer.control(&json!({"type": "take"}));
    until_so("the small size", || size() == (json!(40), json!(10)));
    // More than the terminal accepts, then more than the queue holds.
    viewer.keys(&[b'x'; 32 * 1024]);
    for _ in 0..200 {
        viewer.keys(b"x");
    }
    drop(viewer);
    let id = session.ph.send("bot hello");
    wait_for("the end of the pause", || {
        let why = session.ask("why", json!({"id": id}));
        (why["rule"] != "paused").then_some(())
    });
    let other = Viewer::attach(&session.socket, 100, 30);
    until_so("the large size", || size() == (json!(100), json!(30)));
    other.leave();
}
