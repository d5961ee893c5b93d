//! Who is on the other side of a connection, as far as the kernel tells.

use super::process;
use tokio::net::UnixStream;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    uid: u32,
    pid: Option<u32>,
}

impl Peer {
    pub(crate) fn of(stream: &UnixStream) -> std::io::Result<Self> {
        let known = stream.peer_cred()?;
        Ok(Self {
            uid: known.uid(),
            pid: known.pid().and_then(|pid| u32::try_from(pid).ok()),
        })
    }

    pub(crate) fn is_this_user(&self) -> bool {
        self.uid == rustix::process::geteuid().as_raw()
    }

    /// Whether it descends from this process, which began then.
    pub(crate) fn descends_from(&self, ancestor: u32, started: u64) -> bool {
        self.pid
            .is_some_and(|pid| process::ancestry(pid).contains(&(ancestor, started)))
    }
}
