//! Bells: files that a writer touches after a commit, and that followers watch.
//!
//! A ring carries no data. Followers do not watch the database itself, because they would wake
//! before the commit is visible. A lost ring delays a follower by one [`BELL_CHECK_INTERVAL`], and never costs a
//! fact.

use crate::error::{Error, Result, io};
use crate::home::{Home, private_file};
use notify::{RecursiveMode, Watcher};
use posthaste_core::AgentName;
use rustix::fs::{AtFlags, CWD, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use std::path::Path;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Interval at which followers look without a ring, for writers that were killed before they rang.
pub const BELL_CHECK_INTERVAL: Duration = Duration::from_secs(2);

/// Ring the bell of the home and those of `agents`. A bell that fails is covered by [`BELL_CHECK_INTERVAL`].
pub fn ring(home: &Home, agents: &[AgentName]) {
    if agents.is_empty() {
        return;
    }
    touch(&home.bell());
    for agent in agents {
        touch(&home.bell_of(agent));
    }
}

/// Touch a file by one call, which watchers see as one event. Opening, writing and closing it would
/// wake them three times.
fn touch(path: &Path) {
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: UTIME_NOW,
    };
    let times = Timestamps {
        last_access: now,
        last_modification: now,
    };
    let update = || rustix::fs::utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW);
    if update() == Err(Errno::NOENT) && private_file(path).is_ok() {
        let _ = update();
    }
}

/// Calls a function at every ring of one bell, until it is dropped.
#[derive(Debug)]
pub struct Watch {
    _watcher: notify::RecommendedWatcher,
}

impl Watch {
    /// Watch all facts of a home, or one agent's. `rung` is called on another thread, sometimes
    /// without a ring.
    pub fn on(
        home: &Home,
        agent: Option<&AgentName>,
        rung: impl Fn() + Send + 'static,
    ) -> Result<Self> {
        let path = agent.map_or_else(|| home.bell(), |agent| home.bell_of(agent));
        private_file(&path)?;
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                // After an error a ring may have been lost.
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

/// Waits for rings of one bell.
#[derive(Debug)]
pub struct BellListener {
    _watch: Watch,
    rings: Receiver<()>,
}

impl BellListener {
    /// Listen for all facts of a home, or for one agent's.
    pub fn on(home: &Home, agent: Option<&AgentName>) -> Result<Self> {
        // One ring in the channel is enough: when it is full, a ring is dropped.
        let (ringer, rings) = mpsc::sync_channel(1);
        let watch = Watch::on(home, agent, move || {
            let _ = ringer.try_send(());
        })?;
        Ok(Self {
            _watch: watch,
            rings,
        })
    }

    /// Wait for a ring, at most for `patience`.
    pub fn wait(&self, patience: Duration) {
        match self.rings.recv_timeout(patience) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            // The watcher has ended, so there will be no ring.
            Err(RecvTimeoutError::Disconnected) => {
                std::thread::sleep(patience.min(BELL_CHECK_INTERVAL));
            }
        }
    }
}

fn unwatched(path: &Path, error: notify::Error) -> Error {
    io("watch", path)(std::io::Error::other(error))
}
