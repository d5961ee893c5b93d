//! The settings with which an agent starts `ph mcp`.

use posthaste_core::{AgentName, text};
use posthaste_store::report::{Report, Result};
use serde_json::{Value, json};
use std::path::Path;

/// Variables that Codex must forward to the server. Codex starts servers with an empty environment;
/// the other agents pass on theirs.
const FORWARDED_VARIABLES: [&str; 4] = ["PH_AGENT", "PH_HOME", "PH_SOCKET", "PH_ITERATION"];

/// The supported harnesses.
const HARNESSES: [&str; 4] = ["claude", "codex", "opencode", "gemini"];

/// The command, home and agent with which the server is started.
#[derive(Debug)]
pub(crate) struct Surroundings<'a> {
    /// The command that starts `ph`.
    pub(crate) program: &'a str,
    pub(crate) home: Option<&'a Path>,
    pub(crate) agent: Option<&'a AgentName>,
}

#[derive(Debug)]
pub(crate) struct Snippet {
    pub(crate) text: String,
    /// The settings file into which the snippet belongs.
    pub(crate) file: &'static str,
    pub(crate) format: &'static str,
}

impl Snippet {
    pub(crate) fn of(harness: &str, around: &Surroundings<'_>) -> Result<Self> {
        let words = around.words()?;
        let json = |value: Value, file| Snippet {
            text: format!("{value:#}\n"),
            file,
            format: "json",
        };
        let snippet = match harness {
            "claude" => {
                let server = around.server(json!({"type": "stdio"}), &words, "env");
                json(
                    json!({"mcpServers": {"ph": server}}),
                    ".mcp.json of the project, or a file for 'claude --mcp-config FILE'",
                )
            }
            "gemini" => {
                let server = around.server(json!({}), &words, "env");
                json(
                    json!({"mcpServers": {"ph": server}}),
                    "~/.gemini/settings.json, or .gemini/settings.json of the project",
                )
            }
            "opencode" => json(
                around.opencode(&words),
                "~/.config/opencode/opencode.json, or opencode.json of the project",
            ),
            "codex" => Self {
                text: around.codex(&words),
                file: "~/.codex/config.toml",
                format: "toml",
            },
            other => {
                let shown = text::one_line(other, 80);
                return Err(Report::not_found(format!(
                    "the settings of {shown} for MCP servers are not known"
                ))
                .hint(format!(
                    "supported: {}; in any other client, set the command 'ph mcp'",
                    HARNESSES.join(", ")
                )));
            }
        };
        Ok(snippet)
    }
}

impl Surroundings<'_> {
    /// Return the arguments of `ph`.
    fn words(&self) -> Result<Vec<String>> {
        let mut words = vec!["mcp".to_owned()];
        if let Some(home) = self.home {
            let home = home.to_str().ok_or_else(|| {
                Report::usage("the home's path is not UTF-8")
                    .hint("choose another home with --home")
            })?;
            words.extend(["--home".to_owned(), home.to_owned()]);
        }
        Ok(words)
    }

    fn server(&self, mut server: Value, words: &[String], env: &str) -> Value {
        server["command"] = json!(self.program);
        server["args"] = json!(words);
        if let Some(agent) = self.agent {
            server[env] = json!({"PH_AGENT": agent.as_str()});
        }
        server
    }

    fn opencode(&self, words: &[String]) -> Value {
        let command: Vec<_> = std::iter::once(self.program.to_owned())
            .chain(words.iter().cloned())
            .collect();
        let mut server = json!({"type": "local", "command": command, "enabled": true});
        if let Some(agent) = self.agent {
            server["environment"] = json!({"PH_AGENT": agent.as_str()});
        }
        json!({"$schema": "https://opencode.ai/config.json", "mcp": {"ph": server}})
    }

    fn codex(&self, words: &[String]) -> String {
        let mut server = toml::Table::new();
        let list = |words: &[String]| words.iter().cloned().map(toml::Value::String).collect();
        server.insert("command".to_owned(), self.program.into());
        server.insert("args".to_owned(), toml::Value::Array(list(words)));
        let passed = FORWARDED_VARIABLES.map(str::to_owned);
        // A variable that the settings set is not forwarded.
        let passed: Vec<_> = passed
            .into_iter()
            .filter(|name| !(name == "PH_AGENT" && self.agent.is_some()))
            .collect();
        server.insert("env_vars".to_owned(), toml::Value::Array(list(&passed)));
        let mut table = format!("[mcp_servers.ph]\n{server}");
        if let Some(agent) = self.agent {
            let mut env = toml::Table::new();
            env.insert("PH_AGENT".to_owned(), agent.as_str().into());
            table.push_str(&format!("\n[mcp_servers.ph.env]\n{env}"));
        }
        table
    }
}
