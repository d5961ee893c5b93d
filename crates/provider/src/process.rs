//! Runs a script once, with a timeout and output limits, in its own process group.
//!
//! On return, no process of that group is left, and none that holds the output open. One thread
//! polls everything. Knows nothing of mail.

use super::pipes::{InputPipe, KeptEnd, OutputPipe};
use super::recursion_guard::CALLERS_VARIABLE;
use posthaste_store::live::process;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions};
use std::ffi::{OsStr, OsString};
use std::fs::OpenOptions;
use std::io::{ErrorKind, PipeReader, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Maximum size of the output; a larger output is an error.
pub(crate) const MAX_STDOUT_BYTES: usize = 64 << 20;
/// Number of bytes of standard error that are kept, from the end.
const STDERR_TAIL_BYTES: usize = 16 << 10;
/// Maximum timeout of a call, whatever the settings say.
const MAX_TIMEOUT: Duration = Duration::from_secs(24 * 3_600);
/// Poll interval for the exit of a process without a pidfd.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(10);
/// Retry time if the script's file is open for writing (ETXTBSY).
const TEXT_BUSY_TIMEOUT: Duration = Duration::from_secs(1);
/// Time for child processes to exit after the script.
const CHILDREN_GRACE: Duration = Duration::from_millis(100);

/// Prepares a command so that the script is killed when this process dies.
pub type Prepare = fn(&mut Command);

#[derive(Debug)]
pub(crate) struct ScriptCall<'a> {
    pub(crate) script: &'a Path,
    pub(crate) op: &'a str,
    pub(crate) arg: Option<&'a OsStr>,
    pub(crate) stdin: &'a [u8],
    pub(crate) timeout: Duration,
    pub(crate) prepare: Prepare,
    pub(crate) children: Children,
    pub(crate) environment: Option<&'a Environment>,
    /// The calling homes, for the recursion guard.
    pub(crate) callers: Option<&'a str>,
    /// Becomes readable when the call is cancelled.
    pub(crate) cancel: Option<BorrowedFd<'a>>,
}

/// Policy for processes that outlive the script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    /// Kill them, and fail the call.
    End,
    /// Keep them: `ensure-running` starts a server.
    Leave,
}

/// Working directory and additional variables of a script.
#[derive(Debug)]
pub struct Environment {
    pub dir: PathBuf,
    pub env: Vec<(&'static str, OsString)>,
}

/// Result of a call.
#[derive(Debug)]
pub(crate) struct CallOutput {
    pub(crate) status: ExitStatus,
    /// Whether all of the input was written to the script.
    pub(crate) is_input_sent: bool,
    /// Processes that `ensure-running` has left.
    pub(crate) left: Option<LeftGroup>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// A process group that `ensure-running` has left.
#[derive(Debug)]
pub(crate) struct LeftGroup {
    group: u32,
    members: Vec<u32>,
}

impl LeftGroup {
    /// Kill the remaining members.
    pub(crate) fn end(&self) {
        let group = process::in_group(self.group);
        // Otherwise the group id may have been reused.
        if group.iter().any(|pid| self.members.contains(pid)) {
            process::signal_group(self.group, Signal::KILL);
        }
    }
}

/// Why a call has no result.
#[derive(Debug)]
pub(crate) enum CallFailure {
    NotStarted(std::io::Error),
    /// The script was killed after the timeout.
    TimedOut,
    /// The script was killed after more than [`MAX_STDOUT_BYTES`] bytes of output.
    OutputTooLarge,
    /// The script left processes running. They were killed, and the output is not trusted, because
    /// they may have written a part of it.
    LeftProcesses {
        status: ExitStatus,
        left: Vec<String>,
    },
    Cancelled,
    Io(std::io::Error),
}

/// A failed call, with the end of standard error.
#[derive(Debug)]
pub(crate) struct FailedCall {
    pub(crate) failure: CallFailure,
    pub(crate) stderr: Vec<u8>,
}

impl From<CallFailure> for FailedCall {
    fn from(failure: CallFailure) -> Self {
        let stderr = Vec::new();
        Self { failure, stderr }
    }
}

impl From<std::io::Error> for CallFailure {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for CallFailure {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl ScriptCall<'_> {
    pub(crate) fn run(&self) -> Result<CallOutput, FailedCall> {
        let deadline = Instant::now() + self.timeout.min(MAX_TIMEOUT);
        let mut running = RunningScript::start(self)?;
        running
            .finish(deadline, self.cancel)
            .map_err(|failure| FailedCall {
                failure,
                stderr: std::mem::take(&mut running.stderr.bytes),
            })
    }

    fn command(&self, stdin: Option<&PipeReader>) -> std::io::Result<Command> {
        let mut command = Command::new(self.script);
        let stdin = match stdin {
            Some(stdin) => stdin.try_clone()?.into(),
            None => Stdio::null(),
        };
        command
            .arg(self.op)
            .args(self.arg)
            .stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own, so that all of it can be killed at once.
            .process_group(0);
        if let Some(environment) = self.environment {
            command.current_dir(&environment.dir);
            command.envs(environment.env.iter().map(|(name, value)| (name, value)));
        }
        if let Some(callers) = self.callers {
            command.env(CALLERS_VARIABLE, callers);
        }
        (self.prepare)(&mut command);
        Ok(command)
    }
}

/// A running script. Dropping this kills the script and its children.
struct RunningScript<'a> {
    child: Child,
    pid: u32,
    children: Children,
    /// Becomes readable at the exit. `None` without pidfd support, or once the process is reaped.
    ended: Option<OwnedFd>,
    /// Set once the process is reaped.
    exit_status: Option<ExitStatus>,
    /// Whether left-over processes were handled.
    is_closed: bool,
    stdin: InputPipe<'a>,
    stdout: OutputPipe,
    stderr: OutputPipe,
}

impl<'a> RunningScript<'a> {
    fn start(call: &ScriptCall<'a>) -> Result<Self, CallFailure> {
        check_executable(call.script).map_err(CallFailure::NotStarted)?;
        let (stdin, reader) = InputPipe::new(call.stdin)?;
        let give_up = Instant::now() + TEXT_BUSY_TIMEOUT;
        let mut child = loop {
            match call.command(reader.as_ref())?.spawn() {
                Ok(child) => break child,
                Err(error)
                    if error.kind() == ErrorKind::ExecutableFileBusy
                        && Instant::now() < give_up =>
                {
                    std::thread::sleep(EXIT_POLL_INTERVAL);
                }
                Err(error) => return Err(CallFailure::NotStarted(error)),
            }
        };
        // Close our copy, so that a write fails once the script closes its input.
        drop(reader);
        let [stdout, stderr] = [
            child.stdout.take().map(OwnedFd::from),
            child.stderr.take().map(OwnedFd::from),
        ];
        let pid = child.id();
        let running = Self {
            child,
            pid,
            children: call.children,
            ended: exit_fd(pid),
            exit_status: None,
            is_closed: false,
            stdin,
            // One byte over the limit shows that the limit is exceeded.
            stdout: OutputPipe::new(stdout, MAX_STDOUT_BYTES + 1, KeptEnd::Beginning),
            stderr: OutputPipe::new(stderr, STDERR_TAIL_BYTES, KeptEnd::End),
        };
        let fds = [
            running.stdout.fd.as_ref().map(AsFd::as_fd),
            running.stderr.fd.as_ref().map(AsFd::as_fd),
        ];
        for fd in fds.into_iter().flatten() {
            rustix::io::ioctl_fionbio(fd, true)?;
        }
        Ok(running)
    }

    /// Exchange input and output until the script has ended, and return its result.
    fn finish(
        &mut self,
        mut deadline: Instant,
        cancel: Option<BorrowedFd<'_>>,
    ) -> Result<CallOutput, CallFailure> {
        loop {
            if self.wait(deadline, cancel)? {
                return Err(CallFailure::Cancelled);
            }
            self.stdin.write();
            self.read_output()?;
            if self.exit_status.is_none() && self.has_ended()? {
                // The group id stays reserved while the group has members.
                self.exit_status = Some(self.child.wait()?);
                self.ended = None;
                deadline = Instant::now() + CHILDREN_GRACE;
                // All that the script itself has written is in the pipes by now.
                self.read_output()?;
            }
            if self.stdout.bytes.len() > MAX_STDOUT_BYTES {
                return Err(CallFailure::OutputTooLarge);
            }
            let is_late = Instant::now() >= deadline;
            match self.exit_status {
                Some(status) if is_late || self.children == Children::Leave || self.is_gone() => {
                    return self.close(status);
                }
                None if is_late => return Err(CallFailure::TimedOut),
                Some(_) | None => {}
            }
        }
    }

    /// Wait for input, output or the exit. Return whether the call was cancelled.
    fn wait(&self, deadline: Instant, cancel: Option<BorrowedFd<'_>>) -> Result<bool, CallFailure> {
        let mut fds = Vec::with_capacity(5);
        // The first entry, so that its result is at index 0.
        fds.extend(cancel.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        fds.extend(
            self.stdin
                .to
                .as_ref()
                .map(|fd| PollFd::new(fd, PollFlags::OUT)),
        );
        for stream in [&self.stdout, &self.stderr] {
            fds.extend(stream.fd.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        }
        fds.extend(self.ended.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let mut left = deadline.saturating_duration_since(Instant::now());
        if self.ended.is_none() {
            left = left.min(EXIT_POLL_INTERVAL);
        }
        let left = Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(cancel.is_some() && fds.first().is_some_and(|fd| !fd.revents().is_empty()))
    }

    fn read_output(&mut self) -> Result<(), CallFailure> {
        self.stdout.read()?;
        Ok(self.stderr.read()?)
    }

    fn has_ended(&self) -> Result<bool, CallFailure> {
        let Some(pid) = pid_of(self.pid) else {
            return Ok(true);
        };
        // Do not reap the process yet: its pid keeps the group id reserved.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(pid), options) {
            Ok(status) => Ok(status.is_some()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Return whether nothing is left of a reaped script: no process in its group, and none that
    /// holds its output open.
    fn is_gone(&self) -> bool {
        self.is_output_closed() && self.group().is_empty()
    }

    fn is_output_closed(&self) -> bool {
        self.stdout.fd.is_none() && self.stderr.fd.is_none()
    }

    /// Return the result of a reaped script, or an error if it has left processes.
    fn close(&mut self, status: ExitStatus) -> Result<CallOutput, CallFailure> {
        let mut left = Vec::new();
        if self.children == Children::End && !self.is_gone() {
            left = self.end();
            self.read_output()?;
            if left.is_empty() && !self.is_output_closed() {
                left.push("an unknown process that keeps its output open".to_owned());
            }
        }
        self.is_closed = true;
        if !left.is_empty() {
            return Err(CallFailure::LeftProcesses { status, left });
        }
        let members = match self.children {
            Children::End => Vec::new(),
            Children::Leave => self.group(),
        };
        Ok(CallOutput {
            status,
            is_input_sent: self.stdin.is_all_sent(),
            left: (!members.is_empty()).then_some(LeftGroup {
                group: self.pid,
                members,
            }),
            stdout: std::mem::take(&mut self.stdout.bytes),
            stderr: std::mem::take(&mut self.stderr.bytes),
        })
    }

    /// Return the live processes of its group.
    fn group(&self) -> Vec<u32> {
        let group = pid_of(self.pid);
        let is_empty =
            group.is_none_or(|group| rustix::process::test_kill_process_group(group).is_err());
        if is_empty {
            return Vec::new();
        }
        // The group may consist of zombies. Only Linux can tell.
        if cfg!(target_os = "linux") {
            process::in_group(self.pid)
        } else {
            vec![self.pid]
        }
    }

    /// Kill the script and the processes that it has left, and return their descriptions.
    fn end(&self) -> Vec<String> {
        let group = self.group();
        let outsiders = match self.children {
            Children::End => self.outsiders(&group),
            // A server that has left the group is the purpose of the call.
            Children::Leave => Vec::new(),
        };
        let left = group.iter().chain(&outsiders);
        let left = left.map(|pid| match process::name(*pid) {
            Some(name) => format!("{name} (pid {pid})"),
            None => format!("pid {pid}"),
        });
        let left = left.collect();
        process::signal_group(self.pid, Signal::KILL);
        for pid in outsiders {
            process::signal(pid, Signal::KILL);
        }
        left
    }

    /// Return the processes outside of its group that hold its output open.
    fn outsiders(&self, group: &[u32]) -> Vec<u32> {
        let streams = [&self.stdout, &self.stderr].into_iter();
        let open = streams.filter_map(|stream| rustix::fs::fstat(stream.fd.as_ref()?).ok());
        let pipes: Vec<_> = open.map(|stat| stat.st_ino).collect();
        let mut holders = process::holders(&pipes);
        holders.retain(|pid| !group.contains(pid));
        holders
    }
}

impl Drop for RunningScript<'_> {
    fn drop(&mut self) {
        if !self.is_closed {
            self.end();
        }
        if self.exit_status.is_none() {
            let _ = self.child.wait();
        }
    }
}

/// Reject a path that is not an executable file, because opening a named pipe could block. Reject a
/// text file without an interpreter line too: the system would run it with a shell.
fn check_executable(script: &Path) -> std::io::Result<()> {
    let about = std::fs::metadata(script)?;
    if !about.is_file() || about.permissions().mode() & 0o111 == 0 {
        return Err(Errno::ACCESS.into());
    }
    let mut head = Vec::new();
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        // A named pipe may have replaced the file since.
        .custom_flags(flags)
        .open(script);
    let read = file.and_then(|file| file.take(256).read_to_end(&mut head));
    // A file that cannot be read may still be executable.
    if read.is_ok() && !head.starts_with(b"#!") && !head.contains(&0) {
        return Err(Errno::NOEXEC.into());
    }
    Ok(())
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Return a descriptor that becomes readable when the process exits.
#[cfg(target_os = "linux")]
fn exit_fd(pid: u32) -> Option<OwnedFd> {
    let flags = rustix::process::PidfdFlags::empty();
    rustix::process::pidfd_open(pid_of(pid)?, flags).ok()
}

#[cfg(not(target_os = "linux"))]
fn exit_fd(_: u32) -> Option<OwnedFd> {
    None
}

/// Describe how a process ended.
pub(crate) fn describe_exit(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
