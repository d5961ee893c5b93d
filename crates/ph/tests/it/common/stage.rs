//! Sessions of the real `ph`, and the agents in them. All processes of a home are killed at the end
//! of its test, even if the test panics.

use super::{Done, PATIENCE, Ph, path_text};
use posthaste_core::MessageId;
use posthaste_core::receipt::Proven;
use posthaste_lab::pty::{Size, Terminal};
use posthaste_store::{Home, Journal, Patience};
use rustix::process::{Pid, Signal};
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::ops::Deref;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// Interval between polls, which is twice the time of the last poll within these limits: polling
/// takes processor time from the process that is waited for.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// Timeout for a reply of the session's socket. Without a reply, `ph` is called instead.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Poll until `ask` returns a value.
pub(crate) fn until<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let asked = Instant::now();
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep((2 * asked.elapsed()).clamp(PAUSE, LONGEST_PAUSE));
    }
}

/// Poll until `ask` returns true.
pub(crate) fn until_so(what: &str, mut ask: impl FnMut() -> bool) {
    until(what, || ask().then_some(()));
}

/// A home with sessions.
pub(crate) struct Stage {
    ph: Ph,
}

impl Deref for Stage {
    type Target = Ph;

    fn deref(&self) -> &Ph {
        &self.ph
    }
}

impl Stage {
    pub(crate) fn new() -> Self {
        Self { ph: Ph::new() }
    }

    /// Start a command in the background.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, name: &str, command: &[A]) -> Done {
        self.call(&run_args(name, command)).run()
    }

    /// Start a shell script in the background, and wait until it runs.
    pub(crate) fn script(&self, name: &str, script: &str) {
        let done = self.start(name, &["/bin/sh", "-c", script]);
        assert_eq!((done.code, done.err().as_str()), (0, ""), "{}", done.out());
    }

    /// Start the lab's agent in the background.
    pub(crate) fn agent(&self, name: &str, flags: &str) -> Agent<'_> {
        let agent = self.unstarted(name);
        self.start(name, &agent.command(flags)).ok();
        agent
    }

    fn unstarted(&self, name: &str) -> Agent<'_> {
        Agent {
            stage: self,
            name: name.to_owned(),
        }
    }

    /// Start the lab's agent in the foreground of a terminal.
    pub(crate) fn agent_in(&self, name: &str, flags: &str, size: Size) -> (Agent<'_>, Terminal) {
        let agent = self.unstarted(name);
        let head = ["run", "--name", name, "--"].map(str::to_owned);
        let args = [&head[..], &agent.command(flags)].concat();
        (agent, self.terminal_of(&args, size))
    }

    /// Like [`Self::agent`] after the last session has crashed, which `ph run` reports. Return its
    /// output too.
    pub(crate) fn agent_after_crash(&self, name: &str, flags: &str) -> (Agent<'_>, Done) {
        let agent = self.unstarted(name);
        let done = self.start(name, &agent.command(flags));
        assert_eq!(done.code, 0, "{}", done.err());
        (agent, done)
    }

    /// Run a `ph` command in a terminal.
    pub(crate) fn terminal(&self, line: &str, size: Size) -> Terminal {
        self.terminal_of(&self.words(line), size)
    }

    pub(crate) fn terminal_of<A: AsRef<OsStr>>(&self, args: &[A], size: Size) -> Terminal {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ph"));
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.user())
            .env("PH_HOME", self.home())
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .env("TERM", "xterm")
            .current_dir(self.user());
        Terminal::start(command, size)
    }

    /// Return the output of `ph status --json`.
    pub(crate) fn status(&self, name: &str) -> Value {
        let done = self.run(&format!("status {name} --json"));
        assert_eq!(done.code, 0, "{}", done.err());
        done.json()
    }

    pub(crate) fn pid(&self, name: &str) -> i32 {
        number(&self.status(name)["pid"])
    }

    pub(crate) fn child(&self, name: &str) -> i32 {
        number(&self.status(name)["child_pid"])
    }

    pub(crate) fn until_activity(&self, name: &str, want: &str) {
        until_so(&format!("{name} to be {want}"), || {
            let live = self.ask_live(name, "session");
            live.is_none_or(|session| session["activity"] == want)
                && self.status(name)["activity"] == want
        });
    }

    /// Call a method of a live session; `None` if no session replies. Cheaper than running `ph`, so
    /// that polling leaves the processor to the process that is waited for.
    fn ask_live(&self, name: &str, method: &str) -> Option<Value> {
        let socket = self.home().join("sockets").join(format!("{name}.sock"));
        let mut stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(ANSWER_TIMEOUT)).ok()?;
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {}});
        stream.write_all(format!("{call}\n").as_bytes()).ok()?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer).ok()?;
        let mut answer: Value = serde_json::from_str(&answer).ok()?;
        Some(answer["result"].take()).filter(|result| !result.is_null())
    }

    /// Return the last lines of the agent's screen.
    pub(crate) fn peek(&self, name: &str) -> String {
        self.run(&format!("peek {name}")).out()
    }

    pub(crate) fn until_shown(&self, name: &str, text: &str) {
        let shows = |screen: Value| {
            let lines = screen["lines"].as_array().expect("lines");
            let lines: Vec<&str> = lines.iter().filter_map(Value::as_str).collect();
            lines.join("\n").contains(text)
        };
        until_so(&format!("{name} to show {text:?}"), || {
            let live = self.ask_live(name, "peek");
            live.is_none_or(shows) && self.peek(name).contains(text)
        });
    }

    /// Send messages until one is caught in the state `offering`, and return its id. The state
    /// lasts some 50 ms, between the text and its Enter.
    pub(crate) fn catch_offering(&self, name: &str, journal: &mut Journal) -> String {
        until("an offer that is under way", || {
            let id = self.send(&format!("{name} hello"));
            let message: MessageId = id.parse().expect("an id");
            let proven = until("its offer", || {
                let message_state = journal.state(message).expect("a journal")?;
                let proven = message_state.status.proven;
                (proven != Proven::Stored).then_some(proven)
            });
            (proven == Proven::Offering).then_some(id)
        })
    }

    pub(crate) fn journal(&self) -> Journal {
        Journal::open(
            Home::open(self.home(), None).expect("a home"),
            Patience::DEFAULT,
        )
        .expect("a journal")
    }

    pub(crate) fn show(&self, id: &str) -> Value {
        self.run(&format!("show {id} --json")).json()
    }

    pub(crate) fn receipt(&self, id: &str) -> String {
        self.show(id)["receipt"].as_str().unwrap_or("").to_owned()
    }

    pub(crate) fn until_receipt(&self, id: &str, want: &str) {
        // Reading the journal is cheaper than running `ph`.
        let mut journal = self.journal();
        let message: Option<MessageId> = id.parse().ok();
        let mut stored = || {
            let message_state = journal.state(message?).expect("a journal")?;
            Some(message_state.status.receipt().to_string())
        };
        until_so(&format!("{id} to be {want}"), || {
            stored().is_none_or(|stored| stored == want) && self.receipt(id) == want
        });
    }

    /// Return the states of all receipts of a message, in order.
    pub(crate) fn receipts(&self, id: &str) -> Vec<String> {
        let shown = self.show(id);
        let receipts = shown["receipts"].as_array().expect("an array");
        let state = |r: &Value| r["state"].as_str().expect("a state").to_owned();
        receipts.iter().map(state).collect()
    }

    pub(crate) fn why(&self, id: &str) -> Value {
        self.run(&format!("why {id} --json")).json()
    }

    /// Return the rule that holds a message, or an empty text.
    pub(crate) fn rule(&self, id: &str) -> String {
        self.why(id)["rule"].as_str().unwrap_or("").to_owned()
    }

    pub(crate) fn until_rule(&self, id: &str, want: &str) {
        let mut last = String::new();
        let deadline = Instant::now() + PATIENCE;
        while last != want {
            assert!(
                Instant::now() < deadline,
                "{want} should hold {id}: {:#}",
                self.why(id)
            );
            last = self.rule(id);
        }
    }

    /// Send one line to a session's socket and return the reply.
    pub(crate) fn ask(&self, name: &str, line: &Value) -> Value {
        self.begin(name, line).answer()
    }

    /// Send one line to a session's socket without waiting for the reply.
    pub(crate) fn begin(&self, name: &str, line: &Value) -> PendingReply {
        let socket = self.home().join("sockets").join(format!("{name}.sock"));
        let mut stream = UnixStream::connect(socket).expect("a session that listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream
            .write_all(format!("{line}\n").as_bytes())
            .expect("a session that reads");
        PendingReply(stream)
    }

    pub(crate) fn rpc(&self, name: &str, method: &str, params: &Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.ask(name, &call);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Return the pids of all processes whose environment names this home.
    pub(crate) fn processes(&self) -> Vec<i32> {
        let mark = format!("PH_HOME={}/", path_text(self.dir()));
        pids()
            .filter(|pid| {
                let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environ
                    .split(|byte| *byte == 0)
                    .any(|v| v.starts_with(mark.as_bytes()))
            })
            .collect()
    }

    /// Wait for the end of every process of this home. A process still exists for a moment after
    /// its last output and after it has released its lock.
    pub(crate) fn until_nothing_runs(&self) {
        until_so("the end of all", || self.processes().is_empty());
    }

    /// Assert that no process of this home leaves a zombie behind.
    pub(crate) fn assert_no_zombies(&self) {
        let ours = self.processes();
        let dead = pids().filter(|pid| {
            stat(*pid).is_some_and(|stat| stat.state == 'Z' && ours.contains(&stat.parent))
        });
        // A child that has just exited is a zombie for a moment; only one that stays so is a fault.
        for pid in dead.collect::<Vec<_>>() {
            until_so("a dead child to be buried", || {
                stat(pid).is_none_or(|stat| stat.state != 'Z')
            });
        }
    }
}

/// A connection to a session whose reply was not read yet.
pub(crate) struct PendingReply(UnixStream);

impl PendingReply {
    pub(crate) fn answer(self) -> Value {
        let mut answer = String::new();
        BufReader::new(self.0)
            .read_line(&mut answer)
            .expect("an answer");
        serde_json::from_str(&answer).expect("JSON")
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = self.processes();
            if left.is_empty() || Instant::now() > deadline {
                break;
            }
            for pid in left {
                kill(pid, Signal::KILL);
            }
            std::thread::sleep(PAUSE);
        }
    }
}

fn run_args<A: AsRef<OsStr>>(name: &str, command: &[A]) -> Vec<std::ffi::OsString> {
    let head = ["run", "--name", name, "--detach", "--"].map(Into::into);
    let command = command.iter().map(|word| word.as_ref().to_owned());
    head.into_iter().chain(command).collect()
}

/// The lab's agent in a session, and the files with which a test controls it.
pub(crate) struct Agent<'a> {
    stage: &'a Stage,
    pub(crate) name: String,
}

/// Bytes of one read of the agent, and its time since the start.
#[derive(Debug, Clone)]
pub(crate) struct AgentRead {
    pub(crate) micros: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Agent<'_> {
    fn file(&self, kind: &str) -> PathBuf {
        self.stage.dir().join(format!("{}.{kind}", self.name))
    }

    pub(crate) fn command(&self, flags: &str) -> Vec<String> {
        let mut command = vec![path_text(&posthaste_lab::program("lab-agent"))];
        for kind in ["log", "say", "busy"] {
            command.push(format!("--{kind}"));
            command.push(path_text(&self.file(kind)));
        }
        command.extend(flags.split_whitespace().map(str::to_owned));
        command
    }

    /// Make the agent print these bytes.
    pub(crate) fn say(&self, bytes: impl AsRef<[u8]>) {
        let draft = self.file("draft");
        std::fs::write(&draft, bytes).expect("a file beside the home");
        std::fs::rename(draft, self.file("say")).expect("a file beside the home");
    }

    /// Make the agent print dots until [`Self::let_rest`].
    pub(crate) fn keep_busy(&self) {
        std::fs::write(self.file("busy"), "").expect("a file beside the home");
        self.stage.until_activity(&self.name, "working");
    }

    pub(crate) fn let_rest(&self) {
        let _ = std::fs::remove_file(self.file("busy"));
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.file("busy").exists()
    }

    /// Return all reads of the agent.
    pub(crate) fn reads(&self) -> Vec<AgentRead> {
        let log = std::fs::read_to_string(self.file("log")).unwrap_or_default();
        // The last line may be incomplete.
        let whole = log.rfind('\n').map_or("", |end| &log[..end]);
        whole.lines().map(read_line).collect()
    }

    pub(crate) fn heard(&self) -> Vec<u8> {
        self.reads().into_iter().flat_map(|r| r.bytes).collect()
    }

    pub(crate) fn heard_text(&self) -> String {
        String::from_utf8(self.heard()).expect("it was typed text")
    }

    pub(crate) fn until_heard(&self, text: &str) {
        let bytes = text.as_bytes();
        until_so(&format!("{} to hear {text:?}", self.name), || {
            let heard = self.heard();
            heard.windows(bytes.len()).any(|window| window == bytes)
        });
    }
}

fn read_line(line: &str) -> AgentRead {
    let (micros, hex) = line.split_once(' ').expect("a time and bytes");
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let digits = std::str::from_utf8(pair).expect("digits");
        u8::from_str_radix(digits, 16).expect("hexadecimal")
    };
    AgentRead {
        micros: micros.parse().expect("a number"),
        bytes: pairs.map(byte).collect(),
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    pub(crate) state: char,
    pub(crate) parent: i32,
}

pub(crate) fn stat(pid: i32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let mut fields = rest.split(' ');
    Some(Stat {
        state: fields.next()?.chars().next()?,
        parent: fields.next()?.parse().ok()?,
    })
}

/// Return the processor time of a process, in clock ticks of the kernel.
pub(crate) fn ticks(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or("").split(' ').collect();
    let field = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok());
    field(11).unwrap_or(0) + field(12).unwrap_or(0)
}

/// Return the number of voluntary context switches of a process: how often it has waited.
pub(crate) fn sleeps(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let count = text
        .lines()
        .find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    count.map_or(0, |count| count.trim().parse().expect("a number"))
}

fn pids() -> impl Iterator<Item = i32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
}

/// Return whether a process exists and is not a zombie.
pub(crate) fn is_alive(pid: i32) -> bool {
    stat(pid).is_some_and(|stat| !matches!(stat.state, 'Z' | 'X'))
}

pub(crate) fn until_dead(pid: i32) {
    until_so(&format!("process {pid} to end"), || !is_alive(pid));
}

pub(crate) fn kill(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Wait for a script to write a number to a file, and return it.
pub(crate) fn wait_for_number(path: &Path) -> i32 {
    until(&format!("a number in {}", path.display()), || {
        let text = std::fs::read_to_string(path).ok()?;
        text.strip_suffix('\n')?.trim().parse().ok()
    })
}

fn number(value: &Value) -> i32 {
    let number = value
        .as_i64()
        .unwrap_or_else(|| panic!("{value} is no pid"));
    i32::try_from(number).expect("a pid is small")
}

/// Return the time between two receipts of a message, in milliseconds.
pub(crate) fn millis_between(shown: &Value, first: &str, last: &str) -> i128 {
    let at = |state: &str| {
        let receipts = shown["receipts"].as_array().expect("an array");
        let receipt = receipts.iter().find(|r| r["state"] == state);
        let at = receipt.expect(state)["at"].as_str().expect("a time");
        at.parse::<jiff::Timestamp>().expect("a time")
    };
    at(last).duration_since(at(first)).as_millis()
}
