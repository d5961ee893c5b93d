//! One real agent under the real `ph`, in a terminal where a person sits: the person's actions, and
//! checks of the results. Waits are for facts, and end with the case's timeout.

use crate::facts::Facts;
use crate::scene::{By, Start, command, shown};
use posthaste_lab::agents::{self, Agent, Release, Shot, Sign, Stage, Trust};
use posthaste_lab::model::{Model, Tally};
use posthaste_lab::pty::Terminal;
use rustix::process::{Pid, Signal};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The agent's name in the mail.
pub(crate) const NAME: &str = "coder";
/// Interval between checks in a wait.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Delay between a person's text and their Enter.
const SETTLE_DELAY: Duration = Duration::from_millis(250);
/// Time for which a person reads a question before they answer; Claude Code ignores keys in its
/// first moments.
const READING_DELAY: Duration = Duration::from_secs(1);
/// Timeout for the proof once the model has a message; without proof, the message stays offered.
const PROOF_TIMEOUT: Duration = Duration::from_secs(4);
/// Timeout for a killed process to disappear.
const EXIT_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for an event that may not happen.
const SOON_TIMEOUT: Duration = Duration::from_secs(2);
/// Number of times that a person presses Enter until it has an effect.
const ENTER_ATTEMPTS: usize = 3;
pub(crate) const ENTER: &str = "\r";
pub(crate) const ESCAPE: &str = "\x1b";
const DOWN: &str = "\x1b[B";
/// Ctrl+U clears the box.
pub(crate) const CLEAR: &str = "\x15";

/// A message that was sent.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) id: String,
    /// Text that the model sees in any case: the id, in the header.
    pub(crate) mark: String,
}

/// Panic payload of a case whose only fault is a timeout.
#[derive(Debug)]
pub(crate) struct Late(pub(crate) String);

pub(crate) struct Play {
    pub(crate) agent: Agent,
    pub(crate) release: Release,
    start: Start,
    pub(crate) stage: Stage,
    pub(crate) tally: Tally,
    ph: PathBuf,
    /// Model server, which replies until it is dropped.
    _model: Model,
    pub(crate) facts: Facts,
    pub(crate) terminal: Terminal,
    /// All sent messages, each of which must arrive once.
    sent: Vec<Sent>,
    /// Files that only a command without permission creates.
    forbidden: Vec<PathBuf>,
    deadline: Instant,
    made: u32,
    /// Number of races that were run.
    pub(crate) runs: u32,
    /// Number of questions that opened between a text and its Enter.
    pub(crate) caught: u32,
    /// Whether the harness can prove that a message was accepted.
    proves: bool,
    /// Directory of the model's log.
    _dir: TempDir,
}

impl Play {
    /// Start the agent, and wait until it accepts a prompt.
    pub(crate) fn open(release: &Release, ph: &Path, deadline: Instant, start: Start) -> Self {
        let agent = release.agent;
        let program = agents::install(release, &agents::cache())
            .expect("it was installed outside")
            .program;
        let dir = tempfile::Builder::new()
            .prefix("ph-lab-log-")
            .tempdir()
            .expect("a directory for the log");
        let model = Model::start(&dir.path().join("log"));
        let tally = Tally::of(model.log());
        let stage =
            Stage::new(agent, &program, model.port(), Trust::Given).expect("a stage can be made");
        let facts = Facts::follow(command(&stage, ph));
        let terminal = shown(agent, &stage, ph, start, &[]);
        let mut play = Self {
            agent,
            release: release.clone(),
            start,
            stage,
            tally,
            ph: ph.to_owned(),
            _model: model,
            facts,
            terminal,
            sent: Vec::new(),
            forbidden: Vec::new(),
            deadline,
            made: 0,
            runs: 0,
            caught: 0,
            proves: false,
            _dir: dir,
        };
        let harness = play.ph(&["harness", "show", agent.name()]);
        play.proves = String::from_utf8_lossy(&harness.stdout).contains("proof = [\"");
        play.trust();
        play.free();
        play
    }

    /// Codex asks its user about new hooks: the person who installed them allows them.
    fn trust(&mut self) {
        if self.start.by != By::Nobody || self.agent != Agent::Codex {
            return;
        }
        self.until_sign(Sign::Asking);
        // Codex discards early keys when the dialog opens; repeated keys close it.
        self.terminal.watch(SETTLE_DELAY);
        self.terminal.type_keys(DOWN);
        self.terminal.wait_for_text("› 2. Trust all and continue");
        self.terminal.type_keys(ENTER);
    }

    /// Start the same agent again after its session has ended.
    pub(crate) fn reopen(&mut self) {
        self.reopen_with(&[]);
    }

    /// Start the same agent again with further arguments.
    pub(crate) fn reopen_with(&mut self, more: &[&str]) {
        self.terminal = shown(self.agent, &self.stage, &self.ph, self.start, more);
        self.free();
    }

    /// Restart the agent with `ph restart` and these arguments.
    pub(crate) fn restart(&mut self, more: &[&str]) {
        self.terminal = crate::scene::restarted(&self.stage, &self.ph, more);
        self.free();
    }

    /// Exempt a message from the check that every message arrives exactly once.
    pub(crate) fn expect_repeats(&mut self, sent: &Sent) {
        self.sent.retain(|other| other.id != sent.id);
    }

    pub(crate) fn until_when(&mut self, deadline: Instant) {
        self.deadline = deadline;
    }

    pub(crate) fn command(&self) -> Command {
        command(&self.stage, &self.ph)
    }

    pub(crate) fn ph(&self, args: &[&str]) -> Output {
        let mut command = self.command();
        command.args(args).stdin(Stdio::null());
        command.output().expect("ph can be started")
    }

    /// Return the output of a verb with `--json`.
    pub(crate) fn asked(&self, args: &[&str]) -> Value {
        let output = self.ph(&[args, &["--json"]].concat());
        serde_json::from_slice(&output.stdout).unwrap_or(Value::Null)
    }

    pub(crate) fn status(&self) -> Value {
        self.asked(&["status", NAME])
    }

    /// Return a name that is unique in this run.
    pub(crate) fn fresh(&mut self, what: &str) -> String {
        self.made += 1;
        format!("lab-{what}-{}", self.made)
    }

    /// Update all sources repeatedly until a condition holds.
    #[track_caller]
    pub(crate) fn until(&mut self, what: &str, mut holds: impl FnMut(&mut Self) -> bool) {
        if self.within(self.deadline, &mut holds) {
            return;
        }
        let story = format!("waited in vain for {what}\n{}", self.story());
        if self.forbidden.iter().any(|file| file.exists()) {
            panic!("{story}");
        }
        std::panic::panic_any(Late(story));
    }

    /// Describe the final state, for diagnosis.
    fn story(&self) -> String {
        let screen = self.terminal.screen().join("\n");
        let journey = self.sent.last().map(|sent| self.facts.journey(&sent.id));
        let run = self.forbidden.iter().filter(|file| file.exists());
        let run: Vec<_> = run.map(|file| file.display().to_string()).collect();
        let status = self.status();
        format!(
            "{}\ncursor: {:?}, {:?}\nits session: {} by {}\nlast message: {}\napproved by us: {run:?}",
            screen.trim_end(),
            self.terminal.cursor(),
            Shot::of(&self.terminal).beside,
            status["activity"],
            status["evidence"],
            journey.unwrap_or_default()
        )
    }

    /// Like [`Self::until`], with a short timeout, for an event that may not happen.
    pub(crate) fn soon(&mut self, mut holds: impl FnMut(&mut Self) -> bool) -> bool {
        self.within(Instant::now() + SOON_TIMEOUT, &mut holds)
    }

    pub(crate) fn soon_within(
        &mut self,
        time: Duration,
        mut holds: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        self.within(Instant::now() + time, &mut holds)
    }

    /// Watch for some time that an event does not happen.
    #[track_caller]
    pub(crate) fn soon_not(&mut self, time: Duration, holds: impl FnMut(&mut Self) -> bool) {
        let came = self.soon_within(time, holds);
        assert!(!came, "it was typed\n{}", self.story());
    }

    fn within(&mut self, deadline: Instant, holds: &mut impl FnMut(&mut Self) -> bool) -> bool {
        loop {
            self.terminal.watch(POLL_INTERVAL);
            self.facts.look();
            self.tally.look();
            if holds(self) {
                return true;
            }
            if Instant::now() > deadline.min(self.deadline) {
                return false;
            }
        }
    }

    pub(crate) fn sign(&self) -> Sign {
        self.agent.sign(&Shot::of(&self.terminal))
    }

    pub(crate) fn has_empty_box(&self) -> bool {
        self.agent.has_empty_box(&Shot::of(&self.terminal))
    }

    #[track_caller]
    pub(crate) fn until_sign(&mut self, sign: Sign) {
        self.until(&format!("{sign:?} on the screen"), |play| {
            play.sign() == sign
        });
    }

    /// Wait until the agent accepts a prompt, by its screen and by its session.
    #[track_caller]
    pub(crate) fn free(&mut self) {
        self.until("an empty box and nothing going on", |play| {
            let is_free = match play.start.by {
                By::Nobody => play.sign() == Sign::Free,
                // A terminal that attached late has missed a state that Codex reported before.
                By::Session => {
                    let is_free = match play.sign() {
                        Sign::Free => true,
                        Sign::Unknown => play.agent == Agent::Codex,
                        Sign::Working | Sign::Asking => false,
                    };
                    is_free && play.status()["activity"] == "idle"
                }
            };
            is_free && play.has_empty_box()
        });
    }

    /// Type like a person, without Enter.
    #[track_caller]
    pub(crate) fn types(&mut self, text: &str) {
        self.until("an empty box", |play| play.has_empty_box());
        self.terminal.type_keys(format!("\x1b[200~{text}\x1b[201~"));
        self.until("what was typed in the box", |play| !play.has_empty_box());
        self.terminal.watch(SETTLE_DELAY);
    }

    /// Submit a person's prompt, and wait until the model has it.
    #[track_caller]
    pub(crate) fn prompt(&mut self, text: &str) {
        self.types(text);
        self.terminal.type_keys(ENTER);
        // Gemini takes an Enter shortly after a paste for a line break, and reads both late on a
        // busy machine. A person who still sees the text presses Enter again.
        for _ in 0..ENTER_ATTEMPTS {
            let is_done = |play: &mut Self| play.tally.seen(text) > 0 || play.has_empty_box();
            if self.within(Instant::now() + SOON_TIMEOUT, &mut { is_done })
                || self.sign() != Sign::Free
            {
                break;
            }
            self.terminal.type_keys(ENTER);
        }
        self.until("the model to be asked by the person", |play| {
            play.tally.seen(text) > 0
        });
    }

    /// Run a command of the agent, such as `/clear`.
    pub(crate) fn slash(&mut self, command: &str) {
        self.until("an empty box", |play| play.has_empty_box());
        self.keys(command);
        self.terminal.type_keys(ENTER);
    }

    /// Type like a person, key by key, until the text is visible.
    pub(crate) fn keys(&mut self, text: &str) {
        for key in text.chars() {
            self.terminal.type_keys(key.to_string());
            self.terminal.watch(POLL_INTERVAL);
        }
        self.until("what was typed", |play| play.has_on_screen(text));
        self.terminal.watch(SETTLE_DELAY);
    }

    pub(crate) fn has_on_screen(&self, text: &str) -> bool {
        let screen = self.terminal.screen();
        screen.iter().any(|line| line.contains(text))
    }

    /// Return whether a message, or its name, is on the screen.
    pub(crate) fn shows(&self, sent: &Sent) -> bool {
        self.has_on_screen(&sent.id[..8])
    }

    /// Ask as a person for a command that needs permission, and return when the question is open.
    /// Only the person may allow it; the returned file would exist then.
    #[track_caller]
    pub(crate) fn question(&mut self, then: &str) -> PathBuf {
        let name = self.fresh("asked");
        let file = self.stage.work().join(&name);
        self.prompt(&format!("ask=touch {name}{then}"));
        self.until_sign(Sign::Asking);
        self.terminal.watch(READING_DELAY);
        file
    }

    /// Deny the question as a person.
    #[track_caller]
    pub(crate) fn deny(&mut self) {
        self.terminal.watch(READING_DELAY);
        for _ in 0..ENTER_ATTEMPTS {
            self.terminal.type_keys(ESCAPE);
            if self.soon(|play| play.sign() != Sign::Asking) {
                return;
            }
        }
        panic!("the question does not close\n{}", self.story());
    }

    /// Check now and later that a file does not exist.
    pub(crate) fn forbid(&mut self, file: PathBuf) {
        self.forbidden.push(file);
    }

    pub(crate) fn starts_to_send(&self, from: &str, body: &str, more: &[&str]) -> Child {
        let mut command = self.command();
        command.args(["send", NAME, "--from", from, "-m", body]);
        command.args(more).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("ph can be started")
    }

    #[track_caller]
    pub(crate) fn was_sent(&mut self, send: Child) -> Sent {
        let output = send.wait_with_output().expect("our own child");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "ph send failed: {errors}");
        let id = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let mark = format!("id: {}", &id[..8]);
        let sent = Sent { id, mark };
        self.sent.push(sent.clone());
        sent
    }

    /// Send mail that no session delivers, and return its id.
    pub(crate) fn leave(&self, body: &str) -> String {
        let sent = self.ph(&["send", NAME, "--from", "ann", "-m", body]);
        assert!(sent.status.success(), "ph send failed");
        String::from_utf8_lossy(&sent.stdout).trim().to_owned()
    }

    #[track_caller]
    pub(crate) fn send(&mut self, body: &str) -> Sent {
        self.send_as("ann", body, &[])
    }

    #[track_caller]
    pub(crate) fn send_as(&mut self, from: &str, body: &str, more: &[&str]) -> Sent {
        let send = self.starts_to_send(from, body, more);
        self.was_sent(send)
    }

    pub(crate) fn noted(&self, sent: &Sent, kind: &str) -> bool {
        self.facts.has(&sent.id, kind)
    }

    /// Return all facts about a message.
    pub(crate) fn journey(&self, sent: &Sent) -> String {
        self.facts.journey(&sent.id)
    }

    /// Return the position of a message's fact among all facts.
    pub(crate) fn place(&self, sent: &Sent) -> Option<usize> {
        self.facts.place(&sent.id)
    }

    /// Return the route in the last receipt.
    pub(crate) fn route(&self, sent: &Sent) -> Option<String> {
        let shown = self.asked(&["show", &sent.id]);
        let steps = shown["receipts"].as_array()?.iter().rev();
        let mut routes = steps.filter_map(|step| step["route"].as_str());
        routes.next().map(str::to_owned)
    }

    /// Return the rule that holds a message, if any.
    pub(crate) fn rule(&self, sent: &Sent) -> Option<String> {
        let why = self.asked(&["why", &sent.id]);
        let rule = why["rule"].as_str().filter(|rule| !rule.is_empty());
        rule.map(str::to_owned)
    }

    /// Wait until this rule holds the message.
    #[track_caller]
    pub(crate) fn held_by(&mut self, sent: &Sent, rule: &str) {
        self.until(&format!("the rule {rule:?}"), |play| {
            play.rule(sent).as_deref() == Some(rule)
        });
    }

    /// Wait until a rule holds the message, and return it.
    #[track_caller]
    pub(crate) fn held(&mut self, sent: &Sent) -> String {
        let mut rule = None;
        self.until("a rule that holds the message", |play| {
            rule = play.rule(sent);
            rule.is_some()
        });
        rule.unwrap_or_default()
    }

    /// Wait until the model has all these messages and the agent is at rest, then check them and
    /// return their receipts.
    #[track_caller]
    pub(crate) fn settle(&mut self, sent: &[Sent]) -> String {
        for one in sent {
            self.until(&format!("the model to see {}", one.mark), |play| {
                play.tally.seen(&one.mark) > 0
            });
            self.until("a receipt that says offered", |play| {
                play.noted(one, "offered") || play.noted(one, "accepted")
            });
        }
        self.free();
        if self.proves {
            let deadline = Instant::now() + PROOF_TIMEOUT;
            self.within(deadline, &mut |play| {
                sent.iter().all(|one| play.noted(one, "accepted"))
            });
        }
        self.judge();
        self.receipts(sent)
    }

    /// Check the invariants of an agent at rest.
    #[track_caller]
    pub(crate) fn judge(&mut self) {
        self.tally.look();
        for sent in self.sent.clone() {
            let seen = self.tally.seen(&sent.mark);
            assert!(seen < 2, "the model was sent {} {seen} times", sent.mark);
            let shown = self.asked(&["show", &sent.id]);
            let receipt = shown["receipt"].as_str().unwrap_or_default();
            let claims = matches!(receipt, "accepted" | "read" | "archived");
            assert!(
                seen > 0 || !claims,
                "{} is {receipt}, and the model never saw it",
                sent.mark
            );
        }
        for file in &self.forbidden {
            assert!(!file.exists(), "approved by us: {}", file.display());
        }
        let odd = self.tally.malformed();
        assert!(odd.is_empty(), "not to be read: {odd:?}");
    }

    /// Return the receipts and routes of messages, each once.
    fn receipts(&self, sent: &[Sent]) -> String {
        let mut receipts: Vec<String> = Vec::new();
        for one in sent {
            let shown = self.asked(&["show", &one.id]);
            let receipt = shown["receipt"].as_str().unwrap_or("unknown");
            let steps = shown["receipts"].as_array().cloned().unwrap_or_default();
            let route = self.route(one);
            let cut = steps.iter().any(|step| step["state"] == "uncertain");
            let first = if cut { "uncertain, then " } else { "" };
            let text = format!(
                "{first}{receipt}, {}",
                route.as_deref().unwrap_or("no route")
            );
            if !receipts.contains(&text) {
                receipts.push(text);
            }
        }
        receipts.join(" / ")
    }

    /// End the session gracefully, and check that each message arrived once and no process is left.
    pub(crate) fn close(mut self) {
        self.judge();
        match self.start.by {
            By::Session => drop(self.ph(&["stop", NAME])),
            // Gemini's first process ignores signals, so its group is signalled.
            By::Nobody => self.terminal.signal_group(Signal::TERM),
        }
        self.terminal.wait_exit();
        self.end_background();
        let home = self.stage.dir().to_string_lossy().into_owned();
        let own = self.facts_pid();
        let mut left = Vec::new();
        let deadline = Instant::now() + EXIT_TIMEOUT;
        while Instant::now() < deadline {
            left = agents::started_with(&home);
            left.retain(|process| !process.starts_with(&own));
            if left.is_empty() {
                return;
            }
            std::thread::yield_now();
        }
        panic!("left behind: {left:?}");
    }

    /// End the process that Claude Code's agents view leaves behind on purpose.
    pub(crate) fn end_background(&self) {
        if self.start != Start::ALONE {
            return;
        }
        let home = self.stage.dir().to_string_lossy().into_owned();
        let own = self.facts_pid();
        for process in agents::started_with(&home) {
            let pid = process
                .split_whitespace()
                .next()
                .and_then(|pid| pid.parse().ok());
            if let Some(pid) = pid
                .and_then(Pid::from_raw)
                .filter(|_| !process.starts_with(&own))
            {
                // The process may have ended already.
                let _ = rustix::process::kill_process(pid, Signal::KILL);
            }
        }
    }

    fn facts_pid(&self) -> String {
        format!("{} ", self.facts.pid())
    }

    pub(crate) fn start(&self) -> Start {
        self.start
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    pub(crate) fn program(&self) -> &Path {
        &self.ph
    }
}

impl Drop for Play {
    fn drop(&mut self) {
        // A case that failed may have left a session; it is no error if it has not.
        self.ph(&["stop", "--kill", NAME]);
        self.end_background();
    }
}
