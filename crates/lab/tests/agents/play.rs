//! Cases of one agent without `ph`: the actions and the checks of each.

use posthaste_lab::agents::{self, Agent, Release, Shot, Sign, Stage, State, Trust};
use posthaste_lab::model::{LogEntry, Model};
use posthaste_lab::pty::{Size, Terminal};
use rustix::process::Signal;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Timeout of a wait: OpenCode alone takes twenty seconds to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(90);
/// Delay between a paste and its Enter, which might otherwise become a part of the paste.
const SETTLE_DELAY: Duration = Duration::from_millis(200);
/// Time without a change after which a state counts as final.
const REST: Duration = Duration::from_secs(1);
const ENTER: &str = "\r";
const ESCAPE: &str = "\x1b";
/// Ctrl+U clears the box.
const CLEAR: &str = "\x15";

#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) name: &'static str,
    pub(crate) act: fn(&mut Play),
    /// Reason why this agent cannot show the case, if any.
    pub(crate) absent: fn(Agent) -> Option<&'static str>,
}

/// A case that every agent shows.
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
    /// Dropped in this order: the agent, its home, its model server.
    terminal: Terminal,
    stage: Stage,
    model: Model,
    /// Directory of the model's log.
    _dir: TempDir,
}

impl Play {
    /// Start the agent in a directory that it does not trust yet.
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

    /// Write the recorded screens to the fixtures.
    pub(crate) fn keep(&self) {
        for (state, shot) in &self.shots {
            shot.keep(&self.release, self.size, *state).unwrap();
        }
    }

    /// The agent asks for trust first, which is not recognised as a box.
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

    /// The model gets a typed line once and unchanged, and the reply is shown.
    fn plain(&mut self) {
        let line = "lab-plain: please answer in lines=2";
        self.type_in(line);
        self.shoot(State::Draft);
        assert_eq!(self.model.log().seen(line), 0, "it was sent without Enter");
        self.terminal.type_keys(ENTER);
        self.wait_for_prompt(line);
        // The prompt, which is shown too, has no word of the reply.
        self.terminal.wait_for_text("line 1 of the reply");
        self.wait_for(Sign::Free);
        self.shoot(State::Answered);
        assert_eq!(self.model.log().seen("lab-plain"), 1);
        assert_eq!(self.model.log().prompts(), [line]);
    }

    /// The interrupt key stops a reply and leaves an empty box.
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

    /// The interrupt key stops a turn before the model has replied.
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

    /// A line that is submitted during a reply reaches the model once.
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

    /// A command that needs permission opens a dialog, and closing that prevents the command.
    fn denial(&mut self) {
        self.submit("lab-denial: ask=touch denied");
        self.wait_for(Sign::Asking);
        self.shoot(State::Dialog);
        self.deny();
        self.wait_for(Sign::Free);
        self.shoot(State::Denied);
        assert!(!self.stage.work().join("denied").exists(), "it was run");
    }

    /// An allowed command runs, and the interrupt key stops it.
    fn tool(&mut self) {
        self.submit("lab-tool: ask=touch allowed; sleep 120");
        self.wait_for(Sign::Asking);
        // Claude Code ignores Enter in the first moments of a dialog.
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

    /// A long paste is abbreviated, and its line breaks do not submit it.
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

    /// At the end, the model has had each prompt once, and no invalid request.
    fn once(&mut self) {
        let log = self.model.log();
        for marker in [
            "plain", "busy", "waiting", "before", "queued", "denial", "tool",
        ] {
            assert_eq!(log.seen(&format!("lab-{marker}:")), 1, "{marker}");
        }
        assert_eq!(log.seen("lab-paste"), 0);
        let malformed = |record: &LogEntry| matches!(record, LogEntry::Malformed { .. });
        let odd: Vec<LogEntry> = log.records().into_iter().filter(malformed).collect();
        assert!(odd.is_empty(), "{odd:?}");
    }

    /// The agent ends by its pid and leaves no process. Gemini's first process ignores signals, so
    /// its group is signalled.
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

    /// Type a line into the empty box and wait until it is visible.
    fn type_in(&mut self, line: &str) {
        self.wait_until("an empty box", Agent::has_empty_box);
        self.terminal.type_keys(bracketed(line));
        self.wait_until("the line in the box", |agent, shot| {
            !agent.has_empty_box(shot)
        });
        self.terminal.watch(SETTLE_DELAY);
        assert_ne!(self.agent.sign(&Shot::of(&self.terminal)), Sign::Asking);
    }

    fn submit(&mut self, line: &str) {
        self.type_in(line);
        self.terminal.type_keys(ENTER);
        self.wait_for_prompt(line);
    }

    /// Return the interrupt key.
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

    /// Return the key that closes a dialog.
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

    /// Wait until the screen is unchanged for a second: a box may appear before the banner.
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

    /// Record the screen once it is at rest. It must still satisfy the condition.
    fn shoot(&mut self, state: State) {
        self.terminal.watch(SETTLE_DELAY);
        let shot = self.stage.anonymous(&Shot::of(&self.terminal));
        assert_eq!(self.agent.sign(&shot), state.sign(), "{state:?}: {shot:#?}");
        self.shots.push((state, shot));
    }
}

/// Create a stage and start the agent on it.
fn opened(release: &Release, size: Size, port: u16, trust: Trust) -> (Stage, Terminal) {
    let program = agents::install(release, &agents::cache()).unwrap().program;
    let stage = Stage::new(release.agent, &program, port, trust).unwrap();
    let terminal = Terminal::start(stage.command(), size).with_timeout(PATIENCE);
    (stage, terminal)
}

fn bracketed(text: &str) -> String {
    format!("\x1b[200~{text}\x1b[201~")
}
