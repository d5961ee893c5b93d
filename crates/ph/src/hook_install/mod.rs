//! Hooks that a person has installed into an agent's own settings: what would change, and whether
//! it is there.
//!
//! Owns what is written into files of others. Everything else in them stays as it is, to the byte;
//! what cannot be understood is left alone.

mod file;
mod json;
mod plugin;
mod settings;

pub(crate) use file::{apply, backup_of, read};

use posthaste_core::AgentName;
use posthaste_store::report::{Report, Result};
use std::path::{Path, PathBuf};

/// What a harness's hooks are kept in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A JSON file with `hooks`, by event.
    Settings(&'static [Event]),
    /// A file of its own.
    Plugin,
}

/// What a hook is called at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Event {
    name: &'static str,
    /// Where the agent wants to be told of which: all, or those of one tool.
    matcher: Option<&'static str>,
}

const fn at(name: &'static str, matcher: Option<&'static str>) -> Event {
    Event { name, matcher }
}

/// Claude Code and Codex are given the others by `ph run`.
const AT_PROMPTS: &[Event] = &[at("UserPromptSubmit", None)];

/// All that Gemini CLI is ever told, under `ph run` too: its prompts, a tool's end, where it begins
/// another conversation, and where one of its tools is an agent itself.
const OF_GEMINI: &[Event] = &[
    at("BeforeAgent", Some("*")),
    at("AfterTool", Some("*")),
    at("BeforeTool", Some("invoke_agent")),
    at("SessionStart", Some("*")),
    at("SessionEnd", Some("*")),
];

/// An agent whose settings are known.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) harness: &'static str,
    kind: Kind,
    /// As the agent finds it.
    pub(crate) path: PathBuf,
}

/// Where each keeps its settings: a variable that says so, else a directory of the home.
const KNOWN: [(&str, &str, &str, &str, Kind); 4] = [
    (
        "claude",
        "CLAUDE_CONFIG_DIR",
        ".claude",
        "settings.json",
        Kind::Settings(AT_PROMPTS),
    ),
    (
        "codex",
        "CODEX_HOME",
        ".codex",
        "hooks.json",
        Kind::Settings(AT_PROMPTS),
    ),
    (
        "gemini",
        "",
        ".gemini",
        "settings.json",
        Kind::Settings(OF_GEMINI),
    ),
    (
        "opencode",
        "XDG_CONFIG_HOME",
        ".config",
        "opencode/plugins/posthaste.js",
        Kind::Plugin,
    ),
];

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    KNOWN.iter().map(|(harness, ..)| *harness)
}

impl Target {
    pub(crate) fn of(harness: &str) -> Result<Self> {
        let known = KNOWN.iter().find(|(name, ..)| *name == harness);
        let Some((harness, variable, dir, file, kind)) = known else {
            let all: Vec<_> = names().collect();
            return Err(Report::not_found(format!(
                "nothing is known of where {harness:?} keeps its hooks"
            ))
            .hint(format!("known are {}", all.join(", "))));
        };
        let said = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dir = match (said(variable), said("HOME")) {
            (Some(said), _) => PathBuf::from(said),
            (None, Some(home)) => Path::new(&home).join(dir),
            (None, None) => return Err(Report::usage("there is no HOME").hint("set HOME")),
        };
        let path = dir.join(file);
        if !path.is_absolute() {
            return Err(Report::usage(format!(
                "{} is not an absolute path",
                path.display()
            )));
        }
        Ok(Self {
            harness,
            kind: *kind,
            path,
        })
    }

    /// What the agent's hook is to run.
    pub(crate) fn command(&self, agent: Option<&AgentName>) -> Result<String> {
        let ph = std::env::current_exe()
            .map_err(|error| Report::storage(format!("cannot find ph itself: {error}")))?;
        let ph = ph.to_str().ok_or_else(|| {
            Report::refused("the path of ph is not UTF-8, and cannot stand in settings")
        })?;
        let agent = agent.map_or(String::new(), |agent| format!(" --agent {agent}"));
        Ok(format!("{} hook {}{agent}", quoted(ph), self.harness))
    }

    pub(crate) fn state(&self, text: Option<&str>, command: Option<&str>) -> Result<State> {
        match self.kind {
            Kind::Settings(events) => settings::state(self.harness, text, events, command)
                .map_err(|why| self.refuse(&why)),
            Kind::Plugin => Ok(plugin::state(text, command)),
        }
    }

    /// The same whoever it is for: for who asks, and installs nothing.
    pub(crate) fn state_of(&self, text: Option<&str>, command: &str) -> Result<State> {
        let installed = text.and_then(|text| self.found(text));
        let is_same = |found: &String| match found.strip_prefix(command) {
            Some(rest) => rest.is_empty() || rest.starts_with(" --agent "),
            None => false,
        };
        let command = installed.filter(is_same);
        self.state(text, command.as_deref().or(Some("")))
    }

    /// The command that is installed.
    fn found(&self, text: &str) -> Option<String> {
        match self.kind {
            Kind::Settings(_) => settings::command(self.harness, text).ok()?,
            Kind::Plugin => plugin::command(text),
        }
    }

    /// The file with our hooks in it.
    pub(crate) fn installed(&self, text: Option<&str>, command: &str) -> Result<String> {
        match self.kind {
            Kind::Settings(events) => settings::installed(self.harness, text, events, command),
            Kind::Plugin => plugin::installed(text, command),
        }
        .map_err(|why| self.refuse(&why))
    }

    /// The file without them; nothing where it is to go. `before` is the copy that was kept.
    pub(crate) fn uninstalled(&self, text: &str, before: Option<&str>) -> Result<Option<String>> {
        match self.kind {
            Kind::Settings(events) => {
                let ours =
                    settings::command(self.harness, text).map_err(|why| self.refuse(&why))?;
                if let Some(ours) = ours {
                    let again = settings::installed(self.harness, before, events, &ours);
                    if again.is_ok_and(|again| again == text) {
                        return Ok(before.map(str::to_owned));
                    }
                }
                settings::removed(self.harness, text)
                    .map(Some)
                    .map_err(|why| self.refuse(&why))
            }
            Kind::Plugin => plugin::uninstalled(text).map_err(|why| self.refuse(&why)),
        }
    }

    fn refuse(&self, why: &str) -> Report {
        let path = self.path.display();
        Report::refused(format!("{path} is left as it is: {why}"))
            .hint("put that right in the file, or add the hook by hand; see docs/hooks.md")
    }
}

/// How much of it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum State {
    Installed,
    Not,
    /// At some of its events only.
    Partly,
    /// With another command than would be installed now.
    Outdated,
}

impl State {
    pub(crate) fn told(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Not => "not installed",
            Self::Partly => "partly installed",
            Self::Outdated => "installed, but another ph or for another agent",
        }
    }
}

/// Return whether an agent's own settings contain our hooks, even partly or outdated. Unreadable
/// settings count as none.
pub(crate) fn has_any_installed(harness: &str) -> bool {
    let state = || -> Result<State> {
        let target = Target::of(harness)?;
        let text = read(&target.file()?)?;
        target.state_of(text.as_deref(), &target.command(None)?)
    };
    match state() {
        Ok(State::Installed | State::Partly | State::Outdated) => true,
        Ok(State::Not) | Err(_) => false,
    }
}

/// A word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// Whether a command runs `ph hook` for this harness.
fn is_ours(command: &str, harness: &str) -> bool {
    let Some((program, rest)) = command.rsplit_once(" hook ") else {
        return false;
    };
    let program = program.trim_matches('\'');
    let is_ph = program == "ph" || program.ends_with("/ph");
    is_ph && rest.split(' ').next() == Some(harness)
}

/// The lines that differ, with those around them.
pub(crate) fn diff(before: &str, after: &str) -> Vec<String> {
    const AROUND: usize = 3;
    let [old, new] = [before, after].map(|text| text.lines().collect::<Vec<_>>());
    let same = |pair: &(&&str, &&str)| pair.0 == pair.1;
    let head = old.iter().zip(&new).take_while(same).count();
    let most = old.len().min(new.len()) - head;
    let backwards = old.iter().rev().zip(new.iter().rev());
    let tail = backwards.take(most).take_while(same).count();
    let mut shown = Vec::new();
    let mut add = |mark: &str, lines: &[&str]| {
        shown.extend(lines.iter().map(|line| format!("{mark}{line}")));
    };
    add(" ", &old[head.saturating_sub(AROUND)..head]);
    add("-", &old[head..old.len() - tail]);
    add("+", &new[head..new.len() - tail]);
    let end = old.len() - tail;
    add(" ", &old[end..old.len().min(end + AROUND)]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_known_again() {
        let check = |command: &str, want: bool| {
            assert_eq!(is_ours(command, "claude"), want, "{command}");
        };
        check("ph hook claude", true);
        check("/usr/bin/ph hook claude --agent a", true);
        check("'/a b/ph' hook claude", true);
        check("/usr/bin/ph hook codex", false);
        check("/usr/bin/graph hook claude", false);
        check("ph check --inject", false);
        check("", false);
        assert_eq!(quoted("/usr/bin/ph"), "/usr/bin/ph");
        assert_eq!(quoted("/it's/ph"), r"'/it'\''s/ph'");
        assert!(is_ours(
            &format!("{} hook claude", quoted("/it's/ph")),
            "claude"
        ));
    }

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        assert_eq!(diff("a\nb\nc\n", "a\nx\nc\n"), [" a", "-b", "+x", " c"]);
        assert_eq!(diff("", "a\n"), ["+a"]);
        assert_eq!(diff("a\n", ""), ["-a"]);
        assert_eq!(diff("a\na\n", "a\na\na\n"), [" a", " a", "+a"]);
    }
}
