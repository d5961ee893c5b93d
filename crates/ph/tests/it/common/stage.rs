//! Sessions of the real `ph`, and the agents in them. Whatever a test starts in its home ends with
//! the test, however that ends.

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

/// Pause before a question is asked again: longer after one that took long, because asking takes
/// time from what is waited for.
const PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(50);
/// Timeout for a question to a session that `ph` can be asked instead.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);

/// Asks until the answer is there.
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

/// Asks until it is so.
pub(crate) fn until_so(what: &str, mut ask: impl FnMut() -> bool) {
    until(what, || ask().then_some(()));
}

/// A home with sessions in it.
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

    /// Starts a command in the background.
    pub(crate) fn start<A: AsRef<OsStr>>(&self, name: &str, command: &[A]) -> Done {
        self.call(&run_args(name, command)).run()
    }

    /// Starts a shell script in the background, and waits until it runs.
    pub(crate) fn script(&self, name: &str, script: &str) {
        let done = self.start(name, &["/bin/sh", "-c", script]);
        assert_eq!((done.code, done.err().as_str()), (0, ""), "{}", done.out());
    }

    /// Starts the lab's agent.
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

    /// Starts the lab's agent in a terminal that shows it.
    pub(crate) fn agent_in(&self, name: &str, flags: &str, size: Size) -> (Agent<'_>, Terminal) {
        let agent = self.unstarted(name);
        let head = ["run", "--name", name, "--"].map(str::to_owned);
        let args = [&head[..], &agent.command(flags)].concat();
        (agent, self.terminal_of(&args, size))
    }

    /// The same where the last session has crashed, and what is said of that.
    pub(crate) fn agent_after_crash(&self, name: &str, flags: &str) -> (Agent<'_>, Done) {
        let agent = self.unstarted(name);
        let done = self.start(name, &agent.command(flags));
        assert_eq!(done.code, 0, "{}", done.err());
        (agent, done)
    }

    /// A terminal in which somebody types a `ph` command.
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

    /// What `ph status --json` says.
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
            let told = self.ask_live(name, "session");
            told.is_none_or(|session| session["activity"] == want)
                && self.status(name)["activity"] == want
        });
    }

    /// What a live session answers; none where no session does. It costs less than a process that
    /// asks, so waiting takes no time from what is waited for.
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

    /// The last lines of what a terminal shows.
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
            let told = self.ask_live(name, "peek");
            told.is_none_or(shows) && self.peek(name).contains(text)
        });
    }

    /// Sends until a message is caught between the beginning of its offer and its end. There are
    /// some 50 ms between the two, in which a text stands without its Enter.
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
        // Looking into the journal costs less than a process that does.
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

    /// The states of all its receipts, in order.
    pub(crate) fn receipts(&self, id: &str) -> Vec<String> {
        let shown = self.show(id);
        let receipts = shown["receipts"].as_array().expect("an array");
        let state = |r: &Value| r["state"].as_str().expect("a state").to_owned();
        receipts.iter().map(state).collect()
    }

    pub(crate) fn why(&self, id: &str) -> Value {
        self.run(&format!("why {id} --json")).json()
    }

    /// The rule that holds a message; empty where none does.
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

    /// Says one line to a session's socket; gives back the line that it answers with.
    pub(crate) fn ask(&self, name: &str, line: &Value) -> Value {
        self.begin(name, line).answer()
    }

    /// Says one line to a session's socket, and does not wait for the answer.
    pub(crate) fn begin(&self, name: &str, line: &Value) -> Asked {
        let socket = self.home().join("sockets").join(format!("{name}.sock"));
        let mut stream = UnixStream::connect(socket).expect("a session that listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time");
        stream
            .write_all(format!("{line}\n").as_bytes())
            .expect("a session that reads");
        Asked(stream)
    }

    pub(crate) fn rpc(&self, name: &str, method: &str, params: &Value) -> Value {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = self.ask(name, &call);
        assert!(answer["error"].is_null(), "{answer}");
        answer["result"].clone()
    }

    /// Every process that belongs to this home.
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

    /// Waits for the end of every process of this home: one that has said its last word, and let go
    /// of its lock, is still there for a moment.
    pub(crate) fn until_nothing_runs(&self) {
        until_so("the end of all", || self.processes().is_empty());
    }

    /// Asserts that none of this home's processes has left a dead child unburied.
    pub(crate) fn assert_no_zombies(&self) {
        let ours = self.processes();
        let dead = pids().filter(|pid| {
            stat(*pid).is_some_and(|stat| stat.state == 'Z' && ours.contains(&stat.parent))
        });
        // One that dies in this moment is not forgotten; only one that stays so is.
        for pid in dead.collect::<Vec<_>>() {
            until_so("a dead child to be buried", || {
                stat(pid).is_none_or(|stat| stat.state != 'Z')
            });
        }
    }
}

/// A question to a session that has not been answered.
pub(crate) struct Asked(UnixStream);

impl Asked {
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

/// The lab's agent in a session, and the files by which a test speaks with it.
pub(crate) struct Agent<'a> {
    stage: &'a Stage,
    pub(crate) name: String,
}

/// One read of the agent's.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
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

    /// Has it print this.
    pub(crate) fn say(&self, bytes: impl AsRef<[u8]>) {
        let draft = self.file("draft");
        std::fs::write(&draft, bytes).expect("a file beside the home");
        std::fs::rename(draft, self.file("say")).expect("a file beside the home");
    }

    /// Prints dots from now on.
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

    /// Everything that it has read, a read at a time.
    pub(crate) fn reads(&self) -> Vec<Heard> {
        let log = std::fs::read_to_string(self.file("log")).unwrap_or_default();
        // The last line may be half written.
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

fn read_line(line: &str) -> Heard {
    let (micros, hex) = line.split_once(' ').expect("a time and bytes");
    let pairs = hex.as_bytes().chunks(2);
    let byte = |pair: &[u8]| {
        let digits = std::str::from_utf8(pair).expect("digits");
        u8::from_str_radix(digits, 16).expect("hexadecimal")
    };
    Heard {
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

/// How long a process has used the processor, in the kernel's ticks.
pub(crate) fn ticks(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields: Vec<&str> = text.rsplit(") ").next().unwrap_or("").split(' ').collect();
    let field = |at: usize| fields.get(at).and_then(|f| f.parse::<u64>().ok());
    field(11).unwrap_or(0) + field(12).unwrap_or(0)
}

/// How often a process has gone to sleep until something wakes it.
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

/// Whether it runs; one that waits to be buried does not.
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

/// The number that a script has written to a file, once it stands there.
pub(crate) fn number_in(path: &Path) -> i32 {
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

/// How long one receipt of a message came after another, in milliseconds.
pub(crate) fn between(shown: &Value, first: &str, last: &str) -> i128 {
    let at = |state: &str| {
        let receipts = shown["receipts"].as_array().expect("an array");
        let receipt = receipts.iter().find(|r| r["state"] == state);
        let at = receipt.expect(state)["at"].as_str().expect("a time");
        at.parse::<jiff::Timestamp>().expect("a time")
    };
    at(last).duration_since(at(first)).as_millis()
}
