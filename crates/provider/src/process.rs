//! One call of a script, from its start to its last byte: within its time and its bounds, and
//! with nothing left when this answers of its process group, nor of what holds its output open.
//!
//! One thread waits for all of it: a script that reads nothing, floods its output or closes it and
//! lives on is no special case. Knows nothing of mail.

use super::pipes::{Input, Keeps, Stream};
use super::recursion_guard::ASKING;
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

/// How much a script may say; more is a mistake, or malice.
pub(crate) const MOST: usize = 64 << 20;
/// How much of its complaints is kept, from the end.
const COMPLAINTS: usize = 16 << 10;
/// How long any call may take, whatever was said.
const LONGEST: Duration = Duration::from_secs(24 * 3_600);
/// How often it is looked whether it has ended, where the kernel does not tell.
const LOOK: Duration = Duration::from_millis(10);
/// For how long a script is tried again that somebody is just writing.
const BUSY: Duration = Duration::from_secs(1);
/// For how long what a script has started may go on after it: what is just ending is not left.
const GRACE: Duration = Duration::from_millis(100);

/// What is done to a command before it is started, so that the script ends with this process.
pub type Prepare = fn(&mut Command);

#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) script: &'a Path,
    pub(crate) op: &'a str,
    pub(crate) arg: Option<&'a OsStr>,
    pub(crate) stdin: &'a [u8],
    pub(crate) timeout: Duration,
    pub(crate) prepare: Prepare,
    pub(crate) children: Children,
    pub(crate) place: Option<&'a Place>,
    /// The homes that ask, for a script that would ask one of them.
    pub(crate) asking: Option<&'a str>,
    /// Readable as soon as nobody wants the answer any more.
    pub(crate) stop: Option<BorrowedFd<'a>>,
}

/// What is thought of processes that a script leaves running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Children {
    /// They are ended, and the call has failed.
    End,
    /// It was called to start something.
    Leave,
}

/// Where a script runs, if not here.
#[derive(Debug)]
pub struct Place {
    pub dir: PathBuf,
    pub env: Vec<(&'static str, OsString)>,
}

/// What a script said before it ended.
#[derive(Debug)]
pub(crate) struct Said {
    pub(crate) status: ExitStatus,
    /// Whether it could have read all of its input; what it does with it, nobody sees.
    pub(crate) is_told_all: bool,
    /// What it has left running, where that was what it was called for.
    pub(crate) left: Option<Left>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
}

/// A process group that a script has left on purpose.
#[derive(Debug)]
pub(crate) struct Left {
    group: u32,
    members: Vec<u32>,
}

impl Left {
    /// Ends what is still there of it.
    pub(crate) fn end(&self) {
        let group = process::in_group(self.group);
        // Else its number may have become another's.
        if group.iter().any(|pid| self.members.contains(pid)) {
            process::signal_group(self.group, Signal::KILL);
        }
    }
}

/// Why it has no answer.
#[derive(Debug)]
pub(crate) enum Cut {
    NotStarted(std::io::Error),
    /// It took too long, and was ended.
    TooLong {
        stderr: Vec<u8>,
    },
    /// It said more than [`MOST`], and was ended.
    TooMuch {
        stderr: Vec<u8>,
    },
    /// It ended and left others running, which were ended: they may have had a part in its answer.
    Left {
        status: ExitStatus,
        left: Vec<String>,
        stderr: Vec<u8>,
    },
    /// Nobody wants the answer any more.
    Stopped,
    Io(std::io::Error),
}

impl From<std::io::Error> for Cut {
    fn from(error: std::io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<Errno> for Cut {
    fn from(error: Errno) -> Self {
        Self::Io(error.into())
    }
}

impl Call<'_> {
    pub(crate) fn run(&self) -> Result<Said, Cut> {
        let mut until = Instant::now() + self.timeout.min(LONGEST);
        let mut running = Running::start(self)?;
        loop {
            let is_stopped = running.wait(until, self.stop)?;
            if is_stopped {
                return Err(Cut::Stopped);
            }
            running.stdin.give();
            running.take()?;
            if running.ended_as.is_none() && running.has_ended()? {
                running.bury()?;
                until = Instant::now() + GRACE;
                // What it has written itself is in the pipes by now.
                running.take()?;
            }
            if running.stdout.bytes.len() > MOST {
                let stderr = running.complaints();
                return Err(Cut::TooMuch { stderr });
            }
            let is_late = Instant::now() >= until;
            match running.ended_as {
                Some(status)
                    if is_late || self.children == Children::Leave || running.is_alone() =>
                {
                    return running.close(status);
                }
                None if is_late => {
                    let stderr = running.complaints();
                    return Err(Cut::TooLong { stderr });
                }
                Some(_) | None => {}
            }
        }
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
            // Its own, so that all of it can be ended at once.
            .process_group(0);
        if let Some(place) = self.place {
            command.current_dir(&place.dir);
            command.envs(place.env.iter().map(|(name, value)| (name, value)));
        }
        if let Some(asking) = self.asking {
            command.env(ASKING, asking);
        }
        (self.prepare)(&mut command);
        Ok(command)
    }
}

/// A script that runs. Whatever becomes of us, it and what it has left are ended.
struct Running<'a> {
    child: Child,
    pid: u32,
    children: Children,
    /// Readable when it has ended; none where the kernel does not tell, or it was buried.
    ended: Option<OwnedFd>,
    /// How, once it is buried.
    ended_as: Option<ExitStatus>,
    /// Whether it was seen to what it has left.
    is_closed: bool,
    stdin: Input<'a>,
    stdout: Stream,
    stderr: Stream,
}

impl<'a> Running<'a> {
    fn start(call: &Call<'a>) -> Result<Self, Cut> {
        refuse_shell(call.script).map_err(Cut::NotStarted)?;
        let (stdin, reader) = Input::new(call.stdin)?;
        let give_up = Instant::now() + BUSY;
        let mut child = loop {
            match call.command(reader.as_ref())?.spawn() {
                Ok(child) => break child,
                Err(error)
                    if error.kind() == ErrorKind::ExecutableFileBusy
                        && Instant::now() < give_up =>
                {
                    std::thread::sleep(LOOK);
                }
                Err(error) => return Err(Cut::NotStarted(error)),
            }
        };
        // The script's is the only one now: where it is closed, nobody reads.
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
            ended: end_of(pid),
            ended_as: None,
            is_closed: false,
            stdin,
            // One more, to tell that it is too much.
            stdout: Stream::new(stdout, MOST + 1, Keeps::Beginning),
            stderr: Stream::new(stderr, COMPLAINTS, Keeps::End),
        };
        let fds = [
            running.stdout.from.as_ref().map(AsFd::as_fd),
            running.stderr.from.as_ref().map(AsFd::as_fd),
        ];
        for fd in fds.into_iter().flatten() {
            let flags = rustix::fs::fcntl_getfl(fd)?;
            rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?;
        }
        Ok(running)
    }

    /// Waits until there is something to do. True where nobody waits for the answer any more.
    fn wait(&self, deadline: Instant, stop: Option<BorrowedFd<'_>>) -> Result<bool, Cut> {
        let mut fds = Vec::with_capacity(5);
        // First, so that it is found again.
        fds.extend(stop.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)));
        fds.extend(
            self.stdin
                .to
                .as_ref()
                .map(|fd| PollFd::new(fd, PollFlags::OUT)),
        );
        for stream in [&self.stdout, &self.stderr] {
            fds.extend(
                stream
                    .from
                    .as_ref()
                    .map(|fd| PollFd::new(fd, PollFlags::IN)),
            );
        }
        fds.extend(self.ended.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN)));
        let mut left = deadline.saturating_duration_since(Instant::now());
        if self.ended.is_none() {
            left = left.min(LOOK);
        }
        let left = Timespec::try_from(left).unwrap_or(Timespec {
            tv_sec: 1,
            tv_nsec: 0,
        });
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(stop.is_some() && fds.first().is_some_and(|fd| !fd.revents().is_empty()))
    }

    fn take(&mut self) -> Result<(), Cut> {
        self.stdout.read()?;
        Ok(self.stderr.read()?)
    }

    fn has_ended(&self) -> Result<bool, Cut> {
        let Some(pid) = pid_of(self.pid) else {
            return Ok(true);
        };
        // Left unburied, so that its group's number stays its own.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match rustix::process::waitid(WaitId::Pid(pid), options) {
            Ok(status) => Ok(status.is_some()),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes note of how it ended. Its group keeps its number while there is anybody in it.
    fn bury(&mut self) -> Result<(), Cut> {
        self.ended_as = Some(self.child.wait()?);
        self.ended = None;
        Ok(())
    }

    fn complaints(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.stderr.bytes)
    }

    /// Whether nothing is left of a script that was buried: nobody in its group, and nobody who
    /// could still write in its name.
    fn is_alone(&self) -> bool {
        self.is_silent() && self.group().is_empty()
    }

    /// Whether nobody holds its outputs open.
    fn is_silent(&self) -> bool {
        self.stdout.from.is_none() && self.stderr.from.is_none()
    }

    /// What a script that was buried has said; an error where it has left something.
    fn close(mut self, status: ExitStatus) -> Result<Said, Cut> {
        let mut left = Vec::new();
        if self.children == Children::End && !self.is_alone() {
            left = self.end();
            self.take()?;
            if left.is_empty() && !self.is_silent() {
                left.push("somebody out of sight who holds its output open".to_owned());
            }
        }
        self.is_closed = true;
        let stderr = self.complaints();
        if !left.is_empty() {
            return Err(Cut::Left {
                status,
                left,
                stderr,
            });
        }
        let members = match self.children {
            Children::End => Vec::new(),
            Children::Leave => self.group(),
        };
        Ok(Said {
            status,
            is_told_all: self.stdin.is_told_all(),
            left: (!members.is_empty()).then_some(Left {
                group: self.pid,
                members,
            }),
            stdout: std::mem::take(&mut self.stdout.bytes),
            stderr,
        })
    }

    /// Those of its group that live on.
    fn group(&self) -> Vec<u32> {
        let group = pid_of(self.pid);
        let is_empty =
            group.is_none_or(|group| rustix::process::test_kill_process_group(group).is_err());
        if is_empty {
            return Vec::new();
        }
        // Some may be dead and unburied, which is nobody's fault, as far as that can be told.
        if cfg!(target_os = "linux") {
            process::in_group(self.pid)
        } else {
            vec![self.pid]
        }
    }

    /// Ends it and what it has left, and tells what that was.
    fn end(&self) -> Vec<String> {
        let group = self.group();
        let away = match self.children {
            Children::End => self.away(&group),
            // What has made itself independent is what it was called for.
            Children::Leave => Vec::new(),
        };
        let left = group.iter().chain(&away);
        let left = left.map(|pid| match process::name(*pid) {
            Some(name) => format!("{name} (pid {pid})"),
            None => format!("pid {pid}"),
        });
        let left = left.collect();
        process::signal_group(self.pid, Signal::KILL);
        for pid in away {
            process::signal(pid, Signal::KILL);
        }
        left
    }

    /// Those who have left its group and can still write in its name.
    fn away(&self, group: &[u32]) -> Vec<u32> {
        let streams = [&self.stdout, &self.stderr].into_iter();
        let open = streams.filter_map(|stream| rustix::fs::fstat(stream.from.as_ref()?).ok());
        let pipes: Vec<_> = open.map(|stat| stat.st_ino).collect();
        let mut holders = process::holders(&pipes);
        holders.retain(|pid| !group.contains(pid));
        holders
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        if !self.is_closed {
            self.end();
        }
        if self.ended_as.is_none() {
            let _ = self.child.wait();
        }
    }
}

/// Refuses what is no program, before anything waits for it: a pipe is open only when somebody
/// writes to it. And the system runs a text that names no interpreter with a shell. We do not: it
/// is a mistake, and nobody has asked for a shell.
fn refuse_shell(script: &Path) -> std::io::Result<()> {
    let about = std::fs::metadata(script)?;
    if !about.is_file() || about.permissions().mode() & 0o111 == 0 {
        return Err(Errno::ACCESS.into());
    }
    let mut head = Vec::new();
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new()
        .read(true)
        // Another may have taken its place since.
        .custom_flags(flags)
        .open(script);
    let read = file.and_then(|file| file.take(256).read_to_end(&mut head));
    // What cannot be read may be run all the same; what cannot be run says so itself.
    if read.is_ok() && !head.starts_with(b"#!") && !head.contains(&0) {
        return Err(Errno::NOEXEC.into());
    }
    Ok(())
}

fn pid_of(pid: u32) -> Option<Pid> {
    i32::try_from(pid).ok().and_then(Pid::from_raw)
}

/// Readable when the process has ended.
#[cfg(target_os = "linux")]
fn end_of(pid: u32) -> Option<OwnedFd> {
    let flags = rustix::process::PidfdFlags::empty();
    rustix::process::pidfd_open(pid_of(pid)?, flags).ok()
}

#[cfg(not(target_os = "linux"))]
fn end_of(_: u32) -> Option<OwnedFd> {
    None
}

/// How a process ended, in words.
pub(crate) fn how(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}
