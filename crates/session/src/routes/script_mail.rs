//! Exchanges mail with the script that keeps it: new messages become facts of this session's
//! journal, and messages that the agent has accepted or read are marked in the script.
//!
//! A separate thread calls the script, one call at a time, so no task of the session waits for a
//! call. When the session ends, a running call is ended with all processes that it has started.

use crate::Shared;
use crate::host::log;
use posthaste_core::{Draft, MessageId, Timestamp};
use posthaste_provider::ScriptSettings;
use posthaste_provider::error::ScriptError;
use posthaste_provider::import::{self, ImportPlan};
use posthaste_provider::process::Environment;
use posthaste_provider::script::Script;
use posthaste_store::Error;
use posthaste_store::operation::Post;
use posthaste_wire::MailTrouble;
use posthaste_wire::provider::{Message, Op};
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle as Task;
use tracing::{info, warn};

/// Number of messages that one query of the journal looks up.
const LOOKUP_PAGE_MESSAGES: usize = 100;
const MIN_CHECK_PAUSE: Duration = Duration::from_millis(50);
const MAX_CHECK_PAUSE: Duration = Duration::from_secs(24 * 3_600);
/// Longest pause after failed calls, unless the configured pause is longer.
const MAX_RETRY_PAUSE: Duration = Duration::from_secs(60);
/// How often to try to mark a message as read in the script, once per check.
const MARK_READ_ATTEMPTS: u32 = 5;
/// How long a session that ends waits for a running call to be ended.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// The valid messages that a script lists, and what is wrong with the others.
type Listed = (Vec<Message>, Vec<String>);

/// A call of the script, and the sender of its result.
enum MailCall {
    Check(oneshot::Sender<Result<Listed, ScriptError>>),
    MarkRead(String, oneshot::Sender<Result<(), ScriptError>>),
}

/// The tasks that exchange mail with a script.
pub(crate) struct ScriptMail {
    sync: Task<()>,
    caller: JoinHandle<()>,
    /// Closed when the caller's thread has finished.
    ended: oneshot::Receiver<()>,
    /// Calls are ended when this is closed.
    stop: UnixStream,
}

/// The task that repeatedly checks the script for mail, stores new messages and marks read ones.
struct MailSync {
    shared: Rc<Shared>,
    script: PathBuf,
    tick: Duration,
    /// At most one call waits: this task is the only sender, and awaits each result.
    calls: SyncSender<MailCall>,
    /// Number of attempts to mark each listed message as read; [`MARK_READ_ATTEMPTS`] if it is
    /// marked, or cannot be.
    mark_attempts: BTreeMap<MessageId, u32>,
    /// The last remark about listed mail that is not a failure. It is logged once.
    remark: Option<String>,
    /// The last failure. It is logged once.
    failure: Option<String>,
    /// The last failure, as clients of the session are shown it.
    published: watch::Sender<Option<MailTrouble>>,
    consecutive_failures: u32,
}

impl ScriptMail {
    pub(crate) fn start(
        shared: Rc<Shared>,
        settings: &ScriptSettings,
        dir: &Path,
        published: watch::Sender<Option<MailTrouble>>,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        let script = Script::new(
            settings.path.clone(),
            settings.timeout,
            crate::pty::child::kill_with_parent,
        )
        .asked_by(&shared.home)
        .until(stopped)
        .within(Environment {
            dir: dir.to_owned(),
            env: Vec::new(),
        });
        let (calls, received) = sync_channel(1);
        let (ended_sender, ended) = oneshot::channel();
        let agent = shared.agent.clone();
        let caller = std::thread::Builder::new()
            .name("mail-script".to_owned())
            .spawn(move || {
                call_script(&script, agent.as_str(), &received);
                drop(ended_sender);
            })?;
        let sync = MailSync {
            shared,
            script: settings.path.clone(),
            tick: settings.tick.clamp(MIN_CHECK_PAUSE, MAX_CHECK_PAUSE),
            calls,
            mark_attempts: BTreeMap::new(),
            remark: None,
            failure: None,
            published,
            consecutive_failures: 0,
        };
        let sync = tokio::task::spawn_local(sync.run());
        Ok(Self {
            sync,
            caller,
            ended,
            stop,
        })
    }

    /// End the exchange, and a call that is running. A call that does not end in time is left: it
    /// ends with this process.
    pub(crate) async fn end(self) {
        self.sync.abort();
        // The sender of calls is dropped with the task, so that the caller's thread finishes.
        let _ = self.sync.await;
        drop(self.stop);
        match tokio::time::timeout(END_TIMEOUT, self.ended).await {
            Ok(_) => drop(self.caller.join()),
            Err(_) => {
                warn!(target: log::MAIL, "the call of the mail script does not end and is left running");
            }
        }
    }
}

/// Call the script for every request until the sender is dropped.
fn call_script(script: &Script, agent: &str, calls: &Receiver<MailCall>) {
    while let Ok(call) = calls.recv() {
        // The receiver of the result may be gone.
        match call {
            MailCall::Check(result) => drop(result.send(script.each(Op::Check, agent))),
            MailCall::MarkRead(id, result) => {
                drop(result.send(script.order(Op::MarkRead, &id)));
            }
        }
    }
}

/// Result of one check.
enum Checked {
    Done,
    /// All mail was processed, and something is wrong with a part of it.
    DoneWithTrouble(String),
    Failed(String),
}

impl MailSync {
    async fn run(mut self) {
        loop {
            let checked = self.check().await;
            self.consecutive_failures = match checked {
                Checked::Done | Checked::DoneWithTrouble(_) => 0,
                Checked::Failed(_) => self.consecutive_failures.saturating_add(1),
            };
            let failure = match checked {
                Checked::Done => None,
                Checked::DoneWithTrouble(why) | Checked::Failed(why) => Some(why),
            };
            if let Some(failure) = &failure
                && self.failure.as_ref() != Some(failure)
            {
                warn!(target: log::MAIL, "{failure}");
            }
            let pause = self.tick * 2u32.saturating_pow(self.consecutive_failures.min(16));
            let pause = pause.min(MAX_RETRY_PAUSE.max(self.tick));
            self.publish(failure.as_deref(), pause);
            self.failure = failure;
            let wakeup = self.shared.wakeups.script_check.notified();
            let _ = tokio::time::timeout(pause, wakeup).await;
        }
    }

    /// Publish the failure, its first time, and the time of the next check.
    fn publish(&self, failure: Option<&str>, pause: Duration) {
        let now = posthaste_store::times::now();
        let since = self
            .published
            .borrow()
            .as_ref()
            .map_or(now, |last| last.since);
        let next = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        self.published.send_replace(failure.map(|what| MailTrouble {
            what: what.to_owned(),
            since,
            next,
        }));
    }

    /// Check for mail once, and process all of it.
    async fn check(&mut self) -> Checked {
        let (listed, odd) = match self.call(MailCall::Check).await {
            Some(Ok(listed)) => listed,
            Some(Err(trouble)) => return Checked::Failed(trouble.to_string()),
            None => {
                return Checked::Failed("the thread that calls the script has ended".to_owned());
            }
        };
        let mut odd = odd.into_iter().next();
        let mut done = Vec::new();
        let mut remark = None;
        for page in listed.chunks(LOOKUP_PAGE_MESSAGES) {
            let plan = match self.sort(page.to_vec()).await {
                Ok(plan) => plan,
                Err(error) => return Checked::Failed(error.to_string()),
            };
            for draft in plan.new {
                match self.store(draft).await {
                    Ok(None) => {}
                    Ok(Some(refusal)) => odd = odd.or(Some(refusal)),
                    Err(why) => return Checked::Failed(why),
                }
            }
            odd = odd.or(plan.rejected.into_iter().next());
            remark = remark.or(plan.notes.into_iter().next());
            done.extend(plan.mark_read);
        }
        self.log_remark(remark);
        self.mark_attempts
            .retain(|id, _| done.iter().any(|(own, _)| own == id));
        // Mark messages last, so that new mail does not wait. A failure does not delay the next
        // check.
        if let Err(why) = self.mark_read(done).await {
            return Checked::DoneWithTrouble(why);
        }
        match odd {
            Some(odd) => {
                let script = self.script.display();
                Checked::DoneWithTrouble(format!("{script} lists an invalid message: {odd}"))
            }
            None => Checked::Done,
        }
    }

    /// Log a remark, unless it was logged last.
    fn log_remark(&mut self, remark: Option<String>) {
        if let Some(remark) = &remark
            && self.remark.as_ref() != Some(remark)
        {
            info!(target: log::MAIL, "{} lists {remark}", self.script.display());
        }
        self.remark = remark;
    }

    /// Call the script on the caller's thread. Return `None` if that thread has ended.
    async fn call<T>(
        &self,
        call: impl FnOnce(oneshot::Sender<Result<T, ScriptError>>) -> MailCall,
    ) -> Option<Result<T, ScriptError>> {
        let (sender, receiver) = oneshot::channel();
        self.calls.try_send(call(sender)).ok()?;
        receiver.await.ok()
    }

    async fn sort(&self, listed: Vec<Message>) -> Result<ImportPlan, Error> {
        let (script, agent) = (self.script.clone(), self.shared.agent.clone());
        self.shared
            .journal
            .ask(move |journal| import::plan(&script, &agent, &listed, |id| journal.state(id)))
            .await
    }

    /// Store a message. Return the reason if the journal refuses it.
    async fn store(&self, draft: Draft) -> Result<Option<String>, String> {
        let id = draft.id.id8();
        let post = Post {
            now: posthaste_store::times::now(),
            drafts: vec![draft],
        };
        match self.shared.journal.commit(post).await.map_err(text)? {
            Ok(_) => {
                self.shared.wakeups.mail.notify_one();
                Ok(None)
            }
            Err(denied) => Ok(Some(format!("message {id}: {denied}"))),
        }
    }

    /// Mark messages as read in the script. After a call that timed out, the other messages wait
    /// for the next check.
    async fn mark_read(&mut self, done: Vec<(MessageId, String)>) -> Result<(), String> {
        let mut failed = None;
        for (id, outside_id) in done {
            let previous = self.mark_attempts.get(&id).copied().unwrap_or_default();
            if previous >= MARK_READ_ATTEMPTS {
                continue;
            }
            let call = self.call(|result| MailCall::MarkRead(outside_id, result));
            let attempts = match call.await {
                Some(Ok(())) => MARK_READ_ATTEMPTS,
                Some(Err(trouble)) => {
                    failed.get_or_insert_with(|| trouble.to_string());
                    if trouble.is_timeout() {
                        // Count it as an attempt: otherwise new mail would wait for it in every
                        // check.
                        self.mark_attempts.insert(id, previous + 1);
                        break;
                    }
                    // A script that does not support the operation is not asked again.
                    if trouble.is_unknown_op() {
                        MARK_READ_ATTEMPTS
                    } else {
                        previous + 1
                    }
                }
                None => break,
            };
            self.mark_attempts.insert(id, attempts);
        }
        failed.map_or(Ok(()), Err)
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "map_err passes the error by value"
)]
fn text(error: Error) -> String {
    error.to_string()
}
