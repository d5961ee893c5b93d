//! How an agent is put before the person: its settings, and what starts it in a terminal.

use crate::play::{NAME, Under};
use posthaste_lab::agents::{Agent, Stage};
use posthaste_lab::pty::{Size, Terminal};
use serde_json::Value;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// `ph` in the surroundings of the agent.
pub(crate) fn command(stage: &Stage, ph: &Path) -> Command {
    let mut command = stage.beside(ph);
    command.env("PH_HOME", mail(stage));
    command
}

/// The agent in a terminal, by `ph run` or alone. Gemini takes hooks and tools from its own settings
/// only: there a person puts them once.
pub(crate) fn shown(
    agent: Agent,
    stage: &Stage,
    ph: &Path,
    under: Under,
    more: &[&str],
) -> Terminal {
    if agent == Agent::Gemini && under != Under::Nobody {
        give_tools(stage, ph);
    }
    if under == Under::Nobody || agent == Agent::Gemini {
        let mut install = command(stage, ph);
        install.args(["hooks", "install", agent.name(), "--yes"]);
        let done = install.output().expect("ph can be started");
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "ph hooks install: {said}");
    }
    match under {
        Under::Typed => only_typed(agent, stage, ph, &[ROUTES]),
        Under::Held => only_typed(agent, stage, ph, &[ROUTES, DELAY, WORKING]),
        Under::Session | Under::Nobody => {}
    }
    let started = match under {
        Under::Session | Under::Typed | Under::Held => {
            let mut run = command(stage, ph);
            run.args(["run", "--name", NAME, "--"]);
            run.arg(stage.program()).args(stage.args()).args(more);
            run
        }
        Under::Nobody => {
            let mut alone = stage.command();
            alone.env("PH_HOME", mail(stage)).env("PH_AGENT", NAME);
            alone
        }
    };
    Terminal::start(started, Size::USUAL).patient(Duration::from_secs(60))
}

/// A person writes into Gemini's settings what `ph mcp config` prints, and where this `ph` is.
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

/// What is said otherwise in a manifest: how its line begins, and all of the new one.
type Otherwise = (&'static str, &'static str);
const ROUTES: Otherwise = ("routes = ", "routes = [\"terminal\"]");
/// Longer than any question takes to be drawn.
const DELAY: Otherwise = ("delay = ", "delay = \"5s\"");
const WORKING: Otherwise = ("while_working = ", "while_working = true");

/// A manifest in the home takes the place of ours: the same but for some lines.
fn only_typed(agent: Agent, stage: &Stage, ph: &Path, otherwise: &[Otherwise]) {
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
    // One that is open to others is not believed.
    let mut private = std::fs::DirBuilder::new();
    private.recursive(true).mode(0o700);
    private.create(&dir).expect("the home can be written");
    let file = dir.join(format!("{}.toml", agent.name()));
    std::fs::write(file, typed.join("\n")).expect("the home can be written");
}

fn mail(stage: &Stage) -> PathBuf {
    stage.dir().join("mail")
}
