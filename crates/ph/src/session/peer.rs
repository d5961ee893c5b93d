//! Who is on the other side of a connection, as far as the kernel tells.

use super::process;
use rustix::process::Pid;
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

    /// Whether it is in the process session that this process leads: where its descendants are,
    /// unless they left it. Costs next to nothing.
    pub(crate) fn is_in_session_of(&self, leader: u32) -> bool {
        let pid = self.pid.and_then(|pid| i32::try_from(pid).ok());
        let session = pid
            .and_then(Pid::from_raw)
            .and_then(|pid| rustix::process::getsid(Some(pid)).ok());
        session.is_some_and(|session| session.as_raw_pid().unsigned_abs() == leader)
    }

    /// Whether it descends from this process, which began then.
    pub(crate) fn descends_from(&self, ancestor: u32, started: u64) -> bool {
        self.pid
            .is_some_and(|pid| process::ancestry(pid).contains(&(ancestor, started)))
    }
}
