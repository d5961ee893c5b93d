//! A session whose program runs: its tasks, the record of its end, and its close.

use super::crash_recovery;
use super::journal_handle::JournalHandle;
use super::log;
use super::program_io::ProgramIo;
use super::start::Audience;
use crate::routes::http::HttpApi;
use crate::routes::script_mail::ScriptMail;
use crate::socket::listen::{self, SessionSocket};
use crate::state::{Publishers, SessionState, Setup};
use crate::{ConnectionCounts, Shared, Wakeups, Watches};
use posthaste_core::harness::Manifest;
use posthaste_core::session::{Ended, Ending};
use posthaste_core::{Conversation, Limits};
use posthaste_provider::ScriptSettings;
use posthaste_store::Home;
use posthaste_store::live::{NameLock, SessionDir, SessionRecord};
use posthaste_store::operation::EndRun;
use std::os::fd::OwnedFd;
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tracing::{error, info};

/// Maximum number of requests that wait for the owner of the state. A sender that finds the queue
/// full waits for room.
const REQUEST_QUEUE_LENGTH: usize = 256;
/// Timeout at the end of a session for an expected viewer, and for connections that still receive
/// output.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// How often to check whether connections have ended.
const CLOSE_POLL_INTERVAL: Duration = Duration::from_millis(5);

pub(super) struct RunningSession {
    pub(super) record: SessionRecord,
    pub(super) harness: Arc<Manifest>,
    pub(super) has_hooks: bool,
    pub(super) limits: Limits,
    pub(super) without_home: Duration,
    pub(super) journal: JournalHandle,
    /// The script that keeps the mail, if the journal does not keep it.
    pub(super) script: Option<ScriptSettings>,
    pub(super) http: Option<HttpApi>,
    /// The conversation that the program was told to resume.
    pub(super) resumed: Option<Conversation>,
    pub(super) sockets: Vec<SessionSocket>,
    /// Held until the process ends.
    pub(super) _name: NameLock,
}

impl RunningSession {
    /// Run until the program has ended, the end is recorded, and connections are closed.
    pub(super) async fn run(
        mut self,
        home: Home,
        session_dir: &SessionDir,
        pty: AsyncFd<OwnedFd>,
        mut child: Child,
        audience: Audience,
    ) {
        let record = &self.record;
        let io = ProgramIo::open(session_dir, record, &self.harness, pty);
        let (request_sender, mut requests) = mpsc::channel(REQUEST_QUEUE_LENGTH);
        let (taken_sender, taken) = watch::channel(None);
        let (interactive_sender, interactive) = watch::channel(false);
        let (ended_sender, ended) = watch::channel(None);
        let (trouble_sender, mail_trouble) = watch::channel(None);
        let (notice_sender, notice) = watch::channel(String::new());
        let shared = Rc::new(Shared {
            agent: record.launch.name.clone(),
            run: record.run,
            is_loop: record.launch.is_loop(),
            home,
            limits: self.limits,
            child: (record.child_pid, record.child_started),
            journal: self.journal.clone(),
            http: self.http.clone(),
            terminal: io.terminal,
            keyboard: io.keyboard,
            hub: io.hub,
            requests: request_sender,
            wakeups: Wakeups::default(),
            connections: ConnectionCounts::default(),
            watches: Watches {
                keyboard_owner: taken,
                interactive,
                mail_trouble,
                notice,
                ended,
            },
        });
        let accept_tasks = self.accept_connections(&shared);
        let script_mail = self.start_script_mail(&shared, trouble_sender);
        let state = SessionState::new(Setup {
            shared: shared.clone(),
            record: self.record.clone(),
            harness: self.harness.clone(),
            has_hooks: self.has_hooks,
            without_home: self.without_home,
            resumed: self.resumed.take(),
            observers: io.observers,
            publishers: Publishers {
                taken: taken_sender,
                interactive: interactive_sender,
                notice: notice_sender,
            },
        });
        let status = state.run(&mut requests, &mut child, io.drained).await;
        let how = ending(&status);
        if let Some(script_mail) = script_mail {
            script_mail.end().await;
        }
        if shared.is_loop {
            // A runner that was killed cannot end the processes that it has started.
            crash_recovery::end_noted_processes(&shared.home, &shared.agent, shared.child.0);
        }
        self.record_end(&how).await;
        // Later requests are answered with an error: the session is ending.
        drop(requests);
        let _ = ended_sender.send(Some(how.to_string()));
        close_connections(&shared, accept_tasks, audience).await;
    }

    /// Start to accept connections on every socket.
    fn accept_connections(&mut self, shared: &Rc<Shared>) -> Vec<JoinHandle<()>> {
        let sockets = std::mem::take(&mut self.sockets).into_iter();
        let tasks = sockets.map(|socket| {
            tokio::task::spawn_local(listen::accept_connections(socket, shared.clone()))
        });
        tasks.collect()
    }

    /// Start to exchange mail with the script that keeps it, if there is one.
    fn start_script_mail(
        &self,
        shared: &Rc<Shared>,
        trouble: watch::Sender<Option<posthaste_wire::MailTrouble>>,
    ) -> Option<ScriptMail> {
        let settings = self.script.as_ref()?;
        let cwd = &self.record.launch.cwd;
        match ScriptMail::start(shared.clone(), settings, cwd, trouble) {
            Ok(script_mail) => Some(script_mail),
            Err(error) => {
                error!(
                    target: log::MAIL,
                    "the script that keeps the mail is not called: {error}"
                );
                None
            }
        }
    }

    /// Record how the session has ended. If that fails, the next session finds the lock free and
    /// records a crash.
    async fn record_end(&self, how: &Ending) {
        info!(target: log::SESSION, %how, "ended");
        let operation = EndRun {
            now: posthaste_store::times::now(),
            agent: self.record.launch.name.clone(),
            ended: Ended {
                run: self.record.run,
                how: how.clone(),
            },
        };
        match self.journal.commit(operation).await {
            Ok(_) => {}
            Err(error) => error!(target: log::SESSION, "the end could not be recorded: {error}"),
        }
    }
}

/// Stop accepting connections, and wait until open connections have received their output. First
/// wait for a viewer that is expected.
async fn close_connections(shared: &Shared, accept_tasks: Vec<JoinHandle<()>>, audience: Audience) {
    if audience == Audience::Expected {
        let has_come = until(async || shared.connections.viewers.get() > 0);
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, has_come).await;
    }
    for task in accept_tasks {
        task.abort();
        let _ = task.await;
    }
    let (hub, terminal) = (&shared.hub, &shared.terminal);
    hub.close();
    let are_gone = until(async || hub.count() == 0 && terminal.is_unwatched().await);
    let _ = tokio::time::timeout(CLOSE_TIMEOUT, are_gone).await;
}

/// Poll a condition until it holds.
async fn until(condition: impl AsyncFn() -> bool) {
    while !condition().await {
        tokio::time::sleep(CLOSE_POLL_INTERVAL).await;
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
