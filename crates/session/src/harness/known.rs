//! The built-in manifests, tried on what the real programs' screens showed. The screens are the
//! lab's; what each must mean stands here.

use super::Catalogue;
use crate::pty::sight::glance;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::{Delivery, DeliveryConfig, DeliveryEvent};
use posthaste_core::harness::{BoxState, Glance, Manifest, Says, Sighting};
use posthaste_core::moment::Moment;
use posthaste_core::text;
use posthaste_lab::agents::{Agent, BoxKind};
use posthaste_screen::{Screen, Size};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const fn size(cols: u16, rows: u16) -> Size {
    Size { cols, rows }
}

pub(super) const SIZES: [(&str, Size); 4] = [
    ("40x24", size(40, 24)),
    ("80x24", size(80, 24)),
    ("120x40", size(120, 40)),
    ("200x50", size(200, 50)),
];

/// The folders of the lab's screens, and the manifest for each.
pub(super) const FOLDERS: [(&str, &str); 6] = [
    ("claude", "claude"),
    ("claude-2.1.197", "claude"),
    ("codex", "codex"),
    ("codex-0.166.0", "codex"),
    ("gemini", "gemini"),
    ("opencode", "opencode"),
];

pub(super) fn manifest(name: &str) -> Arc<Manifest> {
    Arc::new(Catalogue::built_in().take(name).unwrap())
}

pub(super) fn dir(agent: &str, size: &str) -> PathBuf {
    let lab = concat!(env!("CARGO_MANIFEST_DIR"), "/../lab/fixtures/agents");
    PathBuf::from(lab).join(agent).join(size)
}

/// The states that were recorded at a size; none where nothing was.
pub(super) fn states(agent: &str, size: &str) -> BTreeSet<String> {
    let Ok(files) = std::fs::read_dir(dir(agent, size)) else {
        return BTreeSet::new();
    };
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let states = names.filter_map(|name| name.strip_suffix(".txt").map(str::to_owned));
    states.collect()
}

/// The terminal as it was, drawn again.
pub(super) fn screen(
    harness: &Manifest,
    agent: &str,
    (named, size): (&str, Size),
    state: &str,
) -> Screen {
    let read = |ending: &str| {
        let path = dir(agent, named).join(format!("{state}.{ending}"));
        std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    };
    let beside: Value = serde_json::from_str(&read("json")).unwrap();
    let mut screen = Screen::new(size, 0);
    if let Some(osc) = &harness.activity.osc {
        screen.listen(osc.number);
    }
    let mut feed = |text: String| screen.feed(text.as_bytes());
    for (row, line) in read("txt").lines().enumerate() {
        feed(format!("\x1b[{};1H{line}", row + 1));
    }
    let place = |at: usize| beside["cursor"][at].as_u64().unwrap() + 1;
    feed(format!("\x1b[{};{}H", place(0), place(1)));
    if beside["cursor_shown"] == false {
        feed("\x1b[?25l".to_owned());
    }
    feed(format!("\x1b]0;{}\x07", beside["title"].as_str().unwrap()));
    if let Some(note) = beside["osc_7501"].as_str() {
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

/// What a delivery makes of these sights, one after the other, of a program that was just started.
fn judged(harness: &Arc<Manifest>, sights: impl IntoIterator<Item = Sighting>) -> String {
    let manner = DeliveryConfig {
        harness: harness.clone(),
        path_bytes: 0,
        reach: posthaste_core::delivery::Reach::Terminal,
        has_hooks: false,
    };
    let mut delivery = Delivery::new(manner, at(0));
    for (n, sight) in (1..).zip(sights) {
        delivery.on(at(n), DeliveryEvent::Output);
        delivery.on(at(n), DeliveryEvent::ScreenChanged(sight));
    }
    let judgement = delivery.activity();
    match judgement.activity {
        Activity::Blocked(on) => format!("blocked on {on}"),
        other => format!("{other}: {}", judgement.evidence),
    }
}

fn input_box(sighting: &Sighting) -> String {
    match &sighting.input_box {
        BoxState::Undescribed => "undescribed".to_owned(),
        BoxState::Unrecognised(_) => "unrecognised".to_owned(),
        BoxState::Empty => "empty".to_owned(),
        BoxState::Holds(held) => format!("<{}>", text::one_line(&held.text, 60)),
    }
}

/// Every screen of an agent, at every size: what the agent does, and what its box holds. Each comes
/// after one on which it was idle, but for the question before the start.
fn check(folder: &str, wanted: &[(&str, &str)]) {
    let (_, agent) = FOLDERS.iter().find(|(name, _)| *name == folder).unwrap();
    let harness = manifest(agent);
    for size in SIZES
        .iter()
        .filter(|size| !states(folder, size.0).is_empty())
    {
        for state in states(folder, size.0) {
            let want = wanted.iter().find(|(name, _)| *name == state);
            let (_, want) = want.unwrap_or_else(|| panic!("{folder} {} {state}", size.0));
            let seen = |state| glance(&harness, &screen(&harness, folder, *size, state), 0);
            let sight = seen(&state);
            let before = (state != "trust").then(|| seen("idle"));
            let got = input_box(&sight);
            let got = format!(
                "{}, {got}",
                judged(&harness, before.into_iter().chain([sight]))
            );
            let is_it = match want.split_once(" … ") {
                // Anything may be between.
                Some((begin, end)) => got.starts_with(begin) && got.ends_with(end),
                None => got == *want,
            };
            assert!(is_it, "{folder} {} {state}: {got}, and not {want}", size.0);
        }
    }
}

/// What the lab types into the box.
const DRAFT: &str = "lab-plain: please answer in lines=2";

fn check_claude(folder: &str, asks: &str) {
    let idle = "idle: its title says: ✳, empty";
    let works = "working: its title says:  … , empty";
    check(
        folder,
        &[
            (
                "trust",
                "blocked on trust: /tmp/ph-lab-000000/home/work, unrecognised",
            ),
            ("idle", idle),
            ("draft", &format!("idle: its title says: ✳, <{DRAFT}>")),
            (
                "pasted",
                "idle: its title says: ✳, <[Pasted text #1 +49 lines]>",
            ),
            ("waiting", works),
            ("busy", works),
            ("queued", works),
            ("tool", works),
            // The title says that it is idle.
            ("dialog", asks),
            ("answered", idle),
            ("interrupted", idle),
            ("denied", idle),
        ],
    );
}

#[test]
fn claude() {
    check_claude(
        "claude",
        "blocked on permission: touch denied, unrecognised",
    );
    check_claude(
        "claude-2.1.197",
        "blocked on permission: Bash command touch denied lab command, unrecognised",
    );
}

#[test]
fn codex() {
    let idle = "idle: its status note says: state=idle, empty";
    let works = "working: its status note says: state=working, empty";
    for folder in ["codex", "codex-0.166.0"] {
        check(
            folder,
            &[
                ("trust", "blocked on  … , unrecognised"),
                ("idle", idle),
                (
                    "draft",
                    &format!("idle: its status note says: state=idle, <{DRAFT}>"),
                ),
                (
                    "pasted",
                    "idle: its status note says: state=idle, <lab-paste … ",
                ),
                ("waiting", works),
                ("busy", works),
                ("tool", works),
                (
                    "dialog",
                    "blocked on permission: touch denied, unrecognised",
                ),
                ("answered", "idle: its status note says: state=done, empty"),
                ("interrupted", idle),
                ("denied", idle),
            ],
        );
    }
}

#[test]
fn opencode() {
    // A narrow terminal breaks what it says.
    let idle = "idle: its screen says: ctrl+p … , empty";
    let works = "working: its screen says: esc … , empty";
    check(
        "opencode",
        &[
            ("idle", idle),
            (
                "draft",
                &format!("idle: its screen says: ctrl+p … , <{DRAFT}>"),
            ),
            (
                "pasted",
                "idle: its screen says: ctrl+p … , <[Pasted ~50 lines]>",
            ),
            ("waiting", works),
            ("busy", works),
            ("queued", works),
            ("tool", works),
            (
                "dialog",
                "blocked on permission: $ touch denied, unrecognised",
            ),
            ("answered", idle),
            ("interrupted", idle),
            ("denied", idle),
        ],
    );
}

#[test]
fn gemini() {
    let idle = "idle: its title says: ◇, empty";
    let works = "working: its title says: ✦, empty";
    check(
        "gemini",
        &[
            // The title says that it is ready.
            ("trust", "blocked on  … , unrecognised"),
            ("idle", idle),
            ("draft", &format!("idle: its title says: ◇, <{DRAFT}>")),
            (
                "pasted",
                "idle: its title says: ◇, <[Pasted Text: 50 lines]>",
            ),
            ("waiting", works),
            ("busy", works),
            ("queued", works),
            ("tool", works),
            (
                "dialog",
                "blocked on permission: Shell touch denied, unrecognised",
            ),
            ("answered", idle),
            ("interrupted", idle),
            ("denied", idle),
        ],
    );
}

/// Every view that the lab has recorded: which may be typed into.
#[test]
fn views() {
    let mut checked = 0;
    for (folder, name) in FOLDERS {
        let agent = Agent::named(name).unwrap();
        let harness = manifest(name);
        for size in SIZES {
            let seen = states(&format!("{folder}/{}", size.0), "views");
            let views = agent.views();
            for view in views.iter().filter(|view| seen.contains(view.name)) {
                let state = format!("views/{}", view.name);
                let sight = glance(&harness, &screen(&harness, folder, size, &state), 0);
                let about = format!("{folder} {} {}", size.0, view.name);
                let got = input_box(&sight);
                checked += 1;
                match view.input_box {
                    BoxKind::Empty => assert_eq!(got, "empty", "{about}: {:?}", sight.input_box),
                    BoxKind::Holds
                        if view.name.starts_with("pasted") || view.name == "multi-line" =>
                    {
                        assert!(got.starts_with('<'), "{about}: {:?}", sight.input_box);
                    }
                    BoxKind::Holds | BoxKind::Hidden => assert_ne!(got, "empty", "{about}"),
                }
            }
        }
    }
    assert!(checked > 200, "{checked}");
}

/// What the screen shows of an activity without title and status note. Where it shows nothing,
/// output and silence decide, and those take longer and can be wrong.
#[test]
fn the_screen_alone() {
    let check = |agent: &str, works: &[&str], asks: &[&str]| {
        let harness = manifest(agent);
        for size in SIZES {
            for state in states(agent, size.0) {
                let screen = screen(&harness, agent, size, &state);
                let (lines, cursor) = screen.foot(harness.lines());
                let bare = Glance {
                    lines: &lines,
                    cursor,
                    before: &screen.before_cursor(),
                    cursor_shown: screen.cursor_visible(),
                    columns: screen.size().cols.into(),
                    ..Glance::default()
                };
                let seen = harness.recognise(&bare);
                let says = seen.claims.iter().map(|claim| claim.says);
                let about = format!("{agent} {} {state}", size.0);
                let is_at_work = says.into_iter().any(|says| says == Says::Working);
                assert_eq!(is_at_work, works.contains(&&*state), "{about}");
                assert_eq!(seen.dialog.is_some(), asks.contains(&&*state), "{about}");
                // A footer can quote the title.
                let title = screen.title();
                let seen = harness.recognise(&Glance { title, ..bare });
                let is_box_there = !asks.contains(&&*state);
                assert_eq!(seen.ready, is_box_there, "{about}: {:?}", seen.input_box);
            }
        }
    };
    let asks = ["trust", "dialog"];
    let works = ["waiting", "busy", "queued", "tool"];
    check("claude", &works, &asks);
    // While text streams, nothing but the title and the status note says that Codex works.
    check("codex", &["waiting", "tool"], &asks);
    check("opencode", &works, &asks);
    check("gemini", &works, &asks);
}

/// What is said in a conversation is nothing that the program asks: its input box stands below.
#[test]
fn what_is_quoted_is_no_question() {
    let check = |agent: &str| {
        let harness = manifest(agent);
        for size in SIZES {
            let quoted = |state: &str| {
                let lines = screen(&harness, agent, size, state).text(None);
                let first = lines.iter().position(|line| !line.trim().is_empty());
                lines[first.unwrap_or(0)..].to_vec()
            };
            let idle = screen(&harness, agent, size, "answered");
            let (below, cursor) = idle.foot(8);
            let before = idle.before_cursor();
            for state in ["trust", "dialog", "tool"] {
                if !states(agent, size.0).contains(state) {
                    continue;
                }
                let above = quoted(state);
                let lines = [above.as_slice(), below.as_slice()].concat();
                let seen = harness.recognise(&Glance {
                    title: idle.title(),
                    lines: &lines,
                    cursor: cursor.map(|row| row + above.len()),
                    before: &before,
                    cursor_shown: idle.cursor_visible(),
                    columns: size.1.cols.into(),
                    ..Glance::default()
                });
                assert_eq!(seen.dialog, None, "{agent} {state}");
                assert_eq!(seen.input_box, BoxState::Empty, "{agent} {state}");
            }
        }
    };
    for agent in ["claude", "codex", "opencode", "gemini"] {
        check(agent);
    }
}

/// An Enter into the list of its conversations would choose one.
#[test]
fn a_list_of_conversations_is_no_place_for_mail() {
    let check = |agent: &str, shown: &str, want: &str| {
        let lines: Vec<String> = shown.lines().map(str::to_owned).collect();
        let glance = |lines: &[String]| {
            let seen = manifest(agent).recognise(&Glance {
                lines,
                cursor: Some(lines.len() - 1),
                ..Glance::default()
            });
            seen.dialog
        };
        assert_eq!(glance(&lines).as_deref(), Some(want), "{agent}");
        // The same further up, with a box below.
        let (_, below) = BOXES.iter().find(|(name, _)| *name == agent).expect("one");
        let quoted: Vec<String> = lines.into_iter().chain(below.map(str::to_owned)).collect();
        assert_eq!(glance(&quoted), None, "{agent}");
    };
    let claude = "  Resume session\n  ╭───────╮\n  │ ⌕ x   │\n  ╰───────╯\n    work\n\n  \
        ❯ Lab title\n    3 seconds ago · HEAD\n\n    Type to search · Esc to cancel\n";
    check("claude", claude, "list: Resume session");
    let codex = " Resume a previous session\n\n Type to search\n\n  › 1s ago      x\n    \
        2s ago      y\n\n──────── 1 / 2 · 100% ─\n enter resume   esc exit\n ^o comfy   ↑/↓ browse\n";
    check("codex", codex, "list: Resume a previous session");
    let gemini = " Chat Sessions (2 total)            sorted by date desc\n Navigate: ↑/↓   Resume: \
        Enter\n\n   Index │ Msgs │ Name\n ❯ #1    │ 3    │ x (current)\n ▼\n";
    check("gemini", gemini, "list: Chat Sessions");
}

/// What the last lines of each look like at rest.
const BOXES: [(&str, [&str; 3]); 3] = [
    (
        "claude",
        ["────────────────────────", "❯ ", "────────────────────────"],
    ),
    ("codex", ["", "› Ask Codex to do anything", ""]),
    (
        "gemini",
        [
            "▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄▄",
            " >   Type your message",
            "▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀▀",
        ],
    ),
];

/// The real programs' hooks, as they came, and what is made of the last.
#[test]
fn what_their_hooks_say() {
    let check = |agent: &str, events: &[(&str, &str)], want: &str| {
        let harness = manifest(agent);
        let manner = DeliveryConfig {
            harness: harness.clone(),
            path_bytes: 0,
            reach: posthaste_core::delivery::Reach::Terminal,
            has_hooks: false,
        };
        let mut delivery = Delivery::new(manner, at(0));
        let idle = screen(&harness, agent, SIZES[1], "idle");
        let sight = glance(&harness, &idle, 0);
        delivery.on(at(1), DeliveryEvent::Output);
        // Ready; from here on hooks alone speak.
        let claims = Vec::new();
        delivery.on(
            at(2),
            DeliveryEvent::ScreenChanged(Sighting { claims, ..sight }),
        );
        for (n, (event, payload)) in (1..).zip(events) {
            let report = harness.hook.read(event, payload);
            delivery.on(at(n * 1_000), DeliveryEvent::HookCalled(Box::new(report)));
        }
        let judged = delivery.activity();
        let got = format!("{}: {}", judged.activity, judged.evidence);
        assert_eq!(got, want, "{agent} {events:?}");
    };
    let prompt = r#"{"session_id":"a","prompt":"hi"}"#;
    let bash = r#"{"session_id":"a","tool_name":"Bash"}"#;
    for (agent, ends) in [
        ("claude", "Stop"),
        ("codex", "Stop"),
        ("codex", "Interrupt"),
    ] {
        let turn = [
            ("SessionStart", r#"{"session_id":"a","source":"startup"}"#),
            ("UserPromptSubmit", prompt),
            ("PreToolUse", bash),
            ("PermissionRequest", bash),
            ("PostToolUse", bash),
            (ends, r#"{"session_id":"a"}"#),
        ];
        check(agent, &turn[..2], "working: hook UserPromptSubmit");
        check(agent, &turn[..4], "blocked: hook PermissionRequest");
        check(agent, &turn[..5], "working: hook PostToolUse");
        check(agent, &turn, &format!("idle: hook {ends}"));
        // A side session is not the agent's.
        let other = [turn[1], ("Stop", r#"{"session_id":"b"}"#)];
        check(agent, &other, "working: hook UserPromptSubmit");
        let cleared = [
            turn[1],
            ("SessionEnd", r#"{"session_id":"a","reason":"clear"}"#),
            ("SessionStart", r#"{"session_id":"b","source":"clear"}"#),
            ("UserPromptSubmit", r#"{"session_id":"b","prompt":"hi"}"#),
        ];
        check(agent, &cleared, "working: hook UserPromptSubmit");
    }
    let asks = r#"{"session_id":"a","notification_type":"ToolPermission","message":"Shell"}"#;
    let turn = [
        ("BeforeAgent", prompt),
        ("BeforeTool", bash),
        ("Notification", asks),
        ("AfterAgent", prompt),
    ];
    check("gemini", &turn[..1], "working: hook BeforeAgent");
    check("gemini", &turn[..3], "blocked: hook Notification");
    check("gemini", &turn, "idle: hook AfterAgent");
    let status = |status: &str| format!(r#"{{"session_id":"a","status":"{status}"}}"#);
    let (busy, idle) = (status("busy"), status("idle"));
    let asks = r#"{"session_id":"a","tool_name":"bash touch x"}"#;
    let turn = [
        ("chat.message", prompt),
        ("session.status", &*busy),
        ("permission.asked", asks),
        ("permission.replied", asks),
        ("session.status", &*idle),
        ("chat.message", r#"{"session_id":"b","prompt":"hi"}"#),
    ];
    check("opencode", &turn[..2], "working: hook session.status");
    check("opencode", &turn[..3], "blocked: hook permission.asked");
    check("opencode", &turn[..4], "working: hook permission.replied");
    check("opencode", &turn[..5], "idle: hook session.status");
    check("opencode", &turn, "working: hook chat.message");
}
