//! Group commit: many senders in one process, one synced transaction for all that came together.
//!
//! One thread owns the connection. Senders wait for their own answer; each writes its own message
//! file, so that the thread does nothing but commit.

use crate::error::{Error, Result};
use crate::home::Home;
use crate::job::{Denied, Done, Job};
use crate::journal::{Journal, Patience, touched};
use crate::{bell, files};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread::JoinHandle;
use std::time::Duration;

/// How many pieces of work may wait. Who comes when it is full waits for room.
const QUEUE: usize = 1_024;
/// How many are committed at once.
const GROUP: usize = 256;
/// After this long without work it is quiet enough to fill the search index.
const QUIET: Duration = Duration::from_millis(500);

type Answer = std::result::Result<Done, Denied>;

struct Request {
    job: Job,
    answer: SyncSender<Result<(Job, Answer)>>,
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
        // A panic there has already answered every sender with an error.
        let _ = self.thread.join();
    }
}

impl Writer {
    pub fn start(home: Home, patience: Patience) -> Result<(Self, WriterThread)> {
        let journal = Journal::open(home.clone(), patience)?;
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
        let (answer, answered) = mpsc::sync_channel(1);
        if self.requests.send(Request { job, answer }).is_err() {
            files::take_back(made.iter().flatten());
            return Err(Error::WriterGone);
        }
        // Without an answer nobody knows whether it was stored: its files stay.
        let answered = answered.recv().map_err(|_| Error::WriterGone)?;
        let (job, answer) = answered.inspect_err(|error| files::take_back_after(error, &made))?;
        files::settle(&self.home, &job, &made, &answer);
        Ok(answer)
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
        indexed = false;
        let group: Vec<_> = std::iter::once(first)
            .chain(queue.try_iter().take(GROUP - 1))
            .collect();
        let (jobs, senders): (Vec<_>, Vec<_>) =
            group.into_iter().map(|r| (r.job, r.answer)).unzip();
        match journal.commit_all(&jobs) {
            Ok(answers) => {
                let agents = touched(&answers);
                for ((job, answer), sender) in jobs.into_iter().zip(answers).zip(senders) {
                    // A sender that no longer waits has its message stored all the same.
                    let _ = sender.send(Ok((job, answer)));
                }
                // Once for all of them.
                bell::ring(journal.home(), &agents);
            }
            Err(error) => {
                let error = Arc::new(error);
                for sender in senders {
                    let _ = sender.send(Err(Error::Shared(error.clone())));
                }
            }
        }
        // A full WAL costs time, not facts; the next commit reports a disk that is really broken.
        let _ = journal.tidy_on_the_way();
    }
    let _ = journal.tidy();
}
