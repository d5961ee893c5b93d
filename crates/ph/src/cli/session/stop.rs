//! `ph stop`: ends a session by request, then by signals, and the processes of a crashed one.

use crate::cli::prelude::*;
use crate::cli::session::{find_session, ls};
use crate::output::{progress, progress_done};
use posthaste_client::session::client::{
    CallError, Client, FALLBACK_TIMEOUT, LIVENESS_TIMEOUT, TYPING_TIMEOUT,
};
use posthaste_client::session::sessions::NO_RESPONSE;
use posthaste_core::session::{self, Ended};
use posthaste_store::live::{self, SessionDir, SessionRecord, process};
use posthaste_store::operation::EndRun;
use rustix::process::Signal;
use std::time::{Duration, Instant};

/// Stop a session
///
/// Asks the command to exit (SIGHUP, SIGTERM), and kills it after five seconds (SIGKILL). Its mail
/// is kept. Exits with 1 if another process continues the agent's conversation (Claude Code's
/// agents view). A loop finishes its iteration first, without a time limit, unless --now is given.
/// Called by the loop's own agent, this returns immediately.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph stop coder-1
  ph stop coder-1 --kill")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = parse_name, add = complete_agents())]
    name: AgentName,
    /// Stop a loop without waiting for its iteration
    #[arg(long)]
    now: bool,
    /// Kill the program without asking it to exit first
    #[arg(long, short)]
    kill: bool,
}

/// The way to stop a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StopMode {
    /// Ask the program to exit; a loop finishes its iteration first.
    Request,
    /// Ask the program to exit now.
    Now,
    /// Kill the program.
    Kill,
}

/// The outcome of stopping a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum StopOutcome {
    NotRunning,
    /// The session had crashed, and these processes of its program have ended.
    OrphansEnded(Vec<u32>),
    /// The session ends after the iteration from which this was called.
    Requested,
    Ended,
    /// The program has exited, and another process continues the conversation.
    HandedOver(String),
}

/// Timeout for a session to end, which includes the time that it gives its program.
const SESSION_TIMEOUT: Duration = Duration::from_secs(20);
/// Timeout for a session to end after its program was killed.
const KILLED_SESSION_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the processes of a crashed session may take to exit before they are killed.
const ORPHANS_GRACE: Duration = Duration::from_secs(5);
/// Timeout for a session's process to exit after SIGKILL.
const PROCESS_TIMEOUT: Duration = Duration::from_secs(5);
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// Interval of polling during an iteration of a loop, which takes long.
const ITERATION_POLL_INTERVAL: Duration = Duration::from_millis(100);
/// Timeout for asking a session whether another process continues its conversation.
const HANDOVER_TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = &args.name;
    let mode = match (args.kill, args.now) {
        (true, _) => StopMode::Kill,
        (false, true) => StopMode::Now,
        (false, false) => StopMode::Request,
    };
    let outcome = end(context, name, mode)?;
    // For a name that never ran, this returns the error.
    let mut session = find_session(context, name)?;
    session.handed_over = None;
    let mut code = Code::Ok;
    let line = match outcome {
        StopOutcome::NotRunning => format!("{name} is not running"),
        StopOutcome::OrphansEnded(pids) => {
            let pids = ls::describe_pids(&pids);
            format!("the session of {name} had crashed; ended its program ({pids})")
        }
        StopOutcome::Requested => describe_request(context, name),
        StopOutcome::Ended => {
            let exit = session.exit.as_deref().unwrap_or_default();
            format!("{name} has ended: {exit}")
        }
        StopOutcome::HandedOver(job) => {
            let line = describe_handover(name, &job);
            session.handed_over = Some(job);
            code = Code::No;
            line
        }
    };
    context.print(&session, line)?;
    Ok(code)
}

/// Return the notice that the program has exited but its conversation continues elsewhere.
pub(crate) fn describe_handover(name: &AgentName, job: &str) -> String {
    format!(
        "the program of {name} has exited, but its conversation continues in another process that \
         ph does not control ({job})"
    )
}

/// Return the text for a loop that ends after its iteration.
fn describe_request(context: &Context, name: &AgentName) -> String {
    let state = context.query(|journal| journal.loop_state(name));
    match state.ok().flatten().and_then(|state| state.open) {
        Some(open) => {
            let number = open.started.number;
            format!(
                "stop requested; {name} ends after iteration {number} ('--now' ends it at once)"
            )
        }
        None => format!("stop requested; {name} ends"),
    }
}

/// Stop a session and wait until it has ended.
pub(crate) fn end(context: &Context, name: &AgentName, mode: StopMode) -> Result<StopOutcome> {
    let dir = SessionDir::of(&context.home, name);
    if !dir.is_held()? {
        return end_orphans(context, name, mode);
    }
    let is_loop = dir.record().is_some_and(|record| record.launch.is_loop());
    let mut session = StoppingSession {
        name,
        dir,
        kill: mode == StopMode::Kill,
        handed_over: None,
    };
    let (mut timeout, mut refusal) = (Some(SESSION_TIMEOUT), String::new());
    match session.ask(context)? {
        // An iteration has no time limit. The session remembers the request.
        Ok(()) if is_loop && mode == StopMode::Request => {
            if context.me().is_ok_and(|(me, _)| me == *name) {
                // The iteration cannot end before its agent, the caller, gets a reply.
                return Ok(StopOutcome::Requested);
            }
            note(describe_request(context, name));
            timeout = None;
        }
        Ok(()) if is_loop && mode == StopMode::Now => session.signal(),
        Ok(()) => {}
        Err(CallError::Refused(failure)) => refusal = format!(": {}", failure.message),
        Err(CallError::NoReply) if session.kill => {
            session.signal();
            timeout = Some(KILLED_SESSION_TIMEOUT);
        }
        Err(CallError::NoReply) => {
            note(format!("{name}: {NO_RESPONSE}; stopping it by signals"));
            session.signal();
        }
    }
    let is_over = session.wait(timeout)? || {
        session.kill();
        session.wait(Some(PROCESS_TIMEOUT))?
    };
    progress_done();
    if !is_over {
        return Err(session.cannot_stop(&refusal));
    }
    Ok(session
        .handed_over
        .map_or(StopOutcome::Ended, StopOutcome::HandedOver))
}

/// End the processes that a crashed session of this name has left, and record the crash.
fn end_orphans(context: &Context, name: &AgentName, mode: StopMode) -> Result<StopOutcome> {
    let Some(run) = context.query(|journal| journal.session(name))? else {
        return Ok(StopOutcome::NotRunning);
    };
    let found = live::orphans(&context.home, &run);
    if found.is_empty() {
        return Ok(StopOutcome::NotRunning);
    }
    let grace = (mode != StopMode::Kill).then_some(ORPHANS_GRACE);
    let left = process::end(grace, || live::orphans(&context.home, &run));
    if !left.is_empty() {
        let left = ls::describe_pids(&left);
        return Err(Report::storage(format!(
            "cannot end the program of {name}: SIGKILL has not ended {left}"
        )));
    }
    let end = EndRun {
        now: context.now,
        agent: name.clone(),
        ended: Ended {
            run: run.started.run,
            how: session::Ending::Crashed,
        },
    };
    context.journal()?.commit(end)??;
    Ok(StopOutcome::OrphansEnded(found))
}

/// Wait until `is_done`. Return false on timeout.
pub(crate) fn wait_until(
    timeout: Duration,
    mut is_done: impl FnMut() -> Result<bool>,
) -> Result<bool> {
    let deadline = Instant::now() + timeout;
    while !is_done()? {
        if Instant::now() > deadline {
            return Ok(false);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Ok(true)
}

/// A session that is being stopped from outside.
struct StoppingSession<'a> {
    name: &'a AgentName,
    dir: SessionDir,
    /// Whether to kill the program.
    kill: bool,
    /// The job of another process that continues the conversation, as the session reported it.
    handed_over: Option<String>,
}

impl StoppingSession<'_> {
    /// Ask the session to stop. Retries briefly: a session that is starting or ending may have no
    /// socket.
    fn ask(&mut self, context: &Context) -> Result<std::result::Result<(), CallError>> {
        let deadline = Instant::now() + LIVENESS_TIMEOUT;
        while self.dir.is_held()? {
            let left = deadline.saturating_duration_since(Instant::now());
            let client = match self.kill {
                true => Client::connect_to(&context.home, self.name),
                false => Client::connect_responsive(&context.home, self.name),
            };
            let asked = match client {
                Some(mut client) => {
                    self.handed_over = self.handover(context);
                    match self.kill {
                        true => client.call(&method::Kill {}, left).map(drop),
                        // A responsive session may have to wait for the journal.
                        false => client.call(&method::Stop {}, TYPING_TIMEOUT).map(drop),
                    }
                }
                None => Err(CallError::NoReply),
            };
            let is_late = Instant::now() > deadline;
            if is_late || !matches!(asked, Err(CallError::NoReply)) {
                return Ok(asked);
            }
            std::thread::sleep(POLL_INTERVAL);
        }
        Ok(Ok(()))
    }

    /// Ask the session whether another process has the conversation: only a live session knows.
    fn handover(&self, context: &Context) -> Option<String> {
        let timeout = match self.kill {
            true => FALLBACK_TIMEOUT,
            false => HANDOVER_TIMEOUT,
        };
        let mut client = Client::connect_to(&context.home, self.name)?;
        client.call(&method::Session {}, timeout).ok()?.handed_over
    }

    /// Return the session's record if its process certainly belongs to the session.
    fn process(&self) -> Option<SessionRecord> {
        let record = self.dir.record()?;
        process::is(record.pid, record.pid_started).then_some(record)
    }

    /// Stop a session that does not respond by SIGTERM: it ends normally if it can. With `kill`,
    /// also kill its program.
    fn signal(&self) {
        let Some(record) = self.process() else { return };
        if self.kill {
            process::signal_all(record.child_pid, record.child_started, Signal::KILL);
        }
        for signal in [Signal::TERM, Signal::CONT] {
            process::signal(record.pid, signal);
        }
    }

    /// Kill the session and the rest of its program.
    fn kill(&self) {
        let Some(record) = self.process() else { return };
        process::signal(record.pid, Signal::KILL);
        process::signal_all(record.child_pid, record.child_started, Signal::KILL);
    }

    /// Wait until the session has ended. Return false on timeout.
    fn wait(&self, timeout: Option<Duration>) -> Result<bool> {
        // Printed once: repeated output of a waiting agent would look like work.
        progress(format!("waiting for {} to end", self.name));
        if let Some(timeout) = timeout {
            return wait_until(timeout, || Ok(!self.dir.is_held()?));
        }
        while self.dir.is_held()? {
            std::thread::sleep(ITERATION_POLL_INTERVAL);
        }
        Ok(true)
    }

    /// Return the error for a session that SIGKILL has not ended.
    fn cannot_stop(&self, refusal: &str) -> Report {
        let report = Report::storage(format!("cannot stop {}{refusal}", self.name));
        match self.process() {
            Some(record) => report.hint(format!(
                "its process {} does not exit after SIGKILL",
                record.pid
            )),
            None => report.hint(format!(
                "its process is unknown; it holds the lock {}",
                self.dir.lock_file().display()
            )),
        }
    }
}
