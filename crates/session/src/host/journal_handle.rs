//! Access to the journal from the session's thread: requests are sent to the thread that owns the
//! connection, and their results are awaited.

use posthaste_store::{Decided, Error, Journal, Operation, Writer};
use tokio::sync::oneshot;

#[derive(Debug, Clone)]
pub(crate) struct JournalHandle {
    writer: Writer,
}

impl JournalHandle {
    pub(crate) fn new(writer: Writer) -> Self {
        Self { writer }
    }

    /// Commit an operation, and wait until it is synced and its message files are written.
    pub(crate) async fn commit<O: Operation>(
        &self,
        operation: O,
    ) -> Result<Decided<O::Output>, Error> {
        let (sender, receiver) = oneshot::channel();
        let mut prewrite = self.writer.submit(operation, move |committed| {
            let _ = sender.send(committed);
        })?;
        prewrite.begin();
        match receiver.await {
            Ok(committed) => committed.settle(&prewrite),
            Err(_) => Err(Error::WriterGone),
        }
    }

    /// Return the number of the journal's last fact after the latest commit of this process.
    pub(crate) fn head(&self) -> u64 {
        self.writer.head()
    }

    /// Run a query on the journal's thread.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        query: impl FnOnce(&mut Journal) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, Error> {
        let (sender, receiver) = oneshot::channel();
        self.writer.ask(move |journal| {
            let _ = sender.send(query(journal));
        })?;
        receiver.await.unwrap_or(Err(Error::WriterGone))
    }
}
