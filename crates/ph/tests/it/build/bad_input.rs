//! What is wrong is said before anything is started; what goes wrong later ends no loop unseen.

use super::stage::Stage;
use crate::common::{Ph, path_text};

#[test]
fn nothing_is_started_and_nothing_changed() {
    let ph = Ph::new();
    let file = |name: &str, content: &str| path_text(&ph.file(name, content));
    let spec = file("spec.md", "x");
    let empty = file("empty.md", " \n");
    let bad = file("bad.json", "{\"userStories\": [\n  {,}]}");
    let template = file("t.txt", "a\n{{nothing}}");
    let odd = file("Odd Name.md", "x");
    let check = |line: String, code: i32, says: &str, hint: &str| {
        let done = ph.run(&format!("build --detach {line}"));
        done.fails(code, says);
        assert!(done.err().contains(hint), "{}", done.err());
        assert!(!ph.home().join("sessions").exists(), "{line}");
        assert!(!ph.home().join("journal.db").exists(), "{line}");
    };
    let from = |file: &str| format!("--spec '{file}' -- true");
    let none = "a loop needs a spec or a prd";
    check("-- true".to_owned(), 2, none, "--spec");
    check(from("no.md"), 2, "there is no such file", "");
    check(from(&empty), 2, "the spec is empty", "");
    let dir = path_text(ph.dir());
    check(from(&dir), 2, "it is a directory", "--spec FILE");
    let unread = format!("--prd {bad} -- true");
    check(unread, 2, "line 2, column 4", "userStories");
    check(
        from(&odd),
        2,
        "cannot be the agent's name",
        "--name odd-name",
    );
    let with = |words: &str| format!("--spec {spec} {words}");
    let odd_template = format!("--template {template} -- true");
    check(with(&odd_template), 2, "{{nothing}}", "");
    check(with("--name human -- true"), 2, "human", "");
    let unknown = "no such command: no-such-agent";
    check(with("-- no-such-agent"), 4, unknown, "installed");
    check(with("--harness generic"), 2, "without a terminal", "'--'");
    check(with("--harness nothing"), 3, "no harness", "");
    check(with("--model m -- true"), 2, "its model", "");
    check(
        with("--cwd nowhere -- true"),
        2,
        "nowhere is not a directory",
        "",
    );
    check(with("--iterations -1 -- true"), 2, "-1", "");
    its_agent_is_not_installed(&ph, &spec);
}

fn its_agent_is_not_installed(ph: &Ph, spec: &str) {
    let path = |words: &[&str], says: &str| {
        let done = ph.call(&[&["build", "--detach", "--spec", spec][..], words].concat());
        let done = done.env("PATH", "/nonexistent").run();
        done.fails(4, "no such command");
        assert!(done.err().contains(says), "{}", done.err());
    };
    path(&[], "npm install -g @anthropic-ai/claude-code");
    path(&["--harness", "codex"], "npm install -g @openai/codex");
    path(&["--harness", "opencode"], "npm install -g opencode-ai");
    path(
        &["--harness", "gemini"],
        "npm install -g @google/gemini-cli",
    );
}

#[test]
fn two_loops_of_one_name_are_one() {
    let looped = Stage::new().start();
    looped.prompt(1);
    let spec = path_text(&looped.ph().dir().join("spec.md"));
    let facts = looped.ph().facts();
    let words = [
        "build", "--detach", "--name", "bot", "--spec", &spec, "--", "true",
    ];
    looped
        .ph()
        .call(&words)
        .run()
        .fails(4, "bot is already running");
    assert_eq!(looped.ph().facts(), facts, "nothing was changed");
}

#[test]
fn an_agent_that_crashes_is_tried_again_and_given_up() {
    let stage = Stage::new()
        .prd(r#"{"id": "US-1"}"#)
        .flags(&["--failures", "2"]);
    let progress = stage.path("progress.txt");
    let looped = stage.start();
    looped.prompt(1);
    looped.go("exit 3");
    let again = looped.prompt(1);
    assert!(again.contains("exit 3"), "{again}");
    looped.go("kill -9 $$");
    assert_eq!(looped.ending(), r#"{"gave_up":2}"#);
    let want = [r#"1 {"failed":{"exit":3}}"#, r#"1 {"failed":{"signal":9}}"#];
    assert_eq!(looped.outcomes(), want);
    let told = std::fs::read_to_string(&progress).expect("blocks");
    assert_eq!(told.matches("FAILURE (Iteration 1)").count(), 2, "{told}");
    assert!(told.contains("**Story:** US-1"), "{told}");
    let session = looped.ph().run("status bot --json").json();
    assert_eq!(session["loop"]["status"], "failed", "{session}");
}

#[test]
fn an_agent_that_hangs_is_ended() {
    let stage = Stage::new().flags(&["--idle", "1s", "--failures", "1"]);
    let looped = stage.command(&["/bin/sh", "-c", "exec sleep 1000"]).start();
    assert_eq!(looped.ending(), r#"{"gave_up":1}"#);
    assert_eq!(looped.outcomes(), [r#"1 {"failed":{"idle":1}}"#]);
}

#[test]
fn an_agent_that_floods_is_read_to_its_end() {
    let stage = Stage::new().flags(&["--iterations", "1"]);
    let script =
        "yes 0123456789012345678901234567890123456789 | head -c 20000000; echo; echo the last line";
    let looped = stage.command(&["/bin/sh", "-c", script]).start();
    looped.ending();
    assert_eq!(looped.outcomes(), ["1 \"ended\""]);
    let seen = looped.ph().run("replay bot --cast").out();
    assert!(
        seen.contains("the last line"),
        "{}",
        &seen[seen.len().saturating_sub(300)..]
    );
}

#[test]
fn a_spec_that_goes_away_is_a_failure_that_passes() {
    let stage = Stage::new();
    let spec = stage.path("spec.md");
    let looped = stage.start();
    looped.prompt(1);
    looped.go(&format!("rm '{spec}'"));
    let outcomes = looped.wait_for_outcomes(2);
    assert!(
        outcomes[1].contains("there is no such file"),
        "{outcomes:?}"
    );
    looped.ph().file("spec.md", "Build another.");
    let second = looped.prompt(2);
    assert!(second.contains("Build another."), "{second}");
}

#[test]
fn an_agent_that_reads_nothing_leaves_its_mail_uncertain() {
    let stage = Stage::new().flags(&["--iterations", "1"]);
    // More than a pipe holds.
    stage.ph.file("long.txt", "z".repeat(16_000));
    let path = stage.path("long.txt");
    for _ in 0..12 {
        let sent = stage.ph.run(&format!("send bot --file {path}"));
        assert_eq!(sent.code, 0, "{}", sent.err());
    }
    let script = "exec 0<&-; read -r x < \"$DIR/orders\"";
    let looped = stage.command(&["/bin/sh", "-c", script]).start();
    looped.go("x");
    looped.ending();
    let inbox = looped.ph().run("inbox bot --json").json();
    let inbox = inbox.as_array().expect("a list");
    assert_eq!(inbox.len(), 12);
    for message in inbox {
        assert_eq!(message["receipt"], "uncertain", "{message}");
    }
}
