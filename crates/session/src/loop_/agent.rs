//! One headless agent on a terminal of its own, within the session's: started, fed its prompt,
//! and ended with all that it has left. Owns the process; never looks at what it writes.

use crate::harness::install_hint;
use crate::pty::child;
use posthaste_core::harness::Manifest;
use posthaste_core::{AgentName, text};
use posthaste_store::Home;
use posthaste_store::live::place::Birth;
use posthaste_store::live::process;
use posthaste_store::report::{Report, Result};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::Signal;
use std::io::ErrorKind;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// What stands for the prompt among the words of a command.
pub(crate) const PROMPT: &str = "{prompt}";
/// The longest argument that a system takes; Linux has 128 KiB with the byte at its end.
pub(super) const LONGEST_ARGUMENT: usize = (128 << 10) - 1;
/// How long an agent that is asked to end may take. A session has a little more patience with us.
const GRACE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(5);
/// How many keys may wait for it. While it is full no more are read, so that they wait in the
/// session's terminal.
const KEYS: usize = 4 << 10;

/// What is to be run.
#[derive(Debug)]
pub(super) struct Call<'a> {
    pub(super) home: &'a Home,
    pub(super) name: &'a AgentName,
    pub(super) harness: &'a Manifest,
    pub(super) program: &'a str,
    /// With [`PROMPT`] where the prompt is to stand; without, it goes to standard input.
    pub(super) args: &'a [String],
    pub(super) env: Vec<(String, String)>,
    pub(super) cwd: &'a Path,
    pub(super) size: (u16, u16),
}

#[derive(Debug)]
pub(super) struct Agent {
    terminal: OwnedFd,
    child: Child,
    pid: u32,
    started: u64,
    /// The prompt, as far as it is not written yet.
    prompt: Option<Feed>,
    keys: Vec<u8>,
    /// Says whose it is, so that the next session finds it where we are killed.
    _birth: Birth,
}

/// A prompt on its way into standard input.
#[derive(Debug)]
struct Feed {
    pipe: OwnedFd,
    rest: Vec<u8>,
}

/// What came from its terminal.
#[derive(Debug)]
pub(super) enum Output {
    Some(usize),
    None,
    /// Nobody has it open any more.
    Closed,
}

impl Agent {
    pub(super) fn start(call: &Call<'_>, prompt: &str) -> Result<Self> {
        let is_argument = call.args.iter().any(|arg| arg == PROMPT);
        if is_argument && prompt.len() > LONGEST_ARGUMENT {
            return Err(Report::usage(format!(
                "the prompt has {} bytes, more than an argument can have",
                prompt.len()
            ))
            .hint("without {prompt} the command gets it on its standard input"));
        }
        let mut command = Command::new(call.program);
        let word = |arg: &String| match arg.as_str() {
            // The end of a string to the system, and to nobody else.
            PROMPT => prompt.replace('\0', "\u{2400}"),
            other => other.to_owned(),
        };
        command
            .args(call.args.iter().map(word))
            .current_dir(call.cwd);
        command.envs(call.env.iter().map(|(name, value)| (name, value)));
        let (input, feed) = match is_argument {
            true => (None, None),
            false => {
                let (read, write) = pipe().map_err(|error| broken(&error))?;
                let rest = prompt.as_bytes().to_vec();
                (Some(read.into()), Some(Feed { pipe: write, rest }))
            }
        };
        let (cols, rows) = call.size;
        let size = pty_process::Size::new(rows, cols);
        let (terminal, child) =
            child::spawn_nested(command, input, size).map_err(|error| not_started(call, &error))?;
        unblocked(&terminal).map_err(|error| broken(&error))?;
        let pid = child.id();
        let started = process::started(pid).unwrap_or_default();
        Ok(Self {
            _birth: Birth::note(call.home, call.name, pid, started)?,
            terminal,
            child,
            pid,
            started,
            prompt: feed,
            keys: Vec::new(),
        })
    }

    pub(super) fn terminal(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }

    /// Where the prompt goes, while some of it waits.
    pub(super) fn feeding(&self) -> Option<BorrowedFd<'_>> {
        self.prompt.as_ref().map(|feed| feed.pipe.as_fd())
    }

    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// How many more keys it takes.
    pub(super) fn room(&self) -> usize {
        KEYS.saturating_sub(self.keys.len())
    }

    pub(super) fn press(&mut self, keys: &[u8]) {
        self.keys.extend_from_slice(keys);
        self.type_on();
    }

    pub(super) fn type_on(&mut self) {
        while !self.keys.is_empty() {
            match rustix::io::write(&self.terminal, &self.keys) {
                Ok(count) => drop(self.keys.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.keys.clear(),
            }
        }
    }

    /// Writes what the agent takes of its prompt. True once all of it is written; then, and where
    /// it wants no more, its standard input is closed.
    pub(super) fn feed(&mut self) -> bool {
        let Some(feed) = &mut self.prompt else {
            return false;
        };
        while !feed.rest.is_empty() {
            match rustix::io::write(&feed.pipe, &feed.rest) {
                Ok(count) => drop(feed.rest.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return false,
                Err(_) => {
                    self.prompt = None;
                    return false;
                }
            }
        }
        self.prompt = None;
        true
    }

    pub(super) fn read(&self, into: &mut [u8]) -> Output {
        match rustix::io::read(&self.terminal, into) {
            Ok(0) | Err(Errno::IO) => Output::Closed,
            Ok(count) => Output::Some(count),
            Err(_) => Output::None,
        }
    }

    pub(super) fn resize(&self, (cols, rows): (u16, u16)) {
        let size = rustix::termios::Winsize {
            ws_row: rows,
            ws_col: cols,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        let _ = rustix::termios::tcsetwinsize(&self.terminal, size);
    }

    /// How it ended, if it has.
    pub(super) fn status(&mut self) -> Option<std::io::Result<ExitStatus>> {
        self.child.try_wait().transpose()
    }

    /// Ends it and all that it has started: asked first, then insisted.
    pub(super) fn end(&mut self) {
        for signal in [Signal::HUP, Signal::TERM, Signal::CONT] {
            process::signal_all(self.pid, self.started, signal);
        }
        let deadline = Instant::now() + GRACE;
        while !self.is_gone() {
            if Instant::now() > deadline {
                process::signal_all(self.pid, self.started, Signal::KILL);
                // The system may know nothing of processes by session.
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            // What it writes meanwhile nobody reads: it must not wait for that.
            let mut last = [0; 4 << 10];
            while matches!(self.read(&mut last), Output::Some(_)) {}
            std::thread::sleep(LOOK);
        }
    }

    fn is_gone(&mut self) -> bool {
        let has_ended = !matches!(self.child.try_wait(), Ok(None));
        has_ended && process::left_of(self.pid, self.started).is_empty()
    }
}

impl Drop for Agent {
    /// Whatever it has left running hears that its window is closed.
    fn drop(&mut self) {
        process::signal_all(self.pid, self.started, Signal::HUP);
    }
}

fn pipe() -> std::io::Result<(OwnedFd, OwnedFd)> {
    let (read, write) = std::io::pipe()?;
    let write = OwnedFd::from(write);
    unblocked(&write)?;
    Ok((read.into(), write))
}

fn unblocked(fd: &OwnedFd) -> std::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(fd)?;
    Ok(rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK)?)
}

fn broken(error: &std::io::Error) -> Report {
    Report::storage(format!("cannot start the agent: {error}"))
}

fn not_started(call: &Call<'_>, error: &pty_process::Error) -> Report {
    let kind = match error {
        pty_process::Error::Io(error) => Some(error.kind()),
        _ => None,
    };
    let shown = text::one_line(call.program, 80);
    match kind {
        Some(ErrorKind::NotFound) if call.cwd.is_dir() => {
            let report = Report::usage(format!("no such command: {shown}"));
            install_hint(report, call.harness, call.program)
        }
        _ => Report::usage(format!("cannot start {shown}: {error}")),
    }
}
