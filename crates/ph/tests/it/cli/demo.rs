//! `ph demo`: an exchange on a fresh machine, of which nothing is left.

use crate::common::{PATIENCE, Ph};
use std::io::{BufRead, BufReader};
use std::time::Instant;

fn is_empty(dir: &std::path::Path) -> bool {
    std::fs::read_dir(dir)
        .expect("the directory is there")
        .next()
        .is_none()
}

#[test]
fn the_demo_shows_an_exchange_and_leaves_nothing() {
    let ph = Ph::new();
    let temp = ph.dir().join("tmp");
    std::fs::create_dir(&temp).unwrap();
    let begun = Instant::now();
    let shown = ph.call(&["demo"]).env("TMPDIR", &temp).run().ok();
    let mut rest = shown.as_str();
    // In this order.
    for key in [
        "\n$ ph send coder --subject login 'Please fix the login page.'\n",
        "\nrule       no-session\n",
        "/harness/demo.toml\nname = \"demo\"\n",
        "\n$ ph run --name coder --harness demo --detach -- sh ",
        "\n$ ph send coder --priority idle ",
        "\nrule       working\n",
        "\nevidence   its title says: coder is working\n",
        "\n$ ph send coder 'The form is in login.html.' --wait offered\n",
        "\n$ ph send coder --priority interrupt ",
        // The agent's terminal: the first message, the normal one, the interrupt, then the idle
        // one.
        "] [login] Please fix the login page.\ncoder: I begin\n[ph message from: human id: ",
        "] The form is in login.html.\ncoder: noted\n^C\ncoder: I stop.\n[URGENT ph message ",
        "] Later: tidy the changelog.\n",
        "reviewer: May I run the tests?\n  1. Yes\n  2. No\n\n>\n$ ph send reviewer ",
        "\nheld       the program waits for an answer (permission: run the tests)\n",
        "\n$ ph asks\n",
        "  reviewer  permission  <1m    run the tests\n",
        " allow\napplied      reviewer: Yes; the question closed after the answer was typed\n",
        "> 1\nreviewer: All tests pass",
        "] Mind the error messages, too.\n",
        "\nsubject    Re: login\n",
        "\nDone. The reviewer says: All tests pass",
        "\nreceipt    archived\n",
        "offered    by way of terminal; written whole to the terminal of the running program\n",
        "read       by coder\n",
        "archived   by coder\n",
        "\nnot held   it is read\n",
        "\ncoder has ended: ",
        "\n# No message was lost, duplicated or typed at the wrong moment, ",
    ] {
        let Some((_, after)) = rest.split_once(key) else {
            panic!("no {key:?} in:\n{rest}\nof:\n{shown}");
        };
        rest = after;
    }
    let long = shown.lines().find(|l| l.starts_with("# ") && l.len() > 78);
    assert_eq!(long, None);
    assert!(begun.elapsed() < PATIENCE, "it takes too long");
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(is_empty(&temp), "the temporary home is still there");
    assert!(is_empty(&ph.user()), "something was left in HOME");
    assert!(!ph.home().exists(), "the user's own mail was touched");
}

#[test]
fn the_demo_leaves_nothing_if_its_reader_exits() {
    let ph = Ph::new();
    let temp = ph.dir().join("tmp");
    std::fs::create_dir(&temp).unwrap();
    let mut child = ph.call(&["demo"]).env("TMPDIR", &temp).spawn();
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    drop(reader);
    let done = crate::common::Done::of(child);
    assert_eq!((done.code, done.err().as_str()), (0, ""));
    assert!(is_empty(&temp), "the temporary home is still there");
}

#[cfg(target_os = "linux")] // Reads processes from /proc.
#[test]
fn the_demo_leaves_nothing_after_a_signal() {
    use crate::common::stage::{Stage, kill};
    use rustix::process::Signal;
    use std::os::unix::process::ExitStatusExt;
    let check = |signal: Signal, line: &str| {
        let stage = Stage::new();
        let temp = stage.dir().join("tmp");
        std::fs::create_dir(&temp).unwrap();
        let mut child = stage.call(&["demo"]).env("TMPDIR", &temp).spawn();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let at = lines.by_ref().map(Result::unwrap);
        assert!(at.into_iter().any(|said| said.contains(line)), "{line}");
        kill(i32::try_from(child.id()).unwrap(), signal);
        for line in lines {
            line.unwrap();
        }
        let ended = child.wait().unwrap();
        assert_eq!(ended.signal(), Some(signal.as_raw()), "{line}");
        assert!(is_empty(&temp), "the temporary home is still there");
        stage.until_nothing_runs();
    };
    check(Signal::INT, "$ ph send coder");
    check(Signal::TERM, "$ ph run --name reviewer");
    check(Signal::INT, "$ ph why");
    check(Signal::INT, "$ ph send coder --priority interrupt");
    check(Signal::HUP, "$ ph answer ");
}

#[test]
fn the_demo_ignores_the_users_settings() {
    let ph = Ph::new();
    ph.file("user/.config/posthaste/config.toml", "[send]\nfoo = 1\n");
    let done = ph
        .call(&["demo"])
        .agent("somebody")
        .env("PH_SEND_PRIORITY", "nonsense")
        .run();
    assert!(
        done.ok()
            .contains("No message was lost, duplicated or typed at the wrong moment")
    );
}
