//! Namespace for the lab: its only network is loopback, and its processes end with it.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, ExitCode};

/// Set inside the namespace.
const INSIDE_VARIABLE: &str = "PH_LAB_INSIDE";
/// The mount namespace is needed for a `/proc` of this PID namespace.
const UNSHARE: [&str; 7] = [
    "--map-root-user",
    "--net",
    "--pid",
    "--fork",
    "--kill-child",
    "--mount",
    "--mount-proc",
];
const SETUP: &str = "ip link set lo up";

pub fn is_inside() -> bool {
    std::env::var_os(INSIDE_VARIABLE).is_some()
}

/// Run this program again inside, with additional variables, and return its exit status.
pub(super) fn enter(variables: &[(&str, OsString)]) -> Result<ExitCode, String> {
    let shell = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(UNSHARE).args(["sh", "-c", script, "sh"]);
        command
    };
    let tried = shell(SETUP)
        .output()
        .map_err(|error| format!("unshare cannot be started: {error}"))?;
    if !tried.status.success() {
        let errors = String::from_utf8_lossy(&tried.stderr);
        return Err(format!(
            "cannot create a network namespace with unshare and ip: {}",
            errors.trim()
        ));
    }
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    // A shell stays as the first process, and reaps orphans of agents.
    let script = format!("{SETUP} && {{ \"$@\"; exit $?; }}");
    let mut inside = shell(&script);
    inside
        .arg(this)
        .args(std::env::args_os().skip(1))
        .env(INSIDE_VARIABLE, "1")
        .envs(variables.iter().map(|(name, value)| (name, value)));
    let ended = inside.status().map_err(|error| error.to_string())?;
    let code = ended.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// Return the visible network interfaces, up or not.
pub fn interfaces() -> Vec<String> {
    let devices = std::fs::read_to_string("/proc/net/dev").expect("/proc can be read");
    let names = devices.lines().filter_map(|line| line.split_once(':'));
    names.map(|(name, _)| name.trim().to_owned()).collect()
}

/// Return the other processes as `PID COMMAND`, without zombies.
pub fn others() -> Vec<String> {
    listed(pids())
}

/// Return those processes whose environment contains a text: those of one stage.
pub fn started_with(text: &str) -> Vec<String> {
    let has = |pid: &String| {
        let environment = std::fs::read(Path::new("/proc").join(pid).join("environ"));
        environment.is_ok_and(|all| String::from_utf8_lossy(&all).contains(text))
    };
    listed(pids().filter(has))
}

fn pids() -> impl Iterator<Item = String> {
    let ours = std::process::id().to_string();
    let entries = std::fs::read_dir("/proc").expect("/proc can be read");
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names
        .filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
        .filter(move |pid| *pid != ours && pid != "1")
}

fn listed(pids: impl Iterator<Item = String>) -> Vec<String> {
    pids.filter_map(|pid| running(&pid).map(|command| format!("{pid} {command}")))
        .collect()
}

fn running(pid: &str) -> Option<String> {
    let dir = Path::new("/proc").join(pid);
    let stat = std::fs::read_to_string(dir.join("stat")).ok()?;
    let (_, after) = stat.rsplit_once(") ")?;
    if after.starts_with(['Z', 'X']) {
        return None;
    }
    let command = std::fs::read(dir.join("cmdline")).ok()?;
    let words = command
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy);
    Some(words.collect::<Vec<_>>().join(" ").trim_end().to_owned())
}
