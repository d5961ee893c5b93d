//! Starts a session, from the process of the command that asks for it.
//!
//! A session is a separate process. It reads one request from standard input, and reports once on
//! standard output whether it runs. After that, it is reached only by its socket.

use crate::harness::{Catalogue, StatusRows, installed};
use crate::host::launch_files::variable;
use posthaste_core::harness::Manifest;
use posthaste_core::{Limits, text};
use posthaste_provider::ScriptSettings;
use posthaste_store::live::process::is_program;
use posthaste_store::live::{Launch, SessionDir, SessionRecord};
use posthaste_store::report::{Report, Result};
use posthaste_store::{Home, Patience};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// First argument of a `ph` process that is a session.
pub const SESSION_ARGUMENT: &str = "__session";

/// The user's settings for a session.
#[derive(Debug)]
pub struct SessionSettings {
    pub patience: Patience,
    pub limits: Limits,
    /// How long a session continues after its home is gone.
    pub without_home: Duration,
    /// The script that keeps the mail, if the journal does not keep it.
    pub script: Option<ScriptSettings>,
    /// Number of screen rows of the user's status line, by harness.
    pub status_rows: StatusRows,
    /// Whether 'ph hooks install' has added hooks to the agent's own settings.
    pub has_installed_hooks: bool,
}

/// Request that a session reads from standard input.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct StartRequest {
    pub(crate) home: PathBuf,
    pub(crate) patience: Duration,
    pub(crate) limits: Limits,
    pub(crate) without_home: Duration,
    #[serde(default)]
    pub(crate) script: Option<ScriptSettings>,
    pub(crate) launch: Launch,
    pub(crate) harness: Manifest,
    pub(crate) has_installed_hooks: bool,
    pub(crate) audience: Audience,
    pub(crate) resumption: Resumption,
}

/// When to resume the agent's last conversation. Only a conversation of the same harness in the
/// same directory is resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resumption {
    /// Resume the last conversation, if one is on record.
    Always,
    /// Resume only if the last session crashed.
    AfterCrash,
    /// Start a new conversation.
    Never,
}

/// Whether a viewer will attach to a session as soon as it has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Audience {
    /// The session waits briefly for the viewer, even if its program has already ended.
    Expected,
    None,
}

/// Report of a session about its start.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum StartReply {
    Runs {
        record: Box<SessionRecord>,
        /// Note for the user about the previous session and its conversation.
        note: Option<String>,
        /// Whether the program was told to resume a conversation.
        is_resumed: bool,
    },
    Failed(Report),
}

/// A session that runs.
#[derive(Debug)]
pub struct StartedSession {
    pub record: SessionRecord,
    pub note: Option<String>,
    pub is_resumed: bool,
}

/// Check that the directory and the program of a launch exist.
pub fn check(launch: &Launch) -> Result<()> {
    if !launch.cwd.is_dir() {
        return Err(Report::refused(format!(
            "{} is not a directory",
            launch.cwd.display()
        )));
    }
    let program = launch.command.first().map_or("", String::as_str);
    check_program(program, &launch.cwd, &launch.env)
}

/// Check that a program exists for a command with this directory and these variables.
pub(crate) fn check_program(program: &str, cwd: &Path, env: &[(String, String)]) -> Result<()> {
    // If PATH is not set, the system uses a default that is not known here.
    let is_searched = program.contains('/') || variable(env, "PATH").is_some();
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
    installed::on_path(program, &variable(env, "PATH")?, cwd)
}

/// Check that a path is UTF-8: the session and its program receive it as text.
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

/// Start a session, and wait until its program runs.
pub fn start(
    home: &Home,
    settings: SessionSettings,
    launch: Launch,
    audience: Audience,
    resumption: Resumption,
) -> Result<StartedSession> {
    check_paths(home, &launch)?;
    // The runner of a loop starts the agent. The session's own program is the runner.
    let harness = match launch.is_loop() {
        true => Manifest::generic(),
        false => Catalogue::load(home, &settings.status_rows)?.take(&launch.harness)?,
    };
    home.prepare()?;
    let session_dir = SessionDir::of(home, &launch.name);
    session_dir.prepare()?;
    let request = StartRequest {
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
    let mut session = spawn(&session_dir)?;
    match send(&mut session, &request)? {
        Some(StartReply::Runs {
            record,
            note,
            is_resumed,
        }) => Ok(StartedSession {
            record: *record,
            note,
            is_resumed,
        }),
        Some(StartReply::Failed(report)) => {
            let _ = session.wait();
            Err(report)
        }
        None => {
            let _ = session.wait();
            let log = session_dir.log_file();
            Err(
                Report::storage("the session ended before its program started")
                    .hint(format!("see the reason in its log: {}", log.display())),
            )
        }
    }
}

/// Start the session's process, which waits for a request.
fn spawn(session_dir: &SessionDir) -> Result<Child> {
    let log = session_dir.log()?;
    let ph = std::env::current_exe().map_err(cannot_start)?;
    Command::new(ph)
        .arg(SESSION_ARGUMENT)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .map_err(cannot_start)
}

/// Send the request to the session's process. Return its reply, if it sends one.
fn send(session: &mut Child, request: &StartRequest) -> Result<Option<StartReply>> {
    let json = serde_json::to_vec(request).map_err(cannot_start)?;
    if let Some(mut stdin) = session.stdin.take() {
        stdin.write_all(&json).map_err(cannot_start)?;
    }
    let mut line = String::new();
    if let Some(stdout) = session.stdout.take() {
        let mut stdout = BufReader::new(stdout);
        stdout.read_line(&mut line).map_err(cannot_start)?;
    }
    Ok(serde_json::from_str(&line).ok())
}

fn cannot_start(error: impl std::fmt::Display) -> Report {
    Report::storage(format!("cannot start a session: {error}"))
}
