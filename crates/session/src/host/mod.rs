//! The session's own process: from the start request on its standard input to the record of its
//! end.

pub(crate) mod clock;
pub(crate) mod crash_recovery;
pub(crate) mod journal_handle;
pub(crate) mod launch_files;
pub(crate) mod log;
pub mod program_io;
pub(crate) mod resume;
mod running;
pub mod start;

use crate::pty::child;
use crate::routes::http::HttpApi;
use crate::socket::listen::{self, SessionSocket};
use crash_recovery::Recovery;
use journal_handle::JournalHandle;
use launch_files::{LaunchContext, PreparedLaunch};
use log::Log;
use posthaste_core::loop_::LoopOrder;
use posthaste_core::session::Started;
use posthaste_core::{AgentName, Conversation};
use posthaste_store::live::process_notes::ProcessNote;
use posthaste_store::live::{Launch, NameLock, SessionDir, SessionRecord, process, reach};
use posthaste_store::operation::{ApplyLoopOrder, RecordConversation, StartRun};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Home, Patience, Writer, times};
use resume::ResumeDecision;
pub(crate) use running::ending;
use running::{CLOSE_TIMEOUT, RunningSession};
use rustix::process::{Resource, Rlimit, Signal};
use start::{StartReply, StartRequest};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::process::Child;
use tokio::runtime::LocalOptions;
use tracing::{error, info};
use uuid::Uuid;

/// Signal that the program receives if its session is killed. The next session ends a program that
/// ignores it.
const ORPHAN_SIGNAL: Signal = Signal::HUP;
/// Timeout for the lock of an agent's name, if a session that starts or ends holds it.
const NAME_LOCK_TIMEOUT: Duration = CLOSE_TIMEOUT.saturating_mul(3);

/// Run this process as a session.
pub fn main() -> Result<ExitCode> {
    child::close_inherited();
    let mut json = String::new();
    let request = match std::io::stdin().read_to_string(&mut json) {
        Ok(_) => serde_json::from_str::<StartRequest>(&json).ok(),
        Err(_) => None,
    };
    let Some(request) = request else {
        return Err(Report::usage(
            "this command is internal to ph; see 'ph run'",
        ));
    };
    // Leave the starter's terminal, so that its signals do not reach this process, and the
    // starter's directory, so that it can be unmounted.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    crash_on_panic();
    let log = log::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default());
    let ran = match runtime {
        Ok(runtime) => runtime.block_on(as_task(run(request, log))),
        Err(error) => Err(Report::storage(format!("cannot start a session: {error}"))),
    };
    match ran {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(report) => {
            error!(target: log::SESSION, "{}", report.message());
            reply(&StartReply::Failed(report));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Run the session as a task. The main future of a runtime polls the system for events before it
/// continues after each wake-up; a task does not.
async fn as_task(session: impl Future<Output = Result<()>> + 'static) -> Result<()> {
    tokio::task::spawn_local(session)
        .await
        .unwrap_or_else(|error| Err(Report::storage(format!("the session crashed: {error}"))))
}

/// Abort the process if a task panics: without that task, the session would report a false state.
/// The next session recovers from the crash.
fn crash_on_panic() {
    let report_panic = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        report_panic(panic);
        std::process::abort();
    }));
}

/// Report the outcome of the start to the process that started this one, and close standard input
/// and output.
fn reply(reply: &StartReply) {
    let mut line = serde_json::to_vec(reply).unwrap_or_default();
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(&line).and_then(|()| stdout.flush());
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stdin(&null);
    }
}

async fn run(request: StartRequest, log: Arc<Log>) -> Result<()> {
    let files = raise_file_limit();
    let home = Home::open(&request.home, None)?;
    let launch = &request.launch;
    let session_dir = SessionDir::of(&home, &launch.name);
    session_dir.prepare()?;
    let name = take_name(&session_dir, &launch.name).await?;
    // A start that has just failed may have removed the log.
    log.take(&session_dir)?;
    let (journal, recovery) = open_journal(&home, &request).await?;
    let decision = ResumeDecision::make(&journal, &request, recovery.has_crashed).await?;
    let resumed = decision.conversation().cloned();
    if resumed.is_none() {
        crash_recovery::settle_unproven(&journal, &launch.name, None).await?;
    }
    let note = joined([recovery.note, decision.note(&launch.name)]);
    let harness = Arc::new(request.harness.clone());
    let socket = session_dir.socket()?;
    let sockets = listen_on(&socket, &name, launch)?;
    let http = HttpApi::for_program(&harness, launch)?;
    let context = LaunchContext {
        home: &home,
        session_dir: &session_dir,
        socket: &socket,
        launch,
        run: Uuid::new_v4(),
        http: http.as_ref(),
        resume: decision.args(),
    };
    // Kept until the end: its files are removed when it is dropped.
    let prepared = PreparedLaunch::prepare(&context, &harness.start)?;
    // Processes of the program may ask for their agent's name as soon as they run.
    let own_pid = std::process::id();
    let own_start = process::started(own_pid).unwrap_or_default();
    let _own_note = ProcessNote::write(&home, &launch.name, own_pid, own_start)?;
    let (pty, child) = child::spawn(&context, &harness, &prepared, files, ORPHAN_SIGNAL)?;
    let record = record_of(&request, &child, &context);
    let _child_note =
        ProcessNote::write(&home, &launch.name, record.child_pid, record.child_started)?;
    record_start(&journal, &record, decision.recorded(record.run)).await?;
    session_dir.write_record(&record)?;
    let running = RunningSession {
        record,
        harness,
        has_hooks: prepared.has_hooks || request.has_installed_hooks,
        limits: request.limits,
        without_home: request.without_home,
        journal,
        script: request.script.clone(),
        http,
        resumed,
        sockets,
        _name: name,
    };
    log_start(&running, note.as_deref());
    reply(&StartReply::Runs {
        record: Box::new(running.record.clone()),
        note,
        is_resumed: running.resumed.is_some(),
    });
    running
        .run(home, &session_dir, pty, child, request.audience)
        .await;
    Ok(())
}

/// Open the journal, and recover from a crash of the last session.
async fn open_journal(home: &Home, request: &StartRequest) -> Result<(JournalHandle, Recovery)> {
    // The writer's thread ends with the process; every commit that was answered is on disk by then.
    let (writer, _) = Writer::start(home, Patience(request.patience))?;
    let journal = JournalHandle::new(writer);
    let recovery = crash_recovery::recover(&journal, home, &request.launch.name).await?;
    Ok((journal, recovery))
}

fn log_start(running: &RunningSession, note: Option<&str>) {
    let record = &running.record;
    info!(
        target: log::SESSION,
        version = env!("CARGO_PKG_VERSION"),
        agent = %record.launch.name,
        harness = record.launch.harness,
        pid = record.pid,
        child = record.child_pid,
        run = %record.run,
        resumed = running.resumed.as_ref().map(|conversation| conversation.id.as_str()),
        note,
        "started"
    );
}

fn joined(notes: [Option<String>; 2]) -> Option<String> {
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}

/// Listen on the session's own socket, and on the sockets that were requested.
fn listen_on(socket: &Path, name: &NameLock, launch: &Launch) -> Result<Vec<SessionSocket>> {
    let mut sockets = vec![listen::listen_with_lock(socket, &name.lock_file)?];
    for path in &launch.sockets {
        sockets.push(listen::listen_at_chosen_path(path)?);
    }
    Ok(sockets)
}

/// Record that the session has started, its conversation, and that its loop begins or continues.
/// The runner of a loop waits for this.
async fn record_start(
    journal: &JournalHandle,
    record: &SessionRecord,
    conversation: Option<Conversation>,
) -> Result<()> {
    let launch = &record.launch;
    let started = StartRun {
        now: record.started_at,
        agent: launch.name.clone(),
        started: Started {
            run: record.run,
            pid: record.pid,
            pid_started: record.pid_started,
            child_pid: record.child_pid,
            child_started: record.child_started,
            command: launch.command.clone(),
            cwd: launch.cwd.to_string_lossy().into_owned(),
            harness: launch.harness.clone(),
            boot: process::boot(),
        },
    };
    journal.commit(started).await??;
    if let Some(conversation) = conversation {
        let conversation = RecordConversation {
            now: times::now(),
            agent: launch.name.clone(),
            conversation,
        };
        journal.commit(conversation).await??;
    }
    if let Some(settings) = launch.build.clone() {
        let run = Some(record.run);
        let begin = ApplyLoopOrder {
            now: times::now(),
            agent: launch.name.clone(),
            order: LoopOrder::Begin { run, settings },
        };
        journal.commit(begin).await??;
    }
    Ok(())
}

/// Take the lock of an agent's name. If its holder does not listen, the holder is either ending or
/// starting, so wait for the lock for a while.
async fn take_name(session_dir: &SessionDir, name: &AgentName) -> Result<NameLock> {
    let deadline = Instant::now() + NAME_LOCK_TIMEOUT;
    loop {
        if let Some(name) = session_dir.take_name()? {
            return Ok(name);
        }
        let listens = |record: SessionRecord| match reach(&record.socket) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        if session_dir.record().is_some_and(listens) || Instant::now() > deadline {
            return Err(already_running(name));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn already_running(name: &AgentName) -> Report {
    Report::refused(format!("{name} is already running")).hint(format!(
        "attach to it with 'ph attach {name}', or choose another name with --name"
    ))
}

/// Raise this process's limit of open files to the maximum. Return the previous limit, which the
/// program gets.
fn raise_file_limit() -> Rlimit {
    let before = rustix::process::getrlimit(Resource::Nofile);
    let more = Rlimit {
        current: before.maximum,
        ..before
    };
    let _ = rustix::process::setrlimit(Resource::Nofile, more);
    before
}

fn record_of(request: &StartRequest, child: &Child, context: &LaunchContext<'_>) -> SessionRecord {
    let child_pid = child.id().unwrap_or_default();
    SessionRecord {
        run: context.run,
        pid: std::process::id(),
        pid_started: process::started(std::process::id()).unwrap_or_default(),
        child_pid,
        child_started: process::started(child_pid).unwrap_or_default(),
        socket: context.socket.to_owned(),
        started_at: times::now(),
        launch: request.launch.clone(),
    }
}
