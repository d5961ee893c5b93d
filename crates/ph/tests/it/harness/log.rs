//! The log of a session: its lines about each message, the filter `PH_LOG`, and the rotation of a
//! full log.

use super::hooks::hooked;
use crate::common::stage::{Stage, until, until_so};
use crate::common::tui::{Tui, install_manifest};
use rustix::fs::{Mode, OFlags};
use serde_json::json;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

const FLAGS: [&str; 3] = ["--title", "--paste", "--hooks"];

fn stage() -> Stage {
    let stage = Stage::new();
    install_manifest(&stage, "lab", &hooked(""));
    stage
}

fn log_file(stage: &Stage) -> PathBuf {
    stage.home().join("sessions/bot/log")
}

fn log(stage: &Stage) -> String {
    std::fs::read_to_string(log_file(stage)).expect("a log")
}

/// Return the lines that contain all of these words.
fn lines(stage: &Stage, words: &[&str]) -> Vec<String> {
    let log = log(stage);
    let holds = |line: &&str| words.iter().all(|word| line.contains(word));
    log.lines().filter(holds).map(str::to_owned).collect()
}

/// Wait for the one line that contains all of these words.
fn until_line(stage: &Stage, words: &[&str]) -> String {
    let mut found = until(&format!("a line with {words:?}"), || {
        Some(lines(stage, words)).filter(|found| !found.is_empty())
    });
    assert_eq!(found.len(), 1, "{found:#?}");
    found.remove(0)
}

/// Stop the session, so that its log is complete.
fn stop(stage: &Stage) {
    stage.run("stop bot").ok();
    until_so("its end", || stage.status("bot")["activity"] == "exited");
}

#[test]
fn the_log_explains_a_delivery() {
    let stage = stage();
    let _tui = Tui::logging(&stage, &FLAGS, "");
    let pid = stage.pid("bot").to_string();
    until_line(
        &stage,
        &[
            "INFO session: started",
            &format!("pid={pid}"),
            "harness=\"lab\"",
        ],
    );
    stage.run("pause bot").ok();
    let id = stage.send("bot 'a word for nobody else'");
    let message = format!("messages={}", &id[..8]);
    let held = until_line(&stage, &["INFO delivery: held", &message]);
    assert!(held.contains("rule=paused"), "{held}");
    assert!(
        held.contains("evidence=\"a client asked for a pause\""),
        "{held}"
    );
    // A second message causes another look; the first message gets no second line.
    let other = stage.send("bot another");
    until_line(&stage, &["held", &other[..8]]);
    assert_eq!(lines(&stage, &["held", &id[..8]]).len(), 1);
    stage.run("unpause bot").ok();
    stage.until_receipt(&id, "accepted");
    stage.until_receipt(&other, "accepted");
    let offered = until_line(&stage, &["INFO delivery: offered", &id[..8]]);
    assert!(offered.contains("route=terminal"), "{offered}");
    let accepted = until_line(&stage, &["INFO delivery: accepted", &id[..8]]);
    let proof = "proof=\"its hook UserPromptSubmit holds the id\"";
    assert!(accepted.contains(proof), "{accepted}");
    let at = |line: &str| log(&stage).find(line);
    assert!(at(&held) < at(&offered) && at(&offered) < at(&accepted));
    // Each line begins with its time in UTC, and contains no text of a message.
    for line in log(&stage).lines() {
        let (time, _) = line.split_once(' ').expect("words");
        assert_eq!(time.len(), "2026-11-18T12:00:00.123Z".len(), "{line}");
        time.parse::<jiff::Timestamp>().expect("a time");
    }
    assert!(!log(&stage).contains("a word for nobody else"));
    assert!(!log(&stage).contains("DEBUG"), "{}", log(&stage));
    stop(&stage);
    until_line(
        &stage,
        &["INFO session: a client requests the end of the session"],
    );
    until_line(&stage, &["INFO session: ended how="]);
}

#[test]
fn the_log_records_viewers() {
    let stage = stage();
    let tui = Tui::logging(&stage, &FLAGS, "");
    let mut person = tui.person();
    until_line(
        &stage,
        &["INFO viewers: attached viewer=0", "client=\"ph\""],
    );
    person.type_keys(b"\x1cd");
    until_line(&stage, &["INFO viewers: detached viewer=0"]);
}

#[test]
fn the_log_filter_shows_hooks_and_is_not_passed_on() {
    let stage = stage();
    let _tui = Tui::logging(&stage, &FLAGS, "debug");
    let payload = json!({"tool_name": "what \u{1b}[2J\nthe agent says"});
    let params = json!({"event_name": "PreToolUse", "payload": payload});
    stage.rpc("bot", "hook_event", &params);
    until_line(&stage, &["DEBUG hooks: called event=\"PreToolUse\""]);
    assert!(!log(&stage).contains("the agent says"));
    let environ = std::fs::read(format!("/proc/{}/environ", stage.child("bot")));
    let environ = environ.expect("it runs");
    assert!(!environ.windows(7).any(|word| word == b"PH_LOG="));
}

#[test]
fn the_filter_off_logs_nothing_and_an_invalid_one_is_reported() {
    let stage = stage();
    let tui = Tui::logging(&stage, &FLAGS, "off");
    let id = stage.send("bot hello");
    stage.until_receipt(&id, "accepted");
    assert_eq!(tui.turns().len(), 1);
    stop(&stage);
    assert_eq!(log(&stage), "");
    let _tui = Tui::logging(&stage, &FLAGS, "ph::delivery=loud");
    let wrong = until_line(
        &stage,
        &["WARN session: PH_LOG=ph::delivery=loud is invalid"],
    );
    assert!(wrong.ends_with("using the default: info"), "{wrong}");
    until_line(&stage, &["INFO session: started"]);
}

#[test]
fn a_full_log_is_rotated_and_standard_error_follows() {
    let stage = stage();
    let _tui = Tui::logging(&stage, &FLAGS, "");
    stop(&stage);
    let file = log_file(&stage);
    let mut old = log(&stage);
    old.extend(std::iter::repeat_n("it was so\n", 1 << 17));
    std::fs::write(&file, &old).expect("its log");
    let _tui = Tui::logging(&stage, &FLAGS, "");
    until_line(&stage, &["INFO session: started"]);
    let older = file.with_extension("1");
    assert!(std::fs::read_to_string(&older).expect("the old log") == old);
    let mode = |path: &Path| {
        std::fs::metadata(path)
            .expect("a file")
            .permissions()
            .mode()
    };
    assert_eq!(mode(&file) & 0o777, 0o600);
    // A panic message would go to standard error.
    let stderr = format!("/proc/{}/fd/2", stage.pid("bot"));
    assert_eq!(std::fs::read_link(&stderr).expect("it runs"), file);
    let flags = rustix::fs::open(&stderr, OFlags::WRONLY | OFlags::APPEND, Mode::empty());
    let flags = flags.expect("its log");
    rustix::io::write(&flags, b"a panic\n").expect("its log");
    until_line(&stage, &["a panic"]);
}

/// Keys are not logged at any level, and cause no lines.
#[test]
fn keys_and_output_are_not_logged() {
    let stage = stage();
    let tui = Tui::logging(&stage, &FLAGS, "trace");
    let mut person = tui.person();
    until_line(&stage, &["attached"]);
    let before = log(&stage).lines().count();
    for _ in 0..50 {
        person.type_keys("q");
    }
    person.type_keys("zz");
    person.wait_for_text("qzz");
    let log = log(&stage);
    let news: Vec<_> = log.lines().skip(before).collect();
    assert!(news.len() < 10, "{news:#?}");
    assert!(!log.contains("qqq"), "{log}");
}
