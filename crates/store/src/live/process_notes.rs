//! Notes of the processes of sessions: one file for each, which names the agent that the process
//! belongs to. The file's name is the pid, and its content the agent and the process's start time.

use super::process;
use crate::Home;
use crate::error::{Result, io};
use crate::home::{data_file, guard, write_private};
use posthaste_core::AgentName;
use std::path::{Path, PathBuf};

const MAX_NOTE_BYTES: u64 = 1 << 10;

/// The note of a process, which is removed when this is dropped.
#[derive(Debug)]
pub struct ProcessNote {
    path: PathBuf,
}

impl ProcessNote {
    pub fn write(home: &Home, agent: &AgentName, pid: u32, started: u64) -> Result<Self> {
        let dir = notes_dir(home.path());
        guard::make_dirs(home.path(), &dir)?;
        let path = dir.join(pid.to_string());
        let note = format!("{agent} {started}");
        write_private(&path, note.as_bytes()).map_err(io("write", &path))?;
        Ok(Self { path })
    }
}

impl Drop for ProcessNote {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn notes_dir(home: &Path) -> PathBuf {
    home.join("sessions").join(".children")
}

/// Return the agent that a process is noted for, and the start time of that process.
fn read(home: &Home, pid: u32) -> Option<(AgentName, u64)> {
    let path = notes_dir(home.path()).join(pid.to_string());
    let note = data_file::read_own(&path, MAX_NOTE_BYTES).ok()?;
    let (agent, started) = note.split_once(' ')?;
    Some((AgentName::parse(agent).ok()?, started.parse().ok()?))
}

/// Return the agent that this process is noted for.
fn agent_of(home: &Home, pid: u32, started: u64) -> Option<AgentName> {
    let (agent, noted) = read(home, pid)?;
    (noted == started).then_some(agent)
}

/// Return the agent in whose session this process runs, by its ancestors.
pub fn agent_here(home: &Home) -> Option<AgentName> {
    // Without this directory no session ever ran.
    notes_dir(home.path()).symlink_metadata().ok()?;
    agent_in(home, &process::ancestry(std::process::id()))
}

/// Return the agent in whose session a process runs, by its ancestors and their start times.
pub fn agent_in(home: &Home, ancestry: &[(u32, u64)]) -> Option<AgentName> {
    ancestry
        .iter()
        .find_map(|(pid, started)| agent_of(home, *pid, *started))
}

/// Return the agent in whose session a process runs, by its process session. This is fast, but
/// misses descendants that have left the process session.
pub fn agent_of_session(home: &Home, leader: u32) -> Option<AgentName> {
    let (agent, started) = read(home, leader)?;
    (process::started(leader)? == started).then_some(agent)
}

/// Return the noted processes of an agent, each with its start time.
pub fn processes_of(home: &Home, agent: &AgentName) -> Vec<(u32, u64)> {
    let entries = std::fs::read_dir(notes_dir(home.path()));
    let pids = entries.into_iter().flatten().filter_map(|entry| {
        let name = entry.ok()?.file_name();
        name.to_str()?.parse().ok()
    });
    pids.filter_map(|pid| {
        let (noted, started) = read(home, pid)?;
        (noted == *agent).then_some((pid, started))
    })
    .collect()
}

/// Remove the note of a process whose session has ended.
pub fn remove(home: &Home, agent: &AgentName, pid: u32, started: u64) {
    if agent_of(home, pid, started).as_ref() == Some(agent) {
        let _ = std::fs::remove_file(notes_dir(home.path()).join(pid.to_string()));
    }
}
