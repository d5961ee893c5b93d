use super::*;
use crate::harness::Glance;
use proptest::prelude::*;

fn row(text: &str) -> RowPattern {
    text.to_owned().try_into().unwrap()
}

/// A box between two rules, as in Claude Code.
fn between_rules() -> InputBox {
    InputBox {
        above: None,
        top: vec![row("─+"), row("─* .+ ─")],
        prompt: row("❯\u{a0}(?<text>.*)"),
        continuation: Some(row("(?:  (?<text>.*))?")),
        bottom: vec![row("─+")],
        full_width: true,
        footer: Vec::new(),
        below: Below::Any,
        status_rows: 0,
        hints: vec![row("Press up to edit queued messages")],
        pasted: vec![row(r"\[Pasted text #\d+(?: \+\d+ lines)?\]")],
        scrolled: Some("─ ↑ \\d+ ─".to_owned().try_into().unwrap()),
        visible_cursor: false,
        exceptions: vec![ExcludedView {
            name: "subagent view".to_owned(),
            screen: Some("^◯ main".to_owned().try_into().unwrap()),
            title: Some("agents$".to_owned().try_into().unwrap()),
        }],
        clear: None,
    }
}

/// A box between blank rows with listed rows below it, as in Codex.
fn between_blanks() -> InputBox {
    InputBox {
        top: vec![row("")],
        prompt: row("› (?<text>.*)"),
        continuation: Some(row("(?:  (?<text>.*))?")),
        bottom: vec![row("")],
        full_width: false,
        footer: vec![
            FooterRow {
                row: row("  model .*"),
                required: true,
                follows: RowPosition::Anywhere,
            },
            FooterRow {
                row: row(r"  \? for shortcuts"),
                required: false,
                follows: RowPosition::Anywhere,
            },
        ],
        below: Below::Listed,
        hints: vec![row("Ask anything")],
        scrolled: Some("↑$".to_owned().try_into().unwrap()),
        visible_cursor: true,
        ..between_rules()
    }
}

/// Describe the recognised box. `_` marks the cursor and takes no column.
fn recognised(input_box: &InputBox, screen: &str, title: &str) -> String {
    let mut cursor = None;
    let mut before = String::new();
    let mut lines = Vec::new();
    for (at, line) in screen.lines().enumerate() {
        if let Some((head, tail)) = line.split_once('_') {
            (cursor, before) = (Some(at), head.to_owned());
            lines.push(format!("{head}{tail}").trim_end_matches(' ').to_owned());
        } else {
            lines.push(line.to_owned());
        }
    }
    let glance = Glance {
        title: Some(title),
        lines: &lines,
        cursor,
        before: &before,
        cursor_shown: true,
        columns: 10,
        ..Glance::default()
    };
    match input_box.recognise(&glance, "lab") {
        BoxState::Undescribed => "undescribed".to_owned(),
        BoxState::Unrecognised(Mismatch { expected, found }) => {
            format!("expected {expected}, found {found}")
        }
        BoxState::Empty => "empty".to_owned(),
        BoxState::Holds(held) => format!(
            "<{}>{}",
            held.text,
            ["", "…"][usize::from(held.is_scrolled)]
        ),
    }
}

const RULE: &str = "──────────";

#[test]
fn a_box_between_rules_is_recognised() {
    let claude = between_rules();
    let check = |screen: &str, want: &str| {
        let screen = screen.replace("RULE", RULE);
        assert_eq!(recognised(&claude, &screen, "x"), want, "{screen}");
    };
    check("said\nRULE\n❯\u{a0}_\nRULE\n  ? for shortcuts", "empty");
    check("─── mine ─\n❯\u{a0}_\nRULE", "empty");
    check("RULE\n❯\u{a0}_\nRULE\nmy own\nstatus\nRULE", "empty");
    check(
        "RULE\n❯\u{a0}_Press up to edit queued messages\nRULE",
        "empty",
    );
    check(
        "RULE\n❯\u{a0}Press up to edit queued messages_\nRULE",
        "<Press up to edit queued messages>",
    );
    check("RULE\n❯\u{a0}hi_\nRULE", "<hi>");
    check("RULE\n❯\u{a0}one\n\n  two_\nRULE", "<one\n\ntwo>");
    check("RULE\n❯\u{a0}one_\n  two\nRULE", "<one\ntwo>");
    check("── ↑ 3 ───\n  one\n  two_\nRULE", "<one\ntwo>…");
    let not = |expected: &str, found: &str| format!("expected {expected}, found {found}");
    let prompt = "the prompt of the input box at the cursor";
    check("RULE\n❯ _Ask\nRULE", &not(prompt, "\"❯ Ask\""));
    check("RULE\n❯\u{a0}\nRULE\n_", &not(prompt, "a blank row"));
    check("RULE\n❯\u{a0}\nRULE\n_x", &not(prompt, "\"x\""));
    check(
        "❯ 1. Yes\n❯\u{a0}_\nRULE",
        &not("the upper edge of the input box", "\"❯ 1. Yes\""),
    );
    check(
        "─────\n❯\u{a0}_\nRULE",
        &not("the upper edge of the input box", "\"─────\""),
    );
    check(
        "RULE\n❯\u{a0}_\n─────",
        &not("the lower edge of the input box", "\"─────\""),
    );
    check(
        "RULE\n❯\u{a0}_\nDo you?\nRULE",
        &not("the lower edge of the input box", "\"Do you?\""),
    );
    check(
        "RULE\n❯\u{a0} _\nRULE",
        &not("the cursor at the beginning of the input box", "\"❯\""),
    );
    check(
        "RULE\n❯\u{a0}_\nRULE\n◯ main",
        &not("the usual input box", "\"subagent view\""),
    );
    let idle = format!("{RULE}\n❯\u{a0}_\n{RULE}");
    assert!(recognised(&claude, &idle, "claude agents").contains("subagent view"));
}

#[test]
fn rows_below_a_box_are_listed_or_allowed() {
    let mut codex = between_blanks();
    let check = |codex: &InputBox, screen: &str, want: &str| {
        let seen = recognised(codex, screen, "x");
        assert!(seen.starts_with(want), "{screen}\n{seen}");
    };
    check(
        &codex,
        "said\n\n› _Ask anything\n\n  model x\n  ? for shortcuts",
        "empty",
    );
    check(&codex, "said\n\n› _Ask anything\n\n  model x", "empty");
    check(
        &codex,
        "said\n\n› one\n\n  two_\n\n  model x",
        "<one\n\ntwo>",
    );
    check(
        &codex,
        "said\n\n› end  ↑\n  more_\n\n  model x",
        "<end\nmore>…",
    );
    check(
        &codex,
        "said\n\n› _\n\n",
        "expected a row like '  model .*' below the input box",
    );
    let other = "\n› _\n\n  model x\n  1. Yes";
    check(
        &codex,
        other,
        "expected only listed rows below the input box (allow a status line with \
         [harness.lab] status_rows in config.toml), found \"1. Yes\"",
    );
    codex.status_rows = 1;
    check(&codex, other, "empty");
    check(
        &codex,
        &format!("{other}\n  2. No"),
        "expected only listed rows",
    );
}

#[test]
fn a_wrapped_row_is_matched_with_the_row_above_it() {
    let mut codex = between_blanks();
    codex.footer.insert(
        1,
        FooterRow {
            row: row(r"  model ctrl\+p\n  commands"),
            required: false,
            follows: RowPosition::Wrapped,
        },
    );
    let check = |screen: &str, want: &str| {
        let seen = recognised(&codex, screen, "x");
        assert!(seen.starts_with(want), "{screen}\n{seen}");
    };
    let unlisted = "expected only listed rows";
    check("\n› _\n\n  model ctrl+p\n  commands", "empty");
    check("\n› _\n\n  model xy\n  commands", unlisted);
    check("\n› _\n\n  model ctrl+p\n\n  commands", unlisted);
}

#[test]
fn a_title_row_continues_the_title_of_the_terminal() {
    let mut codex = between_blanks();
    for at in [1, 2] {
        let follows = RowPosition::Title;
        let footer = FooterRow {
            row: row("  .*"),
            required: false,
            follows,
        };
        codex.footer.insert(at, footer);
    }
    let check = |screen: &str, title: &str, want: &str| {
        let seen = recognised(&codex, screen, title);
        assert!(seen.starts_with(want), "{screen}\n{title}\n{seen}");
    };
    let (empty, unlisted) = ("empty", "expected only listed rows");
    check(
        "\n› _\n\n  model xy\n  and more",
        "xy and more | work",
        empty,
    );
    check(
        "\n› _\n\n  model x·\n  and more",
        "⠋ and more | work",
        empty,
    );
    // The test terminal has ten columns, and these words fit into the first row.
    check("\n› _\n\n  model \n  a b", "a b", unlisted);
    check(
        "\n› _\n\n  model xy\n  and more\n  than so",
        "xy and more than so",
        empty,
    );
    check("\n› _\n\n  model xy\n  cancel", "xy and more", unlisted);
    check(
        "\n› _\n\n  model xy\n  cancel",
        "how to cancel it",
        unlisted,
    );
    check("\n› _\n\n  model xy\n  cancel", "", unlisted);
}

#[test]
fn the_cursor_of_a_capture_is_guessed() {
    let check = |screen: &str, want: Option<(usize, usize)>| {
        let rows: Vec<String> = screen.lines().map(str::to_owned).collect();
        assert_eq!(between_blanks().likely_cursor(&rows), want, "{screen}");
    };
    check("said\n\n› \n\n  model x", Some((2, 2)));
    check("said\n\n›\n\n  model x", Some((2, 2)));
    check("› old\n\n› 漢字", Some((2, 6)));
    check("\n› Ask anything\n", Some((1, 2)));
    check("said\n\n  model x", None);
    check("", None);
}

#[test]
fn texts_are_compared_without_line_breaks() {
    let codex = between_blanks();
    let check = |text: &str, is_scrolled, ours: &str, want: bool| {
        let held = Held {
            text: text.to_owned(),
            is_scrolled,
        };
        assert_eq!(codex.is_text(&held, ours), want, "{text} {ours}");
    };
    check(
        "[ph message] a lo\nng word",
        false,
        "[ph message] a long word ",
        true,
    );
    check("e\u{301}té", false, "eté", true);
    check("hello", false, "hello!", false);
    check("hello!", false, "hello", false);
    check("lo!", true, "hello!", true);
    check("", true, "hello!", false);
    check("lo!", false, "hello!", false);
    check("[Pasted text #1 +5 lines]", false, "one\ntwo", true);
    check(
        "[Pasted text #1 +5 lines]",
        false,
        &"long ".repeat(40),
        true,
    );
    check("[Pasted text #1 +5 lines]", false, "hello", false);
    check("[Pasted text #1 +5 lines] x", false, "hello", false);
}

proptest! {
    #[test]
    fn recognition_never_panics_on_any_screen(
        lines in prop::collection::vec("\\PC{0,20}|❯\u{a0}.{0,9}|─{10}|› .{0,9}|", 0..12),
        cursor in prop::option::of(0..14_usize),
        before in "\\PC{0,6}|❯\u{a0}|› ",
    ) {
        for input_box in [between_rules(), between_blanks()] {
            let glance = Glance { lines: &lines, cursor, before: &before, columns: 10, ..Glance::default() };
            let state = input_box.recognise(&glance, "lab");
            if let BoxState::Unrecognised(Mismatch { found, .. }) = state {
                prop_assert_eq!(&crate::text::visible(&found), &found);
            }
        }
    }
}
