//! Who is on the other side of a connection, as far as the kernel tells.

use super::{place, process};
use posthaste_core::AgentName;
use posthaste_store::Home;
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

    /// The agent in whose session it runs, as far as a quick look tells, or a thorough one.
    pub(crate) fn agent(&self, home: &Home, look: Look) -> Option<AgentName> {
        let pid = self.pid?;
        let leader = process::session_of(pid);
        let by_session = leader.and_then(|leader| place::agent_of_session(home, leader));
        match look {
            Look::Quick => by_session,
            Look::Thorough => by_session.or_else(|| place::agent_of(home, pid)),
        }
    }
}

/// How closely to look at a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// By the process session it is in. A process may leave that.
    Quick,
    /// By all its ancestors; some 100 µs.
    Thorough,
}
