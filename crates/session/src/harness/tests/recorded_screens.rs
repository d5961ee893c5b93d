//! Tests of the built-in manifests on screens of the real programs. The lab recorded the screens;
//! the expected results are here.

use super::{FOLDERS, SIZES, at, delivery, manifest, screen, states};
use crate::pty::screen_watch::read_screen;
use posthaste_core::activity::Activity;
use posthaste_core::driver::Input;
use posthaste_core::harness::{BoxState, Glance, Manifest, Says, Sighting};
use posthaste_core::text;
use posthaste_lab::agents::{Agent, BoxKind};
use std::sync::Arc;

/// Return the activity of a program that shows these screens one after the other from its start.
fn judged(harness: &Arc<Manifest>, sightings: impl IntoIterator<Item = Sighting>) -> String {
    let mut delivery = delivery(harness);
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

#[test]
fn a_permission_request_has_its_command_and_its_options() {
    let check = |agent: &str, state: &str, text: &[&str], options: &[&str]| {
        let harness = manifest(agent);
        for size in SIZES {
            if !states(agent, size.0).contains(state) {
                continue;
            }
            let seen = read_screen(&harness, &screen(&harness, agent, size, state), 0);
            let about = format!("{agent} {state} {}", size.0);
            let view = seen.dialog_view.expect(&about);
            for part in text {
                let words: Vec<&str> = view.text.split_whitespace().collect();
                assert!(words.join(" ").contains(part), "{about}: {}", view.text);
            }
            // Only the hooks of Claude Code and Codex prove that nothing is hidden.
            assert_eq!(view.is_partial, agent != "gemini", "{about}: {}", view.text);
            let found = view.answers().into_iter().map(|option| {
                format!("{} {}: {}", option.key, option.label, option.meaning.word())
            });
            assert_eq!(found.collect::<Vec<_>>(), options, "{about}");
        }
    };
    let claude = [
        "1 Yes: allow",
        "2 Yes, and always allow access to /tmp/ph-lab-000000/home/work from this project: always",
        "3 Yes, and switch to auto mode · auto mode handles these prompts for you: ",
        "4 No: deny",
    ];
    let shown = ["Bash command", "touch denied", "Do you want to proceed?"];
    check("claude", "dialog", &shown, &claude);
    let codex = [
        "1 Yes, proceed (y): allow",
        "2 Yes, and don't ask again for commands that start with `touch denied` (p): always",
        "3 No, and tell Codex what to do differently (esc): deny",
    ];
    let shown = ["following command?", "$ touch denied"];
    check("codex", "dialog", &shown, &codex);
    let gemini = [
        "1 Allow once: allow",
        "2 Allow for this session: always",
        "3 No, suggest changes (esc): deny",
    ];
    check(
        "gemini",
        "dialog",
        &["touch denied", "Allow execution of"],
        &gemini,
    );
    // Its dialog shows the highlighted option by colour alone.
    check(
        "opencode",
        "dialog",
        &["Permission required", "$ touch denied"],
        &[],
    );
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
