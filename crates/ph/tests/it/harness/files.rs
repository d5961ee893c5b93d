//! Manifests as files: found, overridden, wrong; and what `ph harness` says of them.

use crate::common::stage::{Stage, is_alive, number_in, until, until_dead};
use crate::common::tui::{LAB, teach};
use crate::common::{Done, path_text};
use posthaste_lab::pty::Size;
use rustix::fs::{FileType, Mode};
use serde_json::{Value, json};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

/// Puts a manifest into the home.
fn teach_home(stage: &Stage, name: &str, manifest: &str) {
    let dir = stage.home().join("harness");
    std::fs::create_dir_all(&dir).expect("a directory");
    for dir in [stage.home(), dir.clone()] {
        std::fs::set_permissions(dir, Permissions::from_mode(0o700)).expect("it is ours");
    }
    std::fs::write(dir.join(format!("{name}.toml")), manifest).expect("a file");
}

fn named(name: &str, more: &str) -> String {
    format!("name = \"{name}\"\ndescription = \"A test's own\"\n{more}")
}

#[test]
fn the_nearer_file_wins() {
    let stage = Stage::new();
    let source = || {
        let shown = stage.run("harness show own --json").json();
        let source = shown["source"].as_str().unwrap();
        source.replace(&path_text(stage.dir()), "")
    };
    teach(&stage, "own", &named("own", "commands = [\"sleep\"]\n"));
    assert_eq!(source(), "/user/.config/posthaste/harness/own.toml");
    teach_home(&stage, "own", &named("own", "commands = [\"cat\"]\n"));
    assert!(source().ends_with("/harness/own.toml") && !source().contains(".config"));
    // The command chooses, unless somebody says otherwise.
    let harness = |args: &[&str], name: &str| {
        let head = ["run", "--detach", "--name", name];
        stage.call(&[&head[..], args].concat()).run().ok();
        stage.status(name)["harness"].clone()
    };
    assert_eq!(harness(&["cat"], "a"), "own");
    assert_eq!(harness(&["/bin/cat"], "b"), "own");
    assert_eq!(harness(&["sleep", "1000"], "c"), "generic");
    assert_eq!(harness(&["--harness", "generic", "cat"], "d"), "generic");
    // One of ours can be replaced too.
    teach(
        &stage,
        "generic",
        &named("generic", "[activity]\nsilence = \"50ms\"\n"),
    );
    stage.script("e", "echo hi; exec cat");
    stage.until_activity("e", "idle");
    assert_eq!(stage.status("e")["evidence"], "no output for 50 ms");
}

#[test]
fn a_start_is_dressed_by_its_harness() {
    let stage = Stage::new();
    let start = r#"
[start]
args = ["-c", 'echo "<$WHO|$ALSO|$0>"; exec cat', "{agent}"]
env = { WHO = "{agent}", ALSO = "theirs", DIR = "{message_dir}" }
"#;
    teach(&stage, "sh", &named("sh", start));
    let args = [
        "run",
        "--detach",
        "--name",
        "bot",
        "--harness",
        "sh",
        "--env",
        "ALSO=mine",
        "/bin/sh",
    ];
    stage.call(&args).run().ok();
    stage.until_shown("bot", "<bot|mine|bot>");
    assert_eq!(stage.status("bot")["command"], json!(["/bin/sh"]));
}

#[test]
fn what_is_wrong_is_told_before_anything_starts() {
    let stage = Stage::new();
    teach(
        &stage,
        "bad",
        &named(
            "bad",
            "commands = [\"cat\"]\n[submit]\nenter = \"retrun\"\n",
        ),
    );
    teach(&stage, "good", &named("good", ""));
    let run = |args: &[&str]| -> Done {
        let head = ["run", "--detach", "--name", "bot"];
        stage.call(&[&head[..], args].concat()).run()
    };
    let done = run(&["--harness", "bad", "sleep", "1000"]);
    done.fails(2, "the harness bad (");
    let says = done.err();
    assert!(
        says.contains("bad.toml, line 5) is invalid: unknown key 'retrun'"),
        "{says}"
    );
    run(&["--harness", "nosuch", "sleep", "1000"]).fails(3, "no harness is called 'nosuch'");
    let near = run(&["--harness", "goood", "sleep", "1000"]);
    near.fails(3, "no harness is called 'goood'");
    assert!(near.err().contains("did you mean good?"), "{}", near.err());
    // A file that is not right is nobody else's business.
    run(&["cat"]).ok();
    assert_eq!(stage.status("bot")["harness"], "generic");
    stage.run("stop bot").ok();
    for verb in ["show", "test"] {
        stage
            .run(&format!("harness {verb} nosuch"))
            .fails(3, "no harness is called 'nosuch'");
        stage.run(&format!("harness {verb} bad")).fails(2, "line 5");
    }
    stage
        .run("harness test good")
        .fails(2, "this harness has no command of its own");
    stage
        .run("harness test good --for soon -- cat")
        .fails(2, "soon");
    stage
        .run("harness test good -- no-such-command")
        .fails(2, "no such command");
    stage.until_nothing_runs();
}

#[test]
fn what_is_no_file_is_told_and_not_waited_for() {
    let stage = Stage::new();
    teach(&stage, "good", &named("good", ""));
    let pipe = stage.user().join(".config/posthaste/harness/pipe.toml");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).expect("a pipe");
    let run = |line: &str| {
        let mut child = stage.call(&stage.words(line)).spawn();
        until("an answer", || {
            child.try_wait().expect("it can be waited for")
        });
        Done::of(child)
    };
    let listed = run("harness ls");
    assert!(
        listed.out().contains("pipe      -         invalid "),
        "{}",
        listed.out()
    );
    let says = "pipe.toml: it is not a regular file";
    assert!(listed.err().contains(says), "{}", listed.err());
    for line in ["harness show pipe", "harness test pipe -- cat"] {
        run(line).fails(2, says);
    }
    // It is nobody else's business.
    run("run --detach --name bot cat").ok();
}

#[test]
fn harnesses_in_a_home_that_is_open_to_others_are_not_believed() {
    let stage = Stage::new();
    teach_home(&stage, "own", &named("own", ""));
    stage.run("harness show own").ok();
    let dir = stage.home().join("harness");
    std::fs::set_permissions(&dir, Permissions::from_mode(0o755)).unwrap();
    stage.run("harness ls").fails(4, "is open to other users");
    stage
        .run("run --detach sleep 1000")
        .fails(4, "is open to other users");
    std::fs::set_permissions(&dir, Permissions::from_mode(0o700)).unwrap();
    // Nor is anything opened through a link.
    let other = stage.file("elsewhere.toml", named("linked", ""));
    std::os::unix::fs::symlink(other, dir.join("linked.toml")).unwrap();
    stage.run("harness show linked").fails(2, "cannot read");
    stage.run("harness show own").ok();
}

#[test]
fn a_restart_needs_its_harness() {
    let stage = Stage::new();
    teach(&stage, "own", &named("own", "commands = [\"sleep\"]\n"));
    stage.start("bot", &["sleep", "1000"]).ok();
    let child = stage.child("bot");
    teach(&stage, "own", "nonsense");
    let done = stage.run("restart bot --detach");
    done.fails(2, "cannot restart bot: the harness own");
    assert_eq!(stage.child("bot"), child);
}

#[test]
fn what_there_is_can_be_listed_and_shown() {
    let stage = Stage::new();
    teach(&stage, "lab", LAB);
    teach(
        &stage,
        "none",
        &named(
            "none",
            "commands = [\"no-such-command\"]\ninstall = \"try harder\"\n",
        ),
    );
    teach(&stage, "wrong", "name = 1");
    insta::assert_snapshot!(stage.transcript(&["harness show lab", "harness show none --json"]));
    let list = |args: &[&str]| {
        let done = stage.call(args).env("PATH", stage.dir()).run();
        stage.redact(&format!("{}{}", done.out(), done.err()))
    };
    insta::assert_snapshot!(list(&["harness", "ls"]), @"
    NAME      COMMANDS         INSTALLED  FROM
    claude    claude           no         built in
    codex     codex            no         built in
    gemini    gemini           no         built in
    generic   any              -          built in
    lab       lab-tui          no         [dir]/user/.config/posthaste/harness/lab.toml
    none      no-such-command  no         [dir]/user/.config/posthaste/harness/none.toml
    opencode  opencode         no         built in
    wrong     -                invalid    [dir]/user/.config/posthaste/harness/wrong.toml
    note: the harness wrong ([dir]/user/.config/posthaste/harness/wrong.toml, line 1) is invalid: invalid type: integer `1`, expected a string
    ");
    let all = stage.call(&["harness", "ls", "--json"]).run().json();
    let own = all.as_array().unwrap().iter();
    let own = own.filter(|entry| entry["source"] != "built in" || entry["name"] == "generic");
    let own: Vec<String> = own.map(Value::to_string).collect();
    insta::assert_snapshot!(stage.redact(&own.join("\n")), @r#"
    {"commands":[],"description":"Any program; its activity is judged by its output","error":null,"install":null,"installed":null,"name":"generic","notes":[],"source":"built in"}
    {"commands":["lab-tui"],"description":"The lab's scripted agent","error":null,"install":null,"installed":false,"name":"lab","notes":[],"source":"[dir]/user/.config/posthaste/harness/lab.toml"}
    {"commands":["no-such-command"],"description":"A test's own","error":null,"install":"try harder","installed":false,"name":"none","notes":[],"source":"[dir]/user/.config/posthaste/harness/none.toml"}
    {"commands":[],"description":null,"error":"the harness wrong ([dir]/user/.config/posthaste/harness/wrong.toml, line 1) is invalid: invalid type: integer `1`, expected a string","install":null,"installed":null,"name":"wrong","notes":[],"source":"[dir]/user/.config/posthaste/harness/wrong.toml"}
    "#);
    let generic = stage.run("harness show generic").ok();
    assert!(
        generic.starts_with("# built in\n# For any program"),
        "{generic}"
    );
}

/// A directory with a program of this name as the only one to be found.
fn alone_on_path(stage: &Stage, program: &str) -> PathBuf {
    let path = stage.file(&format!("alone/{program}"), "#!/bin/sh\nexec cat\n");
    std::fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("it is ours");
    path.parent().expect("a directory").to_owned()
}

#[test]
fn the_agents_that_are_known_are_listed() {
    let stage = Stage::new();
    let path = alone_on_path(&stage, "codex");
    let done = stage.call(&["harness", "ls"]).env("PATH", path).run();
    insta::assert_snapshot!(done.ok(), @"
    NAME      COMMANDS  INSTALLED  FROM
    claude    claude    no         built in
    codex     codex     yes        built in
    gemini    gemini    no         built in
    generic   any       -          built in
    opencode  opencode  no         built in
    ");
}

#[test]
fn an_agent_that_is_not_installed_can_be() {
    let stage = Stage::new();
    let nothing = stage.dir().join("nothing");
    let check = |command: &[&str], hint: &str| {
        let args = [&["run", "--detach", "--name", "bot"], command].concat();
        let done = stage.call(&args).env("PATH", &nothing).run();
        done.fails(
            2,
            &format!("no such command: {}", command[command.len() - 1]),
        );
        assert!(done.err().contains(hint), "{}", done.err());
    };
    let npm = "hint: to install it: npm install -g";
    check(&["claude"], &format!("{npm} @anthropic-ai/claude-code"));
    check(&["codex"], &format!("{npm} @openai/codex"));
    check(&["opencode"], &format!("{npm} opencode-ai"));
    check(&["gemini"], &format!("{npm} @google/gemini-cli"));
    // That would not help with another program, whatever it is like.
    check(&["--harness", "claude", "my-claude"], "on PATH?");
    stage.until_nothing_runs();
}

#[test]
fn a_trial_tells_what_it_sees() {
    let stage = Stage::new();
    teach(&stage, "lab", LAB);
    let program = path_text(&posthaste_lab::program("lab-tui"));
    let orders = path_text(&stage.dir().join("bot.do"));
    let size = Size {
        cols: 120,
        rows: 40,
    };
    let args = [
        "harness", "test", "lab", "--", &program, "--title", "--do", &orders,
    ];
    let mut trial = stage.terminal_of(&args, size);
    trial.wait_for_text("its title says: * lab");
    let mut then = |order: &str, wanted: &str| {
        std::fs::write(stage.dir().join("bot.order"), order).unwrap();
        std::fs::rename(stage.dir().join("bot.order"), &orders).unwrap();
        trial.wait_for_text(wanted);
    };
    then("work", "its title says: ... busy");
    then("ask go on", "blocked on");
    then("answer\ntype mine", "draft");
    then("exit 3", "exited");
    let shown = trial.screen();
    let seen = shown.iter().filter_map(|line| line.split_once(" s  "));
    let seen: Vec<&str> = seen.map(|(_, noted)| noted).collect();
    insta::assert_snapshot!(seen.join("\n"), @r#"
    activity  starting    it was started, and the pattern that shows that it is ready has not appeared
    title     * lab
    input     empty
    ready     yes         the pattern that shows that it is ready appeared
    activity  idle        its title says: * lab
    title     ... busy
    activity  working     its title says: ... busy
    input     unrecognised  expected the input box and no dialog, found "permission: go on"
    activity  blocked on permission: go on  its question is on the screen
    input     draft       mine
    activity  working     its title says: ... busy
    activity  exited      exit 3
    "#);
    assert!(trial.wait_exit().success());
    stage.until_nothing_runs();
}

#[test]
fn a_trial_ends_as_the_program_does() {
    let stage = Stage::new();
    teach(&stage, "lab", LAB);
    let trial = |args: &[&str]| stage.call(&[&["harness", "test"], args].concat()).run();
    // One that is never ready.
    let program = path_text(&posthaste_lab::program("lab-tui"));
    let boot = path_text(&stage.file("boot", ""));
    let done = trial(&["lab", "--for", "300ms", "--", &program, "--boot", &boot]);
    assert_eq!(done.code, 1, "{}", done.out());
    assert!(!done.out().contains("ready     yes"), "{}", done.out());
    // One that ends by itself says how.
    let done = trial(&["generic", "--json", "--", "/bin/sh", "-c", "exit 3"]);
    assert_eq!(done.code, 1);
    let out = done.out();
    let last: Value = serde_json::from_str(out.lines().last().unwrap()).unwrap();
    assert_eq!(
        ["kind", "is", "evidence"].map(|key| last[key].as_str().unwrap()),
        ["activity", "exited", "exit 3"]
    );
    assert!(last["at_ms"].as_u64().is_some(), "{last}");
    assert!(!stage.home().exists(), "nothing is stored");
}

#[test]
fn a_trial_ends_what_it_has_started() {
    let stage = Stage::new();
    let args = [
        "harness",
        "test",
        "generic",
        "--for",
        "300ms",
        "--",
        "/bin/sh",
        "-c",
        "trap '' HUP TERM; sleep 1000 & wait; sleep 1000",
    ];
    let done = stage.call(&args).run();
    assert!(done.out().contains("by us"), "{}", done.out());
    stage.until_nothing_runs();
    // So it does where it is killed itself.
    let file = stage.dir().join("pid");
    let stays = format!(
        "trap '' HUP TERM; echo $$ > '{}'; while :; do sleep 0.1; done",
        path_text(&file)
    );
    let args = ["harness", "test", "generic", "--", "/bin/sh", "-c", &stays];
    let mut trial = stage.call(&args).spawn();
    let program = number_in(&file);
    assert!(is_alive(program));
    trial.kill().expect("it runs");
    trial.wait().expect("it was killed");
    until_dead(program);
    // So it does where somebody has seen enough.
    let args = ["harness", "test", "generic", "--", "sleep", "1000"];
    let mut trial = stage.terminal_of(&args, Size::USUAL);
    trial.wait_for_text("starting");
    trial.type_keys("\x03");
    trial.wait_for_text("by us");
    assert_eq!(trial.wait_exit().code(), Some(1), "it was never ready");
    stage.until_nothing_runs();
}
