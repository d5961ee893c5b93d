//! The session's own process: from the orders on its standard input to the last fact about it.

pub(crate) mod books;
pub(crate) mod clock;
pub mod console;
pub(crate) mod layer;
pub(crate) mod left;
pub(crate) mod log;
pub(crate) mod resuming;
pub mod start;

use crate::Shared;
use crate::pty::child;
use crate::routes::carrier::Carrier;
use crate::routes::door::Key;
use crate::socket::listen::{self, SessionSocket};
use crate::state::{SessionState, Setup};
use books::Books;
use console::Console;
use layer::{Outfit, Told};
use log::Log;
use posthaste_core::build::{LoopOrder, Settings};
use posthaste_core::harness::Manifest;
use posthaste_core::session::{Ended, Ending, Started};
use posthaste_core::{AgentName, Conversation, Limits, Timestamp};
use posthaste_provider::ScriptSettings;
use posthaste_store::Writer;
use posthaste_store::live::place::{Birth, Claim, Launch, Place, Record};
use posthaste_store::live::process;
use posthaste_store::live::reach;
use posthaste_store::operation::{ApplyLoopOrder, EndRun, RecordConversation, StartRun};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Home, Patience};
use resuming::Resuming;
use rustix::process::{Resource, Rlimit, Signal};
use start::{Answer, Audience, Orders};
use std::cell::Cell;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::unix::AsyncFd;
use tokio::process::Child;
use tokio::runtime::LocalOptions;
use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tracing::{error, info};
use uuid::Uuid;

/// How many requests may wait for the owner of the state; who comes when it is full waits.
const REQUESTS: usize = 256;
/// What a program hears where its session is killed; the next session ends one that stays.
const ORPHANED: Signal = Signal::HUP;
/// How long connections may take for what they are still owed when the session ends.
const FAREWELL: Duration = Duration::from_secs(1);

/// Runs a session; called instead of everything else.
pub fn main() -> Result<ExitCode> {
    child::close_inherited();
    let mut told = String::new();
    let orders = match std::io::stdin().read_to_string(&mut told) {
        Ok(_) => serde_json::from_str::<Orders>(&told).ok(),
        Err(_) => None,
    };
    let Some(orders) = orders else {
        return Err(Report::usage("this is for ph itself; see 'ph run'"));
    };
    // Away from the starter's terminal: what closes or interrupts it is not for us. And out of
    // its directory, which somebody may want to unmount.
    let _ = rustix::process::setsid();
    let _ = std::env::set_current_dir("/");
    crash_on_panic();
    let log = log::start();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build_local(LocalOptions::default());
    let ran = match runtime {
        Ok(runtime) => runtime.block_on(as_task(run(orders, log))),
        Err(error) => Err(Report::storage(format!("cannot start a session: {error}"))),
    };
    match ran {
        Ok(()) => Ok(ExitCode::SUCCESS),
        Err(report) => {
            error!(target: log::SESSION, "{}", report.message());
            answer(&Answer::Failed(report));
            Ok(ExitCode::FAILURE)
        }
    }
}

/// Runs it as a task among the others. Whenever what the runtime itself waits for is woken, it asks
/// the system for news before it goes on, which tasks do not cost.
async fn as_task(session: impl Future<Output = Result<()>> + 'static) -> Result<()> {
    tokio::task::spawn_local(session)
        .await
        .unwrap_or_else(|error| Err(Report::storage(format!("the session broke off: {error}"))))
}

/// A session with a dead task would be a session that lies. It ends instead, and the next one
/// finds what it has left.
fn crash_on_panic() {
    let tell = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        tell(panic);
        std::process::abort();
    }));
}

/// Says how it went to whoever started us, and never anything again on standard output.
fn answer(answer: &Answer) {
    let mut line = serde_json::to_vec(answer).unwrap_or_default();
    line.push(b'\n');
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(&line).and_then(|()| stdout.flush());
    if let Ok(null) = File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&null);
        let _ = rustix::stdio::dup2_stdin(&null);
    }
}

/// A session that runs, and everything that must be put away when it does not any more.
struct Running {
    agent: AgentName,
    run: Uuid,
    harness: Arc<Manifest>,
    has_hooks: bool,
    limits: Limits,
    without_home: Duration,
    books: Books,
    /// What keeps the mail, where it is not the journal.
    script: Option<ScriptSettings>,
    door: Option<Key>,
    /// The conversation that the program was told to resume.
    resumed: Option<Conversation>,
    sockets: Vec<SessionSocket>,
    /// Held until the very end.
    _name: Claim,
}

async fn run(orders: Orders, log: Arc<Log>) -> Result<()> {
    let files = more_files();
    let home = Home::open(&orders.home, None)?;
    let launch = &orders.launch;
    let place = Place::of(&home, &launch.name);
    place.prepare()?;
    let claim = take_name(&place, &launch.name).await?;
    // A start that failed just now may have taken the log with it.
    log.take(&place)?;
    // The thread ends with the process: whatever was answered is on disk by then.
    let (writer, _) = Writer::start(&home, Patience(orders.patience))?;
    let books = Books::new(writer);
    let left = left::take_over(&books, &home, &launch.name).await?;
    let harness = Arc::new(orders.harness.clone());
    let resuming = Resuming::choose(&books, &orders, left.has_crashed).await?;
    let resumed = resuming.conversation().cloned();
    if resumed.is_none() {
        left::settle_unproven(&books, &launch.name, None).await?;
    }
    let note = joined([left.note, resuming.note()]);
    let socket = place.socket()?;
    let sockets = listen_on(&socket, &claim, launch)?;
    let door = Key::for_program(&harness, launch)?;
    let told = Told {
        home: &home,
        place: &place,
        socket: &socket,
        launch,
        run: Uuid::new_v4(),
        door: door.as_ref(),
        resume: resuming.args(),
    };
    // Kept until the end, with the files that the program was given.
    let outfit = Outfit::prepare(&told, &harness.start)?;
    // What the child starts must know whose it is from its first instruction on.
    let me = std::process::id();
    let began = process::started(me).unwrap_or_default();
    let _parent = Birth::note(&home, &launch.name, me, began)?;
    let (pty, child) = child::spawn(&told, &harness, &outfit, files, ORPHANED)?;
    let record = record_of(&orders, &child, &told);
    let started_at = record.started_at;
    let started = started_of(&record);
    let running = Running {
        agent: launch.name.clone(),
        run: record.run,
        harness,
        has_hooks: outfit.has_hooks || orders.has_installed_hooks,
        limits: orders.limits,
        without_home: orders.without_home,
        books,
        script: orders.script.clone(),
        door,
        resumed,
        sockets,
        _name: claim,
    };
    let _child = Birth::note(&home, &launch.name, record.child_pid, record.child_started)?;
    running.begin(started, started_at).await?;
    running.begin_conversation().await?;
    if let Some(settings) = &launch.build {
        running.begin_loop(record.run, settings.clone()).await?;
    }
    place.write_record(&record)?;
    log_start(&record, &running, note.as_deref());
    answer(&Answer::Runs {
        record: Box::new(record.clone()),
        note,
        is_resumed: running.resumed.is_some(),
    });
    running
        .live(home, &place, record, pty, child, orders.audience)
        .await;
    Ok(())
}

fn log_start(record: &Record, running: &Running, note: Option<&str>) {
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

/// Its own socket, and those that were asked for.
fn listen_on(socket: &Path, claim: &Claim, launch: &Launch) -> Result<Vec<SessionSocket>> {
    let mut sockets = vec![listen::listen_with_lock(socket, &claim.lock)?];
    for path in &launch.sockets {
        sockets.push(listen::listen_at_chosen_path(path)?);
    }
    Ok(sockets)
}

/// What the journal is told of it.
fn started_of(record: &Record) -> Started {
    let launch = &record.launch;
    Started {
        run: record.run,
        pid: record.pid,
        pid_started: record.pid_started,
        child_pid: record.child_pid,
        child_started: record.child_started,
        command: launch.command.clone(),
        cwd: launch.cwd.to_string_lossy().into_owned(),
        harness: launch.harness.clone(),
        boot: process::boot(),
    }
}

/// The name's lock. One that is held by somebody who does not listen is about to be free, or
/// somebody else has only just taken it.
async fn take_name(place: &Place, name: &AgentName) -> Result<Claim> {
    let deadline = Instant::now() + 3 * FAREWELL;
    loop {
        if let Some(claim) = place.claim()? {
            return Ok(claim);
        }
        let listens = |record: Record| match reach(&record.socket) {
            Ok(_) => true,
            Err(error) => error.kind() == ErrorKind::WouldBlock,
        };
        if place.record().is_some_and(listens) || Instant::now() > deadline {
            return Err(already_running(name));
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

fn already_running(name: &AgentName) -> Report {
    Report::refused(format!("{name} is already running")).hint(format!(
        "'ph attach {name}' shows it; another name for another one: --name"
    ))
}

/// Lets this process have as many open files as the system allows; gives back what was the limit,
/// which is the program's.
fn more_files() -> Rlimit {
    let before = rustix::process::getrlimit(Resource::Nofile);
    let more = Rlimit {
        current: before.maximum,
        ..before
    };
    let _ = rustix::process::setrlimit(Resource::Nofile, more);
    before
}

fn record_of(orders: &Orders, child: &Child, told: &Told<'_>) -> Record {
    let child_pid = child.id().unwrap_or_default();
    Record {
        run: told.run,
        pid: std::process::id(),
        pid_started: process::started(std::process::id()).unwrap_or_default(),
        child_pid,
        child_started: process::started(child_pid).unwrap_or_default(),
        socket: told.socket.to_owned(),
        started_at: posthaste_store::times::now(),
        launch: orders.launch.clone(),
    }
}

impl Running {
    async fn begin(&self, started: Started, now: Timestamp) -> Result<()> {
        let operation = StartRun {
            now,
            agent: self.agent.clone(),
            started,
        };
        self.books.commit(operation).await??;
        Ok(())
    }

    /// Record that this run resumes a conversation: its hooks may not say so before the first prompt.
    async fn begin_conversation(&self) -> Result<()> {
        let Some(resumed) = &self.resumed else {
            return Ok(());
        };
        let operation = RecordConversation {
            now: posthaste_store::times::now(),
            agent: self.agent.clone(),
            conversation: Conversation {
                run: self.run,
                ..resumed.clone()
            },
        };
        self.books.commit(operation).await??;
        Ok(())
    }

    /// Begins a loop, or goes on with the one that was. Its runner waits for that.
    async fn begin_loop(&self, run: Uuid, settings: Box<Settings>) -> Result<()> {
        let run = Some(run);
        let operation = ApplyLoopOrder {
            now: posthaste_store::times::now(),
            agent: self.agent.clone(),
            order: LoopOrder::Begin { run, settings },
        };
        self.books.commit(operation).await??;
        Ok(())
    }

    /// Runs until the program has ended and everybody has been told.
    async fn live(
        mut self,
        home: Home,
        place: &Place,
        record: Record,
        pty: AsyncFd<OwnedFd>,
        mut child: Child,
        audience: Audience,
    ) {
        let console = Console::open(place, &record, &self.harness, pty);
        let (requests, mut requested) = mpsc::channel(REQUESTS);
        let (taken, taken_by) = watch::channel(None);
        let (interactive, is_interactive) = watch::channel(false);
        let (ended, how_ended) = watch::channel(None);
        let (trouble, mail_trouble) = watch::channel(None);
        let (notice, noticed) = watch::channel(String::new());
        let shared = Rc::new(Shared {
            agent: self.agent.clone(),
            run: record.run,
            is_loop: record.launch.is_loop(),
            home,
            limits: self.limits,
            child: (record.child_pid, record.child_started),
            books: self.books.clone(),
            door: self.door.clone(),
            terminal: console.terminal,
            keyboard: console.keyboard,
            hub: console.hub,
            requests,
            mail_changed: Rc::new(Notify::new()),
            bell: Arc::new(Notify::new()),
            script_check: Rc::new(Notify::new()),
            buffered_bytes: Rc::new(Cell::new(0)),
            viewers: Cell::new(0),
            silent_connections: Cell::new(0),
            keyboard_owner: taken_by,
            interactive: is_interactive,
            mail_trouble,
            notice: noticed,
            ended: how_ended,
        });
        let doors = self.open_doors(&shared);
        let carrier = self.carrier(&shared, &record, trouble);
        let state = SessionState::new(Setup {
            shared: shared.clone(),
            record,
            output_activity: console.output_activity,
            harness: self.harness.clone(),
            has_hooks: self.has_hooks,
            sighted: console.sighted,
            drafted: console.drafted,
            files: console.files,
            taken,
            interactive,
            notice,
            without_home: self.without_home,
            resumed: self.resumed.take(),
        });
        let status = state.run(&mut requested, &mut child, console.drained).await;
        let how = ending(&status);
        self.conclude(&shared, carrier, &how).await;
        // Who asks from here on is told that it ends, and finds how in the journal.
        drop(requested);
        let _ = ended.send(Some(how.to_string()));
        farewell(&shared, doors, audience).await;
    }

    /// Lets in whoever comes to its sockets.
    fn open_doors(&mut self, shared: &Rc<Shared>) -> Vec<JoinHandle<()>> {
        let sockets = std::mem::take(&mut self.sockets).into_iter();
        let doors = sockets.map(|socket| {
            let accepting = listen::accept_connections(socket, shared.clone());
            tokio::task::spawn_local(accepting)
        });
        doors.collect()
    }

    /// Who carries the mail, where a script keeps it.
    fn carrier(
        &self,
        shared: &Rc<Shared>,
        record: &Record,
        trouble: watch::Sender<Option<posthaste_wire::MailTrouble>>,
    ) -> Option<Carrier> {
        let settings = self.script.as_ref()?;
        match Carrier::start(shared.clone(), settings, &record.launch.cwd, trouble) {
            Ok(carrier) => Some(carrier),
            Err(error) => {
                error!(
                    target: log::MAIL,
                    "the script that keeps the mail is not asked: {error}"
                );
                None
            }
        }
    }

    /// Ends what the program may have left, and says how it ended.
    async fn conclude(&self, shared: &Shared, carrier: Option<Carrier>, how: &Ending) {
        if let Some(carrier) = carrier {
            carrier.end().await;
        }
        if shared.is_loop {
            // Where its runner was killed, nobody else ends what that has started.
            left::end_noted(&shared.home, &self.agent, shared.child.0);
        }
        self.end(how).await;
    }

    /// Records the end. Where even that fails, the free lock will tell the next session.
    async fn end(&self, how: &Ending) {
        info!(target: log::SESSION, %how, "ended");
        let operation = EndRun {
            now: posthaste_store::times::now(),
            agent: self.agent.clone(),
            ended: Ended {
                run: self.run,
                how: how.clone(),
            },
        };
        match self.books.commit(operation).await {
            Ok(_) => {}
            Err(error) => error!(target: log::SESSION, "the end could not be recorded: {error}"),
        }
    }
}

/// Nobody new gets in; who is here, or is about to come, gets what is theirs.
async fn farewell(shared: &Shared, doors: Vec<JoinHandle<()>>, audience: Audience) {
    if audience == Audience::Expected {
        let come = until(async || shared.viewers.get() > 0);
        let _ = tokio::time::timeout(FAREWELL, come).await;
    }
    for door in doors {
        door.abort();
        let _ = door.await;
    }
    let (hub, terminal) = (&shared.hub, &shared.terminal);
    hub.close();
    let gone = until(async || hub.count() == 0 && terminal.is_unwatched().await);
    let _ = tokio::time::timeout(FAREWELL, gone).await;
}

/// Looks now and then until it is so; whoever waits says for how long.
async fn until(is_so: impl AsyncFn() -> bool) {
    while !is_so().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) fn ending(status: &std::io::Result<ExitStatus>) -> Ending {
    use std::os::unix::process::ExitStatusExt;
    match status {
        Ok(status) => match (status.code(), status.signal()) {
            (Some(code), _) => Ending::Exit(code),
            (None, Some(signal)) => Ending::Signal(signal),
            (None, None) => Ending::Failed(status.to_string()),
        },
        Err(error) => Ending::Failed(error.to_string()),
    }
}
