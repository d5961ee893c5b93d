//! Runs agents and senders on the real binary, and kills them at random.

use crate::floor;
use crate::samples::Samples;
use jiff::Timestamp;
use posthaste_core::AgentName;
use posthaste_lab::{TempHome, name};
use posthaste_store::{Journal, Patience};
use rustix::process::{Pid, Signal};
use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const SENDERS: usize = 50;
/// Agents without a session, whose mail hooks show.
const HOOKED: usize = 4;
/// Timeout for all mail to be delivered after the last kill.
const DELIVERED_WITHIN: Duration = Duration::from_secs(180);

/// A message that a sender tried to send.
pub(crate) struct Sent {
    pub(crate) to: String,
    /// A word that is in no other message.
    pub(crate) word: String,
    /// The id, if the send succeeded.
    pub(crate) id: Option<String>,
}

#[derive(Default)]
struct Counts {
    sessions: u32,
    programs: u32,
    senders: u32,
    hooks: u32,
    readers: u32,
    stops: u32,
    freezes: u32,
    /// Sends that were refused because a stopped session had the writers' lock.
    refused: u32,
}

#[derive(Clone, Copy)]
enum Target {
    Session,
    Program,
}

pub(crate) struct World {
    dir: TempHome,
    ph: PathBuf,
    agent: PathBuf,
    random: u64,
    pub(crate) agents: Vec<String>,
    pub(crate) hooked: Vec<String>,
    pub(crate) sent: Vec<Sent>,
    /// Times at which the program of an agent ended, or its hook was killed.
    pub(crate) kills: HashMap<String, Vec<Timestamp>>,
    /// Sends that failed without being killed.
    pub(crate) failed_sends: Vec<String>,
    counts: Counts,
    pub(crate) samples: Samples,
}

impl World {
    pub(crate) fn new(seed: u64, agents: usize) -> Self {
        let dir = TempHome::new();
        std::fs::create_dir(dir.beside().join("user")).unwrap();
        Self {
            dir,
            ph: posthaste_lab::ph(),
            agent: posthaste_lab::program("lab-agent"),
            random: seed,
            agents: (0..agents).map(|n| format!("a{n}")).collect(),
            hooked: (0..HOOKED).map(|n| format!("h{n}")).collect(),
            sent: Vec::new(),
            kills: HashMap::new(),
            failed_sends: Vec::new(),
            counts: Counts::default(),
            samples: Samples::default(),
        }
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.dir.path()
    }

    /// Copy the run's files to a directory that is not deleted, and return its path.
    pub(crate) fn keep(&self) -> PathBuf {
        let kept = std::env::temp_dir().join(format!("ph-chaos-{}", std::process::id()));
        let copied = Command::new("cp")
            .arg("-a")
            .args([self.dir.beside(), &kept])
            .status();
        assert!(copied.is_ok_and(|status| status.success()));
        kept
    }

    fn acknowledged(&self) -> usize {
        self.sent.iter().filter(|sent| sent.id.is_some()).count()
    }

    /// Return the work that was done too rarely in `time`.
    pub(crate) fn shortfall(&self, time: Duration) -> Vec<String> {
        let kills = self.counts.sessions + self.counts.programs;
        floor::shortfall(time, self.acknowledged(), kills as usize)
    }

    pub(crate) fn progress(&self) -> String {
        let known = self.acknowledged();
        let Counts {
            sessions,
            programs,
            senders,
            hooks,
            readers,
            stops,
            freezes,
            refused,
        } = self.counts;
        format!(
            "{} sends, {known} acknowledged; killed: {sessions} sessions, {programs} programs, \
             {senders} senders, {hooks} hooks, {readers} readers; {stops} stops, {freezes} freezes; \
             {refused} sends refused by a stopped session's lock; {} samples",
            self.sent.len(),
            self.samples.count
        )
    }

    fn random_below(&mut self, end: usize) -> usize {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random % (end as u64)).unwrap()
    }

    fn one_of(&mut self, names: &[String]) -> String {
        names[self.random_below(names.len())].clone()
    }

    pub(crate) fn ph(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.ph);
        command
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.beside().join("user"))
            .env("PH_HOME", self.home())
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Return the path of the log with an agent's input, or with its hooks' output.
    pub(crate) fn log(&self, agent: &str) -> PathBuf {
        self.dir.beside().join(format!("{agent}.log"))
    }

    pub(crate) fn start_all(&mut self) {
        for agent in self.agents.clone() {
            self.start(&agent);
        }
    }

    /// Start an agent, unless it runs.
    fn start(&self, agent: &str) {
        let log = self.log(agent);
        let program = self.agent.to_string_lossy().into_owned();
        let log = log.to_string_lossy();
        let args = ["run", "--name", agent, "--detach", "--", &program];
        let args = [&args[..], &["--raw", "--paste", "--log", &log]].concat();
        let done = self.ph(&args).output().unwrap();
        let stderr = String::from_utf8_lossy(&done.stderr);
        let runs = done.status.success() || stderr.contains("is already running");
        assert!(runs, "{agent} does not start: {stderr}");
    }

    /// Note the descriptors and the memory of every session.
    pub(crate) fn sample(&mut self) {
        for agent in &self.agents {
            if let Some((session, _)) = self.pids(agent) {
                self.samples.add(agent, session);
            }
        }
    }

    fn record_kill(&mut self, agent: &str) {
        let times = self.kills.entry(agent.to_owned()).or_default();
        times.push(Timestamp::now());
    }

    /// Carry out a random action.
    pub(crate) fn act(&mut self) {
        match self.random_below(100) {
            0..60 => self.send(None),
            60..70 => self.kill_agent(Target::Session),
            70..78 => self.kill_agent(Target::Program),
            78..88 => self.hook(),
            88..94 => self.read(),
            94..97 => self.freeze(),
            _ => self.stop(),
        }
    }

    /// Send some messages at once, and kill some of the senders.
    /// Send some messages, while the session with the process id `stopped` is stopped.
    fn send(&mut self, stopped: Option<i32>) {
        let mut sending: Vec<(Child, Sent)> = Vec::new();
        for _ in 0..=self.random_below(8) {
            let names = match self.random_below(6) {
                0 => self.hooked.clone(),
                _ => self.agents.clone(),
            };
            let to = self.one_of(&names);
            let word = format!("w{:07}e", self.sent.len() + sending.len());
            let from = format!("s{}", self.random_below(SENDERS));
            let priority =
                ["normal", "normal", "interrupt", "idle", "idle-first"][self.random_below(5)];
            let args = ["send", &to, &word, "--from", &from, "--priority", priority];
            let child = self.ph(&args).spawn().unwrap();
            sending.push((child, Sent { to, word, id: None }));
        }
        for (mut child, mut sent) in sending {
            let is_killed = self.random_below(10) == 0;
            if is_killed {
                std::thread::sleep(Duration::from_micros(self.random_below(4_000) as u64));
                let _ = child.kill();
                self.counts.senders += 1;
            }
            let done = child.wait_with_output().unwrap();
            if done.status.success() {
                sent.id = Some(String::from_utf8(done.stdout).unwrap().trim().to_owned());
            } else if !is_killed {
                let error = String::from_utf8_lossy(&done.stderr);
                // The session was stopped in the middle of a commit.
                let is_locked =
                    |pid| error.contains(&format!("busy: waited 10 s for process {pid} "));
                match stopped.is_some_and(is_locked) {
                    true => self.counts.refused += 1,
                    false => self.failed_sends.push(format!("a send failed: {error}")),
                }
            }
            self.sent.push(sent);
        }
    }

    fn record(&self, agent: &str) -> Option<serde_json::Value> {
        let path = self.home().join("sessions").join(agent).join("run.json");
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Return the processes of an agent's session and of its program, if they run.
    pub(crate) fn pids(&self, agent: &str) -> Option<(i32, i32)> {
        let record = self.record(agent)?;
        let pid = |key: &str| i32::try_from(record[key].as_i64()?).ok();
        let (session, program) = (pid("pid")?, pid("child_pid")?);
        let home = self.home();
        (runs_in_home(session, &home) && runs_in_home(program, &home)).then_some((session, program))
    }

    /// Kill a session or its program, and start the agent again.
    fn kill_agent(&mut self, target: Target) {
        let agent = self.one_of(&self.agents.clone());
        if let Some((session, program)) = self.pids(&agent) {
            match target {
                Target::Session => {
                    self.counts.sessions += 1;
                    kill(session, Signal::KILL);
                }
                Target::Program => {
                    self.counts.programs += 1;
                    kill(program, Signal::KILL);
                }
            }
            until_gone(session);
        }
        self.record_kill(&agent);
        self.start(&agent);
    }

    fn stop(&mut self) {
        self.counts.stops += 1;
        let agent = self.one_of(&self.agents.clone());
        let stopped = self.ph(&["stop", &agent]).output().unwrap();
        assert!(stopped.status.success(), "{stopped:?}");
        self.record_kill(&agent);
        self.start(&agent);
    }

    /// Stop a session's process for a while. Mail sent meanwhile must not be lost.
    fn freeze(&mut self) {
        let agent = self.one_of(&self.agents.clone());
        if let Some((session, _)) = self.pids(&agent) {
            self.counts.freezes += 1;
            kill(session, Signal::STOP);
            self.send(Some(session));
            kill(session, Signal::CONT);
        }
    }

    /// Let a hook show mail, and sometimes kill it.
    fn hook(&mut self) {
        let agent = self.one_of(&self.hooked.clone());
        let log = self.log(&agent);
        let file = File::options().append(true).create(true).open(log).unwrap();
        let mut command = self.ph(&["check", "--inject"]);
        let mut child = command
            .env("PH_AGENT", &agent)
            .stdout(file)
            .spawn()
            .unwrap();
        if self.random_below(2) == 0 {
            std::thread::sleep(Duration::from_micros(self.random_below(8_000) as u64));
            let _ = child.kill();
            self.counts.hooks += 1;
            self.record_kill(&agent);
        }
        child.wait().unwrap();
    }

    /// Run a read-only command, and sometimes kill it.
    fn read(&mut self) {
        let agent = self.one_of(&self.agents.clone());
        let args: &[&str] = match self.random_below(5) {
            0 => &["inbox", &agent, "--all"],
            1 => &["log", "--json"],
            2 => &["ls", "--all"],
            3 => &["search", "w000"],
            _ => &["status", &agent],
        };
        let mut child = self.ph(args).stdout(Stdio::null()).spawn().unwrap();
        if self.random_below(2) == 0 {
            std::thread::sleep(Duration::from_micros(self.random_below(20_000) as u64));
            let _ = child.kill();
            self.counts.readers += 1;
        }
        child.wait().unwrap();
    }

    pub(crate) fn journal(&self) -> Journal {
        let home = posthaste_store::Home::open(self.home(), None).unwrap();
        Journal::open(home, Patience::DEFAULT).unwrap()
    }

    /// Let everything run, and wait until all mail is delivered. Return whether it is.
    pub(crate) fn wait_until_delivered(&mut self) -> bool {
        self.start_all();
        let mut journal = self.journal();
        let deadline = Instant::now() + DELIVERED_WITHIN;
        let names =
            |names: &[String]| -> Vec<AgentName> { names.iter().map(|n| name(n)).collect() };
        let (agents, hooked) = (names(&self.agents), names(&self.hooked));
        loop {
            for agent in self.hooked.clone() {
                let shown = self
                    .ph(&["check", "--inject"])
                    .env("PH_AGENT", &agent)
                    .output();
                let shown = shown.unwrap().stdout;
                let mut log = File::options()
                    .append(true)
                    .create(true)
                    .open(self.log(&agent))
                    .unwrap();
                std::io::Write::write_all(&mut log, &shown).unwrap();
            }
            let waits = |agent: &AgentName, journal: &mut Journal| {
                journal.pending(agent, Timestamp::now()).unwrap().queued > 0
            };
            let mut all = agents.iter().chain(&hooked);
            if !all.any(|agent| waits(agent, &mut journal)) {
                return true;
            }
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

fn kill(pid: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn until_gone(pid: i32) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while is_alive(pid) {
        assert!(Instant::now() < deadline, "process {pid} does not end");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn is_alive(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit(')')
        .next()
        .and_then(|rest| rest.trim().chars().next());
    state.is_some_and(|state| state != 'Z')
}

/// Return whether a process runs that was started for this home.
pub(crate) fn runs_in_home(pid: i32, home: &Path) -> bool {
    let variables = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    let wanted = format!("PH_HOME={}", home.display());
    is_alive(pid)
        && variables
            .split(|byte| *byte == 0)
            .any(|v| v == wanted.as_bytes())
}
