//! Hooks that a person installs into an agent's settings: computes the changed settings, and
//! whether the hook is installed.
//!
//! Never changes any other byte of the settings, and refuses settings that it cannot parse.

mod file;
mod json;
mod plugin;
mod settings;

pub(crate) use file::{apply, backup_of, read};

use posthaste_core::AgentName;
use posthaste_store::report::{Report, Result};
use std::path::{Path, PathBuf};

/// The kind of file in which a harness keeps its hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SettingsKind {
    /// A JSON file with `hooks`, by event.
    Settings(&'static [HookedEvent]),
    /// A file of its own.
    Plugin,
}

/// An event at which a hook runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct HookedEvent {
    name: &'static str,
    /// The matcher that the agent's settings require: all, or one tool.
    matcher: Option<&'static str>,
}

const fn at(name: &'static str, matcher: Option<&'static str>) -> HookedEvent {
    HookedEvent { name, matcher }
}

/// The event of Claude Code and Codex. `ph run` adds hooks for the others itself.
const PROMPT_EVENTS: &[HookedEvent] = &[at("UserPromptSubmit", None)];

/// All events of Gemini CLI, under `ph run` too: prompts, the end of a tool, a new conversation,
/// and a tool that is an agent itself.
const GEMINI_EVENTS: &[HookedEvent] = &[
    at("BeforeAgent", Some("*")),
    at("AfterTool", Some("*")),
    at("BeforeTool", Some("invoke_agent")),
    at("SessionStart", Some("*")),
    at("SessionEnd", Some("*")),
];

/// The settings file of a supported agent.
#[derive(Debug)]
pub(crate) struct AgentSettings {
    pub(crate) harness: &'static str,
    kind: SettingsKind,
    /// The path that the agent uses, which may be a symbolic link.
    pub(crate) path: PathBuf,
}

/// The settings file of each agent: the directory in a variable, else one in the home directory.
const TARGETS: [(&str, &str, &str, &str, SettingsKind); 4] = [
    (
        "claude",
        "CLAUDE_CONFIG_DIR",
        ".claude",
        "settings.json",
        SettingsKind::Settings(PROMPT_EVENTS),
    ),
    (
        "codex",
        "CODEX_HOME",
        ".codex",
        "hooks.json",
        SettingsKind::Settings(PROMPT_EVENTS),
    ),
    (
        "gemini",
        "",
        ".gemini",
        "settings.json",
        SettingsKind::Settings(GEMINI_EVENTS),
    ),
    (
        "opencode",
        "XDG_CONFIG_HOME",
        ".config",
        "opencode/plugins/posthaste.js",
        SettingsKind::Plugin,
    ),
];

pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    TARGETS.iter().map(|(harness, ..)| *harness)
}

impl AgentSettings {
    pub(crate) fn of(harness: &str) -> Result<Self> {
        let known = TARGETS.iter().find(|(name, ..)| *name == harness);
        let Some((harness, variable, dir, file, kind)) = known else {
            let all: Vec<_> = names().collect();
            return Err(Report::not_found(format!(
                "the settings of {harness:?} for hooks are not known"
            ))
            .hint(format!("supported: {}", all.join(", "))));
        };
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        let dir = match (set(variable), set("HOME")) {
            (Some(dir), _) => PathBuf::from(dir),
            (None, Some(home)) => Path::new(&home).join(dir),
            (None, None) => return Err(Report::usage("HOME is not set").hint("set HOME")),
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

    /// Return the command that the agent's hook runs.
    pub(crate) fn command(&self, agent: Option<&AgentName>) -> Result<String> {
        let ph = std::env::current_exe()
            .map_err(|error| Report::storage(format!("cannot find ph itself: {error}")))?;
        let ph = ph.to_str().ok_or_else(|| {
            Report::refused("the path of ph is not UTF-8 and cannot be written into settings")
        })?;
        let agent = agent.map_or(String::new(), |agent| format!(" --agent {agent}"));
        Ok(format!("{} hook {}{agent}", quoted(ph), self.harness))
    }

    pub(crate) fn state(&self, text: Option<&str>, command: Option<&str>) -> Result<HookState> {
        match self.kind {
            SettingsKind::Settings(events) => settings::state(self.harness, text, events, command)
                .map_err(|why| self.refuse(&why)),
            SettingsKind::Plugin => Ok(plugin::state(text, command)),
        }
    }

    /// Return the state of the hook, whichever agent it is installed for.
    pub(crate) fn state_of(&self, text: Option<&str>, command: &str) -> Result<HookState> {
        let installed = text.and_then(|text| self.found(text));
        let is_same = |found: &String| match found.strip_prefix(command) {
            Some(rest) => rest.is_empty() || rest.starts_with(" --agent "),
            None => false,
        };
        let command = installed.filter(is_same);
        self.state(text, command.as_deref().or(Some("")))
    }

    /// Return the installed command, if any.
    fn found(&self, text: &str) -> Option<String> {
        match self.kind {
            SettingsKind::Settings(_) => settings::command(self.harness, text).ok()?,
            SettingsKind::Plugin => plugin::command(text),
        }
    }

    /// Return the settings with the hook.
    pub(crate) fn installed(&self, text: Option<&str>, command: &str) -> Result<String> {
        match self.kind {
            SettingsKind::Settings(events) => {
                settings::installed(self.harness, text, events, command)
            }
            SettingsKind::Plugin => plugin::installed(text, command),
        }
        .map_err(|why| self.refuse(&why))
    }

    /// Return the settings without the hook, or `None` if the file is to be removed. `before` is
    /// the copy that was kept.
    pub(crate) fn uninstalled(&self, text: &str, before: Option<&str>) -> Result<Option<String>> {
        match self.kind {
            SettingsKind::Settings(events) => {
                let installed =
                    settings::command(self.harness, text).map_err(|why| self.refuse(&why))?;
                if let Some(installed) = installed {
                    let again = settings::installed(self.harness, before, events, &installed);
                    if again.is_ok_and(|again| again == text) {
                        return Ok(before.map(str::to_owned));
                    }
                }
                settings::removed(self.harness, text)
                    .map(Some)
                    .map_err(|why| self.refuse(&why))
            }
            SettingsKind::Plugin => plugin::uninstalled(text).map_err(|why| self.refuse(&why)),
        }
    }

    fn refuse(&self, why: &str) -> Report {
        let path = self.path.display();
        Report::refused(format!("{path} was not changed: {why}"))
            .hint("correct the file, or add the hook by hand; see docs/hooks.md")
    }
}

/// The state of an installed hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum HookState {
    Installed,
    Not,
    /// Installed for some of its events only.
    Partly,
    /// Installed with another command than `ph hooks install` would write now.
    Outdated,
}

impl HookState {
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::Installed => "installed",
            Self::Not => "not installed",
            Self::Partly => "partly installed",
            Self::Outdated => "installed, but for another ph or for another agent",
        }
    }
}

/// Return whether an agent's settings contain ph's hook, even partly or outdated. Unreadable
/// settings count as none.
pub(crate) fn has_any_installed(harness: &str) -> bool {
    let state = || -> Result<HookState> {
        let target = AgentSettings::of(harness)?;
        let text = read(&target.file()?)?;
        target.state_of(text.as_deref(), &target.command(None)?)
    };
    match state() {
        Ok(HookState::Installed | HookState::Partly | HookState::Outdated) => true,
        Ok(HookState::Not) | Err(_) => false,
    }
}

/// Quote a word for a shell.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// Return whether a command runs `ph hook` for this harness.
fn is_ours(command: &str, harness: &str) -> bool {
    let Some((program, rest)) = command.rsplit_once(" hook ") else {
        return false;
    };
    let program = program.trim_matches('\'');
    let is_ph = program == "ph" || program.ends_with("/ph");
    is_ph && rest.split(' ').next() == Some(harness)
}

/// Return the lines that differ, with the lines around them.
pub(crate) fn diff(before: &str, after: &str) -> Vec<String> {
    const CONTEXT_LINES: usize = 3;
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
    add(" ", &old[head.saturating_sub(CONTEXT_LINES)..head]);
    add("-", &old[head..old.len() - tail]);
    add("+", &new[head..new.len() - tail]);
    let end = old.len() - tail;
    add(" ", &old[end..old.len().min(end + CONTEXT_LINES)]);
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_installed_command_is_recognised() {
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
    fn a_diff_has_the_lines_around_the_change() {
        assert_eq!(diff("a\nb\nc\n", "a\nx\nc\n"), [" a", "-b", "+x", " c"]);
        assert_eq!(diff("", "a\n"), ["+a"]);
        assert_eq!(diff("a\n", ""), ["-a"]);
        assert_eq!(diff("a\na\n", "a\na\na\n"), [" a", " a", "+a"]);
    }
}
