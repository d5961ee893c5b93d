//! A viewer's socket, heard for what comes from it.
//!
//! A stream of the runtime's own is also told whenever there is room to write. Each time that a
//! viewer reads what it was sent, that is, so its own read would wake us for nothing before it
//! returns: a quarter of the time from a key to its echo. Here that is asked for only where there
//! is no room.

use super::child::watched;
use rustix::io::Errno;
use rustix::net::{SendFlags, Shutdown};
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
        loop {
            let mut ready = self.fd.readable().await?;
            match rustix::io::read(self.fd.get_ref(), &mut *buffer) {
                Ok(count) => {
                    // That was all: the next look would find nothing.
                    if (1..buffer.len()).contains(&count) {
                        ready.clear_ready();
                    }
                    return Ok(count);
                }
                Err(Errno::AGAIN) => ready.clear_ready(),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) async fn write_all(&self, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            match rustix::net::send(self.fd.get_ref(), bytes, SendFlags::NOSIGNAL) {
                Ok(count) => bytes = &bytes[count..],
                Err(Errno::AGAIN) => self.room().await?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Waits until something can be written. Through a descriptor of its own, because one cannot
    /// be waited for in two ways.
    async fn room(&self) -> Result<()> {
        let again = watched(self.fd.get_ref().try_clone()?, Interest::WRITABLE)?;
        again.writable().await.map(drop)
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
