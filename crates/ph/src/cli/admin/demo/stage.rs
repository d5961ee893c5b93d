//! The demo's commands: each run for real, shown with its output. Waits for what happens, and for
//! nothing else; every wait ends where somebody wants the demo to end.

use crate::cli::help;
use crate::config::SETTINGS;
use crate::context::Said;
use crate::output::Output;
use anstyle::AnsiColor;
use posthaste_client::session::client::{Client, PATIENT};
use posthaste_core::receipt::End;
use posthaste_core::{AgentName, IdPrefix, Letter};
use posthaste_store::bell::Ear;
use posthaste_store::report::{Report, Result};
use posthaste_store::times;
use posthaste_store::{Journal, Listing, Patience};
use posthaste_wire::Activity;
use posthaste_wire::method::Session;
use std::fmt::Display;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How long the agents may take for their part.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often it is looked whether somebody wants this to end. What an agent does rings no bell,
/// and is asked for as often.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How wide what is said is.
const WIDTH: usize = 78;

pub(super) struct Stage<'a> {
    out: Output,
    ph: PathBuf,
    home: &'a Path,
    /// The signal that asked for an end; zero before one does.
    asked_to_end: Arc<AtomicUsize>,
}

impl<'a> Stage<'a> {
    pub(super) fn new(said: &Said, home: &'a Path, asked_to_end: Arc<AtomicUsize>) -> Result<Self> {
        let ph = std::env::current_exe()
            .map_err(|error| Report::storage(format!("cannot find ph itself: {error}")))?;
        Ok(Self {
            out: Output::new(help::color(said)),
            ph,
            home,
            asked_to_end,
        })
    }

    pub(super) fn end(&mut self) -> Result<()> {
        self.out.flush()
    }

    /// Says what is to be seen next.
    pub(super) fn say(&mut self, text: &str) -> Result<()> {
        let style = AnsiColor::Green.on_default().bold();
        self.out.line("")?;
        for line in wrapped(text) {
            self.out.line(format!("{style}# {line}{style:#}"))?;
        }
        self.out.flush()
    }

    /// Puts a file into the home and shows it.
    pub(super) fn file(&mut self, name: &str, text: &str) -> Result<()> {
        let path = self.home.join(name);
        write(&path, text)?;
        self.prompt(&format!("cat {}", path.display()))?;
        self.out.text(text)
    }

    /// Starts an agent in the background.
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

    /// Runs `ph` for real, shows the command and what it printed, and gives back what it printed
    /// first, an id in short.
    pub(super) fn ph(&mut self, args: &[&str]) -> Result<String> {
        self.go_on()?;
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

    /// Runs `ph` without a word.
    pub(super) fn quietly(&self, args: &[&str]) {
        let _ = self.command(args).output();
    }

    /// Waits until an agent has marked a message as read.
    pub(super) fn until_read(&self, id: &str) -> Result<()> {
        self.until_letter(id, |letter| letter.standing.read)
    }

    /// Waits until an agent has archived a message.
    pub(super) fn until_ended(&self, id: &str) -> Result<()> {
        self.until_letter(id, |letter| letter.standing.end == Some(End::Archived))
    }

    fn until_letter(&self, id: &str, is_so: impl Fn(&Letter) -> bool) -> Result<()> {
        let id = IdPrefix::parse(id).map_err(Report::storage)?;
        self.until(|journal| {
            let letter = journal.find(&id)?;
            Ok(is_so(&letter).then_some(()))
        })
    }

    /// Waits for the answer to the person, and gives back its id.
    pub(super) fn until_answered(&self) -> Result<String> {
        self.until(|journal| {
            let unread = journal.inbox(&AgentName::human(), Listing::Unread, times::now())?;
            Ok(unread.first().map(|letter| letter.message.id.id8()))
        })
    }

    /// Waits until an agent asks something.
    pub(super) fn until_blocked(&self, name: &str) -> Result<()> {
        let name = AgentName::parse(name).map_err(Report::storage)?;
        self.until(|journal| {
            let mut client = Client::of(journal.home(), &name);
            let session = client.as_mut().map(|c| c.call(&Session {}, PATIENT));
            let is_so = |session: posthaste_wire::Session| session.activity == Activity::Blocked;
            let is_blocked = session.is_some_and(|session| session.is_ok_and(is_so));
            Ok(is_blocked.then_some(()))
        })
    }

    fn until<T>(&self, ask: impl Fn(&mut Journal) -> Result<Option<T>>) -> Result<T> {
        let deadline = Instant::now() + PATIENCE;
        let mut journal = Journal::open(
            posthaste_store::home::find::open(self.home)?,
            Patience::DEFAULT,
        )?;
        let ear = Ear::on(journal.home(), None)?;
        loop {
            if let Some(found) = ask(&mut journal)? {
                return Ok(found);
            }
            if Instant::now() > deadline {
                return Err(Report::storage("the demo's agents did not answer in time"));
            }
            self.go_on()?;
            ear.wait(LOOK_AGAIN);
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
            // The agents call it by its name; and their sockets are to be found in one place.
            .env("PATH", with_ph_first(&self.ph))
            .env_remove("XDG_RUNTIME_DIR")
            // The user's own settings are none of the demo's.
            .env("XDG_CONFIG_HOME", self.home)
            .env_remove("PH_AGENT")
            // What is typed at the terminal is for us: a command that is cut off could leave
            // something behind.
            .process_group(0)
            .stdin(Stdio::null());
        for setting in &SETTINGS {
            command.env_remove(setting.env);
        }
        command
    }

    /// Fails where somebody wants this to end.
    fn go_on(&self) -> Result<()> {
        match self.asked_to_end.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => Err(Report::refused(format!("ended by signal {signal}"))),
        }
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    let cannot =
        |error: &dyn Display| Report::storage(format!("cannot write {}: {error}", path.display()));
    if let Some(dir) = path.parent() {
        // What says how programs are started is believed where it is private.
        let mut private = std::fs::DirBuilder::new();
        let made = private.recursive(true).mode(0o700).create(dir);
        made.map_err(|error| cannot(&error))?;
    }
    std::fs::write(path, text).map_err(|error| cannot(&error))
}

/// The directories to look for commands in, with the one that holds `ph` first.
fn with_ph_first(ph: &Path) -> std::ffi::OsString {
    let before = std::env::var_os("PATH").unwrap_or_default();
    let dirs = ph.parent().map(Path::to_owned).into_iter();
    std::env::join_paths(dirs.chain(std::env::split_paths(&before))).unwrap_or(before)
}

/// A word as one would type it in a shell.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '/' | ',');
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A paragraph in lines, broken between words.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() + 2 <= WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}
