//! The model server from outside: the bytes of each dialect, and refusals.

mod log;
mod program;
mod replies;

use posthaste_lab::model::{Author, Log, LogEntry, Model};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;
use tempfile::TempDir;

struct Stage {
    model: Model,
    _dir: TempDir,
}

impl Stage {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let model = Model::start(&dir.path().join("log"));
        Self { model, _dir: dir }
    }

    fn log(&self) -> &Log {
        self.model.log()
    }

    fn send(&self, method: &str, path: &str, body: &str) -> TcpStream {
        send(self.model.port(), method, path, body)
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> String {
        answered(self.send(method, path, body))
    }

    fn post(&self, path: &str, body: &Value) -> String {
        self.ask("POST", path, &body.to_string())
    }

    /// Return the only request so far.
    #[track_caller]
    fn only(&self) -> LogEntry {
        let mut records = self.log().records();
        assert_eq!(records.len(), 1, "{records:?}");
        records.remove(0)
    }
}

/// Send a request without reading the response.
fn send(port: u16, method: &str, path: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    stream
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: lab\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(body.as_bytes()).unwrap();
    stream
}

/// Return the status line, an empty line, and the body.
fn answered(mut stream: TcpStream) -> String {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let chunked = head.contains("transfer-encoding: chunked");
    let body = if chunked {
        whole(body)
    } else {
        body.to_owned()
    };
    format!("{}\n\n{}", head.lines().next().unwrap(), body.trim_end())
}

/// Join the chunks of a body.
fn whole(mut chunks: &str) -> String {
    let mut whole = String::new();
    while let Some((length, rest)) = chunks.split_once("\r\n") {
        let length = usize::from_str_radix(length, 16).unwrap();
        whole.push_str(&rest[..length]);
        chunks = &rest[length + 2..];
    }
    whole
}

fn claude(prompt: &str, stream: bool) -> Value {
    json!({
        "model": "claude-lab", "stream": stream,
        "system": [{"type": "text", "text": "be good"}],
        "tools": [{"name": "Bash"}],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "<system-reminder>today</system-reminder>"},
            {"type": "text", "text": prompt},
        ]}],
    })
}

fn codex(prompt: &str) -> Value {
    json!({
        "model": "gpt-lab", "stream": true, "instructions": "be good",
        "tools": [
            {"type": "function", "name": "exec_command"},
            {"type": "namespace", "name": "mcp__ph", "tools": [{"name": "send"}]},
            {"type": "web_search"},
        ],
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "rules"}]},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": prompt}]},
        ],
    })
}

fn opencode(prompt: &str, stream: bool) -> Value {
    json!({
        "model": "lab", "stream": stream,
        "tools": [{"type": "function", "function": {"name": "bash"}}],
        "messages": [
            {"role": "system", "content": "be good"},
            {"role": "user", "content": [{"type": "text", "text": prompt}]},
        ],
    })
}

fn gemini(prompt: &str) -> Value {
    json!({
        "tools": [{"functionDeclarations": [{"name": "run_shell_command"}]}],
        "systemInstruction": {"role": "user", "parts": [{"text": "be good"}]},
        "contents": [{"role": "user", "parts": [{"text": "context"}, {"text": prompt}]}],
    })
}

const MESSAGES: &str = "/v1/messages?beta=true";
const RESPONSES: &str = "/v1/responses";
const CHAT: &str = "/v1/chat/completions";
const STREAM: &str = "/v1beta/models/gemini-lab:streamGenerateContent?alt=sse";
const GENERATE: &str = "/v1beta/models/gemini-lab:generateContent";

/// Return the parsed conversation of a request.
fn conversation(record: LogEntry) -> String {
    let LogEntry::Asked { asked, .. } = record else {
        panic!("no request: {record:?}");
    };
    let piece = |voice: Author, text: &str| format!("{voice:?}: {text}\n");
    let pieces: String = asked
        .pieces
        .iter()
        .map(|p| piece(p.voice, &p.text))
        .collect();
    format!(
        "{:?} {} {:?}\n{pieces}",
        asked.dialect, asked.model, asked.tools
    )
}
