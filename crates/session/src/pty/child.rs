//! Starts programs on terminals of their own. The only module with unsafe code: the steps of a
//! child between fork and exec, and a few calls to the kernel and the C library that have no safe
//! form.
#![allow(unsafe_code)]

use crate::harness::install_hint;
use crate::host::launch_files::{self, LaunchContext, PreparedLaunch};
use crate::routes::hook_env;
use posthaste_core::harness::Manifest;
use posthaste_core::text;
use posthaste_store::report::{Report, Result};
use rustix::process::{Resource, Rlimit, Signal};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;

/// Variables that a program must not inherit. Most describe the terminal of the process that
/// started the session.
const REMOVED_VARIABLES: [&str; 11] = [
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "COLUMNS",
    "LINES",
    // Belongs to the loop in which the session may have been started.
    "PH_ITERATION",
    // Configures the session's log: hooks of the program would log to the agent's screen.
    crate::host::log::LOG_VARIABLE,
    // Marks a process that asks a mail script; the program is not one.
    posthaste_provider::recursion_guard::CALLERS_VARIABLE,
];

/// Start the program, and return the session's side of its terminal. The program gets the signal
/// `orphaned` if this process is killed.
pub(crate) fn spawn(
    context: &LaunchContext<'_>,
    harness: &Manifest,
    prepared: &PreparedLaunch,
    files: Rlimit,
    orphaned: Signal,
) -> Result<(AsyncFd<OwnedFd>, Child)> {
    let launch = context.launch;
    let Some(program) = launch.command.first() else {
        return Err(Report::usage("no command was given"));
    };
    let no_terminal =
        |error: &dyn std::fmt::Display| Report::storage(format!("cannot open a terminal: {error}"));
    let (pty, pts) = pty_process::open().map_err(|error| no_terminal(&error))?;
    pty.resize(pty_process::Size::new(launch.rows, launch.cols))
        .map_err(|error| no_terminal(&error))?;
    let runner = launch_files::ph_path();
    let (program, args) = match launch.is_loop() {
        true => (&runner, vec![crate::loop_::RUNNER_ARGUMENT.to_owned()]),
        false => (program, prepared.args.clone()),
    };
    let mut command = pty_process::Command::new(program)
        .args(&args)
        .current_dir(&launch.cwd)
        .env("TERM", "xterm-256color")
        .env("COLORTERM", "truecolor");
    for name in REMOVED_VARIABLES {
        command = command.env_remove(name);
    }
    for (name, value) in [&prepared.env, &launch.env, &prepared.overriding_env]
        .into_iter()
        .flatten()
    {
        command = command.env(name, value);
    }
    command = command
        .env("PH_AGENT", launch.name.as_str())
        .env("PH_HOME", context.home.path())
        .env("PH_SOCKET", context.socket)
        .env(hook_env::RUN_VARIABLE, context.run.to_string())
        // Hooks call this program by it, whatever characters its path contains.
        .env("PH_PROGRAM", launch_files::ph_path());
    // A program without hooks of ours may be started by a program that has them.
    command = match prepared.has_hooks {
        true => command.env(hook_env::HOOKS_VARIABLE, hook_env::HOOKS_INJECTED),
        false => command.env_remove(hook_env::HOOKS_VARIABLE),
    };
    // SAFETY: only async-signal-safe calls: signal(2), prctl(2), setrlimit(2).
    let command = unsafe { command.pre_exec(move || before_exec(files, orphaned)) };
    let child = command
        .spawn(pts)
        .map_err(|error| not_started(program, &launch.cwd, harness, &error))?;
    let pty = register(pty.into(), Interest::READABLE).map_err(|error| no_terminal(&error))?;
    Ok((pty, child))
}

/// Start a program of a loop on a new terminal, and return this process's side of the terminal. The
/// program is killed if this process is.
pub(crate) fn spawn_nested(
    command: std::process::Command,
    input: Option<std::process::Stdio>,
    size: pty_process::Size,
) -> std::result::Result<(OwnedFd, std::process::Child), pty_process::Error> {
    let (pty, pts) = pty_process::blocking::open()?;
    pty.resize(size)?;
    let mut command = pty_process::blocking::Command::from(command);
    if let Some(input) = input {
        command = command.stdin(input);
    }
    let files = rustix::process::getrlimit(Resource::Nofile);
    // SAFETY: only async-signal-safe calls: signal(2), prctl(2), setrlimit(2).
    let command = unsafe { command.pre_exec(move || before_exec(files, Signal::KILL)) };
    let child = command.spawn(pts)?;
    Ok((pty.into(), child))
}

/// Register a descriptor with the runtime, which then waits until it is readable or writable.
pub(crate) fn register(fd: OwnedFd, interest: Interest) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an `OwnedFd` returns the same descriptor for as long as it is registered.
    let fd = unsafe { AsyncFd::register_with_interest(fd, interest) };
    fd.map_err(Into::into)
}

fn before_exec(files: Rlimit, orphaned: Signal) -> std::io::Result<()> {
    for ignored in [
        libc::SIGHUP,
        libc::SIGINT,
        libc::SIGQUIT,
        libc::SIGPIPE,
        libc::SIGTERM,
        libc::SIGTSTP,
    ] {
        // Ignored signals would stay ignored after exec.
        // SAFETY: only resets a signal to its default.
        unsafe { libc::signal(ignored, libc::SIG_DFL) };
    }
    // No program outlives a session that is killed.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(orphaned))?;
    #[cfg(not(target_os = "linux"))]
    let _ = orphaned;
    rustix::process::setrlimit(Resource::Nofile, files)?;
    Ok(())
}

/// Explain why a program was not started.
pub(crate) fn not_started(
    program: &str,
    cwd: &Path,
    harness: &Manifest,
    error: &pty_process::Error,
) -> Report {
    let shown = text::one_line(program, 80);
    let kind = match error {
        pty_process::Error::Io(error) => Some(error.kind()),
        _ => None,
    };
    match kind {
        _ if !cwd.is_dir() => Report::usage(format!(
            "cannot start in {}: it is not a directory",
            cwd.display()
        )),
        Some(ErrorKind::NotFound) if program.contains('/') && cwd.join(program).exists() => {
            Report::usage(format!(
                "cannot start {shown}: its interpreter does not exist"
            ))
            .hint("the first line of a script names its interpreter, after '#!'")
        }
        Some(ErrorKind::NotFound) => {
            let report = Report::usage(format!("no such command: {shown}"));
            install_hint(report, harness, program)
        }
        Some(ErrorKind::PermissionDenied) if cwd.join(program).is_dir() => {
            Report::usage(format!("{shown} is a directory, not a command"))
                .hint("name a program in it; --cwd DIR sets the directory to run it in")
        }
        Some(ErrorKind::PermissionDenied) => Report::usage(format!("{shown} is not executable"))
            .hint("make it executable with 'chmod +x'"),
        _ => Report::usage(format!("cannot start {shown}: {error}")),
    }
}

/// Have the kernel kill a command when the thread that starts it ends: a script that hangs must not
/// outlive the process that waits for it.
pub fn kill_with_parent(command: &mut std::process::Command) {
    #[cfg(target_os = "linux")]
    // SAFETY: only prctl(2), which is async-signal-safe.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(command, || {
            Ok(rustix::process::set_parent_process_death_signal(Some(
                Signal::KILL,
            ))?)
        });
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// Close all inherited descriptors except the standard streams: a session must not hold pipes or
/// locks of the process that started it. Must be called before this process opens a descriptor.
pub(crate) fn close_inherited() {
    const FIRST: libc::c_uint = 3;
    #[cfg(target_os = "linux")]
    // SAFETY: nothing in this process owns one of these descriptors yet.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, 0) } == 0;
    #[cfg(not(target_os = "linux"))]
    let closed = false;
    if !closed {
        for descriptor in FIRST..1_024 {
            // SAFETY: as above. Closing a descriptor that is not open fails and changes nothing.
            unsafe { libc::close(descriptor as libc::c_int) };
        }
    }
}

/// Return free heap memory to the system. glibc does so by itself only at the end of the heap.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn trim_heap() {
    // SAFETY: touches only free memory, under the allocator's own locks.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Other allocators return free memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn trim_heap() {}

/// Return the number of bytes written to a socket that the peer has not read yet.
#[cfg(target_os = "linux")]
pub(crate) fn unread_by_peer(socket: impl AsFd) -> std::io::Result<i32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one int.
    let result = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
    if result < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(bytes)
}

/// Other systems do not report this, so the caller falls back to a timeout.
#[cfg(not(target_os = "linux"))]
pub(crate) fn unread_by_peer(_: impl AsFd) -> std::io::Result<i32> {
    Err(ErrorKind::Unsupported.into())
}
