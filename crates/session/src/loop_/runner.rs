//! The runner's own sequence: what comes next, by the journal; an iteration; and again.

use super::files;
use super::io::{self, Halt};
use super::prompt::Stories;
use super::terminal_output::Face;
use super::wakeups::Ears;
use posthaste_core::AgentName;
use posthaste_core::build::{
    Failure, LoopEnding, LoopOrder, LoopState, Next, Outcome, Past, policy, progress,
};
use posthaste_store::live::place::{Place, Record};
use posthaste_store::live::reach;
use posthaste_store::operation::ApplyLoopOrder;
use posthaste_store::report::{Report, Result};
use posthaste_store::times;
use posthaste_store::{Home, Journal, Patience};
use posthaste_wire::client::{self, Heard};
use posthaste_wire::{method, time};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// How long the session may take to say that it runs.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Runs a loop; called instead of everything else, by its session.
pub fn main(home: Home, patience: Patience) -> Result<ExitCode> {
    let mut runner = Runner::open(home, patience)?;
    let ran = runner.run();
    if let Err(report) = &ran {
        runner.face.line(report.message());
    }
    ran
}

/// Whether the session at a socket answers a request.
fn answers(socket: &Path) -> std::io::Result<bool> {
    let mut stream = reach(socket)?;
    stream.set_write_timeout(Some(SESSION_TIMEOUT))?;
    stream.set_read_timeout(Some(SESSION_TIMEOUT))?;
    stream.write_all(&client::request(1, &method::Session {}))?;
    let mut line = Vec::new();
    BufReader::new(stream).read_until(b'\n', &mut line)?;
    Ok(match client::hear(&line) {
        Ok(Heard::Reply(reply)) => reply.read::<method::Session>().is_ok(),
        Ok(Heard::Event(_) | Heard::Unknown) | Err(_) => false,
    })
}

pub(super) struct Runner {
    pub(super) home: Home,
    pub(super) agent: AgentName,
    /// The session's.
    pub(super) record: Record,
    pub(super) journal: Journal,
    pub(super) ears: Ears,
    pub(super) face: Face,
    /// What was said last of a wait, so that it is said once.
    pub(super) said: Option<String>,
}

/// Whether there is more to do.
pub(super) enum Step {
    On,
    /// Nobody is left to run for.
    Over,
}

impl Runner {
    fn open(home: Home, patience: Patience) -> Result<Self> {
        let not_ours = || Report::usage("this is for ph itself; see 'ph build'");
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let socket = PathBuf::from(variable("PH_SOCKET").ok_or_else(not_ours)?);
        let name = variable("PH_AGENT").and_then(|name| name.into_string().ok());
        let name = name.and_then(|name| AgentName::parse(&name).ok());
        let agent = name.ok_or_else(not_ours)?;
        let face = Face::take()?;
        let ears = Ears::listen(&home, &agent)?;
        // Once the session answers, it has recorded that this loop begins.
        let is_answered = answers(&socket).unwrap_or(false);
        let record = Place::of(&home, &agent).record();
        match (is_answered, record) {
            (true, Some(record)) if record.launch.is_loop() => Ok(Self {
                journal: Journal::open(home.clone(), patience)?,
                home,
                agent,
                record,
                ears,
                face,
                said: None,
            }),
            _ => Err(not_ours()),
        }
    }

    fn run(&mut self) -> Result<ExitCode> {
        self.tell_cut_off()?;
        loop {
            let state = self.state()?;
            let step = match policy::next(times::now(), &state) {
                Next::Iterate { .. } => self.iterate(&state)?,
                Next::Retry { number, after } => {
                    let wait = Duration::from_secs(after.as_secs().max(1));
                    self.say_once(&format!(
                        "iteration {number} failed; it is run again in {} s",
                        wait.as_secs()
                    ));
                    self.rest(Some(Instant::now() + after))?
                }
                Next::Pause => self.checkpoint(&state)?,
                Next::Paused => {
                    let name = &self.agent;
                    self.say_once(&format!(
                        "paused at a checkpoint; 'ph resume {name}' goes on"
                    ));
                    self.rest(None)?
                }
                Next::Hold => {
                    let name = &self.agent;
                    self.say_once(&format!("interactive; 'ph interactive {name} off' goes on"));
                    self.rest(None)?
                }
                // Ours, and never ended: what came between has been told.
                Next::Underway { number } => {
                    let outcome = Outcome::Failed(Failure::CutOff);
                    let is_unread = false;
                    self.order(LoopOrder::EndIteration {
                        number,
                        outcome,
                        is_unread,
                    })?;
                    Step::On
                }
                Next::End(how) => return self.end(&state, &how),
            };
            if let Step::Over = step {
                return Ok(ExitCode::FAILURE);
            }
        }
    }

    /// What was cut off was recorded when this session began; progress.txt is told of it now.
    fn tell_cut_off(&mut self) -> Result<()> {
        let state = self.state()?;
        let began = self.record.started_at;
        let last = state.last.as_ref().filter(|last| last.ended_at >= began);
        if let Some(last) = last {
            let told = format!("iteration {}: {}", last.number, last.outcome);
            self.face.line(&told);
            self.tell_failure(&state, last);
        }
        Ok(())
    }

    /// Tells progress.txt of an iteration, where that has failed.
    pub(super) fn tell_failure(&mut self, state: &LoopState, past: &Past) {
        let Outcome::Failed(failure) = &past.outcome else {
            return;
        };
        self.note_down(state, |place| {
            progress::failure(place, past.story.as_deref(), past.failures, failure)
        });
    }

    pub(super) fn state(&mut self) -> Result<LoopState> {
        let state = self.journal.loop_state(&self.agent)?;
        state.ok_or_else(|| Report::storage("the journal has no loop of this name"))
    }

    pub(super) fn order(&mut self, order: LoopOrder) -> Result<()> {
        let (now, agent) = (times::now(), self.agent.clone());
        self.journal
            .commit(ApplyLoopOrder { now, agent, order })??;
        Ok(())
    }

    fn say_once(&mut self, words: &str) {
        if self.said.as_deref() != Some(words) {
            self.face.line(words);
            self.said = Some(words.to_owned());
        }
    }

    /// Waits for something to happen.
    fn rest(&mut self, due: Option<Instant>) -> Result<Step> {
        match io::rest(&mut self.ears, due) {
            None => Ok(Step::On),
            Some(Halt::Orphaned) => Ok(Step::Over),
            Some(Halt::Ended | Halt::Interrupted) => {
                let how = LoopEnding::Stopped;
                self.order(LoopOrder::End { how })?;
                Ok(Step::On)
            }
        }
    }

    fn checkpoint(&mut self, state: &LoopState) -> Result<Step> {
        self.order(LoopOrder::Checkpoint)?;
        let stories = Stories::of(state);
        let counts = stories.prd().map(|prd| (prd.done(), prd.total()));
        self.note_down(state, |place| {
            progress::checkpoint(place, counts, "it was asked for")
        });
        Ok(Step::On)
    }

    fn end(&mut self, state: &LoopState, how: &LoopEnding) -> Result<ExitCode> {
        if !state.has_ended() {
            self.order(LoopOrder::End { how: how.clone() })?;
        }
        let took = time::length(times::now().duration_since(state.began_at));
        self.face
            .line(&format!("the loop is over after {took}: {how}"));
        self.face.title(&format!("{}: {how}", self.agent));
        Ok(match how {
            LoopEnding::Complete(_) | LoopEnding::Stopped => ExitCode::SUCCESS,
            LoopEnding::UsedUp | LoopEnding::GaveUp(_) | LoopEnding::Failed(_) => ExitCode::FAILURE,
        })
    }

    /// Adds a block to progress.txt, where the loop has one. It is the agent's file: what cannot be
    /// written there stands in the journal all the same.
    pub(super) fn note_down(
        &mut self,
        state: &LoopState,
        block: impl Fn(&progress::Place<'_>) -> String,
    ) {
        let Some(path) = &state.settings.progress else {
            return;
        };
        let last = state.last.as_ref().map(|last| last.number);
        let open = state.open.as_ref().map(|open| open.started.number);
        let place = progress::Place {
            at: times::now(),
            zone: times::zone(),
            iteration: open.or(last).unwrap_or(state.number),
            last: state.last_allowed(),
            agent: &state.settings.harness,
        };
        if let Err(error) = files::append(Path::new(path), &block(&place)) {
            let shown = files::shown(Path::new(path));
            self.face.line(&format!("cannot write {shown}: {error}"));
        }
    }
}
