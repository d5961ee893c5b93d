//! A client that speaks the protocol in plain lines, so that nothing of the SDK is taken on trust.

use crate::common::{Call, PATIENCE, Ph};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin};
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::Instant;

/// A server that runs, and is told who its agent is.
pub(crate) struct Mcp {
    pub(crate) child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<Value>,
    asked: u64,
    /// Answers that came while another was waited for.
    early: Vec<Value>,
}

/// The result of a tool.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) is_error: bool,
    pub(crate) blocks: Vec<String>,
}

impl Answer {
    fn of(reply: &Value) -> Self {
        let result = &reply["result"];
        let blocks = result["content"].as_array();
        let blocks = blocks.unwrap_or_else(|| panic!("no content: {reply}"));
        let text = |block: &Value| {
            assert_eq!(block["type"], "text", "{block}");
            block["text"].as_str().expect("a text").to_owned()
        };
        Self {
            is_error: result["isError"].as_bool().unwrap_or_default(),
            blocks: blocks.iter().map(text).collect(),
        }
    }

    /// The one block of an answer that is none of an error.
    pub(crate) fn ok(&self) -> &str {
        assert!(!self.is_error && self.blocks.len() == 1, "{self:?}");
        &self.blocks[0]
    }

    pub(crate) fn fails(&self, says: &str) {
        assert!(self.is_error, "{self:?} should be an error");
        assert!(self.blocks[0].contains(says), "{self:?} should say {says}");
        assert!(self.blocks[0].starts_with("ERROR: "), "{self:?}");
    }
}

impl Mcp {
    /// A server for `coder`, past its greeting.
    pub(crate) fn of(ph: &Ph) -> Self {
        Self::begin(ph.call(&["mcp"]).agent("coder"))
    }

    /// Start `ph mcp`, and complete the handshake.
    pub(crate) fn begin(call: Call) -> Self {
        let mut mcp = Self::start(call);
        let hello = mcp.result("initialize", &greeting());
        assert_eq!(hello["serverInfo"]["name"], "posthaste");
        mcp.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        mcp
    }

    pub(crate) fn start(call: Call) -> Self {
        let mut child = call.spawn_talking();
        let stdout = child.stdout.take().expect("a pipe");
        // One that nobody waits for any more is dropped with the test.
        let (tell, lines) = sync_channel(1_000);
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                let line = line.expect("standard output is UTF-8");
                let value = serde_json::from_str::<Value>(&line);
                let value = value.unwrap_or_else(|_| panic!("not of the protocol: {line}"));
                assert_eq!(value["jsonrpc"], "2.0", "{line}");
                if tell.send(value).is_err() {
                    return;
                }
            }
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
            asked: 0,
            early: Vec::new(),
        }
    }

    /// Writes bytes as they are.
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("it is open");
        stdin.write_all(bytes).expect("it reads");
    }

    pub(crate) fn say(&mut self, line: &str) {
        self.write(format!("{line}\n").as_bytes());
    }

    /// Asks without waiting; gives back the question's number.
    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> u64 {
        self.asked += 1;
        let id = self.asked;
        let line = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.say(&line.to_string());
        id
    }

    /// The answer to a question, whatever comes before it.
    pub(crate) fn hear(&mut self, id: u64) -> Value {
        let is_it = |value: &Value| value["id"] == id;
        if let Some(place) = self.early.iter().position(is_it) {
            return self.early.remove(place);
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let value = self.lines.recv_timeout(left);
            let value = value.unwrap_or_else(|_| panic!("no answer to {id}"));
            if is_it(&value) {
                return value;
            }
            self.early.push(value);
        }
    }

    /// Whether an answer is there already.
    pub(crate) fn has_heard(&mut self, id: u64) -> bool {
        self.early.extend(self.lines.try_iter());
        self.early.iter().any(|value| value["id"] == id)
    }

    pub(crate) fn result(&mut self, method: &str, params: &Value) -> Value {
        let id = self.ask(method, params);
        let reply = self.hear(id);
        assert_eq!(reply["error"], Value::Null, "{method}");
        reply["result"].clone()
    }

    /// Begins a call of a tool.
    pub(crate) fn begin_tool(&mut self, tool: &str, arguments: &Value) -> u64 {
        self.ask("tools/call", &json!({"name": tool, "arguments": arguments}))
    }

    pub(crate) fn answer(&mut self, id: u64) -> Answer {
        Answer::of(&self.hear(id))
    }

    pub(crate) fn tool(&mut self, tool: &str, arguments: &Value) -> Answer {
        let id = self.begin_tool(tool, arguments);
        self.answer(id)
    }

    /// Call a tool that succeeds, and return its text.
    pub(crate) fn ok(&mut self, tool: &str, arguments: &Value) -> String {
        self.tool(tool, arguments).ok().to_owned()
    }

    /// Call a tool that succeeds, and return its text as a list.
    pub(crate) fn list(&mut self, tool: &str, arguments: &Value) -> Vec<Value> {
        let text = self.ok(tool, arguments);
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no list: {text}"))
    }

    /// Closes its standard input.
    pub(crate) fn hang_up(&mut self) {
        drop(self.stdin.take());
    }

    /// Waits for its end; its exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        self.hang_up();
        self.child.wait().expect("it can be waited for").code()
    }
}

impl Drop for Mcp {
    fn drop(&mut self) {
        drop(self.stdin.take());
        // It ends by itself; where it does not, its test has failed already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn greeting() -> Value {
    json!({
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "lines", "version": "1"},
    })
}
