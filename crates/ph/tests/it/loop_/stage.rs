//! A loop whose agent does what the test orders: in each iteration it writes its prompt to a file
//! and waits for a line of shell to run. No test waits for a fixed time.

use crate::common::session::{BOT, Session};
use crate::common::{Done, Ph, path_text, wait_for};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The agent's script. `$DIR` is the directory of the stage.
const AGENT: &str = r#"
cat > "$DIR/given"
cp "$DIR/given" "$DIR/coming"
mv "$DIR/coming" "$DIR/prompt.$PH_ITERATION"
IFS= read -r order < "$DIR/orders"
eval "$order"
"#;

/// Like [`AGENT`], but the prompt is the first argument.
pub(crate) const TAKES: &str = r#"
printf %s "$1" > "$DIR/coming"
mv "$DIR/coming" "$DIR/prompt.$PH_ITERATION"
IFS= read -r order < "$DIR/orders"
eval "$order"
"#;

pub(crate) struct Loop {
    pub(crate) session: Session,
    /// The arguments that started it.
    pub(crate) words: Vec<String>,
    dir: PathBuf,
}

/// A home and arguments for a loop that is not started yet.
pub(crate) struct Stage {
    pub(crate) ph: Ph,
    flags: Vec<String>,
    command: Vec<String>,
}

impl Stage {
    pub(crate) fn new() -> Self {
        let ph = Ph::new();
        ph.file("spec.md", "Build a small house.\n");
        let orders = ph.dir().join("orders");
        rustix::fs::mkfifoat(CWD, &orders, Mode::RUSR | Mode::WUSR).expect("a pipe");
        let dir = format!("DIR={}", path_text(ph.dir()));
        let mut stage = Self {
            ph,
            flags: Vec::new(),
            command: ["/bin/sh", "-c", AGENT].map(str::to_owned).into(),
        };
        let spec = stage.path("spec.md");
        stage = stage.flags(&["--name", BOT, "--spec", &spec, "--env", &dir]);
        let program = format!("PH={}", env!("CARGO_BIN_EXE_ph"));
        stage.flags(&["--env", &program])
    }

    pub(crate) fn path(&self, name: &str) -> String {
        path_text(&self.ph.dir().join(name))
    }

    pub(crate) fn flags(mut self, flags: &[&str]) -> Self {
        self.flags
            .extend(flags.iter().map(|flag| (*flag).to_owned()));
        self
    }

    pub(crate) fn command(mut self, command: &[&str]) -> Self {
        self.command = command.iter().map(|word| (*word).to_owned()).collect();
        self
    }

    /// Add a prd with these stories.
    pub(crate) fn prd(self, stories: &str) -> Self {
        self.ph.file("prd.json", prd(stories));
        let path = self.path("prd.json");
        self.flags(&["--prd", &path])
    }

    fn words(&self) -> Vec<&str> {
        let head = ["build", "--json", "--detach"].into_iter();
        let flags = self.flags.iter().map(String::as_str);
        let command = self.command.iter().map(String::as_str);
        head.chain(flags).chain(["--"]).chain(command).collect()
    }

    /// Start a loop that is expected to be refused.
    pub(crate) fn try_start(&self) -> Done {
        self.ph.call(&self.words()).run()
    }

    pub(crate) fn start(self) -> Loop {
        let words: Vec<String> = self.words().iter().map(|word| (*word).to_owned()).collect();
        let call = self.ph.call(&words);
        let dir = self.ph.dir().to_owned();
        Loop {
            session: Session::begin(self.ph, call),
            words,
            dir,
        }
    }
}

/// Call a tool of `ph mcp`, as a harness does.
pub(crate) fn tool(name: &str, arguments: &Value) -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "agent", "version": "1"},
    }});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": name, "arguments": arguments,
    }});
    format!("printf '%s\\n' '{hello}' '{ready}' '{call}' | \"$PH\" mcp")
}

pub(crate) fn prd(stories: &str) -> String {
    format!(r#"{{"project": "house", "userStories": [{stories}]}}"#)
}

impl Loop {
    pub(crate) fn ph(&self) -> &Ph {
        &self.session.ph
    }

    /// Return the prompt of an iteration, once the agent has it. Each prompt is returned once.
    pub(crate) fn prompt(&self, iteration: u32) -> String {
        let path = self.dir.join(format!("prompt.{iteration}"));
        wait_for(&format!("the prompt of iteration {iteration}"), || {
            let prompt = std::fs::read_to_string(&path).ok()?;
            std::fs::remove_file(&path).expect("it was there");
            Some(prompt)
        })
    }

    /// Let the waiting agent run a line of shell.
    pub(crate) fn go(&self, line: &str) {
        let path = self.dir.join("orders");
        let pipe = wait_for("an agent that waits", || {
            let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match rustix::fs::open(&path, flags, Mode::empty()) {
                Ok(pipe) => Some(pipe),
                Err(Errno::NXIO) => None,
                Err(error) => panic!("no pipe: {error}"),
            }
        });
        let line = format!("{line}\n");
        let written = rustix::io::write(&pipe, line.as_bytes());
        assert_eq!(written, Ok(line.len()));
    }

    /// Return the facts of one kind, in order.
    pub(crate) fn facts(&self, kind: &str) -> Vec<Value> {
        let facts = self.ph().facts();
        let facts = facts
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        facts.filter(|fact: &Value| fact["kind"] == kind).collect()
    }

    /// Return the outcomes of the iterations, in order.
    pub(crate) fn outcomes(&self) -> Vec<String> {
        let facts = self.facts("iteration_ended");
        let told = facts.iter().map(|fact| {
            let data = &fact["data"];
            format!("{} {}", data["number"], data["outcome"])
        });
        told.collect()
    }

    pub(crate) fn wait_for_outcomes(&self, count: usize) -> Vec<String> {
        wait_for("ends of iterations", || {
            let outcomes = self.outcomes();
            (outcomes.len() >= count).then_some(outcomes)
        })
    }

    /// Wait for the end of the loop and of its session. Return how the loop ended.
    pub(crate) fn ending(&self) -> String {
        let ended = wait_for("the end of the loop", || self.facts("loop_ended").pop());
        self.session.wait_gone();
        ended["data"]["how"].to_string()
    }

    pub(crate) fn status(&self) -> Value {
        self.session.ask("get_status", serde_json::json!({}))
    }

    /// Wait until the status contains this text.
    pub(crate) fn wait_for_status(&self, word: &str) {
        wait_for(word, || (self.status()["status"] == word).then_some(()));
    }
}
