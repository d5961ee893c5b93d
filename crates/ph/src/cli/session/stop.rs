use crate::cli::names::{NameParser, complete_agents};
use crate::cli::session::ls;
use crate::cli::session::status;
use crate::context::Context;
use crate::output::{note, progress, progress_done};
use posthaste_client::session::client::{AWAKE, Client, NoAnswer, PROMPT, UNHURRIED};
use posthaste_client::session::roll::SILENT;
use posthaste_core::AgentName;
use posthaste_core::session::{self, Ended};
use posthaste_store::Job;
use posthaste_store::live;
use posthaste_store::live::place::{Place, Record};
use posthaste_store::live::process;
use posthaste_store::report::{Code, Report, Result};
use posthaste_wire::{Session, method};
use rustix::process::Signal;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// End a session
///
/// Asks its command to end (SIGHUP, SIGTERM), and after five seconds insists (SIGKILL). Its mail
/// stays. Exits with 1 if another process goes on with the agent's conversation (Claude Code's
/// agents view). A loop finishes its iteration first, however long that takes, unless --now is said; its
/// own agent is not kept waiting for that.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph stop coder-1
  ph stop coder-1 --kill")]
pub(crate) struct Args {
    /// The agent's name
    #[arg(value_name = "NAME", value_parser = NameParser, add = complete_agents())]
    name: AgentName,
    /// End the iteration of a loop, too
    #[arg(long)]
    now: bool,
    /// Do not ask first
    #[arg(long, short)]
    kill: bool,
}

/// How a session is to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// When it can; a loop, when its iteration is over.
    Asked,
    /// Its program is asked to end.
    Now,
    /// Nothing is asked of the program.
    Kill,
}

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Came {
    NotRunning,
    /// The session had crashed, and these processes of its program have ended.
    OrphansEnded(Vec<u32>),
    /// It ends when the iteration is over that we are called from.
    Asked,
    Ended,
    /// Its program has ended, and another process goes on with the conversation.
    HandedOver(String),
}

/// How long it may take to end in order, which includes what it leaves its program.
const GRACE: Duration = Duration::from_secs(20);
/// The same where its program was ended for it.
const SHORT_GRACE: Duration = Duration::from_secs(5);
/// How long the system may take to end a process.
const KILLED: Duration = Duration::from_secs(5);
const LOOK_AGAIN: Duration = Duration::from_millis(5);
/// How long a session may take to say whether another process has its conversation.
const ASKED_WITHIN: Duration = Duration::from_millis(500);

pub(crate) fn run(context: &mut Context, args: &Args) -> Result<Code> {
    let name = &args.name;
    let how = match (args.kill, args.now) {
        (true, _) => How::Kill,
        (false, true) => How::Now,
        (false, false) => How::Asked,
    };
    let came = end(context, name, how)?;
    // Whether it ever ran is worth knowing.
    let session = status::find(context, name)?;
    let (handed_over, code) = match &came {
        Came::HandedOver(job) => (Some(job.clone()), Code::No),
        Came::NotRunning | Came::OrphansEnded(_) | Came::Asked | Came::Ended => (None, Code::Ok),
    };
    if context.json {
        let session = Session {
            handed_over,
            ..session
        };
        context.out.json(&session)?;
        return Ok(code);
    }
    let line = match came {
        Came::NotRunning => format!("{name} does not run"),
        Came::OrphansEnded(pids) => {
            let pids = ls::describe_pids(&pids);
            format!("the session of {name} had crashed; ended its program ({pids})")
        }
        Came::Asked => asked(context, name),
        Came::Ended => format!("{name} has ended: {}", session.exit.unwrap_or_default()),
        Came::HandedOver(job) => runs_on(name, &job),
    };
    context.out.line(line)?;
    Ok(code)
}

/// Return the notice that the program has exited but its conversation continues elsewhere.
pub(crate) fn runs_on(name: &AgentName, job: &str) -> String {
    format!(
        "the program of {name} has exited, but its conversation continues in another process that \
         ph does not control ({job})"
    )
}

/// What is told of a loop that was asked to end.
fn asked(context: &Context, name: &AgentName) -> String {
    let state = context.reader().ok().flatten();
    let state = state.and_then(|mut journal| journal.loop_state(name).ok().flatten());
    match state.and_then(|state| state.open) {
        Some(open) => {
            let number = open.started.number;
            format!("asked; {name} ends after iteration {number} ('--now' ends it at once)")
        }
        None => format!("asked; {name} ends"),
    }
}

/// Ends a session and waits until it is gone.
pub(crate) fn end(context: &Context, name: &AgentName, how: How) -> Result<Came> {
    let place = Place::of(&context.home, name);
    if !place.is_held()? {
        return end_orphans(context, name, how);
    }
    let is_loop = place.record().is_some_and(|record| record.launch.is_loop());
    let mut ending = Ending {
        name,
        place,
        kill: how == How::Kill,
        handed_over: None,
    };
    let (grace, refusal) = match ending.ask(context)? {
        // The iteration takes as long as it takes: it is asked for once, and stands.
        Ok(()) if is_loop && how == How::Asked => {
            if context.me().is_ok_and(|(me, _)| me == *name) {
                // Its iteration is not over before who asks has an answer.
                return Ok(Came::Asked);
            }
            note(asked(context, name));
            (Duration::MAX, None)
        }
        Ok(()) => {
            if is_loop && how == How::Now {
                ending.signal();
            }
            (GRACE, None)
        }
        Err(NoAnswer::Refused(failure)) => (GRACE, Some(failure.message)),
        Err(NoAnswer::Silence) => {
            if !ending.kill {
                note(format!("{name}: {SILENT}; it is told to end by signals"));
            }
            ending.signal();
            (if ending.kill { SHORT_GRACE } else { GRACE }, None)
        }
    };
    let is_over = ending.wait(grace)? || {
        ending.insist();
        ending.wait(KILLED)?
    };
    progress_done();
    if is_over {
        return Ok(ending.handed_over.map_or(Came::Ended, Came::HandedOver));
    }
    let why = refusal.map_or(String::new(), |why| format!(": {why}"));
    let report = Report::storage(format!("{name} does not end{why}"));
    Err(match ending.process() {
        Some(record) => report.hint(format!(
            "its process {} was sent SIGKILL, and the system does not end it",
            record.pid
        )),
        None => report.hint(format!(
            "its process is not known; it holds the lock {}",
            ending.place.lock_file().display()
        )),
    })
}

/// End the processes that a crashed session of this name has left.
fn end_orphans(context: &Context, name: &AgentName, how: How) -> Result<Came> {
    let latest = match context.reader()? {
        Some(mut journal) => journal.session(name)?,
        None => None,
    };
    let Some(run) = latest else {
        return Ok(Came::NotRunning);
    };
    let found = live::orphans(&context.home, &run);
    if found.is_empty() {
        return Ok(Came::NotRunning);
    }
    let send_signals = |signals: &[Signal]| {
        for pid in live::orphans(&context.home, &run) {
            signals
                .iter()
                .for_each(|signal| process::signal(pid, *signal));
        }
    };
    let wait = |patience: Duration| {
        let deadline = Instant::now() + patience;
        while !live::orphans(&context.home, &run).is_empty() {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        true
    };
    let mut are_gone = false;
    if how != How::Kill {
        send_signals(&[Signal::HUP, Signal::TERM, Signal::CONT]);
        are_gone = wait(SHORT_GRACE);
    }
    if !are_gone {
        send_signals(&[Signal::KILL]);
        are_gone = wait(KILLED);
    }
    if !are_gone {
        let left = ls::describe_pids(&live::orphans(&context.home, &run));
        return Err(Report::storage(format!(
            "cannot end the program of {name}: SIGKILL has not ended {left}"
        )));
    }
    record_crash(context, name, run.started.run)?;
    Ok(Came::OrphansEnded(found))
}

/// Record the end of a crashed session, of which nothing runs any more.
fn record_crash(context: &Context, name: &AgentName, run: Uuid) -> Result<()> {
    let job = Job::Ended {
        now: context.now,
        agent: name.clone(),
        ended: Ended {
            run,
            how: session::Ending::Crashed,
        },
    };
    context.journal()?.commit(job)??;
    Ok(())
}

/// The end of a session, from outside.
struct Ending<'a> {
    name: &'a AgentName,
    place: Place,
    /// Nothing is asked of the program.
    kill: bool,
    /// The job of another process that has the conversation, as the session said before its end.
    handed_over: Option<String>,
}

impl Ending<'_> {
    /// Asks the session to end itself. One that begins or ends in this moment, or has lost its
    /// socket, may need a moment.
    fn ask(&mut self, context: &Context) -> Result<std::result::Result<(), NoAnswer>> {
        let deadline = Instant::now() + AWAKE;
        while self.place.is_held()? {
            let left = deadline.saturating_duration_since(Instant::now());
            let client = match self.kill {
                true => Client::of(&context.home, self.name),
                false => Client::awake(&context.home, self.name),
            };
            let asked = match client {
                Some(mut client) => {
                    self.handed_over = self.handover(context);
                    match self.kill {
                        true => client.call(&method::Kill {}, left).map(drop),
                        // One that is awake may have to wait for the journal.
                        false => client.call(&method::Stop {}, UNHURRIED).map(drop),
                    }
                }
                None => Err(NoAnswer::Silence),
            };
            let is_late = Instant::now() > deadline;
            if is_late || !matches!(asked, Err(NoAnswer::Silence)) {
                return Ok(asked);
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        Ok(Ok(()))
    }

    /// Ask the session whether another process has the conversation: only a live session knows.
    fn handover(&self, context: &Context) -> Option<String> {
        let patience = if self.kill { PROMPT } else { ASKED_WITHIN };
        let mut client = Client::of(&context.home, self.name)?;
        client.call(&method::Session {}, patience).ok()?.handed_over
    }

    /// The session's record, where it is certain whose process it names.
    fn process(&self) -> Option<Record> {
        let record = self.place.record()?;
        process::is(record.pid, record.pid_started).then_some(record)
    }

    /// Tells a session that does not listen, by the signals that it must hear. It then ends in
    /// order, if it can.
    fn signal(&self) {
        let Some(record) = self.process() else { return };
        if self.kill {
            process::signal_all(record.child_pid, record.child_started, Signal::KILL);
        }
        for signal in [Signal::TERM, Signal::CONT] {
            process::signal(record.pid, signal);
        }
    }

    /// Ends it and what is left of its program, whether they can or not.
    fn insist(&self) {
        let Some(record) = self.process() else { return };
        process::signal(record.pid, Signal::KILL);
        process::signal_all(record.child_pid, record.child_started, Signal::KILL);
    }

    /// Waits for its end; false where it does not come in time.
    fn wait(&self, patience: Duration) -> Result<bool> {
        // None where there is no end to it.
        let deadline = Instant::now().checked_add(patience);
        // Once: where an agent waits, more would look like work.
        progress(format!("waiting for {} to end", self.name));
        while self.place.is_held()? {
            if deadline.is_some_and(|deadline| Instant::now() > deadline) {
                return Ok(false);
            }
            // Whoever waits for hours need not know to the millisecond.
            let often = if deadline.is_some() { 1 } else { 20 };
            std::thread::sleep(often * LOOK_AGAIN);
        }
        Ok(true)
    }
}
