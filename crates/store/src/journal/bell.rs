//! The bell: what a writer rings after its commit so that others look.
//!
//! A file that followers watch is touched. Watching the database itself would wake them before the
//! commit can be seen. A lost ring costs a follower a tick, never a fact.

use crate::error::{Error, Result, io};
use crate::home::{Home, private_file};
use notify::{RecursiveMode, Watcher};
use posthaste_core::AgentName;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Covers a writer that was killed between its commit and its ring.
pub const TICK: Duration = Duration::from_secs(2);

/// Rings for everybody, and for these agents. What fails here is covered by the tick.
pub fn ring(home: &Home, agents: &[AgentName]) {
    if agents.is_empty() {
        return;
    }
    strike(&home.bell());
    for agent in agents {
        strike(&home.bell_of(agent));
    }
}

/// One call, and one event for who watches: opening, writing and closing it would be three, each of
/// which wakes them.
fn strike(path: &Path) {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    let touch = || rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    if touch() == Err(Errno::NOENT) && private_file(path).is_ok() {
        let _ = touch();
    }
}

/// Has something called at every ring of one bell, for as long as it is kept.
#[derive(Debug)]
pub struct Watch {
    _watcher: notify::RecommendedWatcher,
}

impl Watch {
    /// Watches all facts of a home, or one agent's. `rung` is called from a thread of its own, and
    /// now and then without need.
    pub fn on(
        home: &Home,
        agent: Option<&AgentName>,
        rung: impl Fn() + Send + 'static,
    ) -> Result<Self> {
        let path = agent.map_or_else(|| home.bell(), |agent| home.bell_of(agent));
        private_file(&path)?;
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                // An error too is a reason to look.
                if event.is_err() || event.is_ok_and(|e| !e.kind.is_access()) {
                    rung();
                }
            })
            .map_err(|error| unwatched(&path, error))?;
        watcher
            .watch(&path, RecursiveMode::NonRecursive)
            .map_err(|error| unwatched(&path, error))?;
        Ok(Self { _watcher: watcher })
    }
}

/// Hears one bell.
#[derive(Debug)]
pub struct Ear {
    _watch: Watch,
    rings: Receiver<()>,
}

impl Ear {
    /// Listens to all facts of a home, or to one agent's.
    pub fn on(home: &Home, agent: Option<&AgentName>) -> Result<Self> {
        // One ring not yet heard is as good as many: when the channel is full, a ring is dropped.
        let (ringer, rings) = mpsc::sync_channel(1);
        let watch = Watch::on(home, agent, move || {
            let _ = ringer.try_send(());
        })?;
        Ok(Self {
            _watch: watch,
            rings,
        })
    }

    /// Waits for a ring, at most for `patience`.
    pub fn wait(&self, patience: Duration) {
        match self.rings.recv_timeout(patience) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            // The watcher is gone and nothing will ring: fall back to the tick.
            Err(RecvTimeoutError::Disconnected) => std::thread::sleep(patience.min(TICK)),
        }
    }
}

fn unwatched(path: &Path, error: notify::Error) -> Error {
    io("watch", path)(std::io::Error::other(error))
}
