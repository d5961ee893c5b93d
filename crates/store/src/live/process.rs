//! Other processes: their identity, their ancestors, signals to them, and their end.
//!
//! A pid may be reused, so it always comes with the start time of the process.

use rustix::fs::Access;
use rustix::process::{Pid, Signal};
#[cfg(target_os = "linux")]
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Signals that ask a program to end. Interactive shells ignore SIGTERM, and a stopped process gets
/// both only when it continues.
const END_REQUEST: [Signal; 3] = [Signal::HUP, Signal::TERM, Signal::CONT];
/// Timeout for a process to exit after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_secs(5);
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(5);

/// State of a process in `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stat {
    /// Whether the process has exited and waits for its parent.
    is_dead: bool,
    parent: u32,
    group: u32,
    session: u32,
    started: u64,
}

/// Return the start time of a process, or `None` if it does not exist.
pub fn started(pid: u32) -> Option<u64> {
    stat(pid).map(|stat| stat.started)
}

/// Return whether a process has this start time and is alive.
pub fn is(pid: u32, started: u64) -> bool {
    stat(pid).is_some_and(|stat| !stat.is_dead && stat.started == started)
}

/// Return the leader of a process's session. There is none if it is invisible, for example if the
/// process was started into a container from outside.
pub fn session_of(pid: u32) -> Option<u32> {
    stat(pid).map(|stat| stat.session).filter(|pid| *pid != 0)
}

/// Read `/proc/PID/stat`. The second field is a name in parentheses, with any characters.
#[cfg(target_os = "linux")]
fn stat(pid: u32) -> Option<Stat> {
    let mut file = std::fs::File::open(format!("/proc/{pid}/stat")).ok()?;
    // The file is short enough for one read.
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

/// Other systems have no `/proc`, so nothing is known about other processes.
#[cfg(not(target_os = "linux"))]
fn stat(_: u32) -> Option<Stat> {
    None
}

/// Return a process and its ancestors, each with its start time.
pub fn ancestry(pid: u32) -> Vec<(u32, u64)> {
    let mut line = Vec::new();
    let mut next = pid;
    // A reused pid could lead to a cycle.
    while next > 1 && line.len() < 64 {
        let Some(stat) = stat(next) else { break };
        line.push((next, stat.started));
        next = stat.parent;
    }
    line
}

/// Return the value that a variable had in the environment in which this process, or the nearest of
/// its ancestors that had it, was started.
pub fn inherited_variable(name: &str) -> Option<String> {
    let prefix = format!("{name}=");
    let value = |pid: u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
        let mut variables = environment.split(|byte| *byte == 0);
        let value = variables.find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
        (!value.is_empty()).then(|| String::from_utf8_lossy(value).into_owned())
    };
    ancestry(std::process::id())
        .into_iter()
        .find_map(|(pid, _)| value(pid))
}

/// Return the id of this boot. Pids are not comparable across boots.
pub fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map(|text| text.trim().to_owned())
        .unwrap_or_default()
}

/// Return the live processes of a session's child and of its descendants.
pub fn left_of(child: u32, child_started: u64) -> Vec<u32> {
    // The child was the leader of a process session. Its pid is not reused while that session has
    // processes, so none are left if another process has the pid.
    let is_it =
        |stat: Stat| !stat.is_dead && stat.session == child && stat.started >= child_started;
    let left: Vec<u32> = pids().filter(|pid| stat(*pid).is_some_and(is_it)).collect();
    match started(child) {
        Some(started) if started != child_started => Vec::new(),
        _ => left,
    }
}

/// Return the live processes of a process group, including its leader.
pub fn in_group(leader: u32) -> Vec<u32> {
    pids()
        .filter(|pid| stat(*pid).is_some_and(|stat| !stat.is_dead && stat.group == leader))
        .collect()
}

/// Return the visible processes that have one of these pipes open. This process and its children
/// are left out: between fork and exec, a child has all of its parent's files open.
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

/// Return the name that a process has given itself.
pub fn name(pid: u32) -> Option<String> {
    let name = std::fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten();
    entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<u32>().ok())
}

/// Send a signal to a process, which may have ended.
pub fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

/// Send a signal to a process group, which may have ended.
pub fn signal_group(leader: u32, which: Signal) {
    if let Some(group) = i32::try_from(leader).ok().and_then(Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, which);
    }
}

/// Send a signal to every process in a child's process session.
pub fn signal_all(child: u32, child_started: u64, which: Signal) {
    for pid in left_of(child, child_started) {
        signal(pid, which);
    }
}

/// Ask the processes of a group to end.
pub fn request_group_end(leader: u32) {
    for which in END_REQUEST {
        signal_group(leader, which);
    }
}

/// End the processes that `left` lists: ask them and wait for `grace`, unless it is `None`; then
/// kill them. Return those that are left in spite of that.
pub fn end(grace: Option<Duration>, mut left: impl FnMut() -> Vec<u32>) -> Vec<u32> {
    if let Some(grace) = grace {
        for pid in left() {
            END_REQUEST.iter().for_each(|which| signal(pid, *which));
        }
        if wait_for_exit(grace, &mut left).is_empty() {
            return Vec::new();
        }
    }
    for pid in left() {
        signal(pid, Signal::KILL);
    }
    wait_for_exit(KILL_TIMEOUT, &mut left)
}

/// Wait until `left` lists no process. Return those that are left after `timeout`.
fn wait_for_exit(timeout: Duration, left: &mut impl FnMut() -> Vec<u32>) -> Vec<u32> {
    let deadline = Instant::now() + timeout;
    loop {
        let left = left();
        if left.is_empty() || Instant::now() > deadline {
            return left;
        }
        std::thread::sleep(EXIT_POLL_INTERVAL);
    }
}

/// Return whether a path is an executable file.
pub fn is_program(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_knows_its_ancestors() {
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
    fn a_process_with_a_reused_pid_is_another() {
        let me = std::process::id();
        let began = started(me).unwrap();
        assert!(is(me, began));
        assert!(!is(me, began + 1) && !is(me, 0));
    }

    #[test]
    fn no_process_is_left_if_the_pid_was_reused() {
        use std::io::{BufRead, BufReader};
        let mut leader = std::process::Command::new("setsid")
            .args(["sh", "-c", "sleep 1000 & echo $!; wait"])
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(leader.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        let (pid, child) = (leader.id(), line.trim().parse().unwrap());
        let began = started(pid).unwrap();
        let mut left = left_of(pid, began);
        left.sort_unstable();
        let of_predecessor = left_of(pid, began - 1);
        leader.kill().unwrap();
        leader.wait().unwrap();
        let left_behind = left_of(pid, began);
        signal(child, Signal::KILL);
        assert_eq!(left, [pid, child]);
        assert_eq!(of_predecessor, [0; 0]);
        assert_eq!(left_behind, [child]);
    }

    #[test]
    fn a_pid_that_does_not_exist_has_no_processes() {
        assert_eq!(started(u32::MAX), None);
        assert_eq!(left_of(u32::MAX - 1, 0), Vec::<u32>::new());
    }
}
