//! Runs the demo's commands and shows each with its output. Waits for events, never for a fixed
//! time; a signal ends every wait.

use crate::cli::help;
use crate::cli::prelude::*;
use crate::config::SETTINGS;
use crate::hook_install::quoted;
use crate::output::Output;
use anstyle::AnsiColor;
use posthaste_core::receipt::End;
use posthaste_core::{IdPrefix, MessageState};
use posthaste_store::bell::BellListener;
use posthaste_store::times;
use posthaste_store::{Journal, Listing, Patience};
use std::fmt::Display;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// Timeout for one step of the demo's agents.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);
/// Interval between checks for a signal and for the agents' activity, which rings no bell.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Width of the explanations, in columns.
const TEXT_WIDTH: usize = 78;

pub(super) struct Stage<'a> {
    out: Output,
    ph: PathBuf,
    home: &'a Path,
    /// The signal that asked the demo to end; zero if there was none.
    stop_signal: Arc<AtomicUsize>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(
        options: &GlobalOptions,
        home: &'a Path,
        stop_signal: Arc<AtomicUsize>,
    ) -> Result<Self> {
        let ph = std::env::current_exe()
            .map_err(|error| Report::storage(format!("cannot find ph itself: {error}")))?;
        Ok(Self {
            out: Output::new(help::color(options)),
            ph,
            home,
            stop_signal,
        })
    }

    pub(super) fn end(&mut self) -> Result<()> {
        self.out.flush()
    }

    /// Print an explanation of the next step.
    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        let style = AnsiColor::Green.on_default().bold();
        self.out.line("")?;
        for line in wrapped(text) {
            self.out.line(format!("{style}# {line}{style:#}"))?;
        }
        self.out.flush()
    }

    /// Write a file into the home and print it.
    pub(super) fn file(&mut self, name: &str, text: &str) -> Result<()> {
        let path = self.home.join(name);
        write(&path, text)?;
        self.prompt(&format!("cat {}", path.display()))?;
        self.out.text(text)
    }

    /// Start an agent in the background.
    pub(super) fn agent(&mut self, name: &str, script: &str) -> Result<()> {
        let path = self.home.join(format!("{name}.sh"));
        write(&path, script)?;
        let path = path.to_string_lossy().into_owned();
        let args = [
            "run",
            "--name",
            name,
            "--harness",
            "demo",
            "--detach",
            "--",
            "sh",
            &path,
        ];
        self.ph(&args).map(drop)
    }

    /// Run `ph`, print the command and its output, and return the first eight characters of the
    /// output, which are a message id.
    pub(super) fn ph(&mut self, args: &[&str]) -> Result<String> {
        self.check_signal()?;
        let words: Vec<_> = args.iter().map(|word| quoted(word)).collect();
        self.prompt(&format!("ph {}", words.join(" ")))?;
        let done = self
            .command(args)
            .output()
            .map_err(|error| Report::storage(format!("cannot run ph: {error}")))?;
        let shown = String::from_utf8_lossy(&done.stdout);
        self.out.text(&shown)?;
        self.out.text(String::from_utf8_lossy(&done.stderr))?;
        self.out.flush()?;
        if done.status.success() {
            Ok(shown.chars().take(8).collect())
        } else {
            Err(Report::storage(format!(
                "'ph {}' failed in the demo: {}",
                words.join(" "),
                done.status
            )))
        }
    }

    /// Run `ph` without printing its output.
    pub(super) fn quietly(&self, args: &[&str]) {
        let _ = self.command(args).output();
    }

    /// Wait until an agent has marked a message as read.
    pub(super) fn until_read(&self, id: &str) -> Result<()> {
        self.until_message(id, |state| state.status.read)
    }

    /// Wait until an agent has archived a message.
    pub(super) fn until_ended(&self, id: &str) -> Result<()> {
        self.until_message(id, |state| state.status.end == Some(End::Archived))
    }

    fn until_message(&self, id: &str, is_so: impl Fn(&MessageState) -> bool) -> Result<()> {
        let id = IdPrefix::parse(id).map_err(Report::storage)?;
        self.until(|journal| {
            let state = journal.find(&id)?;
            Ok(is_so(&state).then_some(()))
        })
    }

    /// Wait for the reply to the person, and return its id.
    pub(super) fn until_answered(&self) -> Result<String> {
        self.until(|journal| {
            let unread = journal.inbox(&AgentName::human(), Listing::Unread, times::now())?;
            Ok(unread.first().map(|state| state.message.id.id8()))
        })
    }

    /// Wait until an agent asks something, and return the id of the ask.
    pub(super) fn until_asked(&self, name: &str) -> Result<String> {
        let name = AgentName::parse(name).map_err(Report::storage)?;
        self.until(|journal| {
            let asks = journal.open_asks(Some(&name))?;
            Ok(asks.first().map(|ask| ask.id.id8()))
        })
    }

    fn until<T>(&self, ask: impl Fn(&mut Journal) -> Result<Option<T>>) -> Result<T> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        let mut journal = Journal::open(
            posthaste_store::home::find::open(self.home)?,
            Patience::DEFAULT,
        )?;
        let listener = BellListener::on(journal.home(), None)?;
        loop {
            if let Some(found) = ask(&mut journal)? {
                return Ok(found);
            }
            if Instant::now() > deadline {
                return Err(Report::storage("the demo's agents did not respond in time"));
            }
            self.check_signal()?;
            listener.wait(POLL_INTERVAL);
        }
    }

    fn prompt(&mut self, command: &str) -> Result<()> {
        let style = AnsiColor::Cyan.on_default();
        self.out.line(format!("{style}$ {command}{style:#}"))?;
        self.out.flush()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.ph);
        command
            .args(args)
            .env("PH_HOME", self.home)
            // The agents run `ph` by name, and all sockets must be in the demo's home.
            .env("PATH", with_ph_first(&self.ph))
            .env_remove("XDG_RUNTIME_DIR")
            // The user's settings must not change the demo.
            .env("XDG_CONFIG_HOME", self.home)
            .env_remove("PH_AGENT")
            // Ctrl+C must reach the demo only: an interrupted command could leave files or
            // processes.
            .process_group(0)
            .stdin(Stdio::null());
        for setting in SETTINGS {
            command.env_remove(setting.env);
        }
        command
    }

    /// Return an error if a signal asked the demo to end.
    fn check_signal(&self) -> Result<()> {
        match self.stop_signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Report::refused(format!("ended by signal {signal}"))),
        }
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    let cannot =
        |error: &dyn Display| Report::storage(format!("cannot write {}: {error}", path.display()));
    if let Some(dir) = path.parent() {
        // Manifests are only read from a private directory.
        let mut private = std::fs::DirBuilder::new();
        let made = private.recursive(true).mode(0o700).create(dir);
        made.map_err(|error| cannot(&error))?;
    }
    std::fs::write(path, text).map_err(|error| cannot(&error))
}

/// Return PATH with the directory of `ph` first.
fn with_ph_first(ph: &Path) -> std::ffi::OsString {
    let before = std::env::var_os("PATH").unwrap_or_default();
    let dirs = ph.parent().map(Path::to_owned).into_iter();
    std::env::join_paths(dirs.chain(std::env::split_paths(&before))).unwrap_or(before)
}

/// Break a paragraph into lines between words.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() + 2 <= TEXT_WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
