//! `ph hooks`: into an agent's own settings and out again, everything else as it was.

use crate::common::{Done, Ph, path_text};
use posthaste_lab::pty::{Size, Terminal};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const MINE: &str = "{\n    \"model\": \"opus\",\n    \"hooks\": {\n        \"UserPromptSubmit\": [\n            \
    {\"hooks\": [{\"type\": \"command\", \"command\": \"mine\"}]}\n        ],\n        \"Stop\": []\n    },\n    \
    \"a\": [1,   2]\n}\n";

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).expect("a file")
}

fn settings(ph: &Ph, content: &str) -> PathBuf {
    ph.file("user/.claude/settings.json", content)
}

fn state(ph: &Ph, harness: &str) -> Value {
    let done = ph.run(&format!("hooks status {harness} --json"));
    assert_eq!(done.code, 0, "{}", done.err());
    done.json()[0]["state"].clone()
}

fn changed(done: &Done) -> bool {
    assert_eq!(done.code, 0, "{}", done.err());
    done.out().contains(" now ")
}

#[test]
fn it_goes_in_and_out_and_leaves_no_trace() {
    let ph = Ph::new();
    for (at, content) in [MINE, "{}", "{\"hooks\":{}}", "", "{\"x\":1}\r\n"]
        .iter()
        .enumerate()
    {
        let path = settings(&ph, content);
        std::fs::set_permissions(&path, Permissions::from_mode(0o640)).expect("a mode");
        assert_eq!(state(&ph, "claude"), "not");
        assert!(changed(&ph.run("hooks install claude --yes")), "{at}");
        assert_eq!(state(&ph, "claude"), "installed");
        let now = text(&path);
        let whole: Value = serde_json::from_str(&now).expect("JSON");
        let entries = whole["hooks"]["UserPromptSubmit"]
            .as_array()
            .expect("a list");
        let last = &entries.last().expect("one")["hooks"][0];
        let command = format!("{} hook claude", env!("CARGO_BIN_EXE_ph"));
        assert_eq!(*last, json!({"type": "command", "command": command}));
        let copy = path.with_file_name("settings.json.before-ph");
        assert_eq!(text(&copy), *content);
        for file in [&path, &copy] {
            let mode = std::fs::metadata(file)
                .expect("a file")
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o640);
        }
        // Again, it is as it is.
        assert!(!changed(&ph.run("hooks install claude --yes")));
        assert_eq!((text(&path), text(&copy)), (now, (*content).to_owned()));
        assert!(changed(&ph.run("hooks uninstall claude --yes")));
        assert_eq!(text(&path), *content, "{at}");
        assert!(!copy.exists());
        assert!(!changed(&ph.run("hooks uninstall claude --yes")));
    }
}

#[test]
fn what_was_edited_since_stays() {
    let ph = Ph::new();
    let path = settings(&ph, MINE);
    ph.run("hooks install claude --yes").out();
    let edited = text(&path).replace("opus", "haiku");
    std::fs::write(&path, &edited).expect("a file");
    ph.run("hooks uninstall claude --yes").out();
    assert_eq!(text(&path), MINE.replace("opus", "haiku"));
}

#[test]
fn where_there_was_no_file_there_is_none_again() {
    let ph = Ph::new();
    for (harness, file) in [
        ("claude", ".claude/settings.json"),
        ("codex", ".codex/hooks.json"),
        ("gemini", ".gemini/settings.json"),
        ("opencode", ".config/opencode/plugins/posthaste.js"),
    ] {
        let path = ph.user().join(file);
        assert_eq!(state(&ph, harness), "not");
        assert!(changed(
            &ph.run(&format!("hooks install {harness} --yes --agent coder"))
        ));
        assert_eq!(state(&ph, harness), "installed");
        let command = format!("{} hook {harness} --agent coder", env!("CARGO_BIN_EXE_ph"));
        assert!(text(&path).contains(&command), "{}", text(&path));
        let mode = std::fs::metadata(&path)
            .expect("a file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        // For another agent.
        assert!(changed(&ph.run(&format!("hooks install {harness} --yes"))));
        assert!(!text(&path).contains("--agent"));
        let other = text(&path).replace(env!("CARGO_BIN_EXE_ph"), "/old/ph");
        std::fs::write(&path, other).expect("a file");
        assert_eq!(state(&ph, harness), "outdated");
        assert!(changed(&ph.run(&format!("hooks install {harness} --yes"))));
        assert_eq!(state(&ph, harness), "installed");
        assert!(changed(
            &ph.run(&format!("hooks uninstall {harness} --yes"))
        ));
        assert!(!path.exists(), "{harness}");
    }
}

#[test]
fn what_is_not_understood_is_left_alone() {
    let ph = Ph::new();
    for content in [
        "// mine\n{}\n",
        "{\"a\": 1,}",
        "[]",
        "{\"hooks\": []}",
        "{\"hooks\": {\"UserPromptSubmit\": 1}}",
    ] {
        let path = settings(&ph, content);
        let done = ph.run("hooks install claude --yes");
        assert_eq!(done.code, 4, "{content}: {}", done.err());
        assert!(done.err().contains("was not changed: "), "{}", done.err());
        assert!(done.err().contains("hint: "), "{}", done.err());
        assert_eq!(text(&path), content);
    }
    let path = settings(&ph, "{}");
    std::fs::write(&path, [0xff, 0xfe]).expect("a file");
    ph.run("hooks install claude --yes")
        .fails(4, "is not UTF-8");
    let plugin = ph.file("user/.config/opencode/plugins/posthaste.js", "mine");
    assert_eq!(ph.run("hooks install opencode --yes").code, 4);
    assert_eq!(ph.run("hooks uninstall opencode --yes").code, 0);
    assert_eq!(text(&plugin), "mine");
    assert_eq!(ph.run("hooks install vim --yes").code, 2);
}

#[test]
fn nothing_is_written_before_somebody_agrees() {
    let ph = Ph::new();
    let path = settings(&ph, MINE);
    let done = ph.run("hooks install claude");
    assert_eq!(done.code, 4);
    assert!(
        done.err()
            .contains("hint: --yes confirms it; on a terminal you are asked"),
        "{}",
        done.err()
    );
    assert!(
        done.out().contains("+                        \"command\""),
        "{}",
        done.out()
    );
    assert!(!done.out().contains("\"a\": [1"), "{}", done.out());
    assert_eq!(text(&path), MINE);
    // On a terminal.
    let ask = |answer: &str| {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_ph"));
        command
            .args(["hooks", "install", "claude"])
            .env_clear()
            .env("HOME", ph.user())
            .env("PH_HOME", ph.home())
            .env("TERM", "xterm");
        let mut terminal = Terminal::start(command, Size::USUAL);
        terminal.wait_for_text("Write this? [y/N]");
        terminal.type_keys(answer);
        terminal
    };
    ask("n\r").wait_for_text("nothing was changed");
    assert_eq!(text(&path), MINE);
    ask("y\r").wait_for_text("is now installed");
    assert_ne!(text(&path), MINE);
}

#[test]
fn links_are_written_through_and_variables_honoured() {
    let ph = Ph::new();
    let real = ph.file("dotfiles/claude.json", MINE);
    let dir = ph.user().join(".claude");
    std::fs::create_dir_all(&dir).expect("a directory");
    let link = dir.join("settings.json");
    std::os::unix::fs::symlink(&real, &link).expect("a link");
    assert!(changed(&ph.run("hooks install claude --yes")));
    assert!(link.is_symlink());
    assert!(text(&real).contains("hook claude"));
    assert!(changed(&ph.run("hooks uninstall claude --yes")));
    assert!(link.is_symlink());
    assert_eq!(text(&real), MINE);
    std::fs::remove_file(&real).expect("a file");
    assert_eq!(ph.run("hooks install claude --yes").code, 4);
    for (harness, variable, file) in [
        ("claude", "CLAUDE_CONFIG_DIR", "settings.json"),
        ("codex", "CODEX_HOME", "hooks.json"),
        (
            "opencode",
            "XDG_CONFIG_HOME",
            "opencode/plugins/posthaste.js",
        ),
    ] {
        let elsewhere = ph.dir().join(format!("elsewhere-{harness}"));
        let call = ph.call(&["hooks", "install", harness, "--yes", "--json"]);
        let done = call.env(variable, &elsewhere).run();
        assert_eq!(done.code, 0, "{}", done.err());
        let path = elsewhere.join(file);
        assert_eq!(done.json()["path"], path_text(&path));
        assert_eq!(done.json()["changed"], true);
        assert!(path.exists());
    }
    let call = ph.call(&["hooks", "status"]).without("HOME");
    assert_eq!(call.run().code, 2);
}

#[test]
fn an_agent_so_equipped_is_shown_its_mail() {
    let ph = Ph::new();
    let path = settings(&ph, "{}");
    ph.run("hooks install claude --yes --agent coder").out();
    ph.send("coder hello");
    let whole: Value = serde_json::from_str(&text(&path)).expect("JSON");
    let command = whole["hooks"]["UserPromptSubmit"][0]["hooks"][0]["command"].clone();
    let prompt = json!({"hook_event_name": "UserPromptSubmit", "prompt": "x"});
    // As the agent runs it.
    let mut shell = std::process::Command::new("/bin/sh");
    shell
        .args([
            "-c",
            &format!("echo '{prompt}' | {}", command.as_str().expect("a text")),
        ])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", ph.user())
        .env("PH_HOME", ph.home());
    let done = shell.output().expect("a shell");
    let said: Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let context = said["hookSpecificOutput"]["additionalContext"].as_str();
    assert!(context.expect("a text").contains("hello"));
}
