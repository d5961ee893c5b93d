//! The clients in the original's documentation, unchanged.

use crate::common::session::{BOT, Session, originals_socket_path};
use crate::common::{Ph, skip};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

const QUIET: &str = "echo ready; exec cat";

fn session() -> Session {
    let ph = Ph::new();
    let socket = originals_socket_path(&ph, BOT);
    let session = Session::start(ph, &["--socket", &socket], &["/bin/sh", "-c", QUIET]);
    session.wait_for_text("ready");
    session
}

/// Unchanged, except for `import os`, which the document forgets.
const PYTHON: &str = r#"import os
import asyncio
import json

async def connect_to_ralph(task_name: str):
    socket_path = f"~/.local/share/ralph/sockets/{task_name}.sock"
    reader, writer = await asyncio.open_unix_connection(
        os.path.expanduser(socket_path)
    )

    # Subscribe to all events
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "subscribe",
        "params": {"events": ["*"]}
    }
    writer.write((json.dumps(request) + "\n").encode())
    await writer.drain()

    # Read responses and events
    while True:
        line = await reader.readline()
        if not line:
            break
        msg = json.loads(line.decode())
        print(msg)
"#;

#[test]
fn the_documents_python_client_follows_a_session_to_its_end() {
    let is_there = Command::new("python3").arg("-V").output();
    if !is_there.is_ok_and(|done| done.status.success()) {
        return skip("there is no python3");
    }
    let session = session();
    let script = format!("{PYTHON}\nasyncio.run(connect_to_ralph('{BOT}'))\n");
    let mut client = Command::new("python3")
        .args(["-u", "-c", &script])
        .env("HOME", session.ph.user())
        // A version manager's wrapper may look for its own files in HOME.
        .env_remove("PYTHONHOME")
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 starts");
    let mut output = BufReader::new(client.stdout.take().expect("a pipe"));
    let mut first = String::new();
    output.read_line(&mut first).expect("a line");
    assert_eq!(
        first,
        "{'jsonrpc': '2.0', 'id': 1, 'result': {'subscribed': ['*']}}\n"
    );
    session.ask("inject_prompt", json!({"prompt": "hello"}));
    session.ask("stop", json!({}));
    let mut rest = String::new();
    output.read_to_string(&mut rest).expect("text");
    assert!(client.wait().expect("a child").success());
    assert!(rest.contains("'injected_prompt': 'hello'"), "{rest}");
    assert!(rest.contains("'type': 'message'"), "{rest}");
    assert!(rest.contains("'data': {'status': 'stopped'}"), "{rest}");
    session.wait_gone();
}

use tokio::io::{AsyncBufReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

#[rustfmt::skip]
#[allow(clippy::print_stdout, clippy::uninlined_format_args, reason = "it is not ours")]
mod as_it_stands {
    use super::{AsyncBufReadExt, AsyncWriteExt, UnixStream};
    use tokio::io::BufReader;

pub(super) async fn connect_to_ralph(task_name: &str) -> Result<(), Box<dyn std::error::Error>> {
    let socket_path = format!(
        "{}/.local/share/ralph/sockets/{}.sock",
        std::env::var("HOME")?,
        task_name
    );

    let stream = UnixStream::connect(&socket_path).await?;
    let (reader, mut writer) = stream.into_split();
    let mut reader = BufReader::new(reader);

    // Send get_status request
    let request = serde_json::json!({
        "jsonrpc": "2.0",
        "id": 1,
        "method": "get_status",
        "params": {}
    });
    writer.write_all(format!("{}\n", request).as_bytes()).await?;

    // Read response
    let mut line = String::new();
    reader.read_line(&mut line).await?;
    let response: serde_json::Value = serde_json::from_str(&line)?;
    println!("{:#}", response);

    Ok(())
}
}

/// Not a test: the other client as a program of its own, with its own `HOME`.
#[test]
#[ignore = "another test runs it"]
fn the_rust_client() {
    if std::env::var_os("HOME_OF_THE_ORIGINAL").is_none() {
        return;
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.expect("a runtime");
    runtime
        .block_on(as_it_stands::connect_to_ralph(BOT))
        .expect("a session");
}

#[test]
fn the_documents_rust_client_asks_for_the_status() {
    let session = session();
    let this = std::env::current_exe().expect("a path");
    let done = Command::new(this)
        .args([
            "--exact",
            "rpc::clients::the_rust_client",
            "--ignored",
            "--nocapture",
        ])
        .env("HOME", session.ph.user())
        .env("HOME_OF_THE_ORIGINAL", "1")
        .output()
        .expect("it starts");
    let output = String::from_utf8(done.stdout).expect("text");
    assert!(done.status.success(), "{output}");
    let begin = output.find('{').expect("JSON");
    let end = output.rfind('}').expect("JSON");
    let reply: Value = serde_json::from_str(&output[begin..=end]).expect("JSON");
    assert_eq!(reply["result"]["task_name"], BOT);
    assert_eq!(reply["result"]["recent_output"], json!(["ready"]));
}
