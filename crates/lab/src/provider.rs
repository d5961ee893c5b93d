//! Mail provider in memory: a minimal model of the protocol.
//!
//! Its state is serializable, because a script runs for one call only.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct MemoryProvider {
    letters: Vec<Letter>,
    /// Number of messages ever stored, so that no id is used twice.
    sent: u64,
}

#[derive(Debug, Serialize, Deserialize)]
struct Letter {
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
pub struct Ended {
    pub code: u8,
    pub stdout: String,
    pub stderr: String,
}

impl Ended {
    fn said(value: &Value) -> Self {
        Self {
            code: 0,
            stdout: value.to_string(),
            stderr: String::new(),
        }
    }

    fn silent() -> Self {
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
    pub fn call(&mut self, now: Timestamp, op: &str, arg: &str, stdin: &str) -> Ended {
        match op {
            "ensure-running" => Ended::silent(),
            "send" => self.send(now, arg, stdin, None),
            "reply" => match self.find(arg) {
                Some(at) => {
                    let to = self.letters[at].from.clone();
                    self.send(now, &to, stdin, Some(at))
                }
                None => not_found(),
            },
            "inbox" | "check" => self.list(|letter| letter.to == arg && !letter.read),
            "all" => self.list(|letter| letter.to == arg),
            "thread" => self.thread(arg),
            "count" => {
                let mine = |letter: &&Letter| letter.to == arg && !letter.is_archived;
                let mine: Vec<_> = self.letters.iter().filter(mine).collect();
                let unread = mine.iter().filter(|letter| !letter.read).count();
                Ended::said(&json!({"total": mine.len(), "unread": unread}))
            }
            "get" | "read" | "mark-read" | "mark-unread" | "archive" | "delete" => {
                match self.find(arg) {
                    Some(at) => self.change(at, op),
                    None => not_found(),
                }
            }
            _ => Ended::failed(2, "unknown operation"),
        }
    }

    fn find(&self, id: &str) -> Option<usize> {
        self.letters.iter().position(|letter| letter.id == id)
    }

    fn send(&mut self, now: Timestamp, to: &str, stdin: &str, parent: Option<usize>) -> Ended {
        let Ok(said) = serde_json::from_str::<Value>(stdin) else {
            return Ended::failed(1, "standard input is not JSON");
        };
        if to.is_empty() || to.starts_with('-') {
            return Ended::failed(1, "nobody has such a name");
        }
        let word = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        self.sent += 1;
        let id = format!("m{}", self.sent);
        let thread = parent.map(|at| self.letters[at].thread_id.clone());
        let letter = Letter {
            from: word("from"),
            to: to.to_owned(),
            subject: word("subject"),
            body: word("body"),
            created_at: now,
            read: false,
            thread_id: thread.unwrap_or_else(|| format!("t-{id}")),
            reply_to: parent.map(|at| self.letters[at].id.clone()),
            is_archived: false,
            id,
        };
        let ended = Ended::said(&letter.told());
        self.letters.push(letter);
        ended
    }

    fn change(&mut self, at: usize, op: &str) -> Ended {
        let letter = &mut self.letters[at];
        match op {
            "get" => return Ended::said(&letter.told()),
            "read" => {
                letter.read = true;
                return Ended::said(&letter.told());
            }
            "mark-read" => letter.read = true,
            "mark-unread" => letter.read = false,
            "archive" if letter.is_archived => return Ended::failed(1, "already archived"),
            "archive" => letter.is_archived = true,
            _ => drop(self.letters.remove(at)),
        }
        Ended::silent()
    }

    fn thread(&self, id: &str) -> Ended {
        let of = self.find(id).map(|at| self.letters[at].thread_id.as_str());
        let thread = of.unwrap_or(id);
        let all = self.letters.iter().filter(|l| l.thread_id == thread);
        told(all)
    }

    fn list(&self, wanted: impl Fn(&Letter) -> bool) -> Ended {
        told(self.letters.iter().filter(|l| !l.is_archived && wanted(l)))
    }
}

fn told<'a>(letters: impl Iterator<Item = &'a Letter>) -> Ended {
    let all: Vec<_> = letters.map(Letter::told).collect();
    if all.is_empty() {
        return Ended::silent();
    }
    Ended::said(&Value::Array(all))
}

fn not_found() -> Ended {
    Ended::failed(1, "gc-mail-error:not-found")
}

impl Letter {
    fn told(&self) -> Value {
        let mut told = json!({
            "id": self.id, "from": self.from, "to": self.to, "subject": self.subject,
            "body": self.body, "created_at": self.created_at, "read": self.read,
            "thread_id": self.thread_id,
        });
        if let Some(parent) = &self.reply_to {
            told["reply_to"] = json!(parent);
        }
        told
    }
}
