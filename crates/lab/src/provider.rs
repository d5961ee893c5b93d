//! Mail provider in memory: a minimal model of the protocol.
//!
//! Its state is serializable, because a script runs for one call only.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MemoryProvider {
    messages: Vec<StoredMessage>,
    /// Number of messages ever stored, so that no id is used twice.
    sent: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredMessage {
    id: String,
    from: String,
    to: String,
    subject: String,
    body: String,
    created_at: Timestamp,
    read: bool,
    thread_id: String,
    reply_to: Option<String>,
    is_archived: bool,
}

/// Outcome of a call.
#[derive(Debug, PartialEq, Eq)]
pub struct CallResult {
    pub code: u8,
    pub stdout: String,
    pub stderr: String,
}

impl CallResult {
    fn success(value: &Value) -> Self {
        Self {
            code: 0,
            stdout: value.to_string(),
            stderr: String::new(),
        }
    }

    fn no_output() -> Self {
        Self {
            code: 0,
            stdout: String::new(),
            stderr: String::new(),
        }
    }

    fn failed(code: u8, stderr: &str) -> Self {
        Self {
            code,
            stdout: String::new(),
            stderr: stderr.to_owned(),
        }
    }
}

impl MemoryProvider {
    /// Carry out one operation.
    pub fn call(&mut self, now: Timestamp, op: &str, arg: &str, stdin: &str) -> CallResult {
        match op {
            "ensure-running" => CallResult::no_output(),
            "send" => self.send(now, arg, stdin, None),
            "reply" => match self.find(arg) {
                Some(at) => {
                    let to = self.messages[at].from.clone();
                    self.send(now, &to, stdin, Some(at))
                }
                None => not_found(),
            },
            "inbox" | "check" => self.list(|message| message.to == arg && !message.read),
            "all" => self.list(|message| message.to == arg),
            "thread" => self.thread(arg),
            "count" => {
                let mine = |message: &&StoredMessage| message.to == arg && !message.is_archived;
                let mine: Vec<_> = self.messages.iter().filter(mine).collect();
                let unread = mine.iter().filter(|message| !message.read).count();
                CallResult::success(&json!({"total": mine.len(), "unread": unread}))
            }
            "get" | "read" | "mark-read" | "mark-unread" | "archive" | "delete" => {
                match self.find(arg) {
                    Some(at) => self.change(at, op),
                    None => not_found(),
                }
            }
            _ => CallResult::failed(2, "unknown operation"),
        }
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.messages.iter().position(|message| message.id == id)
    }

    fn send(&mut self, now: Timestamp, to: &str, stdin: &str, parent: Option<usize>) -> CallResult {
        let Ok(fields) = serde_json::from_str::<Value>(stdin) else {
            return CallResult::failed(1, "standard input is not JSON");
        };
        if to.is_empty() || to.starts_with('-') {
            return CallResult::failed(1, "invalid agent name");
        }
        let word = |key: &str| fields[key].as_str().unwrap_or_default().to_owned();
        self.sent += 1;
        let id = format!("m{}", self.sent);
        let thread = parent.map(|at| self.messages[at].thread_id.clone());
        let message = StoredMessage {
            from: word("from"),
            to: to.to_owned(),
            subject: word("subject"),
            body: word("body"),
            created_at: now,
            read: false,
            thread_id: thread.unwrap_or_else(|| format!("t-{id}")),
            reply_to: parent.map(|at| self.messages[at].id.clone()),
            is_archived: false,
            id,
        };
        let ended = CallResult::success(&message.to_json());
        self.messages.push(message);
        ended
    }

    fn change(&mut self, at: usize, op: &str) -> CallResult {
        let message = &mut self.messages[at];
        match op {
            "get" => return CallResult::success(&message.to_json()),
            "read" => {
                message.read = true;
                return CallResult::success(&message.to_json());
            }
            "mark-read" => message.read = true,
            "mark-unread" => message.read = false,
            "archive" if message.is_archived => return CallResult::failed(1, "already archived"),
            "archive" => message.is_archived = true,
            _ => drop(self.messages.remove(at)),
        }
        CallResult::no_output()
    }

    fn thread(&self, id: &str) -> CallResult {
        let of = self.find(id).map(|at| self.messages[at].thread_id.as_str());
        let thread = of.unwrap_or(id);
        let all = self.messages.iter().filter(|l| l.thread_id == thread);
        list_of(all)
    }

    fn list(&self, wanted: impl Fn(&StoredMessage) -> bool) -> CallResult {
        list_of(self.messages.iter().filter(|l| !l.is_archived && wanted(l)))
    }
}

fn list_of<'a>(messages: impl Iterator<Item = &'a StoredMessage>) -> CallResult {
    let all: Vec<_> = messages.map(StoredMessage::to_json).collect();
    if all.is_empty() {
        return CallResult::no_output();
    }
    CallResult::success(&Value::Array(all))
}

fn not_found() -> CallResult {
    CallResult::failed(1, "gc-mail-error:not-found")
}

impl StoredMessage {
    fn to_json(&self) -> Value {
        let mut value = json!({
            "id": self.id, "from": self.from, "to": self.to, "subject": self.subject,
            "body": self.body, "created_at": self.created_at, "read": self.read,
            "thread_id": self.thread_id,
        });
        if let Some(parent) = &self.reply_to {
            value["reply_to"] = json!(parent);
        }
        value
    }
}
