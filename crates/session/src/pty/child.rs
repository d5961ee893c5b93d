//! The program on its own terminal. Has unsafe code: what a child must do between fork and exec, and
//! the few calls to the kernel and the C library that have no safe form.
#![allow(unsafe_code)]

use crate::harness::install_hint;
use crate::host::launch_files::{self, LaunchContext, PreparedLaunch};
use crate::routes::hook_env;
use posthaste_core::harness::Manifest;
use posthaste_core::text;
use posthaste_store::live::place::Launch;
use posthaste_store::report::{Report, Result};
use rustix::process::{Resource, Rlimit, Signal};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::process::Child;

/// Variables by which a program would take the starter's terminal for its own.
const NOT_INHERITED: [&str; 11] = [
    "TMUX",
    "TMUX_PANE",
    "STY",
    "WINDOW",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
    "COLUMNS",
    "LINES",
    // Another agent's, where this is started in a loop.
    "PH_ITERATION",
    // The session's own: hooks of the program would answer it on the agent's screen.
    crate::host::log::VARIABLE,
    // Whoever asks a script for mail, it is not the program.
    posthaste_provider::asking::ASKING,
];

/// Starts the program; the answer's file descriptor is its terminal's other side. It gets the
/// signal where we are killed.
pub(crate) fn spawn(
    told: &LaunchContext<'_>,
    harness: &Manifest,
    outfit: &PreparedLaunch,
    files: Rlimit,
    orphaned: Signal,
) -> Result<(AsyncFd<OwnedFd>, Child)> {
    let launch = told.launch;
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
        true => (&runner, vec![crate::loop_::RUNNER.to_owned()]),
        false => (program, outfit.args.clone()),
    };
    let mut command = pty_process::Command::new(program)
        .args(&args)
        .current_dir(&launch.cwd)
        .env("TERM", "xterm-256color")
        .env("COLORTERM", "truecolor");
    for name in NOT_INHERITED {
        command = command.env_remove(name);
    }
    for (name, value) in [&outfit.env, &launch.env, &outfit.overriding_env]
        .into_iter()
        .flatten()
    {
        command = command.env(name, value);
    }
    command = command
        .env("PH_AGENT", launch.name.as_str())
        .env("PH_HOME", told.home.path())
        .env("PH_SOCKET", told.socket)
        .env(hook_env::RUN_VARIABLE, told.run.to_string())
        // By it hooks call us, whatever the path is made of.
        .env("PH_PROGRAM", launch_files::ph_path());
    // One that we give no hooks may be run by one that we do.
    command = match outfit.has_hooks {
        true => command.env(hook_env::HOOKS_VARIABLE, hook_env::HOOKS_INJECTED),
        false => command.env_remove(hook_env::HOOKS_VARIABLE),
    };
    // SAFETY: only async-signal-safe calls: signal(2), prctl(2), setrlimit(2).
    let command = unsafe { command.pre_exec(move || before_exec(files, orphaned)) };
    let child = command
        .spawn(pts)
        .map_err(|error| not_started(launch, harness, &error))?;
    let pty = watched(pty.into(), Interest::READABLE).map_err(|error| no_terminal(&error))?;
    Ok((pty, child))
}

/// Starts a program on another terminal of its own, from a program that is itself on one; the
/// answer's first part is that terminal's other side. It is killed where we are.
pub(crate) fn spawn_within(
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

/// A descriptor of which the kernel tells when it can be read, or written.
pub(crate) fn watched(fd: OwnedFd, interest: Interest) -> std::io::Result<AsyncFd<OwnedFd>> {
    // SAFETY: an owned descriptor gives the same one for as long as it is registered.
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
        // SAFETY: resets a signal to its default; an ignored one would stay ignored past exec.
        unsafe { libc::signal(ignored, libc::SIG_DFL) };
    }
    // So that nothing outlives a session that was killed.
    #[cfg(target_os = "linux")]
    rustix::process::set_parent_process_death_signal(Some(orphaned))?;
    #[cfg(not(target_os = "linux"))]
    let _ = orphaned;
    rustix::process::setrlimit(Resource::Nofile, files)?;
    Ok(())
}

fn not_started(launch: &Launch, harness: &Manifest, error: &pty_process::Error) -> Report {
    let program = launch.command.first().map_or("", String::as_str);
    let shown = text::one_line(program, 80);
    let kind = match error {
        pty_process::Error::Io(error) => Some(error.kind()),
        _ => None,
    };
    match kind {
        _ if !launch.cwd.is_dir() => Report::usage(format!(
            "cannot start in {}: it is no directory",
            launch.cwd.display()
        )),
        Some(ErrorKind::NotFound) if program.contains('/') && launch.cwd.join(program).exists() => {
            Report::usage(format!(
                "cannot start {shown}: its interpreter is not there"
            ))
            .hint("the first line of a script names it, after '#!'")
        }
        Some(ErrorKind::NotFound) => {
            let report = Report::usage(format!("no such command: {shown}"));
            install_hint(report, harness, program)
        }
        Some(ErrorKind::PermissionDenied) if launch.cwd.join(program).is_dir() => {
            Report::usage(format!("{shown} is a directory, not a command"))
                .hint("name a program in it; --cwd DIR says where to run one")
        }
        Some(ErrorKind::PermissionDenied) => Report::usage(format!("{shown} may not be executed"))
            .hint("'chmod +x' makes a script a command"),
        _ => Report::usage(format!("cannot start {shown}: {error}")),
    }
}

/// Has a command end with the thread that starts it, however that ends: a script that hangs must
/// not outlive whoever waits for it.
pub fn end_with_us(command: &mut std::process::Command) {
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

/// Closes what was left open to this process beyond its standard streams: a pipe or a lock of the
/// starter's must not be held for as long as a session lives. To be called before anything else
/// is opened.
pub(crate) fn close_inherited() {
    const FIRST: libc::c_uint = 3;
    #[cfg(target_os = "linux")]
    // SAFETY: nothing in this process has a descriptor of its own yet.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, FIRST, libc::c_uint::MAX, 0) } == 0;
    #[cfg(not(target_os = "linux"))]
    let closed = false;
    if !closed {
        for descriptor in FIRST..1_024 {
            // SAFETY: as above; one that is not open is an error that changes nothing.
            unsafe { libc::close(descriptor as libc::c_int) };
        }
    }
}

/// Gives memory that was used and is free again back to the system; the C library keeps what does
/// not lie at the end.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(crate) fn give_back_memory() {
    // SAFETY: it touches nothing but free memory, under the allocator's own locks.
    let _ = unsafe { libc::malloc_trim(0) };
}

/// Other allocators return free memory by themselves.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub(crate) fn give_back_memory() {}

/// How much of what was written to a socket its other side has not read yet.
#[cfg(target_os = "linux")]
pub(crate) fn unread_by_peer(socket: impl AsFd) -> std::io::Result<i32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (the same number as TIOCOUTQ) writes one int.
    let asked = unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::TIOCOUTQ, &mut bytes) };
    if asked < 0 {
        return Err(std::io::Error::last_os_error());
    }
    Ok(bytes)
}

/// Elsewhere it cannot be asked; the caller's own patience must do.
#[cfg(not(target_os = "linux"))]
pub(crate) fn unread_by_peer(_: impl AsFd) -> std::io::Result<i32> {
    Err(ErrorKind::Unsupported.into())
}
