//! Snippets for the settings of agents.

use crate::common::Ph;
use serde_json::{Value, json};

#[test]
fn each_agent_has_a_snippet() {
    let ph = Ph::new();
    let print = |words: &str| {
        let call = ph.call(&ph.words(words)).without("PH_HOME");
        let done = call.run();
        assert_eq!(done.code, 0, "{}", done.err());
        format!("{}{}", done.out(), done.err())
    };
    insta::assert_snapshot!(print("mcp config claude"), @r#"
    {
      "mcpServers": {
        "ph": {
          "args": [
            "mcp"
          ],
          "command": "ph",
          "type": "stdio"
        }
      }
    }
    note: merge this into .mcp.json of the project, or a file for 'claude --mcp-config FILE'; '>' would overwrite the settings there
    "#);
    insta::assert_snapshot!(print("mcp config codex"), @r#"
    [mcp_servers.ph]
    args = ["mcp"]
    command = "ph"
    env_vars = ["PH_AGENT", "PH_HOME", "PH_SOCKET", "PH_ITERATION"]
    note: merge this into ~/.codex/config.toml; '>' would overwrite the settings there
    "#);
    insta::assert_snapshot!(print("mcp config opencode"), @r#"
    {
      "$schema": "https://opencode.ai/config.json",
      "mcp": {
        "ph": {
          "command": [
            "ph",
            "mcp"
          ],
          "enabled": true,
          "type": "local"
        }
      }
    }
    note: merge this into ~/.config/opencode/opencode.json, or opencode.json of the project; '>' would overwrite the settings there
    "#);
    insta::assert_snapshot!(print("mcp config gemini"), @r#"
    {
      "mcpServers": {
        "ph": {
          "args": [
            "mcp"
          ],
          "command": "ph"
        }
      }
    }
    note: merge this into ~/.gemini/settings.json, or .gemini/settings.json of the project; '>' would overwrite the settings there
    "#);
    insta::assert_snapshot!(print("mcp config codex --agent coder --home /x/y"), @r#"
    [mcp_servers.ph]
    args = ["mcp", "--home", "/x/y"]
    command = "ph"
    env_vars = ["PH_HOME", "PH_SOCKET", "PH_ITERATION"]

    [mcp_servers.ph.env]
    PH_AGENT = "coder"
    note: merge this into ~/.codex/config.toml; '>' would overwrite the settings there
    "#);
    insta::assert_snapshot!(print("mcp config opencode --agent coder --home /x/y"), @r#"
    {
      "$schema": "https://opencode.ai/config.json",
      "mcp": {
        "ph": {
          "command": [
            "ph",
            "mcp",
            "--home",
            "/x/y"
          ],
          "enabled": true,
          "environment": {
            "PH_AGENT": "coder"
          },
          "type": "local"
        }
      }
    }
    note: merge this into ~/.config/opencode/opencode.json, or opencode.json of the project; '>' would overwrite the settings there
    "#);
}

#[test]
fn a_named_home_is_in_the_snippet() {
    let ph = Ph::new();
    let home = "/x/a \"b\"\n\\c";
    for harness in ["claude", "gemini", "opencode", "codex"] {
        let call = ph.call(&["mcp", "config", harness, "--agent", "coder", "--json"]);
        let told = call.env("PH_HOME", home).run().json();
        let text = told["snippet"].as_str().unwrap();
        let (command, agent) = match harness {
            "codex" => {
                let table: toml::Table = text.parse().unwrap();
                let server = &table["mcp_servers"]["ph"];
                let words = server["args"].as_array().unwrap();
                let words: Vec<_> = words
                    .iter()
                    .map(|w| w.as_str().unwrap().to_owned())
                    .collect();
                (
                    words,
                    server["env"]["PH_AGENT"].as_str().unwrap().to_owned(),
                )
            }
            other => {
                let value: Value = serde_json::from_str(text).unwrap();
                let (server, words, env) = match other {
                    "opencode" => (&value["mcp"]["ph"], "command", "environment"),
                    _ => (&value["mcpServers"]["ph"], "args", "env"),
                };
                let words: Vec<String> = serde_json::from_value(server[words].clone()).unwrap();
                let words = words.into_iter().filter(|word| word != "ph").collect();
                (words, server[env]["PH_AGENT"].as_str().unwrap().to_owned())
            }
        };
        assert_eq!(command, ["mcp", "--home", home], "{harness}");
        assert_eq!(agent, "coder");
        assert_eq!(told["harness"], harness);
        assert!(told["file"].is_string());
        assert_eq!(told["format"] == json!("toml"), harness == "codex");
    }
    assert!(!ph.home().exists());
}

#[test]
fn an_unknown_kind_of_agent_is_refused() {
    let ph = Ph::new();
    let done = ph.run("mcp config emacs");
    done.fails(3, "the settings of emacs for MCP servers are not known");
    done.fails(3, "hint: supported: claude, codex, opencode, gemini; in any other client, set the command 'ph mcp'");
    ph.run("mcp config").fails(2, "<HARNESS>");
    ph.run("mcp serve")
        .fails(2, "unrecognized subcommand 'serve'");
}
