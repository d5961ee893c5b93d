//! Tests of the built-in manifests on screens of the real programs. The lab recorded the screens;
//! the expected results are here.

use super::Catalogue;
use crate::pty::screen_watch::read_screen;
use posthaste_core::activity::Activity;
use posthaste_core::delivery::{Delivery, DeliveryConfig};
use posthaste_core::driver::{HookCall, Input};
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

/// The folders of recorded screens, and the manifest for each.
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

/// Return the states that were recorded at a size.
pub(super) fn states(agent: &str, size: &str) -> BTreeSet<String> {
    let Ok(files) = std::fs::read_dir(dir(agent, size)) else {
        return BTreeSet::new();
    };
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    let states = names.filter_map(|name| name.strip_suffix(".txt").map(str::to_owned));
    states.collect()
}

/// Draw a recorded screen.
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

/// Return the activity of a program that shows these screens one after the other from its start.
fn judged(harness: &Arc<Manifest>, sightings: impl IntoIterator<Item = Sighting>) -> String {
    let manner = DeliveryConfig {
        harness: harness.clone(),
        path_bytes: 0,
        reach: posthaste_core::delivery::Reach::Terminal,
        has_hooks: false,
    };
    let mut delivery = Delivery::new(manner, at(0));
    for (n, sighting) in (1..).zip(sightings) {
        delivery.on(at(n), &Input::OutputSeen);
        delivery.on(at(n), &Input::ScreenChanged(sighting));
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

/// Check the activity and the input box on every screen of an agent, at every size. Each screen
/// follows an idle one, except the question at the start.
fn check(folder: &str, expected: &[(&str, &str)]) {
    let (_, agent) = FOLDERS.iter().find(|(name, _)| *name == folder).unwrap();
    let harness = manifest(agent);
    for size in SIZES
        .iter()
        .filter(|size| !states(folder, size.0).is_empty())
    {
        for state in states(folder, size.0) {
            let want = expected.iter().find(|(name, _)| *name == state);
            let (_, want) = want.unwrap_or_else(|| panic!("{folder} {} {state}", size.0));
            let seen = |state| read_screen(&harness, &screen(&harness, folder, *size, state), 0);
            let sighting = seen(&state);
            let before = (state != "trust").then(|| seen("idle"));
            let got = input_box(&sighting);
            let got = format!(
                "{}, {got}",
                judged(&harness, before.into_iter().chain([sighting]))
            );
            let matches = match want.split_once(" … ") {
                // The ellipsis stands for any text.
                Some((begin, end)) => got.starts_with(begin) && got.ends_with(end),
                None => got == *want,
            };
            assert!(
                matches,
                "{folder} {} {state}: {got}, and not {want}",
                size.0
            );
        }
    }
}

/// The text that the lab types into the box.
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
            // The title still says idle.
            ("dialog", asks),
            ("answered", idle),
            ("interrupted", idle),
            ("denied", idle),
        ],
    );
}

#[test]
fn claude_screens_are_recognised() {
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
fn codex_screens_are_recognised() {
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
fn opencode_screens_are_recognised() {
    // A narrow terminal wraps the footer.
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
fn gemini_screens_are_recognised() {
    let idle = "idle: its title says: ◇, empty";
    let works = "working: its title says: ✦, empty";
    check(
        "gemini",
        &[
            // The title already says ready.
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

#[test]
fn only_views_with_an_empty_box_can_be_typed_into() {
    let mut checked = 0;
    for (folder, name) in FOLDERS {
        let agent = Agent::named(name).unwrap();
        let harness = manifest(name);
        for size in SIZES {
            let seen = states(&format!("{folder}/{}", size.0), "views");
            let views = agent.views();
            for view in views.iter().filter(|view| seen.contains(view.name)) {
                let state = format!("views/{}", view.name);
                let sighting = read_screen(&harness, &screen(&harness, folder, size, &state), 0);
                let about = format!("{folder} {} {}", size.0, view.name);
                let got = input_box(&sighting);
                checked += 1;
                match view.input_box {
                    BoxKind::Empty => assert_eq!(got, "empty", "{about}: {:?}", sighting.input_box),
                    BoxKind::Holds
                        if view.name.starts_with("pasted") || view.name == "multi-line" =>
                    {
                        assert!(got.starts_with('<'), "{about}: {:?}", sighting.input_box);
                    }
                    BoxKind::Holds | BoxKind::Hidden => assert_ne!(got, "empty", "{about}"),
                }
            }
        }
    }
    assert!(checked > 200, "{checked}");
}

/// If the screen without title and status note shows no activity, output and silence decide, which
/// takes longer and can be wrong.
#[test]
fn the_screen_without_title_shows_work_and_dialogs() {
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
                let is_working = says.into_iter().any(|says| says == Says::Working);
                assert_eq!(is_working, works.contains(&&*state), "{about}");
                assert_eq!(seen.dialog.is_some(), asks.contains(&&*state), "{about}");
                // The title is needed because a footer can quote it.
                let title = screen.title();
                let seen = harness.recognise(&Glance { title, ..bare });
                let has_box = !asks.contains(&&*state);
                assert_eq!(seen.ready, has_box, "{about}: {:?}", seen.input_box);
            }
        }
    };
    let asks = ["trust", "dialog"];
    let works = ["waiting", "busy", "queued", "tool"];
    check("claude", &works, &asks);
    // While text streams, only the title and the status note show that Codex works.
    check("codex", &["waiting", "tool"], &asks);
    check("opencode", &works, &asks);
    check("gemini", &works, &asks);
}

#[test]
fn a_dialog_that_is_quoted_above_the_input_box_is_not_recognised() {
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

/// An Enter in the list of conversations would select one.
#[test]
fn a_list_of_conversations_is_a_dialog() {
    let check = |agent: &str, shown: &str, want: &str| {
        let lines: Vec<String> = shown.lines().map(str::to_owned).collect();
        let dialog = |lines: &[String]| {
            let seen = manifest(agent).recognise(&Glance {
                lines,
                cursor: Some(lines.len() - 1),
                ..Glance::default()
            });
            seen.dialog
        };
        assert_eq!(dialog(&lines).as_deref(), Some(want), "{agent}");
        // The list is quoted above an input box.
        let (_, below) = BOXES.iter().find(|(name, _)| *name == agent).expect("one");
        let quoted: Vec<String> = lines.into_iter().chain(below.map(str::to_owned)).collect();
        assert_eq!(dialog(&quoted), None, "{agent}");
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

/// The last lines of an idle screen of each agent.
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

/// Feed recorded hook events of the real programs, and check the activity after the last one.
#[test]
fn hooks_alone_determine_the_activity() {
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
        let sighting = read_screen(&harness, &idle, 0);
        delivery.on(at(1), &Input::OutputSeen);
        // The program is ready. From here on, only hooks report its activity.
        let claims = Vec::new();
        delivery.on(
            at(2),
            &Input::ScreenChanged(Sighting { claims, ..sighting }),
        );
        for (n, (event, payload)) in (1..).zip(events) {
            let report = harness.hook.read(event, payload);
            let called = Input::HookCalled {
                call: HookCall(n),
                report: Box::new(report),
                takes_mail: false,
            };
            delivery.on(at(n * 1_000), &called);
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
        // Events of another conversation are ignored.
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
