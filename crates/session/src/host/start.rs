//! Starting a session: the side of whoever asks for it.
//!
//! The session is a process of its own that this one starts and leaves alone. It says once, on
//! its standard output, whether it runs; from then on there is only its socket.

use crate::harness::{Catalogue, StatusRows, installed};
use posthaste_core::harness::Manifest;
use posthaste_core::{Limits, text};
use posthaste_provider::ScriptSettings;
use posthaste_store::live::place::{Launch, Place, Record};
use posthaste_store::live::process::is_program;
use posthaste_store::report::{Report, Result};
use posthaste_store::{Home, Patience};
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// The first argument that makes this program a session instead of a command.
pub const HOST: &str = "__session";

/// What the settings of the person say about a session.
#[derive(Debug)]
pub struct Settings {
    pub patience: Patience,
    pub limits: Limits,
    /// How long a session goes on without its home.
    pub without_home: Duration,
    /// What keeps the mail, where it is not the journal.
    pub script: Option<ScriptSettings>,
    /// How many rows of its screen a person's status line has, by harness.
    pub status_rows: StatusRows,
    /// Whether our hooks are in the agent's own settings.
    pub has_installed_hooks: bool,
}

/// What a session is told on its standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Orders {
    pub(crate) home: PathBuf,
    pub(crate) patience: Duration,
    pub(crate) limits: Limits,
    /// How long it goes on once its home is gone.
    pub(crate) without_home: Duration,
    /// The script that keeps the mail, where one does.
    #[serde(default)]
    pub(crate) script: Option<ScriptSettings>,
    pub(crate) launch: Launch,
    /// What is known of its kind, as of now.
    pub(crate) harness: Manifest,
    /// Whether the program has our hooks in its own settings ('ph hooks install').
    pub(crate) has_installed_hooks: bool,
    pub(crate) audience: Audience,
    pub(crate) resumption: Resumption,
}

/// When to resume the agent's last conversation. Only a conversation of the same harness in the same
/// directory is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resumption {
    /// Resume the last conversation, if one is on record.
    Always,
    /// Resume only if the last session crashed.
    AfterCrash,
    /// Start a new conversation.
    Never,
}

/// Whether somebody is about to look at a session that is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Audience {
    /// It waits a moment for them, also where its program has ended already.
    Expected,
    None,
}

/// What it answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    Runs {
        record: Box<Record>,
        /// What became of the session before it, where there is something to say.
        note: Option<String>,
        /// Whether the program was told to resume a conversation.
        is_resumed: bool,
    },
    Failed(Report),
}

#[derive(Debug)]
pub struct Started {
    pub record: Record,
    pub note: Option<String>,
    pub is_resumed: bool,
}

/// Whether what is to be started can be found, as far as that can be told before it is.
pub fn check(launch: &Launch) -> Result<()> {
    if !launch.cwd.is_dir() {
        return Err(Report::refused(format!(
            "{} is no directory",
            launch.cwd.display()
        )));
    }
    let program = launch.command.first().map_or("", String::as_str);
    check_program(program, &launch.cwd, &launch.env)
}

/// Whether a program is there, for who is started in this directory with these variables.
pub(crate) fn check_program(program: &str, cwd: &Path, env: &[(String, String)]) -> Result<()> {
    // Where no PATH is set, the system has one of its own.
    let is_searched = program.contains('/') || path_of(env).is_some();
    if !is_searched || find_program(program, cwd, env).is_some() {
        return Ok(());
    }
    let shown = text::one_line(program, 80);
    Err(Report::refused(format!("no such command: {shown}")))
}

/// Find a program as the system would for a command that is started in this directory with these
/// variables.
pub(crate) fn find_program(program: &str, cwd: &Path, env: &[(String, String)]) -> Option<PathBuf> {
    if program.contains('/') {
        return Some(cwd.join(program)).filter(|path| is_program(path));
    }
    installed::on_path(program, &path_of(env)?, cwd)
}

fn path_of(env: &[(String, String)]) -> Option<OsString> {
    let given = env.iter().rfind(|(name, _)| name == "PATH");
    match given {
        Some((_, path)) => Some(path.into()),
        None => std::env::var_os("PATH"),
    }
}

/// A session is told its paths as text, and so is its program.
fn check_text(what: &str, path: &Path, hint: &str) -> Result<()> {
    match path.to_str() {
        Some(_) => Ok(()),
        None => Err(Report::usage(format!(
            "the path of {what} is not UTF-8: {}",
            text::visible(&path.to_string_lossy())
        ))
        .hint(hint)),
    }
}

fn check_paths(home: &Home, launch: &Launch) -> Result<()> {
    check_text(
        "the home",
        home.path(),
        "choose another with --home or PH_HOME",
    )?;
    check_text(
        "its directory",
        &launch.cwd,
        "choose another with --cwd, or rename it",
    )?;
    for socket in &launch.sockets {
        check_text("a socket", socket, "choose another path for --socket")?;
    }
    Ok(())
}

pub fn start(
    home: &Home,
    settings: Settings,
    launch: Launch,
    audience: Audience,
    resumption: Resumption,
) -> Result<Started> {
    check_paths(home, &launch)?;
    // A loop's agent is its runner's to start; the session sees the runner alone.
    let harness = match launch.is_loop() {
        true => Manifest::generic(),
        false => Catalogue::load(home, &settings.status_rows)?.take(&launch.harness)?,
    };
    home.prepare()?;
    let place = Place::of(home, &launch.name);
    place.prepare()?;
    let orders = Orders {
        home: home.path().to_owned(),
        patience: settings.patience.0,
        limits: settings.limits,
        without_home: settings.without_home,
        script: settings.script,
        has_installed_hooks: settings.has_installed_hooks,
        launch,
        harness,
        audience,
        resumption,
    };
    let mut host = spawn(&place)?;
    match tell(&mut host, &orders)? {
        Some(Answer::Runs {
            record,
            note,
            is_resumed,
        }) => Ok(Started {
            record: *record,
            note,
            is_resumed,
        }),
        Some(Answer::Failed(report)) => {
            let _ = host.wait();
            Err(report)
        }
        None => {
            let _ = host.wait();
            let log = place.log_file();
            Err(Report::storage("the session ended before it had begun")
                .hint(format!("its log may say why: {}", log.display())))
        }
    }
}

/// The session's process, which waits for its orders.
fn spawn(place: &Place) -> Result<Child> {
    let log = place.log()?;
    let ph = std::env::current_exe().map_err(cannot_start)?;
    Command::new(ph)
        .arg(HOST)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(cannot_start)
}

/// Gives it its orders; what it answers, where it does.
fn tell(host: &mut Child, orders: &Orders) -> Result<Option<Answer>> {
    let told = serde_json::to_vec(orders).map_err(cannot_start)?;
    if let Some(mut stdin) = host.stdin.take() {
        stdin.write_all(&told).map_err(cannot_start)?;
    }
    let mut line = String::new();
    if let Some(stdout) = host.stdout.take() {
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut line).map_err(cannot_start)?;
    }
    Ok(serde_json::from_str(&line).ok())
}

fn cannot_start(error: impl std::fmt::Display) -> Report {
    Report::storage(format!("cannot start a session: {error}"))
}
