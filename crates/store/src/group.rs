//! Group commit: many senders in one process, one transaction for all that came together.
//!
//! One thread owns the connection. Whoever answers the senders writes their message files, most of
//! it while the disk is waited for, so that the thread commits and, but for bodies that are kept in
//! files, does nothing else; between two commits it answers questions.

use crate::ahead::Ahead;
use crate::error::{Error, Result};
use crate::files::Made;
use crate::home::Home;
use crate::job::{Answer, Job};
use crate::journal::{Journal, Patience, touched};
use crate::{bell, files};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::Duration;

/// How many pieces of work and questions may wait. Who comes when it is full hears so.
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
    then: Then,
    in_hand: Counted,
}

/// One piece of work in hand, for as long as it is kept.
struct Counted(Arc<AtomicUsize>);

impl Counted {
    /// And how many there were before it.
    fn among(count: &Arc<AtomicUsize>) -> (Self, usize) {
        let before = count.fetch_add(1, Ordering::Relaxed);
        (Self(count.clone()), before)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type Then = Box<dyn FnOnce(Unsettled) + Send>;

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
    /// Writes the message files, as far as they were not begun: some 40 µs each, and half of that
    /// where they were. Only then may its sender be answered.
    pub fn settle(self, ahead: &Ahead) -> Result<Answer> {
        let Self { home, made, done } = self;
        let (job, mut answer) = done.inspect_err(|error| files::take_back_after(error, &made))?;
        files::settle(&home, &job, &made, ahead, &mut answer);
        Ok(answer)
    }
}

/// The way in for the senders of one process; cheap to clone.
#[derive(Debug, Clone)]
pub struct Writer {
    home: Home,
    requests: SyncSender<Request>,
    /// How many pieces of work are handed in and not committed yet.
    in_hand: Arc<AtomicUsize>,
    head: Arc<AtomicU64>,
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
    pub fn start(home: &Home, patience: Patience) -> Result<(Self, WriterThread)> {
        let journal = Journal::open(home.clone(), patience)?;
        journal.keep_small()?;
        let (requests, queue) = mpsc::sync_channel(QUEUE);
        let head = Arc::new(AtomicU64::new(0));
        let thread = std::thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn({
                let head = head.clone();
                move || serve(journal, &queue, &head)
            })
            .map_err(crate::error::io("start a writer for", home.path()))?;
        let home = home.clone();
        let writer = Self {
            home,
            requests,
            in_hand: Arc::default(),
            head,
        };
        Ok((writer, WriterThread { thread }))
    }

    /// Hands one piece of work in without waiting. `then` is called from the writer's thread when
    /// it is committed, and should do no more than pass on what it is given; it is dropped without
    /// a call only if the writer ends by a fault of its own. What can be done meanwhile is given
    /// back: nothing where others are in hand, because then there is enough to do, and who comes
    /// late to a commit has one more waited for.
    pub fn submit(&self, job: Job, then: impl FnOnce(Unsettled) + Send + 'static) -> Result<Ahead> {
        let (in_hand, others) = Counted::among(&self.in_hand);
        let ahead = match others {
            0 => Ahead::of(&self.home, &job),
            _ => Ahead::default(),
        };
        let then = Box::new(then);
        self.hand_in(Request::Work(Work { job, then, in_hand }))?;
        Ok(ahead)
    }

    /// Has `question` called with the journal, between two commits: after everything that was
    /// handed in before it. It brings its answer back itself, and must be as quick as a look-up.
    pub fn ask(&self, question: impl FnOnce(&mut Journal) + Send + 'static) -> Result<()> {
        self.hand_in(Request::Question(Box::new(question)))
    }

    /// The number of the journal's last fact after the latest commit. It is set before that commit is
    /// answered and its bells ring.
    pub fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
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

fn serve(mut journal: Journal, queue: &Receiver<Request>, head: &AtomicU64) {
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
        let committed = group.len();
        if committed > 0 {
            indexed = false;
            commit(&mut journal, group, head);
        }
        for question in questions {
            question(&mut journal);
        }
        // A full WAL costs time, not facts; the next commit reports a disk that is really broken.
        let _ = match committed {
            0 => Ok(()),
            // A sync for each message is worth being made short; one for many is not.
            1 => journal.tidy_on_the_way().and_then(|()| journal.make_room()),
            _ => journal.tidy_on_the_way(),
        };
    }
    let _ = journal.tidy();
}

/// Commits a group and answers everybody in it.
fn commit(journal: &mut Journal, group: Vec<Work>, head: &AtomicU64) {
    let home = journal.home().clone();
    let mut jobs = Vec::with_capacity(group.len());
    let mut thens = Vec::with_capacity(group.len());
    let mut counted = Vec::with_capacity(group.len());
    for Work {
        mut job,
        then,
        in_hand,
    } in group
    {
        counted.push(in_hand);
        match files::put_large_bodies(&home, &mut job) {
            Ok(made) => {
                jobs.push(job);
                thens.push((then, made));
            }
            Err(error) => answer(&home, then, Made::new(), Err(error)),
        }
    }
    let committed = journal.commit_all(&jobs);
    drop(counted);
    match committed {
        Ok((answers, committed)) => {
            head.store(committed, Ordering::Release);
            let agents = touched(&answers);
            for ((done, (then, made)), job) in answers.into_iter().zip(thens).zip(jobs) {
                answer(&home, then, made, Ok((job, done)));
            }
            // Once for all of them.
            bell::ring(&home, &agents);
        }
        Err(error) => {
            let error = Arc::new(error);
            for (then, made) in thens {
                answer(&home, then, made, Err(Error::Shared(error.clone())));
            }
        }
    }
}

fn answer(home: &Home, then: Then, made: Made, done: Result<(Job, Answer)>) {
    let home = home.clone();
    then(Unsettled { home, made, done });
}

#[cfg(test)]
mod tests {
    use super::*;
    use posthaste_core::{AgentName, Draft, MessageId};
    use uuid::Uuid;

    #[test]
    fn only_a_message_that_comes_alone_has_its_file_begun() {
        let dir = tempfile::tempdir().unwrap();
        let (writer, thread) =
            Writer::start(&Home::open(dir.path(), None).unwrap(), Patience::DEFAULT).unwrap();
        let (open, gate) = mpsc::channel::<()>();
        let (tell, told) = mpsc::channel();
        let submit = || {
            let bob = AgentName::parse("bob").unwrap();
            let id = MessageId(Uuid::new_v4());
            let draft = Draft::new(id, AgentName::human(), bob, "text".to_owned());
            let now = jiff::Timestamp::UNIX_EPOCH;
            let drafts = vec![draft];
            let tell = tell.clone();
            let then = move |done: Unsettled| tell.send(done.done.is_ok()).unwrap();
            writer.submit(Job::Post { now, drafts }, then).unwrap()
        };
        // The writer is kept busy until the gate opens.
        writer.ask(move |_| gate.recv().unwrap()).unwrap();
        assert!(!submit().is_empty());
        assert!(submit().is_empty());
        open.send(()).unwrap();
        assert!(told.recv().unwrap() && told.recv().unwrap());
        assert!(!submit().is_empty(), "the others are done");
        drop(writer);
        thread.join();
    }
}
