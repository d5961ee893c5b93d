//! The additions to the start of the four agents, as noted by stand-ins of the same names. The lab
//! shows that the real agents use them.

use crate::common::stage::{Stage, until, until_dead, until_so};
use crate::common::tui::install_manifest;
use crate::common::{Call, Done, executable, path_text};
use serde_json::{Value, json};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A stand-in that notes its arguments and its environment, then waits.
const STAND_IN: &str = r#"#!/bin/sh
printf '%s\n' "$@" > "$NOTES/args.new"
env > "$NOTES/env"
mv "$NOTES/args.new" "$NOTES/args"
exec cat
"#;

struct Start<'a> {
    stage: &'a Stage,
    name: &'a str,
}

impl<'a> Start<'a> {
    /// Create a stand-in with this agent's name.
    fn new(stage: &'a Stage, name: &'a str) -> Self {
        let start = Self { stage, name };
        std::fs::create_dir_all(start.notes()).expect("a directory");
        let bin = stage.dir().join(format!("{name}-bin"));
        std::fs::create_dir_all(&bin).expect("a directory");
        executable(&bin.join(name), STAND_IN);
        start
    }

    fn notes(&self) -> PathBuf {
        self.stage.dir().join(format!("{}-notes", self.name))
    }

    fn call(&self, flags: &[&str], args: &[&str]) -> Call {
        let bin = path_text(&self.stage.dir().join(format!("{}-bin", self.name)));
        let path = format!("PATH={bin}:/usr/bin:/bin");
        let notes = format!("NOTES={}", path_text(&self.notes()));
        let head = ["run", "--detach", "--env", &path, "--env", &notes];
        self.stage
            .call(&[&head[..], flags, &[self.name], args].concat())
            .env("PATH", format!("{bin}:/usr/bin:/bin"))
    }

    fn run(&self, flags: &[&str], args: &[&str]) -> Vec<String> {
        self.call(flags, args).run().ok();
        until("its arguments", || {
            let noted = std::fs::read_to_string(self.notes().join("args")).ok()?;
            Some(noted.lines().map(str::to_owned).collect())
        })
    }

    fn env(&self, name: &str) -> Option<String> {
        let all = std::fs::read_to_string(self.notes().join("env")).expect("it was noted");
        let value = |line: &str| Some(line.strip_prefix(name)?.strip_prefix('=')?.to_owned());
        all.lines().find_map(value)
    }

    fn layer(&self) -> PathBuf {
        self.stage
            .home()
            .join("sessions")
            .join(self.name)
            .join("layer")
    }

    fn messages(&self) -> PathBuf {
        self.stage.home().join("messages").join(self.name)
    }
}

fn json_in(file: &Path) -> Value {
    let text = std::fs::read_to_string(file).expect("a file");
    serde_json::from_str(&text).expect("JSON")
}

fn mode(path: &Path) -> u32 {
    path.metadata().expect("it is there").mode() & 0o777
}

#[test]
fn the_settings_for_claude_are_deleted_at_the_end() {
    let stage = Stage::new();
    let start = Start::new(&stage, "claude");
    let args = start.run(&[], &["--model", "x", "hello"]);
    let file = start.layer().join("settings.json");
    let tools = start.layer().join("mcp.json");
    let given = format!("--mcp-config={}", path_text(&tools));
    let settings = path_text(&file);
    let want = [&given, "--settings", &settings, "--model", "x", "hello"];
    assert_eq!(args, want);
    let server = &json_in(&tools)["mcpServers"]["ph"];
    assert_eq!(server["command"], env!("CARGO_BIN_EXE_ph"));
    assert_eq!(server["args"], json!(["mcp"]));
    assert_eq!((mode(&start.layer()), mode(&file)), (0o700, 0o600));
    let settings = json_in(&file);
    let command = &settings["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"];
    assert_eq!(command, "\"${PH_PROGRAM:-true}\" hook claude --injected");
    let own = format!("Read(/{}/**)", path_text(&start.messages()));
    assert_eq!(settings["permissions"]["allow"], json!([own, "mcp__ph"]));
    assert_eq!(mode(&start.messages()), 0o700);
    assert_eq!(start.env("PH_HOOKS").as_deref(), Some("injected"));
    assert_eq!(
        start.env("PH_PROGRAM").as_deref(),
        Some(env!("CARGO_BIN_EXE_ph"))
    );
    // The status shows the command without additions.
    let said = json!(["claude", "--model", "x", "hello"]);
    assert_eq!(stage.status("claude")["command"], said);
    stage.run("stop claude").ok();
    until_so("its layer to be gone", || !start.layer().exists());
}

#[test]
fn a_persons_settings_are_kept() {
    let stage = Stage::new();
    let theirs = json!({
        "model": "mine",
        "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]},
        "permissions": {"allow": ["Bash(ls)"], "deny": ["Read(secret)"]},
    });
    let file = stage.file("mine.json", theirs.to_string());
    let inline = theirs.to_string();
    for args in [
        vec!["--settings", "mine.json", "--resume"],
        vec!["--resume", "--settings=mine.json"],
        vec![
            "--settings",
            "other.json",
            "--resume",
            "--settings",
            &inline,
        ],
    ] {
        let start = Start::new(&stage, "claude");
        let cwd = path_text(stage.dir());
        let got = start.run(&["--cwd", &cwd], &args);
        let ours = start.layer().join("settings.json");
        let want = ["--settings", &path_text(&ours), "--resume"];
        assert_eq!(got[1..], want, "{args:?}");
        let settings = json_in(&ours);
        assert_eq!(settings["model"], "mine");
        let stops = settings["hooks"]["Stop"].as_array().unwrap();
        assert_eq!(stops.len(), 2, "{settings}");
        assert_eq!(stops[0], theirs["hooks"]["Stop"][0]);
        assert_eq!(settings["permissions"]["deny"], json!(["Read(secret)"]));
        assert_eq!(settings["permissions"]["allow"][0], "Bash(ls)");
        let allowed = settings["permissions"]["allow"].as_array().unwrap();
        assert_eq!(allowed.len(), 3, "{settings}");
        stage.run("stop claude").ok();
        std::fs::remove_file(start.notes().join("args")).expect("it was noted");
    }
    assert_eq!(json_in(&file), theirs, "nobody's file is changed");
}

#[test]
fn settings_that_cannot_be_merged_are_reported_before_the_start() {
    let stage = Stage::new();
    let start = Start::new(&stage, "claude");
    stage.file("odd.json", "{\"a\": 1, // why\n}");
    stage.file("list.json", "[]");
    let run = |value: &str| -> Done {
        let cwd = path_text(stage.dir());
        start.call(&["--cwd", &cwd], &["--settings", value]).run()
    };
    run("none.json").fails(2, "cannot read");
    run(".").fails(2, "it is not a regular file");
    run("odd.json").fails(2, "is not a JSON object");
    run("list.json").fails(2, "is not a JSON object");
    run("{").fails(2, "--settings is not a JSON object");
    stage.until_nothing_runs();
    let left = stage.home().join("sessions/claude");
    assert!(!left.exists(), "a start that failed leaves nothing");
}

#[test]
fn codex_opencode_and_gemini_get_their_additions() {
    let stage = Stage::new();
    let codex = Start::new(&stage, "codex");
    let args = codex.run(&[], &["resume", "--last"]);
    assert_eq!(args.len(), 6, "{args:?}");
    assert_eq!([&args[0], &args[2]], ["-c", "-c"]);
    let given: toml::Table = args[1].parse().expect("TOML");
    let server = &given["mcp_servers"]["ph"];
    let command = [&server["command"], &server["args"][0], &server["args"][1]];
    let want = ["sh", "-c", "exec \"${PH_PROGRAM:-false}\" mcp"];
    assert_eq!(command.map(toml::Value::as_str), want.map(Some));
    let given: toml::Table = args[3].parse().expect("TOML");
    let hook = &given["hooks"]["Stop"][0]["hooks"][0]["command"];
    assert_eq!(
        hook.as_str(),
        Some("\"${PH_PROGRAM:-true}\" hook codex --injected")
    );
    // Each hook is trusted, and nothing else.
    let hooks = given["hooks"].as_table().unwrap();
    let state = hooks["state"].as_table().unwrap();
    assert_eq!(state.len(), hooks.len() - 1);
    assert!(state.keys().all(|key| key.starts_with("/<session-flags>/")));
    assert_eq!(args[4..], ["resume", "--last"]);

    let opencode = Start::new(&stage, "opencode");
    let theirs = r#"OPENCODE_CONFIG_CONTENT={"plugin": ["mine"], "mcp": {"mine": {}}}"#;
    let args = opencode.run(&["--env", theirs], &["-m", "x"]);
    let port = args[0].strip_prefix("--port=").map(str::parse::<u16>);
    assert!(matches!(port, Some(Ok(1..))), "{args:?}");
    assert_eq!(args[1..], ["-m", "x"]);
    let secret = opencode.env("OPENCODE_SERVER_PASSWORD");
    assert!(secret.is_some_and(|secret| secret.len() == 32));
    let config = opencode.env("OPENCODE_CONFIG_CONTENT").expect("it is set");
    let plugin = opencode.layer().join("posthaste.js");
    let ours = format!("file://{}", path_text(&plugin));
    let command = [env!("CARGO_BIN_EXE_ph"), "mcp"];
    let server = json!({"type": "local", "command": command, "enabled": true});
    let want = json!({
        "plugin": ["mine", ours], "mcp": {"mine": {}, "ph": server},
        "server": {"hostname": "127.0.0.1"},
    });
    assert_eq!(serde_json::from_str::<Value>(&config).unwrap(), want);
    let script = std::fs::read_to_string(plugin).expect("a file");
    let own = format!("\"{}/*\": \"allow\"", path_text(&opencode.messages()));
    assert!(script.contains(&own), "{script}");

    let gemini = Start::new(&stage, "gemini");
    let own = format!("--include-directories={}", path_text(&gemini.messages()));
    assert_eq!(gemini.run(&[], &["-m", "x"]), [own.as_str(), "-m", "x"]);
    // It has only the hooks that the person has installed.
    assert_eq!(gemini.env("PH_HOOKS"), None);
}

#[test]
fn an_api_that_the_person_opens_is_left_alone() {
    for own in [&["--port", "4096"][..], &["--port=4096"]] {
        let stage = Stage::new();
        let opencode = Start::new(&stage, "opencode");
        let secret = ["--env", "OPENCODE_SERVER_PASSWORD=mine"];
        assert_eq!(opencode.run(&secret, own), own);
        let given = opencode.env("OPENCODE_SERVER_PASSWORD");
        assert_eq!(given.as_deref(), Some("mine"));
    }
}

/// A server named `ph` in the person's settings is replaced as a whole.
#[test]
fn an_mcp_server_named_ph_is_replaced() {
    let stage = Stage::new();
    let opencode = Start::new(&stage, "opencode");
    let theirs = r#"OPENCODE_CONFIG_CONTENT={"mcp": {"ph": {"type": "remote", "enabled": false,
        "command": ["other"]}, "mine": {"command": ["m"]}}}"#;
    opencode.run(&["--env", &theirs.replace('\n', "")], &[]);
    let config = opencode.env("OPENCODE_CONFIG_CONTENT").expect("it is set");
    let config: Value = serde_json::from_str(&config).expect("JSON");
    let command = [env!("CARGO_BIN_EXE_ph"), "mcp"];
    let ours = json!({"type": "local", "command": command, "enabled": true});
    assert_eq!(config["mcp"]["ph"], ours);
    assert_eq!(config["mcp"]["mine"], json!({"command": ["m"]}));
}

/// The variables come from the shell's environment, not from --env.
#[test]
fn credentials_in_the_persons_environment_are_used() {
    let stage = Stage::new();
    let opencode = Start::new(&stage, "opencode");
    let call = opencode
        .call(&[], &[])
        .env("OPENCODE_SERVER_USERNAME", "me")
        .env("OPENCODE_SERVER_PASSWORD", "mine");
    call.run().ok();
    until_so("its arguments", || opencode.notes().join("args").exists());
    let given = |name: &str| opencode.env(&format!("OPENCODE_SERVER_{name}"));
    assert_eq!(given("USERNAME").as_deref(), Some("me"));
    assert_eq!(given("PASSWORD").as_deref(), Some("mine"));
}

#[test]
fn settings_contents_are_never_read_as_a_path() {
    let stage = Stage::new();
    let opencode = Start::new(&stage, "opencode");
    for content in ["[]", "// mine\n{}", "settings.json", "{\"a\": 1,}"] {
        let theirs = format!("OPENCODE_CONFIG_CONTENT={content}");
        let done = opencode.call(&["--env", &theirs], &[]).run();
        done.fails(2, "OPENCODE_CONFIG_CONTENT is not a JSON object");
        assert!(done.err().contains("comments"), "{}", done.err());
    }
    stage.until_nothing_runs();
}

#[test]
fn an_agents_subcommand_gets_no_additions() {
    let check = |name: &str, args: &[&str]| {
        let stage = Stage::new();
        let start = Start::new(&stage, name);
        assert_eq!(start.run(&[], args), args, "{name} {args:?}");
        assert_eq!(start.env("OPENCODE_SERVER_PASSWORD"), None);
        assert_eq!(start.env("OPENCODE_CONFIG_CONTENT"), None);
        assert_eq!(start.env("PH_HOOKS"), None, "his own hooks are heard");
    };
    check("opencode", &["auth", "login"]);
    check("opencode", &["--log-level", "DEBUG", "models"]);
    check("opencode", &["--version"]);
    check("gemini", &["mcp", "list"]);
    check("gemini", &["extensions", "list"]);
    // The value of a flag is not a subcommand.
    let stage = Stage::new();
    let opencode = Start::new(&stage, "opencode");
    assert_eq!(opencode.run(&[], &["--prompt", "models"]).len(), 3);
}

#[test]
fn launch_files_of_a_crash_are_removed() {
    let stage = Stage::new();
    let file = "[[start.file]]\nname = \"a.json\"\nvariable = \"GIVEN\"\ntext = '{}'\n";
    let manifest = format!("name = \"own\"\ndescription = \"A test's own\"\n{file}");
    install_manifest(&stage, "own", &manifest);
    let start = Start::new(&stage, "own");
    start.run(&["--harness", "own"], &[]);
    let given = start.layer().join("a.json");
    assert_eq!(start.env("GIVEN"), Some(path_text(&given)));
    std::fs::write(start.layer().join("other"), "left").expect("it is ours");
    let child = stage.child("own");
    let pid = rustix::process::Pid::from_raw(stage.pid("own")).expect("it runs");
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it runs");
    until_dead(child);
    assert!(given.exists());
    std::fs::remove_file(start.notes().join("args")).expect("it was noted");
    let done = start.call(&["--harness", "own"], &[]).run();
    assert_eq!(done.code, 0, "{}", done.err());
    until("its arguments", || {
        start.notes().join("args").exists().then_some(())
    });
    assert!(given.exists() && !start.layer().join("other").exists());
}
