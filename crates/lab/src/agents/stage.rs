//! Environment of one agent: a home, settings that prevent its questions, a fake key, and no other
//! variables. Everything is deleted when dropped.

use super::{Agent, Shot};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const DIR_PREFIX: &str = "ph-lab-";
/// Fake API key, which has the length of a real one.
const FAKE_KEY: &str = "sk-lab-0000000000-this-is-no-key-1111111111";

/// Whether the agent was configured to trust its working directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    Given,
    /// Asks before it starts: Claude Code and Gemini about the directory, Codex about hooks.
    Withheld,
}

#[derive(Debug)]
pub struct Stage {
    agent: Agent,
    trust: Trust,
    program: PathBuf,
    port: u16,
    dir: TempDir,
}

impl Stage {
    /// Create a stage for an installed program and a model server on this port.
    pub fn new(agent: Agent, program: &Path, port: u16, trust: Trust) -> std::io::Result<Self> {
        let dir = tempfile::Builder::new().prefix(DIR_PREFIX).tempdir()?;
        let stage = Self {
            agent,
            trust,
            program: program.to_owned(),
            port,
            dir,
        };
        std::fs::create_dir_all(stage.work())?;
        std::fs::create_dir_all(stage.temporary())?;
        for (path, text) in stage.settings() {
            let path = stage.home().join(path);
            std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
            std::fs::write(path, text)?;
        }
        Ok(stage)
    }

    pub fn home(&self) -> PathBuf {
        self.dir.path().join("home")
    }

    /// Return the agent's working directory. It is below the home, so that screens show only
    /// `~/work`.
    pub fn work(&self) -> PathBuf {
        self.home().join("work")
    }

    /// Return a directory for other files, which is deleted with the stage.
    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Replace the name of this directory in a snapshot by one of the same width.
    pub fn anonymous(&self, shot: &Shot) -> Shot {
        let name = self
            .dir
            .path()
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let other = format!("{DIR_PREFIX}{}", "0".repeat(name.len() - DIR_PREFIX.len()));
        let changed = |text: &String| text.replace(&*name, &other);
        let mut shot = shot.clone();
        shot.screen = shot.screen.iter().map(changed).collect();
        shot.beside.title = changed(&shot.beside.title);
        shot
    }

    /// Return the temporary directory. It is beside the home, because Codex keeps nothing in a home
    /// that is itself in the temporary directory.
    fn temporary(&self) -> PathBuf {
        self.dir.path().join("tmp")
    }

    /// Return the command that starts the agent in a terminal.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        self.dress(&mut command);
        command.args(self.args());
        command
    }

    /// Return another command in the same environment, which has nothing of the lab's own.
    pub fn beside(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        self.dress(&mut command);
        command
    }

    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Return the agent's own arguments. Without them, Codex starts a server that outlives it, and
    /// Claude Code (since 2.1.326) starts in a mode that never asks for permission. That mode in
    /// Claude Code's settings opens a dialog that offers the other one.
    pub fn args(&self) -> &'static [&'static str] {
        match self.agent {
            Agent::Codex => &["--no-daemon"],
            Agent::Claude => &["--permission-mode", "default"],
            Agent::OpenCode | Agent::Gemini => &[],
        }
    }

    fn dress(&self, command: &mut Command) {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into());
        command.env_clear().current_dir(self.work());
        command
            .env("PATH", path)
            .env("HOME", self.home())
            .env("TMPDIR", self.temporary());
        command
            .env("TERM", "xterm-256color")
            .env("COLORTERM", "truecolor")
            .env("LANG", "C.UTF-8");
        let server = format!("http://127.0.0.1:{}", self.port);
        match self.agent {
            Agent::Claude => {
                command
                    .env("ANTHROPIC_BASE_URL", server)
                    .env("ANTHROPIC_API_KEY", FAKE_KEY);
                command.env("DISABLE_AUTOUPDATER", "1");
                command.env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1");
            }
            Agent::Codex => {
                command.env("LAB_KEY", FAKE_KEY);
            }
            Agent::OpenCode => {
                for name in ["AUTOUPDATE", "MODELS_FETCH", "LSP_DOWNLOAD"] {
                    command.env(format!("OPENCODE_DISABLE_{name}"), "1");
                }
                // With a plugin, OpenCode waits for npm, which is unreachable here.
                command.env("npm_config_fetch_retries", "0");
            }
            Agent::Gemini => {
                command
                    .env("GOOGLE_GEMINI_BASE_URL", server)
                    .env("GEMINI_API_KEY", FAKE_KEY);
                if self.trust == Trust::Given {
                    command.env("GEMINI_CLI_TRUST_WORKSPACE", "true");
                }
            }
        }
    }

    /// Return the files in the agent's home and their content.
    fn settings(&self) -> Vec<(&'static str, String)> {
        match self.agent {
            Agent::Claude => vec![(".claude.json", self.claude().to_string())],
            Agent::Codex => {
                let mut files = vec![(".codex/config.toml", self.codex())];
                if self.trust == Trust::Withheld {
                    let hook = json!({"hooks": [{"type": "command", "command": "true"}]});
                    let hooks = json!({"hooks": {"Stop": [hook]}});
                    files.push((".codex/hooks.json", hooks.to_string()));
                }
                files
            }
            Agent::OpenCode => vec![(
                ".config/opencode/opencode.json",
                self.opencode().to_string(),
            )],
            Agent::Gemini => {
                let asks = self.trust == Trust::Withheld;
                let settings = json!({"security": {
                    "auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": asks},
                }});
                vec![(".gemini/settings.json", settings.to_string())]
            }
        }
    }

    fn claude(&self) -> Value {
        let approved = &FAKE_KEY[FAKE_KEY.len() - 20..];
        let projects = match self.trust {
            Trust::Given => {
                json!({self.work().to_string_lossy(): {"hasTrustDialogAccepted": true}})
            }
            Trust::Withheld => json!({}),
        };
        json!({
            "hasCompletedOnboarding": true, "projects": projects,
            "customApiKeyResponses": {"approved": [approved], "rejected": []},
        })
    }

    fn opencode(&self) -> Value {
        let server = format!("http://127.0.0.1:{}/v1", self.port);
        let provider = json!({
            "npm": "@ai-sdk/openai-compatible", "name": "Lab",
            "options": {"baseURL": server, "apiKey": FAKE_KEY},
            "models": {"lab": {"name": "Lab", "tool_call": true}},
        });
        json!({
            "model": "lab/lab", "small_model": "lab/lab", "provider": {"lab": provider},
            "permission": {"bash": "ask", "edit": "ask"}, "share": "disabled",
        })
    }

    fn codex(&self) -> String {
        let (work, port) = (self.work(), self.port);
        format!(
            r#"model_provider = "lab"
approval_policy = "on-request"
sandbox_mode = "read-only"
check_for_update_on_startup = false

[model_providers.lab]
name = "lab"
base_url = "http://127.0.0.1:{port}/v1"
wire_api = "responses"
env_key = "LAB_KEY"

[projects."{}"]
trust_level = "trusted"
"#,
            work.display()
        )
    }
}
