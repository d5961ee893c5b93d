//! Who is on the other side of a connection, as far as the kernel tells.

use posthaste_core::AgentName;
use posthaste_store::Home;
use posthaste_store::live::{place, process};
use std::cell::OnceCell;
use tokio::net::UnixStream;

#[derive(Debug)]
pub(crate) struct Peer {
    uid: u32,
    pid: Option<u32>,
    /// The leader of its process session. Looked up once: who runs in an agent's session when it
    /// first speaks stays that agent.
    leader: OnceCell<Option<u32>>,
    /// Its ancestors, likewise.
    line: OnceCell<Vec<(u32, u64)>>,
}

impl Peer {
    pub(crate) fn of(stream: &UnixStream) -> std::io::Result<Self> {
        let known = stream.peer_cred()?;
        Ok(Self {
            uid: known.uid(),
            pid: known.pid().and_then(|pid| u32::try_from(pid).ok()),
            leader: OnceCell::new(),
            line: OnceCell::new(),
        })
    }

    pub(crate) fn is_this_user(&self) -> bool {
        self.uid == rustix::process::geteuid().as_raw()
    }

    /// The agent in whose session it runs, as far as a quick look tells, or a thorough one.
    pub(crate) fn agent(&self, home: &Home, look: Look) -> Option<AgentName> {
        let pid = self.pid?;
        let leader = *self.leader.get_or_init(|| process::session_of(pid));
        let by_session = leader.and_then(|leader| place::agent_of_session(home, leader));
        match look {
            Look::Quick => by_session,
            Look::Thorough => by_session.or_else(|| {
                let line = self.line.get_or_init(|| process::ancestry(pid));
                place::agent_in(home, line)
            }),
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
