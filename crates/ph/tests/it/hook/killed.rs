//! Hooks that are killed at any moment, with and without a session: no message is lost, and none is
//! shown twice without a mark.

use super::handing;
use crate::common::stage::{Stage, until};
use crate::common::{Ph, wait_for};
use posthaste_core::turn;
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

fn kills() -> u32 {
    let kills = std::env::var("PH_HOOK_KILLS").ok();
    kills.map_or(DEFAULT_KILLS, |kills| kills.parse().expect("a number"))
}

/// Linear congruential generator.
struct Random(u32);

impl Random {
    /// Return a number between 0 and 1.
    fn part(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0 >> 8) / f64::from(1 << 24)
    }
}

fn receipt(ph: &Ph, id: &str) -> String {
    let shown = ph.run(&format!("show {id} --json")).json();
    shown["receipt"].as_str().expect("a word").to_owned()
}

/// Let a hook run for `time`, kill it, and return its output.
fn killed_after(mut child: Child, time: Duration) -> String {
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
    let kills = kills();
    let ph = Ph::new();
    let begun = Instant::now();
    ph.run_as("bob", "check --inject").ok();
    let whole = begun.elapsed();
    let (mut ids, mut printed) = (Vec::new(), String::new());
    let mut random = Random(1);
    for n in 0..kills {
        if n % 3 == 0 {
            ids.push(ph.send(&format!("bob 'message {n} ends here'")));
        }
        let time = whole.mul_f64(1.5 * random.part());
        printed += &killed_after(hook(&ph, Stdio::piped()), time);
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

/// A hook of the live session's program, after a tool.
fn session_hook(stage: &Stage) -> Child {
    let mut hook = Command::new(env!("CARGO_BIN_EXE_ph"))
        .args(["hook", "hooked", "--injected"])
        .env_clear()
        .env("PH_HOME", stage.home())
        .env("HOME", stage.dir())
        .env("PH_SOCKET", handing::socket(stage))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("a hook");
    // No hook passes for a repeat of another.
    let at = format!("{:?}", Instant::now());
    let payload = serde_json::json!({"hook_event_name": "PostToolUse", "at": at});
    let mut stdin = hook.stdin.take().expect("a pipe");
    stdin
        .write_all(payload.to_string().as_bytes())
        .expect("the hook runs");
    hook
}

/// Return the text that a hook has passed on, if it was printed whole.
fn passed_on(printed: &str) -> String {
    let output = serde_json::from_str::<serde_json::Value>(printed).unwrap_or_default();
    let text = &output["hookSpecificOutput"]["additionalContext"];
    text.as_str().unwrap_or_default().to_owned() + "\n"
}

#[test]
fn no_mail_is_lost_by_hooks_of_a_live_session_that_are_killed_at_random() {
    let kills = kills();
    let stage = handing::working();
    let whole_run = || {
        let output = session_hook(&stage).wait_with_output().expect("it ends");
        passed_on(&String::from_utf8_lossy(&output.stdout))
    };
    let begun = Instant::now();
    whole_run();
    let whole = begun.elapsed();
    let (mut ids, mut shown) = (Vec::new(), String::new());
    let mut random = Random(1);
    for n in 0..kills {
        if n % 3 == 0 {
            ids.push(stage.send(&format!("bot 'message {n} ends here'")));
        }
        let time = whole.mul_f64(1.5 * random.part());
        shown += &passed_on(&killed_after(session_hook(&stage), time));
    }
    for id in &ids {
        until("every message to be offered", || {
            let is_offered = receipt(&stage, id) == "offered";
            if !is_offered {
                shown += &whole_run();
            }
            is_offered.then_some(())
        });
    }
    let (mut twice, mut again) = (0, 0);
    for id in &ids {
        let head = format!("[ph message from: human id: {}", &id[..8]);
        let lines: Vec<_> = shown
            .lines()
            .filter(|line| line.starts_with(&head))
            .collect();
        assert!(!lines.is_empty(), "{id} was lost");
        let marked = lines.iter().filter(|line| line.contains(turn::REPEAT));
        let marked = marked.count();
        assert!(
            lines.len() - marked <= 1,
            "{id} came twice unmarked: {lines:?}"
        );
        again += usize::from(marked > 0);
        twice += usize::from(lines.len() > 1);
    }
    let sent = ids.len();
    println!("{kills} hooks of a session killed: {sent} messages, {again} marked, {twice} twice");
}
