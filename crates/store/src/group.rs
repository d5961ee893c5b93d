//! Group commit: many senders in one process, one transaction for all that came together.
//!
//! One thread owns the connection. Senders write their own message files, or whoever answers for
//! them does, so that the thread does nothing but commit; between two commits it answers
//! questions.

use crate::error::{Error, Result};
use crate::files::Made;
use crate::home::Home;
use crate::job::{Answer, Job};
use crate::journal::{Journal, Patience, touched};
use crate::{bell, files};
use std::fmt;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How many pieces of work and questions may wait. Who comes when it is full waits for room, or
/// hears that it is full where waiting is not wanted.
const QUEUE: usize = 1_024;
/// How many are committed at once.
const GROUP: usize = 256;
/// After this long without work it is quiet enough to fill the search index.
const QUIET: Duration = Duration::from_millis(500);

enum Request {
    Work(Work),
    Question(Box<dyn FnOnce(&mut Journal) + Send>),
}

struct Work {
    job: Job,
    reply: Reply,
}

enum Reply {
    /// To a sender that waits. It has seen to its large bodies.
    Waiting(SyncSender<Result<(Job, Answer)>>),
    Then(Box<dyn FnOnce(Unsettled) + Send>),
}

/// What became of a submitted piece of work. It is committed; its message files are still to be
/// written.
#[must_use = "its message files are written when it is settled"]
pub struct Unsettled {
    home: Home,
    made: Made,
    done: Result<(Job, Answer)>,
}

impl fmt::Debug for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Unsettled").field(&self.done).finish()
    }
}

impl Unsettled {
    /// Writes the message files: some 40 µs each. Only then may its sender be answered.
    pub fn settle(self) -> Result<Answer> {
        let Self { home, made, done } = self;
        let (job, mut answer) = done.inspect_err(|error| files::take_back_after(error, &made))?;
        files::settle(&home, &job, &made, &mut answer);
        Ok(answer)
    }
}

/// The way in for the senders of one process; cheap to clone.
#[derive(Debug, Clone)]
pub struct Writer {
    home: Home,
    requests: SyncSender<Request>,
}

/// The thread behind a [`Writer`]. It ends when the last writer is dropped.
#[derive(Debug)]
pub struct WriterThread {
    thread: JoinHandle<()>,
}

impl WriterThread {
    /// Waits until everything that was accepted is committed and answered.
    pub fn join(self) {
        // A panic there has answered every sender with an error, or ended the process.
        let _ = self.thread.join();
    }
}

impl Writer {
    pub fn start(home: Home, patience: Patience) -> Result<(Self, WriterThread)> {
        let journal = Journal::open(home.clone(), patience)?;
        journal.keep_small()?;
        let (requests, queue) = mpsc::sync_channel(QUEUE);
        let thread = std::thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn(move || serve(journal, &queue))
            .map_err(crate::error::io("start a writer for", home.path()))?;
        Ok((Self { home, requests }, WriterThread { thread }))
    }

    /// Does one piece of work and waits until it is committed, synced and filed.
    pub fn commit(&self, mut job: Job) -> Result<Answer> {
        let made = files::put_large_bodies(&self.home, &mut job)?;
        let (reply, answered) = mpsc::sync_channel(1);
        let reply = Reply::Waiting(reply);
        let work = Request::Work(Work { job, reply });
        if self.requests.send(work).is_err() {
            files::take_back(made.iter().flatten());
            return Err(Error::WriterGone);
        }
        // Without an answer nobody knows whether it was stored: its files stay.
        let done = answered.recv().map_err(|_| Error::WriterGone)?;
        let home = self.home.clone();
        Unsettled { home, made, done }.settle()
    }

    /// Hands one piece of work in without waiting. `then` is called from the writer's thread when
    /// it is committed, and should do no more than pass on what it is given; it is dropped without
    /// a call only if the writer ends by a fault of its own.
    pub fn submit(&self, job: Job, then: impl FnOnce(Unsettled) + Send + 'static) -> Result<()> {
        let reply = Reply::Then(Box::new(then));
        self.hand_in(Request::Work(Work { job, reply }))
    }

    /// Has `question` called with the journal, between two commits: after everything that was
    /// handed in before it. It brings its answer back itself, and must be as quick as a look-up.
    pub fn ask(&self, question: impl FnOnce(&mut Journal) + Send + 'static) -> Result<()> {
        self.hand_in(Request::Question(Box::new(question)))
    }

    fn hand_in(&self, request: Request) -> Result<()> {
        self.requests
            .try_send(request)
            .map_err(|error| match error {
                TrySendError::Full(_) => Error::Overloaded,
                TrySendError::Disconnected(_) => Error::WriterGone,
            })
    }
}

fn serve(mut journal: Journal, queue: &Receiver<Request>) {
    let mut indexed = false;
    loop {
        let next = if indexed {
            queue.recv().map_err(RecvTimeoutError::from)
        } else {
            queue.recv_timeout(QUIET)
        };
        let first = match next {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => {
                // Search catches up by itself; filling it here only saves it the time.
                indexed = crate::search::fill_some(&journal).map_or(true, |more| !more);
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let (mut group, mut questions) = (Vec::new(), Vec::new());
        // Who was answered by the last commit comes back while this one runs, so that groups
        // fill by themselves; waiting for more has been measured, and is slower.
        let came = queue.try_iter().take(GROUP - 1);
        for request in std::iter::once(first).chain(came) {
            match request {
                Request::Work(work) => group.push(work),
                Request::Question(question) => questions.push(question),
            }
        }
        if !group.is_empty() {
            indexed = false;
            commit(&mut journal, group);
        }
        for question in questions {
            question(&mut journal);
        }
        // A full WAL costs time, not facts; the next commit reports a disk that is really broken.
        let _ = journal.tidy_on_the_way();
    }
    let _ = journal.tidy();
}

/// Commits a group and answers everybody in it.
fn commit(journal: &mut Journal, group: Vec<Work>) {
    let home = journal.home().clone();
    let mut jobs = Vec::with_capacity(group.len());
    let mut replies = Vec::with_capacity(group.len());
    for Work { mut job, reply } in group {
        let made = match &reply {
            Reply::Waiting(_) => Ok(Made::new()),
            Reply::Then(_) => files::put_large_bodies(&home, &mut job),
        };
        match made {
            Ok(made) => {
                jobs.push(job);
                replies.push((reply, made));
            }
            Err(error) => answer(&home, reply, Made::new(), Err(error)),
        }
    }
    match journal.commit_all(&jobs) {
        Ok(answers) => {
            let agents = touched(&answers);
            for ((done, (reply, made)), job) in answers.into_iter().zip(replies).zip(jobs) {
                answer(&home, reply, made, Ok((job, done)));
            }
            // Once for all of them.
            bell::ring(&home, &agents);
        }
        Err(error) => {
            let error = Arc::new(error);
            for (reply, made) in replies {
                answer(&home, reply, made, Err(Error::Shared(error.clone())));
            }
        }
    }
}

fn answer(home: &Home, reply: Reply, made: Made, done: Result<(Job, Answer)>) {
    match reply {
        // A sender that no longer waits has its message stored all the same.
        Reply::Waiting(sender) => drop(sender.send(done)),
        Reply::Then(then) => then(Unsettled {
            home: home.clone(),
            made,
            done,
        }),
    }
}
