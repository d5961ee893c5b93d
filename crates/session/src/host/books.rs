//! The journal, from the session's one thread: work is handed to the thread that owns the
//! connection, and awaited.

use posthaste_store::group::{Unsettled, Writer};
use posthaste_store::{Denied, Done, Error, Job, Journal};
use tokio::sync::oneshot;

#[derive(Debug, Clone)]
pub(crate) struct Books {
    writer: Writer,
}

impl Books {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer }
    }

    /// Does one piece of work; it is on disk, and filed, when this answers.
    pub(crate) async fn commit(&self, job: Job) -> Result<Result<Done, Denied>, Error> {
        let (tell, told) = oneshot::channel::<Unsettled>();
        let mut ahead = self.writer.submit(job, move |done| {
            let _ = tell.send(done);
        })?;
        ahead.begin();
        match told.await {
            Ok(done) => done.settle(&ahead),
            Err(_) => Err(Error::WriterGone),
        }
    }

    /// The number of the journal's last fact after the latest commit of this process.
    pub(crate) fn head(&self) -> u64 {
        self.writer.head()
    }

    /// Asks something of the journal.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Journal) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (tell, told) = oneshot::channel();
        self.writer.ask(move |journal| {
            let _ = tell.send(question(journal));
        })?;
        told.await.unwrap_or(Err(Error::WriterGone))
    }
}
