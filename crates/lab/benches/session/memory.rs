//! What a session that does nothing keeps in memory.

use super::stage::{Stage, mark};
use posthaste_lab::bench::{Goal, Table, Unit};
use std::process::Stdio;
use std::time::Duration;

/// How long a session is left alone before it is measured.
const IDLE: Duration = Duration::from_secs(5);
const MOST: f64 = (8 << 20) as f64;
/// Enough lines to fill the scrollback.
const HISTORY: usize = 64 << 10;

pub(crate) fn measure(table: &mut Table, stage: &mut Stage) {
    let mut player = stage.session("bot");
    let status = stage
        .ph(&["status", "bot", "--json"])
        .stdout(Stdio::piped())
        .output()
        .unwrap();
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).unwrap();
    let pid = status["pid"].as_u64().unwrap();
    player.play(&format!("screen {}", mark(1)));
    std::thread::sleep(IDLE);
    let full = resident(pid);
    table.fixed(
        "resident memory of an idle session, against 8 MiB",
        Unit::Bytes,
        full.all,
        MOST,
        &Goal::AtMost(1.0),
    );
    let own = "  of it its own, not the program's code";
    table.fixed(own, Unit::Bytes, full.own, MOST, &Goal::None);
    player.play(&format!("lines {HISTORY} {}", mark(2)));
    std::thread::sleep(IDLE);
    let scrolled = resident(pid);
    let what = "  with 500 lines of scrollback";
    table.fixed(what, Unit::Bytes, scrolled.all, MOST, &Goal::None);
    table.fixed(own, Unit::Bytes, scrolled.own, MOST, &Goal::None);
}

/// In bytes.
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
