//! A viewer's socket, heard for what comes from it.
//!
//! A stream of the runtime's own is also told of room to write, and there is more of that whenever
//! a viewer reads: each read of what it was sent would wake us for nothing, before it returns.
//! Here room is asked for only where there is none.

use super::child::watched;
use super::log;
use rustix::io::Errno;
use rustix::net::Shutdown;
use std::io::Result;
use std::os::fd::OwnedFd;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

#[derive(Debug)]
pub(crate) struct Socket {
    fd: AsyncFd<OwnedFd>,
}

impl Socket {
    pub(crate) fn of(read: OwnedReadHalf, write: OwnedWriteHalf) -> Result<Self> {
        let stream = read.reunite(write).map_err(std::io::Error::other)?;
        let fd = watched(stream.into_std()?.into(), Interest::READABLE)?;
        Ok(Self { fd })
    }

    /// What has come; nothing at its end.
    pub(crate) async fn read(&self, buffer: &mut [u8]) -> Result<usize> {
        let read = |fd: &OwnedFd| rustix::io::read(fd, &mut *buffer).map_err(Into::into);
        self.fd.async_io(Interest::READABLE, read).await
    }

    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match rustix::io::write(self.fd.get_ref(), bytes) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::AGAIN) => self.room().await?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until something can be written. Through another descriptor, because one can be
    /// registered only once.
    async fn room(&self) -> Result<()> {
        let again = self.fd.get_ref().try_clone();
        let again = again.and_then(|again| watched(again, Interest::WRITABLE));
        match again {
            Ok(again) => again.writable().await.map(drop),
            Err(error) => {
                log::line(format!("a viewer is let go: {error}"));
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
