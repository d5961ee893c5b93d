//! Hooks of an agent without a session, killed at any moment: no message is lost, and no message is
//! shown twice without a repeat mark.

use crate::common::{Ph, wait_for};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const REPEAT: &str = "(repeat: may have been shown before)";
/// Default number of hooks to kill; `PH_HOOK_KILLS` sets another.
const DEFAULT_KILLS: u32 = 300;

fn hook(ph: &Ph, stdout: Stdio) -> Child {
    Command::new(env!("CARGO_BIN_EXE_ph"))
        .args(["check", "--inject"])
        .env_clear()
        .env("PH_HOME", ph.home())
        .env("HOME", ph.dir())
        .env("PH_AGENT", "bob")
        .stdin(Stdio::null())
        .stdout(stdout)
        .stderr(Stdio::null())
        .spawn()
        .expect("a hook")
}

fn receipt(ph: &Ph, id: &str) -> String {
    let shown = ph.run(&format!("show {id} --json")).json();
    shown["receipt"].as_str().expect("a word").to_owned()
}

/// Run a hook for `time`, kill it, and return its output.
fn killed_after(ph: &Ph, time: Duration) -> String {
    let mut child = hook(ph, Stdio::piped());
    let begun = Instant::now();
    while begun.elapsed() < time {
        std::hint::spin_loop();
    }
    let _ = child.kill();
    child.wait().expect("it ends");
    let mut printed = String::new();
    let mut stdout = child.stdout.take().expect("a pipe");
    stdout.read_to_string(&mut printed).expect("text");
    printed
}

/// Return a full pipe and its reader, which does not read.
fn full_pipe() -> (PipeReader, PipeWriter) {
    let (reader, mut writer) = std::io::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("a pipe");
    while writer.write(&[b'x'; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).expect("a pipe");
    (reader, writer)
}

fn assert_shown_again(ph: &Ph, id: &str) {
    let again = ph.run_as("bob", "check --inject").ok();
    assert!(again.contains("fix the login page"), "{again}");
    assert!(again.contains(REPEAT), "{again}");
    assert_eq!(receipt(ph, id), "offered");
    assert_eq!(ph.run_as("bob", "check --inject").ok(), "");
}

#[test]
fn mail_of_a_hook_killed_while_it_writes_is_shown_by_the_next_hook() {
    let ph = Ph::new();
    let id = ph.send("bob 'fix the login page'");
    let (_reader, writer) = full_pipe();
    let mut child = hook(&ph, writer.into());
    wait_for("an offer", || {
        (receipt(&ph, &id) == "offering").then_some(())
    });
    child.kill().expect("it runs");
    child.wait().expect("it ends");
    assert_shown_again(&ph, &id);
}

#[test]
fn a_hook_whose_reader_hangs_exits_and_the_next_hook_shows_its_mail() {
    let ph = Ph::new();
    let id = ph.send("bob 'fix the login page'");
    let (_reader, writer) = full_pipe();
    let ended = hook(&ph, writer.into()).wait().expect("it ends");
    assert!(
        ended.success(),
        "an agent does not fail because of its mail"
    );
    assert_eq!(receipt(&ph, &id), "uncertain");
    assert_shown_again(&ph, &id);
}

#[test]
fn hooks_killed_at_random_lose_no_mail() {
    let kills = std::env::var("PH_HOOK_KILLS").ok();
    let kills: u32 = kills.map_or(DEFAULT_KILLS, |kills| kills.parse().expect("a number"));
    let ph = Ph::new();
    let begun = Instant::now();
    ph.run_as("bob", "check --inject").ok();
    let whole = begun.elapsed();
    let (mut ids, mut printed) = (Vec::new(), String::new());
    let mut random = 1_u32;
    for n in 0..kills {
        if n % 3 == 0 {
            ids.push(ph.send(&format!("bob 'message {n} ends here'")));
        }
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let part = f64::from(random >> 8) / f64::from(1 << 24);
        printed += &killed_after(&ph, whole.mul_f64(1.5 * part));
    }
    loop {
        let more = ph.run_as("bob", "check --inject").ok();
        if more.is_empty() {
            break;
        }
        printed += &more;
    }
    let mut repeats = 0;
    for id in &ids {
        let start = format!("- {} from ", &id[..8]);
        // A line that was cut off does not count as shown.
        let lines = printed.lines().filter(|line| line.starts_with(&start));
        let whole: Vec<_> = lines.filter(|line| line.ends_with("ends here")).collect();
        assert!(!whole.is_empty(), "{id} was lost");
        let unmarked = whole.iter().filter(|line| !line.contains(REPEAT));
        assert!(unmarked.count() <= 1, "{id} came twice unmarked: {whole:?}");
        repeats += whole.len() - 1;
        assert_eq!(receipt(&ph, id), "offered");
    }
    let sent = ids.len();
    println!("{kills} hooks killed: {sent} messages, {repeats} shown again, marked");
}
