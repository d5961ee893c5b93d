//! A connection's socket, heard for what comes from it.
//!
//! A stream of the runtime's own is also told of room to write, and there is more of that whenever
//! the other side reads: each read of what it was sent would wake us for nothing, before it
//! returns. Here room is asked for only where there is none.

pub(crate) mod attached;
pub(crate) mod connection;
pub(crate) mod control;
pub(crate) mod dispatch;
pub(crate) mod hub;
pub(crate) mod lines;
pub mod listen;
pub(crate) mod peer;
pub(crate) mod pieces;
pub(crate) mod post;

use crate::host::log;
use crate::pty::child::watched;
use rustix::buffer::spare_capacity;
use rustix::io::{Errno, retry_on_intr};
use rustix::net::Shutdown;
use std::cell::Cell;
use std::io::{ErrorKind, IoSlice, Result};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::UnixStream;
use tracing::warn;

/// How long is waited where the system has no more descriptors to give.
pub(crate) const NO_DESCRIPTORS: Duration = Duration::from_millis(100);

fn is_no_descriptor(error: &std::io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| matches!(errno, Errno::MFILE | Errno::NFILE))
}

#[derive(Debug)]
pub(crate) struct Socket {
    fd: AsyncFd<OwnedFd>,
    /// Whether the last read left no room.
    was_full: Cell<bool>,
}

impl Socket {
    pub(crate) fn of(stream: UnixStream) -> Result<Self> {
        let fd = watched(stream.into_std()?.into(), Interest::READABLE)?;
        let was_full = Cell::new(false);
        Ok(Self { fd, was_full })
    }

    /// Adds what has come to what is there, as far as that has room; nothing at its end.
    pub(crate) async fn read_onto(&self, buffer: &mut Vec<u8>) -> Result<usize> {
        // Who sends without end is not read without end.
        if self.was_full.take() {
            tokio::task::yield_now().await;
        }
        let read = |fd: &OwnedFd| {
            retry_on_intr(|| rustix::io::read(fd, spare_capacity(buffer))).map_err(Into::into)
        };
        let count = self.fd.async_io(Interest::READABLE, read).await?;
        self.was_full.set(buffer.len() == buffer.capacity());
        Ok(count)
    }

    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match self.write_now(&[IoSlice::new(bytes)]) {
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.room().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Writes as much as there is room for.
    pub(crate) fn write_now(&self, bytes: &[IoSlice<'_>]) -> Result<usize> {
        retry_on_intr(|| rustix::io::writev(self.fd.get_ref(), bytes)).map_err(Into::into)
    }

    /// Waits until something can be written. Through another descriptor, because one can be
    /// registered only once; where there is none to be had, until a little later.
    pub(crate) async fn room(&self) -> Result<()> {
        let again = self.fd.get_ref().try_clone();
        let again = again.and_then(|again| watched(again, Interest::WRITABLE));
        match again {
            Ok(again) => again.writable().await.map(drop),
            Err(error) if is_no_descriptor(&error) => {
                tokio::time::sleep(NO_DESCRIPTORS).await;
                Ok(())
            }
            Err(error) => {
                warn!(target: log::VIEWERS, "a connection is let go: {error}");
                Err(error)
            }
        }
    }

    /// Waits until something comes, and says whether it was the end. What was sent before it is
    /// still to be read.
    pub(crate) async fn is_hung_up(&self) -> bool {
        let ready = self.fd.readable().await;
        ready.map_or(true, |ready| ready.ready().is_read_closed())
    }

    pub(crate) fn shutdown(&self) {
        // Where it is gone already, that is as good.
        let _ = rustix::net::shutdown(self.fd.get_ref(), Shutdown::Write);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.get_ref().as_fd()
    }
}
