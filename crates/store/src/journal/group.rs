//! Group commit: the operations of many senders in one process, committed together.
//!
//! One thread owns the connection. It commits, and answers queries between two commits; the senders
//! write their message files themselves, most of them while the thread waits for the disk.

use super::transaction::Transaction;
use super::{Attempt, Journal, Patience, bell};
use crate::error::{Error, Result, io};
use crate::files::{Prewrite, StoredBodies};
use crate::home::Home;
use crate::operation::{Decided, Durability, Operation};
use crate::search;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender, TrySendError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Requests that may wait. If the queue is full, the caller gets [`Error::Overloaded`].
const REQUEST_QUEUE_LENGTH: usize = 1_024;
/// Requests that one commit takes at most.
const MAX_GROUP_REQUESTS: usize = 256;
/// Time without requests after which the thread fills the search index.
const INDEX_IDLE_DELAY: Duration = Duration::from_millis(500);

enum Request {
    Write(Box<dyn Write>, InFlight),
    Query(Box<dyn FnOnce(&mut Journal) + Send>),
}

/// A submitted operation of any type.
trait Write: Send {
    fn store_bodies(&mut self, home: &Home) -> Result<()>;
    fn durability(&self) -> Durability;
    fn run(&mut self, tx: &mut Transaction<'_>) -> rusqlite::Result<()>;
    fn answer(self: Box<Self>, home: &Home, result: Result<()>);
}

/// A submitted operation, and the callback for its result.
struct Submitted<O: Operation, F> {
    operation: O,
    bodies: StoredBodies,
    decided: Option<Decided<O::Output>>,
    then: F,
}

impl<O, F> Write for Submitted<O, F>
where
    O: Operation,
    F: FnOnce(Committed<O>) + Send,
{
    fn store_bodies(&mut self, home: &Home) -> Result<()> {
        self.bodies = self.operation.store_bodies(home)?;
        Ok(())
    }

    fn durability(&self) -> Durability {
        self.operation.durability()
    }

    fn run(&mut self, tx: &mut Transaction<'_>) -> rusqlite::Result<()> {
        self.decided = Some(self.operation.run(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, home: &Home, result: Result<()>) {
        let decided = self.decided;
        let result = result.and_then(|()| decided.ok_or(Error::WriterGone));
        let attempt = Attempt {
            operation: self.operation,
            bodies: self.bodies,
            result,
        };
        let home = home.clone();
        (self.then)(Committed { home, attempt });
    }
}

/// Counts an operation as in flight until it is dropped.
struct InFlight(Arc<AtomicUsize>);

impl InFlight {
    /// Returns also how many were in flight before.
    fn start(count: &Arc<AtomicUsize>) -> (Self, usize) {
        let before = count.fetch_add(1, Ordering::Relaxed);
        (Self(count.clone()), before)
    }
}

impl Drop for InFlight {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A submitted operation after its commit. Its message files are still to be written.
#[must_use = "its message files are written when it is settled"]
#[derive(Debug)]
pub struct Committed<O: Operation> {
    home: Home,
    attempt: Attempt<O>,
}

impl<O: Operation> Committed<O> {
    /// Write the message files: some 40 µs each, and half of that if they were prewritten. The
    /// sender may be answered only after that.
    pub fn settle(self, prewrite: &Prewrite) -> Result<Decided<O::Output>> {
        self.attempt.settle(&self.home, prewrite)
    }
}

/// Handle for the senders of one process; cheap to clone.
#[derive(Debug, Clone)]
pub struct Writer {
    home: Home,
    requests: SyncSender<Request>,
    /// Operations that are submitted and not committed yet.
    in_flight: Arc<AtomicUsize>,
    /// Seq of the journal's last fact after the latest commit.
    head: Arc<AtomicU64>,
}

/// The thread behind a [`Writer`]. It ends when the last writer is dropped.
#[derive(Debug)]
pub struct WriterThread {
    thread: JoinHandle<()>,
}

impl WriterThread {
    /// Wait until everything that was submitted is committed and answered.
    pub fn join(self) {
        // A panic in the thread has answered every sender with an error, or ended the process.
        let _ = self.thread.join();
    }
}

impl Writer {
    pub fn start(home: &Home, patience: Patience) -> Result<(Self, WriterThread)> {
        let journal = Journal::open(home.clone(), patience)?;
        journal.limit_cache()?;
        let (requests, queue) = mpsc::sync_channel(REQUEST_QUEUE_LENGTH);
        let head = Arc::new(AtomicU64::new(0));
        let thread = std::thread::Builder::new()
            .name("journal-writer".to_owned())
            .spawn({
                let head = head.clone();
                move || serve(journal, &queue, &head)
            })
            .map_err(io("start a writer for", home.path()))?;
        let home = home.clone();
        let writer = Self {
            home,
            requests,
            in_flight: Arc::default(),
            head,
        };
        Ok((writer, WriterThread { thread }))
    }

    /// Submit an operation without waiting. `then` is called on the writer's thread after the
    /// commit, and must only pass its argument on; if the thread panics, `then` is dropped.
    ///
    /// Returns the message files that the caller can write meanwhile. There are none if other
    /// operations are in flight: then the caller has enough to do, and joining the next commit late
    /// would cost a whole commit.
    pub fn submit<O: Operation>(
        &self,
        operation: O,
        then: impl FnOnce(Committed<O>) + Send + 'static,
    ) -> Result<Prewrite> {
        let (in_flight, others) = InFlight::start(&self.in_flight);
        let prewrite = match others {
            0 => operation.prewrite(&self.home),
            _ => Prewrite::default(),
        };
        let write = Submitted {
            operation,
            bodies: StoredBodies::default(),
            decided: None,
            then,
        };
        self.enqueue(Request::Write(Box::new(write), in_flight))?;
        Ok(prewrite)
    }

    /// Call `query` with the journal between two commits, after everything that was submitted
    /// before. It must be as quick as a look-up, and returns its result by itself.
    pub fn ask(&self, query: impl FnOnce(&mut Journal) + Send + 'static) -> Result<()> {
        self.enqueue(Request::Query(Box::new(query)))
    }

    /// Return the seq of the journal's last fact after the latest commit. It is set before that
    /// commit is answered and its bells ring.
    pub fn head(&self) -> u64 {
        self.head.load(Ordering::Acquire)
    }

    fn enqueue(&self, request: Request) -> Result<()> {
        self.requests
            .try_send(request)
            .map_err(|error| match error {
                TrySendError::Full(_) => Error::Overloaded,
                TrySendError::Disconnected(_) => Error::WriterGone,
            })
    }
}

fn serve(mut journal: Journal, queue: &Receiver<Request>, head: &AtomicU64) {
    let mut is_indexed = false;
    loop {
        let next = if is_indexed {
            queue.recv().map_err(RecvTimeoutError::from)
        } else {
            queue.recv_timeout(INDEX_IDLE_DELAY)
        };
        let first = match next {
            Ok(request) => request,
            Err(RecvTimeoutError::Timeout) => {
                // A search updates the index by itself; filling it now saves the search that time.
                is_indexed = search::fill_page(&journal).map_or(true, |more| !more);
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        };
        let (mut group, mut queries) = (Vec::new(), Vec::new());
        // Senders that the last commit answered come back while this one runs, so that groups
        // fill by themselves. Waiting for more senders was measured to be slower.
        let waiting = queue.try_iter().take(MAX_GROUP_REQUESTS - 1);
        for request in std::iter::once(first).chain(waiting) {
            match request {
                Request::Write(write, in_flight) => group.push((write, in_flight)),
                Request::Query(query) => queries.push(query),
            }
        }
        let committed = group.len();
        if committed > 0 {
            is_indexed = false;
            commit(&mut journal, group, head);
        }
        for query in queries {
            query(&mut journal);
        }
        // A long WAL costs time, not facts. If the disk fails, the next commit reports it.
        let _ = match committed {
            0 => Ok(()),
            // Extending the WAL pays off for a sync per message, not for one per group.
            1 => journal
                .checkpoint_long_wal()
                .and_then(|()| journal.extend_wal()),
            _ => journal.checkpoint_long_wal(),
        };
    }
    let _ = journal.tidy();
}

/// Commit a group, and answer every sender in it.
fn commit(journal: &mut Journal, group: Vec<(Box<dyn Write>, InFlight)>, head: &AtomicU64) {
    let home = journal.home().clone();
    let (writes, in_flight): (Vec<_>, Vec<_>) = group.into_iter().unzip();
    let mut ready = Vec::with_capacity(writes.len());
    for mut write in writes {
        match write.store_bodies(&home) {
            Ok(()) => ready.push(write),
            Err(error) => write.answer(&home, Err(error)),
        }
    }
    let durability = ready.iter().map(|write| write.durability()).max();
    let durability = durability.unwrap_or(Durability::Unsynced);
    let committed = journal.write(durability, |tx| {
        ready.iter_mut().try_for_each(|write| write.run(tx))?;
        Ok(tx.head())
    });
    drop(in_flight);
    match committed {
        Ok((last, agents)) => {
            head.store(last, Ordering::Release);
            for write in ready {
                write.answer(&home, Ok(()));
            }
            bell::ring(&home, &agents);
        }
        Err(error) => {
            let error = Arc::new(error);
            for write in ready {
                write.answer(&home, Err(Error::Shared(error.clone())));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operation::Post;
    use posthaste_core::{AgentName, Draft, MessageId};
    use uuid::Uuid;

    #[test]
    fn only_a_message_that_is_submitted_alone_is_prewritten() {
        let dir = tempfile::tempdir().unwrap();
        let (writer, thread) =
            Writer::start(&Home::open(dir.path(), None).unwrap(), Patience::DEFAULT).unwrap();
        let (open, gate) = mpsc::channel::<()>();
        let (sender, results) = mpsc::channel();
        let submit = || {
            let bob = AgentName::parse("bob").unwrap();
            let id = MessageId(Uuid::new_v4());
            let draft = Draft::new(id, AgentName::human(), bob, "text".to_owned());
            let now = jiff::Timestamp::UNIX_EPOCH;
            let drafts = vec![draft];
            let sender = sender.clone();
            let then = move |committed: Committed<Post>| {
                sender.send(committed.attempt.result.is_ok()).unwrap();
            };
            writer.submit(Post { now, drafts }, then).unwrap()
        };
        // The writer is kept busy until the gate opens.
        writer.ask(move |_| gate.recv().unwrap()).unwrap();
        assert!(!submit().is_empty());
        assert!(submit().is_empty());
        open.send(()).unwrap();
        assert!(results.recv().unwrap() && results.recv().unwrap());
        assert!(!submit().is_empty(), "the others are done");
        drop(writer);
        thread.join();
    }
}
