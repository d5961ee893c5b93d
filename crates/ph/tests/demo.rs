//! `ph demo`: the main job, shown on a fresh machine, with nothing left behind.

mod common;

use common::Ph;
use std::io::{BufRead, BufReader};

fn is_empty(dir: &std::path::Path) -> bool {
    std::fs::read_dir(dir)
        .expect("the directory is there")
        .next()
        .is_none()
}

#[test]
fn it_shows_an_exchange_and_leaves_nothing() {
    let ph = Ph::new();
    let temp = ph.dir().join("tmp");
    std::fs::create_dir(&temp).unwrap();
    let shown = ph.call(&["demo"]).env("TMPDIR", &temp).run().ok();
    for key in [
        "human$ ph send coder --subject login 'Please fix the login page.'",
        "rule       no-session",
        "human$ ph run --name coder --detach -- sh ",
        "[login] Please fix the login page.\n",
        "coder: on it",
        "reviewer: looking at ",
        "subject    Re: login",
        "offered    by way of terminal",
        "coder has ended: ",
        "What happened: ",
    ] {
        assert!(shown.contains(key), "no {key:?} in:\n{shown}");
    }
    assert!(!shown.contains('\u{1b}'), "{shown}");
    assert!(is_empty(&temp), "the temporary home is still there");
    assert!(is_empty(&ph.user()), "something was left in HOME");
    assert!(!ph.home().exists(), "the user's own mail was touched");
}

#[test]
fn a_reader_that_goes_away_leaves_nothing_behind_either() {
    let ph = Ph::new();
    let temp = ph.dir().join("tmp");
    std::fs::create_dir(&temp).unwrap();
    let mut child = ph.call(&["demo"]).env("TMPDIR", &temp).spawn();
    let mut first = String::new();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    reader.read_line(&mut first).unwrap();
    drop(reader);
    let done = common::Done::of(child);
    assert_eq!((done.code, done.err().as_str()), (0, ""));
    assert!(is_empty(&temp), "the temporary home is still there");
}

#[cfg(target_os = "linux")] // It looks for processes in /proc.
#[test]
fn a_signal_ends_it_and_leaves_nothing_behind() {
    use common::stage::{Stage, kill, until_so};
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
        until_so("the end of all", || stage.processes().is_empty());
    };
    check(Signal::INT, "human$ ph send coder");
    check(Signal::TERM, "human$ ph run --name reviewer");
    check(Signal::INT, "The message is typed into");
    check(Signal::HUP, "human$ ph peek coder");
}

#[test]
fn the_user_s_own_settings_are_none_of_its_business() {
    let ph = Ph::new();
    ph.file("user/.config/posthaste/config.toml", "[send]\nfoo = 1\n");
    let done = ph
        .call(&["demo"])
        .agent("somebody")
        .env("PH_SEND_PRIORITY", "nonsense")
        .run();
    assert!(done.ok().contains("What happened: "));
}
