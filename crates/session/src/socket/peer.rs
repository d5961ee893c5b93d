//! The process on the other side of a connection, as reported by the kernel.

use posthaste_core::AgentName;
use posthaste_store::Home;
use posthaste_store::live::{process, process_notes};
use std::cell::OnceCell;
use tokio::net::UnixStream;

#[derive(Debug)]
pub(crate) struct Peer {
    uid: u32,
    pid: Option<u32>,
    /// The leader of the peer's process session. Looked up once: a peer that first runs in an
    /// agent's session stays that agent.
    leader: OnceCell<Option<u32>>,
    /// The peer's ancestors with their start times. Looked up once, like `leader`.
    ancestry: OnceCell<Vec<(u32, u64)>>,
}

impl Peer {
    pub(crate) fn of(stream: &UnixStream) -> std::io::Result<Self> {
        let credentials = stream.peer_cred()?;
        Ok(Self {
            uid: credentials.uid(),
            pid: credentials.pid().and_then(|pid| u32::try_from(pid).ok()),
            leader: OnceCell::new(),
            ancestry: OnceCell::new(),
        })
    }

    pub(crate) fn is_this_user(&self) -> bool {
        self.uid == rustix::process::geteuid().as_raw()
    }

    /// Return the agent in whose session the peer runs.
    pub(crate) fn agent(&self, home: &Home, lookup: PeerLookup) -> Option<AgentName> {
        let pid = self.pid?;
        let leader = *self.leader.get_or_init(|| process::session_of(pid));
        let by_session = leader.and_then(|leader| process_notes::agent_of_session(home, leader));
        match lookup {
            PeerLookup::ProcessSession => by_session,
            PeerLookup::Ancestry => by_session.or_else(|| {
                let ancestry = self.ancestry.get_or_init(|| process::ancestry(pid));
                process_notes::agent_in(home, ancestry)
            }),
        }
    }
}

/// How a peer's agent is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PeerLookup {
    /// By the peer's process session, which a process may leave.
    ProcessSession,
    /// By all ancestors of the peer too, which takes about 100 µs.
    Ancestry,
}
