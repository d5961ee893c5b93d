//! Tests of the built-in manifests on what the lab recorded of the real programs.

mod altered_screens;
mod hook_events;
mod recorded_screens;

use super::Catalogue;
use posthaste_core::delivery::{Delivery, DeliveryConfig, Reach};
use posthaste_core::harness::Manifest;
use posthaste_core::moment::Moment;
use posthaste_screen::{Screen, Size};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const fn size(cols: u16, rows: u16) -> Size {
    Size { cols, rows }
}

const SIZES: [(&str, Size); 4] = [
    ("40x24", size(40, 24)),
    ("80x24", size(80, 24)),
    ("120x40", size(120, 40)),
    ("200x50", size(200, 50)),
];

/// The folders of recorded screens, and the manifest for each.
const FOLDERS: [(&str, &str); 6] = [
    ("claude", "claude"),
    ("claude-2.1.197", "claude"),
    ("codex", "codex"),
    ("codex-0.166.0", "codex"),
    ("gemini", "gemini"),
    ("opencode", "opencode"),
];

fn manifest(name: &str) -> Arc<Manifest> {
    Arc::new(Catalogue::built_in().take(name).unwrap())
}

fn dir(agent: &str, size: &str) -> PathBuf {
    let lab = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/fixtures/agents");
    PathBuf::from(lab).join(agent).join(size)
}

/// Return the states that were recorded at a size.
fn states(agent: &str, size: &str) -> BTreeSet<String> {
    let Ok(files) = std::fs::read_dir(dir(agent, size)) else {
        return BTreeSet::new();
    };
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let states = names.filter_map(|name| name.strip_suffix(".txt").map(str::to_owned));
    states.collect()
}

/// Draw a recorded screen.
fn screen(harness: &Manifest, agent: &str, (named, size): (&str, Size), state: &str) -> Screen {
    let read = |ending: &str| {
        let path = dir(agent, named).join(format!("{state}.{ending}"));
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let metadata: Value = serde_json::from_str(&read("json")).unwrap();
    let mut screen = Screen::new(size, 0);
    if let Some(osc) = &harness.activity.osc {
        screen.listen(osc.number);
    }
    let mut feed = |text: String| screen.feed(text.as_bytes());
    for (row, line) in read("txt").lines().enumerate() {
        feed(format!("\x1b[{};1H{line}", row + 1));
    }
    let position = |at: usize| metadata["cursor"][at].as_u64().unwrap() + 1;
    feed(format!("\x1b[{};{}H", position(0), position(1)));
    if metadata["cursor_shown"] == false {
        feed("\x1b[?25l".to_owned());
    }
    feed(format!(
        "\x1b]0;{}\x07",
        metadata["title"].as_str().unwrap()
    ));
    if let Some(note) = metadata["osc_7501"].as_str() {
        feed(format!("\x1b]7501;{note}\x07"));
    }
    screen
}

fn at(millis: u64) -> Moment {
    Moment {
        wall: jiff::Timestamp::UNIX_EPOCH,
        mono: Duration::from_millis(millis),
    }
}

/// Return the delivery of a program that has just started, without hooks.
fn delivery(harness: &Arc<Manifest>) -> Delivery {
    let config = DeliveryConfig {
        harness: harness.clone(),
        path_bytes: 0,
        reach: Reach::Terminal,
        has_hooks: false,
    };
    Delivery::new(config, at(0))
}
