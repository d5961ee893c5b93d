//! Memory of an idle session.

use super::attach::Attached;
use super::setup::stage::{Stage, mark};
use posthaste_lab::bench::{Goal, Table, Unit};
use std::process::Stdio;
use std::time::Duration;

/// Delay before an idle session is measured.
const IDLE_DELAY: Duration = Duration::from_secs(5);
const MAX_RESIDENT_BYTES: f64 = (10 << 20) as f64;
/// Enough lines to fill the scrollback.
const HISTORY: usize = 64 << 10;
/// Columns and rows of a large window.
const WIDE: (u16, u16) = (200, 50);

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    let mut player = stage.session("bot");
    let pid = pid_of(stage, "bot");
    let row = |table: &mut Table, what: &str, goal: &Goal| {
        std::thread::sleep(IDLE_DELAY);
        let resident = resident(pid);
        table.fixed(what, Unit::Bytes, resident.all, MAX_RESIDENT_BYTES, goal);
        let own = "  of it its own, not the program's code";
        table.fixed(
            own,
            Unit::Bytes,
            resident.own,
            MAX_RESIDENT_BYTES,
            &Goal::None,
        );
    };
    player.play(&format!("screen {}", mark(1)));
    let what = "resident memory of an idle session, against 10 MiB";
    row(table, what, &Goal::AtMost(1.0));
    player.play(&format!("lines {HISTORY} {}", mark(2)));
    let what = "  with 500 lines of scrollback";
    row(table, what, &Goal::AtMost(1.0));
    // The memory for a large window stays allocated, because the session keeps its size.
    let attached = Attached::to_size(stage, "bot", WIDE);
    player.play(&format!("lines {HISTORY} {}", mark(3)));
    drop(attached);
    let what = format!("  after a window of {} by {}", WIDE.0, WIDE.1);
    row(table, &what, &Goal::None);
}

fn pid_of(stage: &Stage, name: &str) -> u64 {
    let mut status = stage.ph(&["status", name, "--json"]);
    let status = status.stdout(Stdio::piped()).output().unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    status["pid"].as_u64().unwrap()
}

/// Resident memory in bytes.
struct Resident {
    all: f64,
    own: f64,
}

fn resident(pid: u64) -> Resident {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
        kilobytes.parse::<f64>().unwrap() * 1024.0
    };
    Resident {
        all: field("VmRSS:"),
        own: field("RssAnon:"),
    }
}
