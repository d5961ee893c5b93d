//! The mail that a script keeps, carried to this session's journal and back.
//!
//! The script is called from a thread of its own, one call at a time: however long that takes,
//! nobody in the session waits for it. What it lists is stored as facts, and from then on delivered
//! like any mail; what its agent has accepted or read is marked there. When the session ends, so
//! does a call that is under way, with everything that it has started.

use crate::Shared;
use crate::host::log;
use posthaste_core::{Draft, MessageId, Timestamp};
use posthaste_provider::ScriptSettings;
use posthaste_provider::call::Place;
use posthaste_provider::intake::{self, Sorted};
use posthaste_provider::script::Script;
use posthaste_provider::trouble::Trouble;
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

/// How many messages are looked up before others have their turn at the journal.
const PAGE: usize = 100;
/// The shortest pause between calls.
const SHORTEST: Duration = Duration::from_millis(50);
/// The longest, whatever was said.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// How often a message is tried to be marked as read there, once a round.
const TRIES: u32 = 5;
/// How long a session that ends waits for a call to be cut off. That takes no time, unless the
/// system itself hangs.
const LAST: Duration = Duration::from_secs(5);
/// The longest pause after calls that failed.
const REST: Duration = Duration::from_secs(60);

/// What a script lists, and what is wrong with what else it lists.
type Listed = (Vec<Message>, Vec<String>);

/// A call, and where its answer goes.
enum Errand {
    Check(oneshot::Sender<Result<Listed, Trouble>>),
    MarkRead(String, oneshot::Sender<Result<(), Trouble>>),
}

pub(crate) struct Carrier {
    round: Task<()>,
    caller: JoinHandle<()>,
    /// Closed as soon as the caller has nothing more to do.
    ended: oneshot::Receiver<()>,
    /// While this is open, calls go on.
    stop: UnixStream,
}

/// One who goes round: asks, stores, marks.
struct Round {
    shared: Rc<Shared>,
    script: PathBuf,
    tick: Duration,
    /// One errand waits at most: there is one who sends them, and it waits for the answer.
    errands: SyncSender<Errand>,
    /// How often it was tried to mark what is listed; [`TRIES`] where it is done, or never will be.
    marked: BTreeMap<MessageId, u32>,
    /// What was last worth a word and no trouble, which is said once.
    noted: Option<String>,
    /// What was said last of what goes wrong, which is said once; for who asks, too.
    trouble: Option<String>,
    told: watch::Sender<Option<MailTrouble>>,
    failures: u32,
}

impl Carrier {
    pub(crate) fn start(
        shared: Rc<Shared>,
        settings: &ScriptSettings,
        dir: &Path,
        told: watch::Sender<Option<MailTrouble>>,
    ) -> std::io::Result<Self> {
        let (stop, stopped) = UnixStream::pair()?;
        let script = Script::new(
            settings.path.clone(),
            settings.timeout,
            crate::pty::child::kill_with_parent,
        )
        .asked_by(&shared.home)
        .until(stopped)
        .within(Place {
            dir: dir.to_owned(),
            env: Vec::new(),
        });
        let (errands, sent) = sync_channel(1);
        let (ending, ended) = oneshot::channel();
        let agent = shared.agent.clone();
        let caller = std::thread::Builder::new()
            .name("mail-script".to_owned())
            .spawn(move || {
                carry_out(&script, agent.as_str(), &sent);
                drop(ending);
            })?;
        let round = Round {
            shared,
            script: settings.path.clone(),
            tick: settings.tick.clamp(SHORTEST, LONGEST),
            errands,
            marked: BTreeMap::new(),
            noted: None,
            trouble: None,
            told,
            failures: 0,
        };
        let round = tokio::task::spawn_local(round.run());
        Ok(Self {
            round,
            caller,
            ended,
            stop,
        })
    }

    /// Ends it, and a call that is under way. Nobody waits for one that cannot be ended: it goes
    /// with this process.
    pub(crate) async fn end(self) {
        self.round.abort();
        // With it goes the way in for errands.
        let _ = self.round.await;
        drop(self.stop);
        match tokio::time::timeout(LAST, self.ended).await {
            Ok(_) => drop(self.caller.join()),
            Err(_) => {
                warn!(target: log::MAIL, "the call of the mail's script does not end; it is left");
            }
        }
    }
}

/// Carries out errands until no more can come.
fn carry_out(script: &Script, agent: &str, errands: &Receiver<Errand>) {
    while let Ok(errand) = errands.recv() {
        // Who has gone meanwhile does not mind.
        match errand {
            Errand::Check(answer) => drop(answer.send(script.each(Op::Check, agent))),
            Errand::MarkRead(id, answer) => {
                drop(answer.send(script.order(Op::MarkRead, &id)));
            }
        }
    }
}

/// How a round went.
enum Went {
    Well,
    /// All mail was seen to, and something is worth a word.
    Oddly(String),
    Badly(String),
}

impl Round {
    async fn run(mut self) {
        loop {
            let went = self.go().await;
            self.failures = match went {
                Went::Well | Went::Oddly(_) => 0,
                Went::Badly(_) => self.failures.saturating_add(1),
            };
            let trouble = match went {
                Went::Well => None,
                Went::Oddly(what) | Went::Badly(what) => Some(what),
            };
            if let Some(trouble) = &trouble
                && self.trouble.as_ref() != Some(trouble)
            {
                warn!(target: log::MAIL, "{trouble}");
            }
            let pause = self.tick * 2u32.saturating_pow(self.failures.min(16));
            let pause = pause.min(REST.max(self.tick));
            self.tell(trouble.as_deref(), pause);
            self.trouble = trouble;
            let _ = tokio::time::timeout(pause, self.shared.script_check.notified()).await;
        }
    }

    /// Tells who asks what is wrong, since when, and when it is tried again.
    fn tell(&self, trouble: Option<&str>, pause: Duration) {
        let now = posthaste_store::times::now();
        let since = self.told.borrow().as_ref().map_or(now, |told| told.since);
        let next = now.checked_add(pause).unwrap_or(Timestamp::MAX);
        self.told.send_replace(trouble.map(|what| MailTrouble {
            what: what.to_owned(),
            since,
            next,
        }));
    }

    /// Asks for mail once, and sees to all of it.
    async fn go(&mut self) -> Went {
        let (listed, mut odd) = match self.ask(Errand::Check).await {
            Some(Ok((listed, odd))) => (listed, odd.into_iter().next()),
            Some(Err(trouble)) => return Went::Badly(trouble.to_string()),
            None => return Went::Badly("nobody calls the script any more".to_owned()),
        };
        let mut done = Vec::new();
        let mut noted = None;
        for page in listed.chunks(PAGE) {
            let sorted = match self.sort(page.to_vec()).await {
                Ok(sorted) => sorted,
                Err(error) => return Went::Badly(error.to_string()),
            };
            for draft in sorted.new {
                match self.store(draft).await {
                    Ok(None) => {}
                    Ok(Some(refused)) => odd = odd.or(Some(refused)),
                    Err(why) => return Went::Badly(why),
                }
            }
            odd = odd.or(sorted.odd.into_iter().next());
            noted = noted.or(sorted.noted.into_iter().next());
            done.extend(sorted.done);
        }
        self.note(noted);
        self.marked
            .retain(|id, _| done.iter().any(|(own, _)| own == id));
        // Last, and no reason to come later: new mail does not wait for it.
        if let Err(why) = self.mark(done).await {
            return Went::Oddly(why);
        }
        match odd {
            Some(odd) => {
                let script = self.script.display();
                Went::Oddly(format!("{script} lists what cannot be taken: {odd}"))
            }
            None => Went::Well,
        }
    }

    /// Notes what is no trouble, once.
    fn note(&mut self, noted: Option<String>) {
        if let Some(noted) = &noted
            && self.noted.as_ref() != Some(noted)
        {
            info!(target: log::MAIL, "{} lists {noted}", self.script.display());
        }
        self.noted = noted;
    }

    /// What the caller answers; none where there is no caller any more.
    async fn ask<T>(
        &self,
        errand: impl FnOnce(oneshot::Sender<Result<T, Trouble>>) -> Errand,
    ) -> Option<Result<T, Trouble>> {
        let (answer, answered) = oneshot::channel();
        self.errands.try_send(errand(answer)).ok()?;
        answered.await.ok()
    }

    async fn sort(&self, listed: Vec<Message>) -> Result<Sorted, Error> {
        let (script, agent) = (self.script.clone(), self.shared.agent.clone());
        self.shared
            .books
            .ask(move |journal| intake::sort(&script, &agent, &listed, |id| journal.state(id)))
            .await
    }

    /// Stores a message; what is refused for good reason is told.
    async fn store(&self, draft: Draft) -> Result<Option<String>, String> {
        let id = draft.id.id8();
        let post = Post {
            now: posthaste_store::times::now(),
            drafts: vec![draft],
        };
        match self.shared.books.commit(post).await.map_err(text)? {
            Ok(_) => {
                self.shared.mail_changed.notify_one();
                Ok(None)
            }
            Err(denied) => Ok(Some(format!("message {id}: {denied}"))),
        }
    }

    /// Marks messages as read there, each as often as there is hope. One that takes too long keeps
    /// the others for the next round.
    async fn mark(&mut self, done: Vec<(MessageId, String)>) -> Result<(), String> {
        let mut failed = None;
        for (id, outside) in done {
            let tried = self.marked.get(&id).copied().unwrap_or_default();
            if tried >= TRIES {
                continue;
            }
            let tries = match self.ask(|answer| Errand::MarkRead(outside, answer)).await {
                Some(Ok(())) => TRIES,
                Some(Err(trouble)) => {
                    failed.get_or_insert_with(|| trouble.to_string());
                    if trouble.is_time_out() {
                        // It counts as a try, or new mail would wait for it in every round.
                        self.marked.insert(id, tried + 1);
                        break;
                    }
                    // What it does not know, it never will.
                    if trouble.is_unknown_op() {
                        TRIES
                    } else {
                        tried + 1
                    }
                }
                None => break,
            };
            self.marked.insert(id, tries);
        }
        failed.map_or(Ok(()), Err)
    }
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "it is what map_err hands over"
)]
fn text(error: Error) -> String {
    error.to_string()
}
