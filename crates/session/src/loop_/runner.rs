//! The runner's main loop: reads the loop's state from the journal, and performs the next step.

use super::files;
use super::io::{self, StopReason};
use super::prompt::Stories;
use super::terminal_output::TerminalOutput;
use super::wakeups::WakeupSources;
use posthaste_core::AgentName;
use posthaste_core::loop_::progress::{self, ProgressEntry};
use posthaste_core::loop_::{
    IterationFailure, IterationOutcome, LoopEnding, LoopOrder, LoopState, NextStep, PastIteration,
    policy,
};
use posthaste_store::live::{SessionDir, SessionRecord, reach};
use posthaste_store::operation::ApplyLoopOrder;
use posthaste_store::report::{Report, Result};
use posthaste_store::times;
use posthaste_store::{Home, Journal, Patience};
use posthaste_wire::client::{self, Heard};
use posthaste_wire::{method, time};
use std::io::{BufRead, BufReader, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Timeout for the session to answer that it runs.
const SESSION_TIMEOUT: Duration = Duration::from_secs(10);

/// Run a loop. Called in the process that a session starts with [`super::RUNNER_ARGUMENT`].
pub fn main(home: Home, patience: Patience) -> Result<ExitCode> {
    let mut runner = Runner::open(home, patience)?;
    let result = runner.run();
    if let Err(report) = &result {
        runner.terminal.print_line(report.message());
    }
    result
}

/// Whether the session that listens on `socket` answers a request.
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
    /// The record of the loop's session.
    pub(super) record: SessionRecord,
    pub(super) journal: Journal,
    pub(super) wakeups: WakeupSources,
    pub(super) terminal: TerminalOutput,
    /// The last line about a wait, so that it is not printed again.
    pub(super) last_line: Option<String>,
}

impl Runner {
    fn open(home: Home, patience: Patience) -> Result<Self> {
        let not_in_session = || Report::usage("'ph __loop' is internal; use 'ph build'");
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let socket = PathBuf::from(variable("PH_SOCKET").ok_or_else(not_in_session)?);
        let name = variable("PH_AGENT").and_then(|name| name.into_string().ok());
        let name = name.and_then(|name| AgentName::parse(&name).ok());
        let agent = name.ok_or_else(not_in_session)?;
        let terminal = TerminalOutput::enter_raw_mode()?;
        let wakeups = WakeupSources::listen(&home, &agent)?;
        // The session answers only after it has recorded the loop's start.
        let is_answered = answers(&socket).unwrap_or(false);
        let record = SessionDir::of(&home, &agent).record();
        match (is_answered, record) {
            (true, Some(record)) if record.launch.is_loop() => Ok(Self {
                journal: Journal::open(home.clone(), patience)?,
                home,
                agent,
                record,
                wakeups,
                terminal,
                last_line: None,
            }),
            _ => Err(not_in_session()),
        }
    }

    fn run(&mut self) -> Result<ExitCode> {
        self.report_interrupted_iteration()?;
        loop {
            let state = self.state()?;
            let step = match policy::next(times::now(), &state) {
                NextStep::Iterate { .. } => self.iterate(&state)?,
                NextStep::Retry { number, after } => {
                    let wait = Duration::from_secs(after.as_secs().max(1));
                    self.print_once(&format!(
                        "iteration {number} failed; retrying in {} s",
                        wait.as_secs()
                    ));
                    self.wait(Some(Instant::now() + after))?
                }
                NextStep::Pause => self.checkpoint(&state)?,
                NextStep::Paused => {
                    let name = &self.agent;
                    self.print_once(&format!(
                        "paused at a checkpoint; 'ph resume {name}' continues"
                    ));
                    self.wait(None)?
                }
                NextStep::Hold => {
                    let name = &self.agent;
                    self.print_once(&format!(
                        "interactive mode; 'ph interactive {name} off' continues"
                    ));
                    self.wait(None)?
                }
                // This runner started the iteration, and an error kept it from recording the end.
                NextStep::Underway { number } => {
                    let outcome = IterationOutcome::Failed(IterationFailure::CutOff);
                    let is_unread = false;
                    self.order(LoopOrder::EndIteration {
                        number,
                        outcome,
                        is_unread,
                    })?;
                    ControlFlow::Continue(())
                }
                NextStep::End(how) => return self.end(&state, &how),
            };
            if step.is_break() {
                return Ok(ExitCode::FAILURE);
            }
        }
    }

    /// Report the iteration that the previous session left open. The start of this session has
    /// recorded its failure.
    fn report_interrupted_iteration(&mut self) -> Result<()> {
        let state = self.state()?;
        let began = self.record.started_at;
        let last = state.last.as_ref().filter(|last| last.ended_at >= began);
        if let Some(last) = last {
            let line = format!("iteration {}: {}", last.number, last.outcome);
            self.terminal.print_line(&line);
            self.append_failure(&state, last);
        }
        Ok(())
    }

    /// Append an iteration to progress.txt if it has failed.
    pub(super) fn append_failure(&mut self, state: &LoopState, past: &PastIteration) {
        let IterationOutcome::Failed(failure) = &past.outcome else {
            return;
        };
        self.append_progress(state, |entry| {
            progress::failure(entry, past.story.as_deref(), past.failures, failure)
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

    fn print_once(&mut self, line: &str) {
        if self.last_line.as_deref() != Some(line) {
            self.terminal.print_line(line);
            self.last_line = Some(line.to_owned());
        }
    }

    /// Wait for `deadline` or a change. Break if the session is gone.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<ControlFlow<()>> {
        match io::wait_without_agent(&mut self.wakeups, deadline) {
            None => Ok(ControlFlow::Continue(())),
            Some(StopReason::SessionGone) => Ok(ControlFlow::Break(())),
            Some(StopReason::EndRequested | StopReason::Interrupt) => {
                let how = LoopEnding::Stopped;
                self.order(LoopOrder::End { how })?;
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    fn checkpoint(&mut self, state: &LoopState) -> Result<ControlFlow<()>> {
        self.order(LoopOrder::Checkpoint)?;
        let stories = Stories::of(state);
        let counts = stories.prd().map(|prd| (prd.done(), prd.total()));
        self.append_progress(state, |entry| {
            progress::checkpoint(entry, counts, "it was asked for")
        });
        Ok(ControlFlow::Continue(()))
    }

    fn end(&mut self, state: &LoopState, how: &LoopEnding) -> Result<ExitCode> {
        if !state.has_ended() {
            self.order(LoopOrder::End { how: how.clone() })?;
        }
        let took = time::length(times::now().duration_since(state.began_at));
        self.terminal
            .print_line(&format!("the loop has ended after {took}: {how}"));
        self.terminal.set_title(&format!("{}: {how}", self.agent));
        Ok(match how {
            LoopEnding::Complete(_) | LoopEnding::Stopped => ExitCode::SUCCESS,
            LoopEnding::UsedUp | LoopEnding::GaveUp(_) | LoopEnding::Failed(_) => ExitCode::FAILURE,
        })
    }

    /// Append a block to progress.txt, if the loop has one. An error is only printed: the journal
    /// contains the same facts.
    fn append_progress(&mut self, state: &LoopState, block: impl Fn(&ProgressEntry<'_>) -> String) {
        let Some(path) = &state.settings.progress else {
            return;
        };
        let last = state.last.as_ref().map(|last| last.number);
        let open = state.open.as_ref().map(|open| open.started.number);
        let entry = ProgressEntry {
            at: times::now(),
            zone: times::zone(),
            iteration: open.or(last).unwrap_or(state.number),
            last: state.last_allowed(),
            agent: &state.settings.harness,
        };
        if let Err(error) = files::append(Path::new(path), &block(&entry)) {
            let shown = files::shown(Path::new(path));
            self.terminal
                .print_line(&format!("cannot write {shown}: {error}"));
        }
    }
}
