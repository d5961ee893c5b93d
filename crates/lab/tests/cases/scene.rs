//! Ways to start an agent for a person: its settings, and the command in a terminal.

use crate::play::NAME;
use posthaste_lab::agents::{Agent, Stage};
use posthaste_lab::pty::{Size, Terminal};
use serde_json::Value;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Way in which an agent is started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// Row of the table with the result of a run with this start.
    pub(crate) end: &'static str,
    pub(crate) by: By,
    pub(crate) hooks: Hooks,
    /// Arguments in addition to those of the stage.
    pub(crate) args: &'static [&'static str],
    /// Files below the agent's home, and their text.
    pub(crate) files: &'static [(&'static str, &'static str)],
    /// Whether mail is typed while the agent works, so that it queues the mail itself.
    pub(crate) queues: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum By {
    /// `ph run`.
    Session,
    /// Started by a person, with our hooks in the agent's own settings.
    Nobody,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hooks {
    On,
    /// The session has no hook and no plugin, and only the terminal as a route.
    Off,
}

const CLAUDE_SETTINGS: &str = ".claude/settings.json";
const NO_HOOKS: (&str, &str) = (CLAUDE_SETTINGS, r#"{"disableAllHooks":true}"#);

impl Start {
    pub(crate) const SESSION: Self = Self {
        end: "end",
        by: By::Session,
        hooks: Hooks::On,
        args: &[],
        files: &[],
        queues: false,
    };
    /// Claude Code with mail typed while it works, so that Claude Code queues the mail.
    pub(crate) const QUEUES: Self = Self {
        end: "end-queues",
        queues: true,
        ..Self::SESSION
    };
    pub(crate) const KILLS: Self = Self {
        end: "end-kills",
        ..Self::SESSION
    };
    pub(crate) const NOBODY: Self = Self {
        by: By::Nobody,
        ..Self::SESSION
    };
    pub(crate) const NO_HOOKS: Self = Self {
        end: "end-no-hooks",
        hooks: Hooks::Off,
        ..Self::SESSION
    };
    /// Claude Code with a name, which it draws into its frames.
    pub(crate) const NAMED: Self = Self {
        end: "end-named",
        args: &["-n", "mine"],
        ..Self::SESSION
    };
    pub(crate) const NAMED_NO_HOOKS: Self = Self {
        end: "end-named-no-hooks",
        hooks: Hooks::Off,
        ..Self::NAMED
    };
    /// Claude Code for a case that leaves another process behind.
    pub(crate) const ALONE: Self = Self {
        end: "end-alone",
        ..Self::SESSION
    };
    pub(crate) const STATUS_OF_ONE_ROW: Self = Self {
        end: "end-status-1",
        files: &[(
            CLAUDE_SETTINGS,
            r#"{"statusLine":{"type":"command","command":"echo status row one"}}"#,
        )],
        ..Self::SESSION
    };
    pub(crate) const STATUS_OF_THREE_ROWS: Self = Self {
        end: "end-status-3",
        files: &[(
            CLAUDE_SETTINGS,
            r#"{"statusLine":{"type":"command","command":"printf 'status row one\nstatus row two\nstatus row three\n'"}}"#,
        )],
        ..Self::SESSION
    };
    /// Rows with the results of runs, in the order of the table.
    pub(crate) const ENDS: [&'static str; 9] = [
        Self::SESSION.end,
        Self::NAMED.end,
        Self::NO_HOOKS.end,
        Self::NAMED_NO_HOOKS.end,
        Self::ALONE.end,
        Self::QUEUES.end,
        Self::KILLS.end,
        Self::STATUS_OF_ONE_ROW.end,
        Self::STATUS_OF_THREE_ROWS.end,
    ];
}

/// Return a `ph` command in the agent's environment.
pub(crate) fn command(stage: &Stage, ph: &Path) -> Command {
    let mut command = stage.beside(ph);
    command.env("PH_HOME", mail(stage));
    command
}

/// Start the agent in a terminal, by `ph run` or alone. Gemini takes hooks and tools only from its
/// own settings, where a person adds them once.
pub(crate) fn shown(
    agent: Agent,
    stage: &Stage,
    ph: &Path,
    start: Start,
    more: &[&str],
) -> Terminal {
    if agent == Agent::Gemini && start.by != By::Nobody {
        give_tools(stage, ph);
    }
    let is_installed = start.by == By::Nobody || agent == Agent::Gemini;
    if is_installed && start.hooks == Hooks::On {
        let mut install = command(stage, ph);
        install.args(["hooks", "install", agent.name(), "--yes"]);
        let done = install.output().expect("ph can be started");
        let errors = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "ph hooks install: {errors}");
    }
    for (path, text) in start.files {
        write(stage, path, text);
    }
    let mut hookless: &[&str] = &[];
    let mut otherwise = Vec::new();
    if start.hooks == Hooks::Off {
        otherwise.extend([ROUTES, PLUGIN]);
        match agent {
            Agent::Claude => write(stage, NO_HOOKS.0, NO_HOOKS.1),
            Agent::Codex => hookless = &["-c", "features.hooks=false"],
            Agent::OpenCode | Agent::Gemini => {}
        }
    }
    if start.queues {
        otherwise.extend([ROUTES, WHILE_WORKING]);
    }
    if !otherwise.is_empty() {
        write_manifest(agent, stage, ph, &otherwise);
    }
    let started = match start.by {
        By::Session => {
            let mut run = command(stage, ph);
            run.args(["run", "--name", NAME, "--"]);
            run.arg(stage.program()).args(stage.args());
            run.args(hookless).args(start.args).args(more);
            run
        }
        By::Nobody => {
            let mut alone = stage.command();
            alone.env("PH_HOME", mail(stage)).env("PH_AGENT", NAME);
            alone
        }
    };
    Terminal::start(started, Size::USUAL).with_timeout(Duration::from_secs(60))
}

/// Restart the agent with `ph restart` and return its terminal.
pub(crate) fn restarted(stage: &Stage, ph: &Path, more: &[&str]) -> Terminal {
    let mut restart = command(stage, ph);
    restart.args(["restart", NAME]).args(more);
    Terminal::start(restart, Size::USUAL).with_timeout(Duration::from_secs(60))
}

/// Write the output of `ph mcp config`, with the path of this `ph`, into Gemini's settings, as a
/// person would.
fn give_tools(stage: &Stage, ph: &Path) {
    let mut config = command(stage, ph);
    config.args(["mcp", "config", Agent::Gemini.name()]);
    let printed = config.output().expect("ph can be started").stdout;
    let ours: Value = serde_json::from_slice(&printed).expect("what is printed is JSON");
    let file = stage.home().join(".gemini/settings.json");
    let text = std::fs::read_to_string(&file).expect("it has settings");
    let mut settings: Value = serde_json::from_str(&text).expect("they are JSON");
    settings["mcpServers"] = ours["mcpServers"].clone();
    settings["mcpServers"]["ph"]["command"] = ph.to_string_lossy().into();
    std::fs::write(file, settings.to_string()).expect("they can be written");
}

/// Replaced line of a manifest: its prefix, and the new line.
type Otherwise = (&'static str, &'static str);
const ROUTES: Otherwise = ("routes = ", "routes = [\"terminal\"]");
const WHILE_WORKING: Otherwise = ("while_working = ", "while_working = true");
/// Start OpenCode without our plugin.
const PLUGIN: Otherwise = ("  \"plugin\": ", "  \"plugin\": [],");

fn write(stage: &Stage, path: &str, text: &str) {
    let path = stage.home().join(path);
    let dir = path.parent().expect("it is below the home");
    std::fs::create_dir_all(dir).expect("the home can be written");
    std::fs::write(path, text).expect("the home can be written");
}

/// Write a manifest into the home, which replaces the built-in one and differs in some lines.
fn write_manifest(agent: Agent, stage: &Stage, ph: &Path, otherwise: &[Otherwise]) {
    let mut show = command(stage, ph);
    show.args(["harness", "show", agent.name()]);
    let shown = show.output().expect("ph can be started");
    let ours = String::from_utf8_lossy(&shown.stdout).into_owned();
    let line = |line: &str| {
        let mut other = otherwise
            .iter()
            .filter(|(begin, _)| line.starts_with(begin));
        other.next().map_or(line, |(_, other)| other).to_owned()
    };
    let typed: Vec<String> = ours.lines().map(line).collect();
    let dir = mail(stage).join("harness");
    // A manifest that others can write is rejected.
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private.create(&dir).expect("the home can be written");
    let file = dir.join(format!("{}.toml", agent.name()));
    std::fs::write(file, typed.join("\n")).expect("the home can be written");
}

fn mail(stage: &Stage) -> PathBuf {
    stage.dir().join("mail")
}
