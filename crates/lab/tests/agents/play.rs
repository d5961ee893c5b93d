//! One agent, bare, from its start to its end: what each case does and what must hold of it.

use posthaste_lab::agents::{self, Agent, Release, Shot, Sign, Stage, State, Trust};
use posthaste_lab::model::{Model, Record};
use posthaste_lab::pty::{Size, Terminal};
use rustix::process::Signal;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// OpenCode alone takes twenty seconds to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// Between a paste and its Enter: one that comes sooner may be taken for a part of the paste.
const SETTLE: Duration = Duration::from_millis(200);
/// What has not changed for so long will not.
const REST: Duration = Duration::from_secs(1);
const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
/// Ctrl+U empties a box.
const CLEAR: &str = "\x15";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) act: fn(&mut Play),
    /// Why there is nothing to see of it with this agent, if so.
    pub(crate) absent: fn(Agent) -> Option<&'static str>,
}

/// One that every agent shows.
const fn case(name: &'static str, act: fn(&mut Play)) -> Case {
    let absent = |_| None;
    Case { name, act, absent }
}

fn trusting(agent: Agent) -> Option<&'static str> {
    (!State::Trust.is_known_of(agent)).then_some("never asks")
}

pub(crate) const CASES: [Case; 11] = [
    Case {
        name: "trust",
        act: Play::trust,
        absent: trusting,
    },
    case("start", Play::start),
    case("plain", Play::plain),
    case("interrupt", Play::interrupt),
    case("waiting", Play::waiting),
    case("queue", Play::queue),
    case("denial", Play::denial),
    case("tool", Play::tool),
    case("paste", Play::paste),
    case("once", Play::once),
    case("end", Play::end),
];

pub(crate) struct Play {
    agent: Agent,
    release: Release,
    size: Size,
    shots: Vec<(State, Shot)>,
    /// These go in this order: first the agent, then its home, then whom it asked.
    terminal: Terminal,
    stage: Stage,
    model: Model,
    /// For the log.
    _dir: TempDir,
}

impl Play {
    /// Begins where the agent asks whom to trust, if it ever does.
    pub(crate) fn new(release: &Release, size: Size) -> Self {
        let agent = release.agent;
        let dir = tempfile::Builder::new()
            .prefix("ph-lab-log-")
            .tempdir()
            .unwrap();
        let model = Model::start(&dir.path().join("log"));
        let asks = State::Trust.is_known_of(agent);
        let trust = if asks { Trust::Withheld } else { Trust::Given };
        let (stage, terminal) = opened(release, size, model.port(), trust);
        Self {
            agent,
            release: release.clone(),
            size,
            shots: Vec::new(),
            terminal,
            stage,
            model,
            _dir: dir,
        }
    }

    /// Writes the screens that were seen to the fixtures.
    pub(crate) fn keep(&self) {
        for (state, shot) in &self.shots {
            shot.keep(&self.release, self.size, *state).unwrap();
        }
    }

    /// Where it trusts nothing yet it asks first, and that is not taken for a box.
    fn trust(&mut self) {
        self.wait_for(Sign::Asking);
        self.rest();
        self.shoot(State::Trust);
        self.end();
        let port = self.model.port();
        (self.stage, self.terminal) = opened(&self.release, self.size, port, Trust::Given);
    }

    fn start(&mut self) {
        self.wait_for(Sign::Free);
        self.rest();
        self.shoot(State::Idle);
    }

    /// A line goes in, once and as it was; the answer is shown.
    fn plain(&mut self) {
        let line = "lab-plain: please answer in lines=2";
        self.type_in(line);
        self.shoot(State::Draft);
        assert_eq!(self.model.log().seen(line), 0, "it was sent without Enter");
        self.terminal.type_keys(ENTER);
        self.wait_for_prompt(line);
        // Not a word of it stands in the prompt, which is shown too.
        self.terminal.wait_for_text("line 1 of the reply");
        self.wait_for(Sign::Free);
        self.shoot(State::Answered);
        assert_eq!(self.model.log().seen("lab-plain"), 1);
        assert_eq!(self.model.log().prompts(), [line]);
    }

    /// The key stops an answer and leaves a clean box.
    fn interrupt(&mut self) {
        self.submit("lab-busy: slow=120");
        self.terminal.wait_for_text("word3");
        self.wait_for(Sign::Working);
        self.shoot(State::Busy);
        self.stop();
        let shown = self.agent.interrupted();
        self.terminal.wait_for_text(shown);
        self.wait_for(Sign::Free);
        self.wait_for_cuts(1);
        self.shoot(State::Interrupted);
        assert_eq!(self.model.log().seen("lab-busy"), 1);
    }

    /// The key stops it before the model has said anything.
    fn waiting(&mut self) {
        self.submit("lab-waiting: hang=120");
        self.wait_for(Sign::Working);
        self.shoot(State::Waiting);
        self.stop();
        self.wait_for_cuts(2);
        self.wait_for(Sign::Free);
        if self.agent == Agent::Claude {
            self.wait_until("the prompt, given back", |agent, shot| {
                !agent.has_empty_box(shot)
            });
            self.terminal.type_keys(CLEAR);
        }
        self.wait_until("an empty box", Agent::has_empty_box);
        assert_eq!(self.model.log().seen("lab-waiting"), 1);
    }

    /// What is submitted while the model speaks reaches it too, once.
    fn queue(&mut self) {
        self.submit("lab-before: slow=10");
        self.wait_for(Sign::Working);
        let line = "lab-queued: lines=3";
        self.type_in(line);
        self.terminal.type_keys(ENTER);
        self.wait_until("an empty box", Agent::has_empty_box);
        if State::Queued.is_known_of(self.agent) {
            self.shoot(State::Queued);
            assert_eq!(self.model.log().seen("lab-queued"), 0, "it did not wait");
        }
        self.wait_for_prompt(line);
        self.terminal.wait_for_text("line 2 of the reply");
        self.wait_for(Sign::Free);
    }

    /// A command that needs permission opens a dialog, and is not run when that is closed.
    fn denial(&mut self) {
        self.submit("lab-denial: ask=touch denied");
        self.wait_for(Sign::Asking);
        self.shoot(State::Dialog);
        self.deny();
        self.wait_for(Sign::Free);
        self.shoot(State::Denied);
        assert!(!self.stage.work().join("denied").exists(), "it was run");
    }

    /// One that is allowed runs, and the key stops it.
    fn tool(&mut self) {
        self.submit("lab-tool: ask=touch allowed; sleep 120");
        self.wait_for(Sign::Asking);
        // Claude Code ignores an Enter in a dialog's first moments.
        self.terminal.watch(REST);
        self.terminal.type_keys(ENTER);
        let allowed = self.stage.work().join("allowed");
        self.terminal
            .wait_until("the command", |_| allowed.exists());
        self.wait_for(Sign::Working);
        self.shoot(State::Tool);
        self.stop();
        self.wait_for(Sign::Free);
    }

    /// A long paste is not shown whole, and not sent by its own newlines.
    fn paste(&mut self) {
        let turns = self.model.log().turns().len();
        let lines: Vec<String> = (1..=50).map(|line| format!("lab-paste {line}")).collect();
        self.terminal.type_keys(bracketed(&lines.join("\n")));
        self.terminal.wait_until("the paste", |terminal| {
            let shot = Shot::of(terminal);
            shot.has("asted") || shot.has("lab-paste 50")
        });
        self.shoot(State::Pasted);
        assert_eq!(self.model.log().turns().len(), turns, "it was sent");
    }

    /// After all that went on, the model has had each prompt once, and nothing that it could not
    /// read.
    fn once(&mut self) {
        let log = self.model.log();
        for marker in [
            "plain", "busy", "waiting", "before", "queued", "denial", "tool",
        ] {
            assert_eq!(log.seen(&format!("lab-{marker}:")), 1, "{marker}");
        }
        assert_eq!(log.seen("lab-paste"), 0);
        let malformed = |record: &Record| matches!(record, Record::Malformed { .. });
        let odd: Vec<Record> = log.records().into_iter().filter(malformed).collect();
        assert!(odd.is_empty(), "{odd:?}");
    }

    /// By its pid, and nothing is left. Gemini's first process heeds no signal: it goes to all.
    fn end(&mut self) {
        self.terminal.signal_group(Signal::TERM);
        self.terminal.wait_exit();
        let deadline = Instant::now() + PATIENCE;
        loop {
            let others = agents::others();
            if others.is_empty() {
                return;
            }
            assert!(Instant::now() < deadline, "left behind: {others:?}");
            std::thread::yield_now();
        }
    }

    /// Puts a line into the empty box and sees it there.
    fn type_in(&mut self, line: &str) {
        self.wait_until("an empty box", Agent::has_empty_box);
        self.terminal.type_keys(bracketed(line));
        self.wait_until("the line in the box", |agent, shot| {
            !agent.has_empty_box(shot)
        });
        self.terminal.watch(SETTLE);
        assert_ne!(self.agent.sign(&Shot::of(&self.terminal)), Sign::Asking);
    }

    fn submit(&mut self, line: &str) {
        self.type_in(line);
        self.terminal.type_keys(ENTER);
        self.wait_for_prompt(line);
    }

    /// The key by which it stops.
    fn stop(&mut self) {
        self.terminal.type_keys(ESCAPE);
        if self.agent == Agent::OpenCode {
            self.terminal
                .wait_until("a second Esc to be asked for", |terminal| {
                    Shot::of(terminal).has("again")
                });
            self.terminal.type_keys(ESCAPE);
        }
    }

    /// The key by which a dialog is closed.
    fn deny(&mut self) {
        self.terminal.type_keys(ESCAPE);
    }

    fn wait_for_prompt(&mut self, line: &str) {
        let log = self.model.log().clone();
        self.terminal.wait_until("the model to be asked", |_| {
            log.prompts().last().is_some_and(|prompt| prompt == line)
        });
    }

    fn wait_for_cuts(&mut self, cuts: usize) {
        let log = self.model.log().clone();
        self.terminal
            .wait_until("the answer to be cut off", |_| log.cuts() == cuts);
    }

    fn wait_for(&mut self, sign: Sign) {
        self.wait_until(&format!("{sign:?}"), |agent, shot| agent.sign(shot) == sign);
    }

    fn wait_until(&mut self, what: &str, holds: impl Fn(Agent, &Shot) -> bool) {
        let agent = self.agent;
        self.terminal
            .wait_until(what, |terminal| holds(agent, &Shot::of(terminal)));
    }

    /// Until nothing new is shown for a second: an agent's box may be there before its banner.
    fn rest(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let before = self.terminal.screen();
            self.terminal.watch(REST);
            if self.terminal.screen() == before {
                return;
            }
            assert!(Instant::now() < deadline, "it never comes to rest");
        }
    }

    /// Keeps what is shown, once that has come to rest; it must still be what was waited for.
    fn shoot(&mut self, state: State) {
        self.terminal.watch(SETTLE);
        let shot = self.stage.anonymous(&Shot::of(&self.terminal));
        assert_eq!(self.agent.sign(&shot), state.sign(), "{state:?}: {shot:#?}");
        self.shots.push((state, shot));
    }
}

/// A new stage, with the agent on it.
fn opened(release: &Release, size: Size, port: u16, trust: Trust) -> (Stage, Terminal) {
    let program = agents::install(release, &agents::cache()).unwrap().program;
    let stage = Stage::new(release.agent, &program, port, trust).unwrap();
    let terminal = Terminal::start(stage.command(), size).patient(PATIENCE);
    (stage, terminal)
}

fn bracketed(text: &str) -> String {
    format!("\x1b[200~{text}\x1b[201~")
}
