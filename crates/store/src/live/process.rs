//! Other processes: who they are, who started them, and how to end them.
//!
//! A pid alone names nobody for long, so it always comes with the time at which the kernel
//! started the process.

use rustix::fs::Access;
use rustix::process::{Pid, Signal};
#[cfg(target_os = "linux")]
use std::io::Read;
use std::path::{Path, PathBuf};

/// What the kernel says of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    /// Dead, and waiting for its parent to take note.
    is_dead: bool,
    parent: u32,
    group: u32,
    session: u32,
    started: u64,
}

/// When the kernel started a process; nothing where there is none.
pub fn started(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.started)
}

/// Whether a process is the one that was started then, and alive.
pub fn is(pid: u32, started: u64) -> bool {
    stat(pid).is_some_and(|stat| !stat.is_dead && stat.started == started)
}

/// The leader of the process session that a process is in; nothing where that is out of sight, as
/// for one that was started into a container from outside.
pub fn session_of(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.session).filter(|pid| *pid != 0)
}

/// Reads `/proc/PID/stat`. The second field is a name in brackets that may hold anything.
#[cfg(target_os = "linux")]
fn stat(pid: u32) -> Option<Stat> {
    let mut file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    // One read gives all of it; it is never longer.
    let mut text = [0; 1_024];
    let length = file.read(&mut text).ok()?;
    let after = text[..length].iter().rposition(|byte| *byte == b')')? + 1;
    let fields: Vec<&str> = std::str::from_utf8(&text[after..length])
        .ok()?
        .split_ascii_whitespace()
        .collect();
    Some(Stat {
        is_dead: matches!(*fields.first()?, "Z" | "X"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        session: fields.get(3)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
    })
}

/// Elsewhere nothing is known of other processes, so nothing is claimed.
#[cfg(not(target_os = "linux"))]
fn stat(_: u32) -> Option<Stat> {
    None
}

/// The ancestors of a process, itself first, each with its start.
pub fn ancestry(pid: u32) -> Vec<(u32, u64)> {
    let mut line = Vec::new();
    let mut next = pid;
    // A cycle is impossible, but a pid may be reused while we look.
    while next > 1 && line.len() < 64 {
        let Some(stat) = stat(next) else { break };
        line.push((next, stat.started));
        next = stat.parent;
    }
    line
}

/// Which boot of this machine this is; pids mean nothing across boots.
pub fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// What is still there of a session's child and of anything that it started.
pub fn left_of(child: u32, child_started: u64) -> Vec<u32> {
    let is_it = |pid: u32, stat: Stat| {
        if stat.is_dead {
            false
        } else if pid == child {
            stat.started == child_started
        } else {
            // The child led a process session of its own. Its pid cannot be given to another
            // while anything is left in that session.
            stat.session == child && stat.started >= child_started
        }
    };
    pids()
        .filter(|pid| stat(*pid).is_some_and(|stat| is_it(*pid, stat)))
        .collect()
}

/// The live processes of a process group, its leader included.
pub fn in_group(leader: u32) -> Vec<u32> {
    pids()
        .filter(|pid| stat(*pid).is_some_and(|stat| !stat.is_dead && stat.group == leader))
        .collect()
}

/// Who has one of these pipes open, by their inodes; as far as it can be seen. Neither we nor our
/// own children: between fork and exec, one has everything open that we have.
pub fn holders(pipes: &[u64]) -> Vec<u32> {
    if pipes.is_empty() {
        return Vec::new();
    }
    let me = std::process::id();
    let pipes: Vec<_> = pipes.iter().map(|pipe| format!("pipe:[{pipe}]")).collect();
    let is_one = |path: PathBuf| pipes.iter().any(|pipe| path.as_os_str() == pipe.as_str());
    let holds = |pid: u32| {
        let open = std::fs::read_dir(format!("/proc/{pid}/fd"));
        let open = open.into_iter().flatten().flatten();
        let mut targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        targets.any(is_one)
    };
    let is_other = |pid: u32| pid != me && stat(pid).is_some_and(|stat| stat.parent != me);
    pids().filter(|pid| is_other(*pid) && holds(*pid)).collect()
}

/// What a process is called; it says so itself.
pub fn name(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
}

/// Sends a signal to one process; one that is gone needs none.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Sends a signal to a process group; one that is gone needs none.
pub fn signal_group(leader: u32, which: Signal) {
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, which);
    }
}

/// Sends a signal to everything in a child's own process session.
pub fn signal_all(child: u32, child_started: u64, which: Signal) {
    for pid in left_of(child, child_started) {
        signal(pid, which);
    }
}

/// Whether this is a file that may be executed.
pub fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_line() {
        let me = std::process::id();
        let mut child = std::process::Command::new("sleep")
            .arg("1000")
            .spawn()
            .unwrap();
        let line = ancestry(child.id());
        let known = [child.id(), me].map(|pid| (pid, started(pid).unwrap()));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(line[..2], known);
    }

    #[test]
    fn another_of_the_same_number_is_another() {
        let me = std::process::id();
        let began = started(me).unwrap();
        assert!(is(me, began));
        assert!(!is(me, began + 1) && !is(me, 0));
    }

    #[test]
    fn nobody_is_nobody() {
        assert_eq!(started(u32::MAX), None);
        assert_eq!(left_of(u32::MAX - 1, 0), Vec::<u32>::new());
    }
}
