//! One headless agent process on its own terminal. Starts it, writes its prompt, and ends it with
//! its children. Never interprets its output.

use crate::poll::{self, TerminalRead, read_terminal};
use crate::pty::child;
use posthaste_core::AgentName;
use posthaste_core::harness::Manifest;
use posthaste_store::Home;
use posthaste_store::live::process;
use posthaste_store::live::process_notes::ProcessNote;
use posthaste_store::report::{Report, Result};
use rustix::io::Errno;
use rustix::process::Signal;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::time::Duration;

/// Placeholder for the prompt in a command.
pub(crate) const PROMPT_PLACEHOLDER: &str = "{prompt}";
/// Maximum length of an argument. Linux allows 128 KiB including the final NUL.
pub(super) const MAX_ARGUMENT_BYTES: usize = (128 << 10) - 1;
/// How long the agent may take to exit before it is killed. Shorter than the session's limit for
/// the runner.
const EXIT_GRACE: Duration = Duration::from_secs(3);
/// Maximum number of buffered key bytes. If the buffer is full, further keys wait in the session's
/// terminal.
const KEY_BUFFER_BYTES: usize = 4 << 10;

/// The arguments of [`Agent::start`].
#[derive(Debug)]
pub(super) struct AgentStart<'a> {
    pub(super) home: &'a Home,
    pub(super) name: &'a AgentName,
    pub(super) harness: &'a Manifest,
    pub(super) program: &'a str,
    /// Without [`PROMPT_PLACEHOLDER`], the prompt is written to standard input.
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
    /// Start time in the kernel; with the pid, it identifies the process.
    started_at: u64,
    /// The rest of the prompt; `None` once it is written.
    prompt: Option<PromptWriter>,
    keys: Vec<u8>,
    /// The file that names this process, so that the next session can end it if we are killed.
    _note: ProcessNote,
}

/// A prompt that is being written to the agent's standard input.
#[derive(Debug)]
struct PromptWriter {
    pipe: OwnedFd,
    rest: Vec<u8>,
}

impl Agent {
    pub(super) fn start(start: &AgentStart<'_>, prompt: &str) -> Result<Self> {
        let is_argument = start.args.iter().any(|arg| arg == PROMPT_PLACEHOLDER);
        if is_argument && prompt.len() > MAX_ARGUMENT_BYTES {
            return Err(Report::usage(format!(
                "the prompt has {} bytes; an argument can have at most {MAX_ARGUMENT_BYTES}",
                prompt.len()
            ))
            .hint("a command without {prompt} gets the prompt on its standard input"));
        }
        let mut command = Command::new(start.program);
        let word = |arg: &String| match arg.as_str() {
            // An argument cannot contain NUL.
            PROMPT_PLACEHOLDER => prompt.replace('\0', "\u{2400}"),
            other => other.to_owned(),
        };
        command
            .args(start.args.iter().map(word))
            .current_dir(start.cwd);
        command.envs(start.env.iter().map(|(name, value)| (name, value)));
        let (input, prompt) = match is_argument {
            true => (None, None),
            false => {
                let (read, write) = std::io::pipe().map_err(|error| cannot_start(&error))?;
                let pipe = OwnedFd::from(write);
                set_nonblocking(&pipe)?;
                let rest = prompt.as_bytes().to_vec();
                (Some(read.into()), Some(PromptWriter { pipe, rest }))
            }
        };
        let (cols, rows) = start.size;
        let size = pty_process::Size::new(rows, cols);
        let (terminal, child) = child::spawn_nested(command, input, size)
            .map_err(|error| child::not_started(start.program, start.cwd, start.harness, &error))?;
        set_nonblocking(&terminal)?;
        let pid = child.id();
        let started_at = process::started(pid).unwrap_or_default();
        Ok(Self {
            _note: ProcessNote::write(start.home, start.name, pid, started_at)?,
            terminal,
            child,
            pid,
            started_at,
            prompt,
            keys: Vec::new(),
        })
    }

    pub(super) fn terminal(&self) -> BorrowedFd<'_> {
        self.terminal.as_fd()
    }

    /// The pipe for the prompt, until the prompt is written completely.
    pub(super) fn prompt_pipe(&self) -> Option<BorrowedFd<'_>> {
        self.prompt.as_ref().map(|prompt| prompt.pipe.as_fd())
    }

    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    pub(super) fn free_key_bytes(&self) -> usize {
        KEY_BUFFER_BYTES.saturating_sub(self.keys.len())
    }

    pub(super) fn send_keys(&mut self, keys: &[u8]) {
        self.keys.extend_from_slice(keys);
        self.flush_keys();
    }

    pub(super) fn flush_keys(&mut self) {
        while !self.keys.is_empty() {
            match rustix::io::write(&self.terminal, &self.keys) {
                Ok(count) => drop(self.keys.drain(..count)),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => self.keys.clear(),
            }
        }
    }

    /// Write more of the prompt. Return whether this wrote the last part. Then, and after an error,
    /// standard input is closed.
    pub(super) fn write_prompt(&mut self) -> bool {
        let Some(prompt) = &mut self.prompt else {
            return false;
        };
        while !prompt.rest.is_empty() {
            match rustix::io::write(&prompt.pipe, &prompt.rest) {
                Ok(count) => drop(prompt.rest.drain(..count)),
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

    pub(super) fn read(&self, buffer: &mut [u8]) -> TerminalRead {
        read_terminal(&self.terminal, buffer)
    }

    pub(super) fn resize(&self, (cols, rows): (u16, u16)) {
        let _ = poll::resize_terminal(&self.terminal, cols, rows);
    }

    /// The exit status, once the agent has exited.
    pub(super) fn exit_status(&mut self) -> Option<std::io::Result<ExitStatus>> {
        self.child.try_wait().transpose()
    }

    /// End the agent and its children: ask first, kill after [`EXIT_GRACE`].
    pub(super) fn end(&mut self) {
        process::end(Some(EXIT_GRACE), || {
            // Drain its output, so that it does not block on a full terminal.
            let mut output = [0; 4 << 10];
            while matches!(self.read(&mut output), TerminalRead::Bytes(_)) {}
            let is_running = matches!(self.child.try_wait(), Ok(None));
            match process::left_of(self.pid, self.started_at) {
                // Some systems cannot list the processes of a session.
                left if left.is_empty() && is_running => vec![self.pid],
                left => left,
            }
        });
    }
}

impl Drop for Agent {
    /// Send SIGHUP to the processes that the agent has left.
    fn drop(&mut self) {
        process::signal_all(self.pid, self.started_at, Signal::HUP);
    }
}

fn set_nonblocking(fd: &OwnedFd) -> Result<()> {
    rustix::io::ioctl_fionbio(fd, true).map_err(|error| cannot_start(&error.into()))
}

fn cannot_start(error: &std::io::Error) -> Report {
    Report::storage(format!("cannot start the agent: {error}"))
}
