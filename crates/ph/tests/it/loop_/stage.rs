//! A loop whose agent does, in each iteration, what the test tells it: it puts its prompt into a
//! file and waits for a line of shell to carry out. No test waits for a time.

use crate::common::session::{BOT, Session};
use crate::common::{Done, Ph, path_text, wait_for};
use rustix::fs::{CWD, Mode, OFlags};
use rustix::io::Errno;
use serde_json::{Value, json};
use std::path::PathBuf;

/// The agent. `$DIR` is the stage's.
const AGENT: &str = r#"
cat > "$DIR/given"
cp "$DIR/given" "$DIR/coming"
mv "$DIR/coming" "$DIR/prompt.$PH_ITERATION"
IFS= read -r order < "$DIR/orders"
eval "$order"
"#;

/// The same for a prompt that is its argument: the first after its name.
pub(crate) const TAKES: &str = r#"
printf %s "$1" > "$DIR/coming"
mv "$DIR/coming" "$DIR/prompt.$PH_ITERATION"
IFS= read -r order < "$DIR/orders"
eval "$order"
"#;

pub(crate) struct Loop {
    pub(crate) session: Session,
    /// What it was started with.
    pub(crate) words: Vec<String>,
    dir: PathBuf,
}

/// A place for a loop that is not started yet.
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

    /// With a prd of these stories.
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

    /// For what is refused.
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

/// Calls a tool of `ph mcp`, as a harness does.
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

    /// The prompt of an iteration, once its agent has it; each is given once.
    pub(crate) fn prompt(&self, iteration: u32) -> String {
        let path = self.dir.join(format!("prompt.{iteration}"));
        wait_for(&format!("the prompt of iteration {iteration}"), || {
            let prompt = std::fs::read_to_string(&path).ok()?;
            std::fs::remove_file(&path).expect("it was there");
            Some(prompt)
        })
    }

    /// Has the agent that waits carry out a line of shell.
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

    /// Facts of one kind, in order.
    pub(crate) fn facts(&self, kind: &str) -> Vec<Value> {
        let facts = self.ph().facts();
        let facts = facts
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"));
        facts.filter(|fact: &Value| fact["kind"] == kind).collect()
    }

    /// How iterations have ended, in order.
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

    /// How the loop ended, once it has and its session is gone.
    pub(crate) fn ending(&self) -> String {
        let ended = wait_for("the end of the loop", || self.facts("loop_ended").pop());
        self.session.wait_gone();
        ended["data"]["how"].to_string()
    }

    pub(crate) fn status(&self) -> Value {
        self.session.ask("get_status", serde_json::json!({}))
    }

    /// Until its status says so.
    pub(crate) fn wait_for_status(&self, word: &str) {
        wait_for(word, || (self.status()["status"] == word).then_some(()));
    }
}
