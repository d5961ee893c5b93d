//! The session's sockets: listening, connections, requests and subscriptions. This file has the
//! socket of one connection.
//!
//! `Socket` is registered for reading alone. A stream of the runtime is registered for writing
//! too, and every read by the peer makes room to write: it would wake this process for nothing.
//! Writability is registered only while the socket is full.

pub(crate) mod attached;
pub(crate) mod connection;
pub(crate) mod dispatch;
pub(crate) mod lines;
pub mod listen;
pub(crate) mod output;
pub(crate) mod peer;

use crate::host::log;
use crate::pty::child::register;
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

/// Delay before a retry if the system has no free descriptor.
pub(crate) const NO_DESCRIPTORS_DELAY: Duration = Duration::from_millis(100);

fn is_no_descriptor(error: &std::io::Error) -> bool {
    let errno = Errno::from_io_error(error);
    errno.is_some_and(|errno| matches!(errno, Errno::MFILE | Errno::NFILE))
}

#[derive(Debug)]
pub(crate) struct Socket {
    fd: AsyncFd<OwnedFd>,
    /// Whether the last read filled the buffer.
    was_full: Cell<bool>,
}

impl Socket {
    pub(crate) fn new(stream: UnixStream) -> Result<Self> {
        let fd = register(stream.into_std()?.into(), Interest::READABLE)?;
        let was_full = Cell::new(false);
        Ok(Self { fd, was_full })
    }

    /// Read into the spare capacity of `buffer`, and return the number of bytes: 0 at the end.
    pub(crate) async fn read_into(&self, buffer: &mut Vec<u8>) -> Result<usize> {
        // A peer that sends without pause must not keep other tasks from running.
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
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable().await?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Write as much as the socket has room for.
    pub(crate) fn write_now(&self, bytes: &[IoSlice<'_>]) -> Result<usize> {
        retry_on_intr(|| rustix::io::writev(self.fd.get_ref(), bytes)).map_err(Into::into)
    }

    /// Wait until the socket has room. Uses a duplicate, because a descriptor can be registered
    /// only once. If no descriptor is free, waits for a fixed time.
    pub(crate) async fn writable(&self) -> Result<()> {
        let duplicate = self.fd.get_ref().try_clone();
        let duplicate = duplicate.and_then(|fd| register(fd, Interest::WRITABLE));
        match duplicate {
            Ok(duplicate) => duplicate.writable().await.map(drop),
            Err(error) if is_no_descriptor(&error) => {
                tokio::time::sleep(NO_DESCRIPTORS_DELAY).await;
                Ok(())
            }
            Err(error) => {
                warn!(target: log::VIEWERS, "a connection is closed: {error}");
                Err(error)
            }
        }
    }

    /// Wait until the peer sends data or hangs up, and return whether it hung up. Data that it sent
    /// before can still be read.
    pub(crate) async fn is_hung_up(&self) -> bool {
        let ready = self.fd.readable().await;
        ready.map_or(true, |ready| ready.ready().is_read_closed())
    }

    pub(crate) fn shutdown(&self) {
        // Fails only if the peer has already closed the connection.
        let _ = rustix::net::shutdown(self.fd.get_ref(), Shutdown::Write);
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.get_ref().as_fd()
    }
}
