//! Delivery through an agent's own HTTP API. The test plays the API: it listens on the port that
//! the session has given to the program.

use crate::common::PATIENCE;
use crate::common::stage::{Stage, until};
use crate::common::tui::install_manifest;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

const MANIFEST: &str = r#"
name = "own"
description = "A test's own"
routes = ["http", "terminal"]
proof = ["hook"]

[start]
args = ["-c", 'printf "\033]0;OC | Fix it\007"; echo "$PORT $SECRET" > "$NOTE.new"; mv "$NOTE.new" "$NOTE"; exec cat', "own", "--port={port}"]
env = {PORT = "{port}", SECRET = "{secret}"}

[http]
api = "opencode"

[hook]
submitted = ["submitted"]
idle = ["idle"]
begins = ["submitted"]

[activity]
silence = "200ms"
"#;

/// A fake HTTP API, until it is dropped.
struct FakeApi {
    port: u16,
    asked: Option<Receiver<(String, String)>>,
    thread: Option<JoinHandle<()>>,
}

impl FakeApi {
    /// Answer every request: with the conversations' titles, or else with `answer`.
    fn new(port: u16, title: &'static str, answer: &'static str) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).expect("the port is free");
        let (tell, asked) = sync_channel(16);
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (head, body) = read(&stream);
                let is_asked = head.starts_with("GET /session ");
                let others = title.split('/').enumerate();
                let all = others
                    .map(|(n, title)| json!({"id": format!("ses_{}", n + 1), "title": title}));
                let said = Value::from_iter(all).to_string();
                let answer = match is_asked {
                    true => format!(
                        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{said}",
                        said.len()
                    ),
                    false => answer.to_owned(),
                };
                let _ = (&stream).write_all(answer.as_bytes());
                if tell.send((head, body)).is_err() {
                    return;
                }
            }
        });
        Self {
            port,
            asked: Some(asked),
            thread: Some(thread),
        }
    }

    /// Return the next request that does not ask for titles.
    fn called(&self) -> (String, Value) {
        loop {
            let asked = self.asked.as_ref().expect("it is still here");
            let (head, body) = asked.recv_timeout(PATIENCE).expect("it is called");
            if !head.starts_with("GET ") {
                return (head, serde_json::from_str(&body).unwrap_or_default());
            }
        }
    }
}

impl Drop for FakeApi {
    fn drop(&mut self) {
        // The thread waits for a request; this one makes it exit.
        drop(self.asked.take());
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Read a request's head and body.
fn read(mut stream: &TcpStream) -> (String, String) {
    let mut all = Vec::new();
    let mut part = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&all).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let lower = head.to_lowercase();
            let length = lower.split("content-length: ").nth(1);
            let length = length.and_then(|rest| rest.lines().next()?.trim().parse().ok());
            if body.len() >= length.unwrap_or(0) {
                return (head.to_owned(), body.to_owned());
            }
        }
        match stream.read(&mut part) {
            Ok(0) | Err(_) => return (text, String::new()),
            Ok(count) => all.extend_from_slice(&part[..count]),
        }
    }
}

/// Start an idle agent whose hooks named its conversation. Return its port and its secret.
fn agent(stage: &Stage) -> (u16, String) {
    let noted = agent_with(stage, &[], &[]);
    let (port, secret) = noted.split_once(' ').expect("both are noted");
    (port.parse().expect("a port"), secret.to_owned())
}

/// Like [`agent`], with flags and arguments of the person. Return the agent's note.
fn agent_with(stage: &Stage, flags: &[&str], args: &[&str]) -> String {
    install_manifest(stage, "own", MANIFEST);
    let note = stage.dir().join("note");
    let env = format!("NOTE={}", note.display());
    let run = [
        "run",
        "--name",
        "bot",
        "--detach",
        "--harness",
        "own",
        "--env",
        &env,
    ];
    stage
        .call(&[&run[..], flags, &["sh"], args].concat())
        .run()
        .ok();
    let noted = until("its port", || std::fs::read_to_string(&note).ok());
    hook(stage, "submitted", "a person's");
    hook(stage, "idle", "");
    stage.until_activity("bot", "idle");
    noted.trim().to_owned()
}

fn hook(stage: &Stage, event: &str, prompt: &str) {
    let payload = json!({"session_id": "ses_1", "prompt": prompt});
    let params = json!({"event_name": event, "payload": payload});
    stage.rpc("bot", "hook_event", &params);
}

fn route(stage: &Stage, id: &str) -> Value {
    let shown = stage.show(id);
    let steps = shown["receipts"].as_array().cloned().unwrap_or_default();
    let last = steps.iter().rev().find(|step| step["route"].is_string());
    last.map_or(Value::Null, |step| step["route"].clone())
}

#[test]
fn a_message_is_posted_to_the_api_and_proven_by_a_hook() {
    let stage = Stage::new();
    let (port, secret) = agent(&stage);
    assert_eq!(secret.len(), 32, "a secret of this session's own");
    let api = FakeApi::new(port, "Fix it", "HTTP/1.1 204 No Content\r\n\r\n");
    let done = stage.run("send bot hello --wait offered --timeout 20s");
    assert_eq!(done.code, 0, "{}", done.err());
    let id = done.out().trim().to_owned();
    let (head, body) = api.called();
    assert!(
        head.starts_with("POST /session/ses_1/prompt_async "),
        "{head}"
    );
    assert!(
        head.to_lowercase().contains("authorization: basic "),
        "{head}"
    );
    let text = body["parts"][0]["text"].as_str().unwrap_or_default();
    let header = format!("[ph message from: human id: {}] hello", &id[..8]);
    assert_eq!(text, header);
    hook(&stage, "submitted", text);
    let receipts = ["stored", "offering", "offered", "accepted"];
    until("its own word", || {
        (stage.receipts(&id) == receipts).then_some(())
    });
    assert_eq!(route(&stage, &id), "http");
    assert!(
        !stage.run("peek bot").out().contains("hello"),
        "it was typed"
    );
}

#[test]
fn an_api_of_another_program_is_not_used() {
    let title = "Something else";
    let refused = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
    for (title, answer) in [
        (title, "HTTP/1.1 204 No Content\r\n\r\n"),
        // Two conversations have the title on the terminal, so the right one is unknown.
        ("Fix it/Fix it", "HTTP/1.1 204 No Content\r\n\r\n"),
        ("Fix it", refused),
    ] {
        let stage = Stage::new();
        let (port, _) = agent(&stage);
        let _api = FakeApi::new(port, title, answer);
        let done = stage.run("send bot hello --wait offered --timeout 20s");
        assert_eq!(done.code, 0, "{}", done.err());
        let id = done.out().trim().to_owned();
        assert_eq!(route(&stage, &id), "terminal", "{title}");
        check_fallback_reason(&stage, &id);
    }
    // No program listens.
    let stage = Stage::new();
    agent(&stage);
    let done = stage.run("send bot hello --wait offered --timeout 20s");
    assert_eq!(done.code, 0, "{}", done.err());
    assert_eq!(route(&stage, done.out().trim()), "terminal");
}

/// Check that the receipt, the status and the log explain the fallback.
fn check_fallback_reason(stage: &Stage, id: &str) {
    let shown = stage.show(id);
    let steps = shown["receipts"].as_array().expect("its receipts");
    let says = |step: &&Value| step["state"] == "offered";
    let evidence = steps.iter().rfind(says).expect("it was offered")["evidence"].to_string();
    assert!(
        evidence.contains("; not by its own HTTP API: "),
        "{evidence}"
    );
    let door = stage.status("bot")["door"].to_string();
    assert!(door.contains("is not used for "), "{door}");
    let log = std::fs::read_to_string(stage.home().join("sessions/bot/log")).expect("its log");
    assert!(log.contains("the agent's HTTP API is not used: "), "{log}");
}

/// From before the start to the end of the agent, no program that binds any free port gets it.
#[cfg(target_os = "linux")]
#[test]
fn the_port_is_kept_free_for_its_program() {
    use rustix::net::{AddressFamily, SocketType, bind, socket};
    let stage = Stage::new();
    let (port, _) = agent(&stage);
    let other = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    let there = std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, port);
    assert_eq!(bind(&other, &there), Err(rustix::io::Errno::ADDRINUSE));
    // The program itself, which binds this port, gets it.
    drop(TcpListener::bind(there).expect("the port is free for it"));
}

/// If another program listens on the port, nothing is sent, not even the secret.
#[test]
fn a_persons_own_port_is_not_used() {
    let stage = Stage::new();
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
    let port = free.local_addr().expect("a port").port();
    drop(free);
    let api = FakeApi::new(port, "Fix it", "HTTP/1.1 204 No Content\r\n\r\n");
    let own = port.to_string();
    let noted = agent_with(&stage, &["--env", "SECRET=his"], &["--port", &own]);
    assert!(noted.ends_with("his"), "{noted}");
    let done = stage.run("send bot hello --wait offered --timeout 20s");
    assert_eq!(done.code, 0, "{}", done.err());
    assert_eq!(route(&stage, done.out().trim()), "terminal");
    let asked = api.asked.as_ref().expect("it is still here");
    assert!(asked.try_recv().is_err(), "a strange port was called");
}

#[test]
fn an_api_reply_that_breaks_off_is_uncertain() {
    let stage = Stage::new();
    let (port, _) = agent(&stage);
    let _api = FakeApi::new(port, "Fix it", "");
    let done = stage.run("send bot hello --wait offered --timeout 20s");
    let id = done.out().trim().to_owned();
    // The message is repeated through the terminal.
    let want = ["stored", "offering", "uncertain", "offering", "offered"];
    assert_eq!(stage.receipts(&id), want);
    assert_eq!(route(&stage, &id), "terminal");
}
