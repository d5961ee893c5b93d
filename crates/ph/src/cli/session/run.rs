//! `ph run`: starts a session and attaches to it; also for `ph build` and `ph restart`.

use crate::attach::AttachOptions;
use crate::cli::prelude::*;
use crate::cli::session::stop::wait_until;
use crate::cli::session::{attach, status};
use crate::hook_install;
use posthaste_client::session::sessions;
use posthaste_session::host::start::{self, Audience, Resumption, StartedSession};
use posthaste_session::socket::listen::check_length;
use posthaste_store::live::{Launch, SessionDir, SessionRecord};
use posthaste_wire::Activity;
use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Run an agent in a terminal that outlives the window
///
/// Starts COMMAND in a new session and attaches to it. Ctrl+\ d detaches and leaves it running; 'ph
/// attach' shows it again. All arguments after COMMAND belong to COMMAND. Mail to the agent's name
/// is delivered to its terminal. If the last session of this name crashed, Claude Code, Codex,
/// OpenCode and Gemini CLI resume its conversation.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ph run claude
  ph run --name coder-1 codex --model gpt-5
  ph run --name bot --detach -- python3 agent.py")]
pub(crate) struct Args {
    /// The agent's name [default: the command's name]
    #[arg(long, short, value_name = "NAME", value_parser = parse_name)]
    name: Option<AgentName>,
    /// Run it in the background
    #[arg(long, short)]
    detach: bool,
    /// Harness; 'ph harness ls' lists them [default: the one for this command, else generic]
    #[arg(long, value_name = "H", add = complete_harnesses())]
    harness: Option<String>,
    /// Start a new conversation, even if the last session of this name crashed
    #[arg(long)]
    fresh: bool,
    #[command(flatten)]
    options: SessionOptions,
    /// The command and its arguments
    #[arg(value_name = "COMMAND", required = true, trailing_var_arg = true, allow_hyphen_values = true, value_hint = clap::ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

/// Options of every verb that starts a session.
#[derive(Debug, clap::Args)]
pub(crate) struct SessionOptions {
    /// Working directory [default: the current one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    /// Environment variable to set; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// Additional socket path for clients; can be repeated
    #[arg(long, value_name = "PATH", value_hint = clap::ValueHint::FilePath)]
    socket: Vec<PathBuf>,
}

/// Absolute paths from the options.
pub(crate) struct Paths {
    /// The current directory of `ph`.
    pub(crate) here: PathBuf,
    /// The working directory of the command.
    pub(crate) cwd: PathBuf,
    pub(crate) sockets: Vec<PathBuf>,
}

impl SessionOptions {
    pub(crate) fn paths(&self) -> Result<Paths> {
        let here = std::env::current_dir().map_err(|error| {
            Report::usage(format!("cannot determine the current directory: {error}"))
        })?;
        let cwd = self
            .cwd
            .as_ref()
            .map_or_else(|| here.clone(), |dir| here.join(dir));
        if !cwd.is_dir() {
            return Err(Report::usage(format!(
                "{} is not a directory",
                cwd.display()
            )));
        }
        let sockets: Vec<_> = self.socket.iter().map(|path| here.join(path)).collect();
        sockets.iter().try_for_each(|path| check_length(path))?;
        Ok(Paths { here, cwd, sockets })
    }
}

/// Timeout for a program to start when it resumes a conversation.
const RESUME_TIMEOUT: Duration = Duration::from_secs(60);
/// Delay before the program is shown to a person while it still resumes.
const SHOW_DELAY: Duration = Duration::from_secs(10);
/// Timeout for a session whose program has ended to give up its name.
const END_TIMEOUT: Duration = Duration::from_secs(10);

/// State of a program that resumes a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Startup {
    Starting,
    Up,
    /// It exited with an error before it was up.
    Failed,
}

/// Size of a session's terminal until a client attaches.
const DEFAULT_SIZE: (u16, u16) = (80, 24);

pub(crate) fn run(context: &mut Context, args: Args) -> Result<Code> {
    let is_detached = args.detach;
    let resumption = match args.fresh {
        true => Resumption::Never,
        false => Resumption::AfterCrash,
    };
    let launch = launch(context, args)?;
    start_here(context, launch, is_detached, resumption)
}

/// Start a session, and attach to it unless it is detached or this is not a terminal.
pub(crate) fn start_here(
    context: &mut Context,
    launch: Launch,
    is_detached: bool,
    resumption: Resumption,
) -> Result<Code> {
    let is_shown = !is_detached && is_on_terminal();
    if !is_detached && !is_shown && !context.json {
        note("this is not a terminal, so the session runs in the background");
    }
    start_and_show(context, launch, is_shown, resumption)
}

/// Start a session, then attach to it or print its name.
pub(crate) fn start_and_show(
    context: &mut Context,
    launch: Launch,
    is_shown: bool,
    resumption: Resumption,
) -> Result<Code> {
    let name = launch.name.clone();
    let audience = if is_shown {
        Audience::Expected
    } else {
        Audience::None
    };
    let started_at = Instant::now();
    let mut started = start(context, launch.clone(), audience, resumption)?;
    let startup = match (started.is_resumed, is_shown) {
        (false, _) => Startup::Up,
        (true, true) => await_startup(context, &started.record, SHOW_DELAY)?,
        (true, false) => await_startup(context, &started.record, RESUME_TIMEOUT)?,
    };
    if startup == Startup::Failed {
        started = start_anew(context, launch.clone(), audience)?;
    }
    if is_shown {
        let code = show(context, &started.record)?;
        // The program may fail slowly, while its terminal is shown.
        let is_slow = startup == Startup::Starting && started_at.elapsed() < RESUME_TIMEOUT;
        if is_slow && await_startup(context, &started.record, Duration::ZERO)? == Startup::Failed {
            started = start_anew(context, launch, audience)?;
            return show(context, &started.record);
        }
        return Ok(code);
    }
    if context.json {
        // The session was started, even if it has ended already.
        return status::print(context, &name);
    }
    context
        .out
        .line(format!("{name} is running; 'ph attach {name}' shows it"))?;
    Ok(Code::Ok)
}

/// Attach this terminal to the session of a record.
fn show(context: &mut Context, record: &SessionRecord) -> Result<Code> {
    let options = AttachOptions {
        read_only: false,
        take: false,
        name: record.launch.name.to_string(),
    };
    attach::show(context, &record.socket, options)
}

/// Start a new conversation in place of one that could not be resumed.
fn start_anew(context: &Context, launch: Launch, audience: Audience) -> Result<StartedSession> {
    note(
        "cannot resume the conversation: the program failed at startup; starting a new conversation",
    );
    await_end(context, &launch.name)?;
    start(context, launch, audience, Resumption::Never)
}

/// Wait until a program that resumes a conversation has started or failed, or until the timeout.
fn await_startup(context: &Context, record: &SessionRecord, timeout: Duration) -> Result<Startup> {
    let deadline = Instant::now() + timeout;
    let patience = context.config.patience;
    let name = &record.launch.name;
    loop {
        let session =
            sessions::latest(&context.home, patience, name, posthaste_store::times::now())?;
        match session {
            Some(session) if session.activity == Activity::Starting => {}
            Some(session) if session.activity == Activity::Exited => {
                // A program that a person stopped ends by a signal or with exit status 0.
                let exit = session.exit.unwrap_or_default();
                let is_error = exit.starts_with("exit ") && exit != "exit 0";
                return Ok(if is_error {
                    Startup::Failed
                } else {
                    Startup::Up
                });
            }
            Some(_) | None => return Ok(Startup::Up),
        }
        if Instant::now() >= deadline {
            return Ok(Startup::Starting);
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Wait until a session whose program has ended gives up its name.
fn await_end(context: &Context, name: &AgentName) -> Result<()> {
    let place = SessionDir::of(&context.home, name);
    wait_until(END_TIMEOUT, || Ok(!place.is_held()?)).map(drop)
}

/// Start a session, and print the note about the previous session, if any.
fn start(
    context: &Context,
    launch: Launch,
    audience: Audience,
    resumption: Resumption,
) -> Result<StartedSession> {
    let config = &context.config;
    let settings = start::SessionSettings {
        patience: config.patience,
        limits: config.limits,
        without_home: config.without_home,
        script: config.mail.script()?,
        status_rows: config.harnesses.status_rows(),
        has_installed_hooks: hook_install::has_any_installed(&launch.harness),
    };
    let started = start::start(&context.home, settings, launch, audience, resumption)?;
    if let Some(text) = &started.note {
        note(text);
    }
    Ok(started)
}

pub(crate) fn is_on_terminal() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// Convert the arguments to the launch of a session.
fn launch(context: &Context, args: Args) -> Result<Launch> {
    let Args {
        name,
        detach: _,
        fresh: _,
        harness,
        options,
        command,
    } = args;
    let command = words(command)?;
    let catalogue = context.catalogue()?;
    let program = command.first().map_or("", String::as_str);
    let harness = harness.unwrap_or_else(|| catalogue.default_for(program).to_owned());
    catalogue.take(&harness)?;
    let paths = options.paths()?;
    let name = match name {
        Some(name) => name,
        None => name_of_command(&command)?,
    };
    check_name(context, &name)?;
    let (cols, rows) = terminal_size();
    Ok(Launch {
        name,
        command,
        cwd: paths.cwd,
        harness,
        env: options.env,
        sockets: paths.sockets,
        cols,
        rows,
        build: None,
    })
}

/// Convert the words of a command to UTF-8.
pub(crate) fn words(words: Vec<OsString>) -> Result<Vec<String>> {
    let words = words.into_iter().map(OsString::into_string);
    words
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(|word| {
            Report::usage(format!(
                "{} is not UTF-8",
                text::visible(&word.to_string_lossy())
            ))
        })
}

/// Refuse a name that a session cannot have.
pub(crate) fn check_name(context: &Context, name: &AgentName) -> Result<()> {
    if context.config.roster.has(name) {
        return Err(Report::usage(format!(
            "'{name}' is an alias or a group in the settings: mail to it would go to other agents"
        ))
        .hint("choose another name with --name"));
    }
    if name.is_human() {
        return Err(Report::usage("'human' is the person, not a session")
            .hint("choose another name with --name"));
    }
    Ok(())
}

/// Return the agent name for a command: its file name, if that is valid.
fn name_of_command(command: &[String]) -> Result<AgentName> {
    let program = command.first().map(String::as_str).unwrap_or_default();
    if program.is_empty() {
        return Err(Report::usage("the command is empty"));
    }
    let base = Path::new(program)
        .file_name()
        .and_then(|name| name.to_str())
        .unwrap_or(program);
    default_name_of(base)
}

/// Convert a default name to an agent name, if it is valid.
pub(crate) fn default_name_of(base: &str) -> Result<AgentName> {
    AgentName::parse(base).map_err(|error| {
        let shown = text::one_line(base, 40);
        let report = Report::usage(format!("'{shown}' cannot be the agent's name: {error}"));
        match AgentName::suggestion(base) {
            Some(name) => report.hint(format!("choose one, for example --name {name}")),
            None => report.hint("choose one with --name"),
        }
    })
}

/// Return the size of this terminal.
pub(crate) fn terminal_size() -> (u16, u16) {
    match rustix::termios::tcgetwinsize(rustix::stdio::stdout()) {
        Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
        _ => DEFAULT_SIZE,
    }
}

pub(crate) fn variable(text: &str) -> std::result::Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !text.contains('\0') => {
            Ok((name.to_owned(), value.to_owned()))
        }
        _ => Err("the form is NAME=VALUE".to_owned()),
    }
}
