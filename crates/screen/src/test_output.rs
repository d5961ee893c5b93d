//! Test support: strategies for programs' output, and comparison of screens.

use crate::model::Screen;
use crate::redraw::pen::{alike, untouched};
use alacritty_terminal::grid::Dimensions;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::CharsetIndex;
use proptest::prelude::*;
use std::fmt::Write;

/// Text, with wide characters, marks and line breaks.
fn text() -> impl Strategy<Value = String> {
    let word = prop::sample::select(vec![
        "a",
        "hello ",
        "the quick brown fox ",
        "x",
        "日本",
        "漢",
        "e\u{301}",
        "é",
        "👩\u{200d}💻",
        "❤\u{fe0f}",
        "┌─┐",
        "q",
        "\t",
        " ",
        "     ",
        "\r\n",
        "\n",
        "\r",
        "\x08",
        "ﬁ",
        "한글",
        "0123456789",
    ]);
    prop::collection::vec(word, 1..6).prop_map(|words| words.concat())
}

/// Colours and text attributes.
fn colors() -> impl Strategy<Value = String> {
    let code = prop_oneof![
        prop::sample::select(vec![
            "",
            "0",
            "1",
            "2",
            "3",
            "4",
            "7",
            "8",
            "9",
            "22",
            "23",
            "24",
            "27",
            "28",
            "29",
            "31",
            "42",
            "39",
            "49",
            "91",
            "103",
            "4:2",
            "4:3",
            "4:4",
            "4:5",
            "4:0",
            "59",
            "58:5:9",
            "58:2::1:2:3",
        ])
        .prop_map(str::to_owned),
        (3..5_u8, any::<u8>()).prop_map(|(kind, n)| format!("{kind}8;5;{n}")),
        (3..5_u8, any::<[u8; 3]>()).prop_map(|(kind, [r, g, b])| format!("{kind}8;2;{r};{g};{b}")),
    ];
    prop::collection::vec(code, 1..4).prop_map(|codes| format!("\x1b[{}m", codes.join(";")))
}

/// Cursor movements and edits with up to two small parameters.
fn controls() -> impl Strategy<Value = String> {
    let last = prop::sample::select("ABCDEFGHIJKLMPSTXZ@`adefr".chars().collect::<Vec<_>>());
    (last, prop::collection::vec(0..14_u16, 0..3)).prop_map(|(last, numbers)| {
        let numbers: Vec<_> = numbers.iter().map(u16::to_string).collect();
        format!("\x1b[{}{last}", numbers.join(";"))
    })
}

fn modes() -> impl Strategy<Value = String> {
    let private = prop::sample::select(vec![
        1, 5, 6, 7, 9, 12, 25, 1000, 1002, 1003, 1004, 1005, 1006, 1007, 1015, 1047, 1049, 1049,
        1049, 2004,
    ]);
    let on = prop::sample::select(vec!['h', 'l']);
    prop_oneof![
        (private, on.clone()).prop_map(|(mode, on)| format!("\x1b[?{mode}{on}")),
        (prop::sample::select(vec![4, 20]), on).prop_map(|(mode, on)| format!("\x1b[{mode}{on}")),
        (0..7_u8).prop_map(|style| format!("\x1b[{style} q")),
        (0..32_u8).prop_map(|flags| format!("\x1b[>{flags}u")),
        (1..3_u8).prop_map(|count| format!("\x1b[<{count}u")),
        (0..3_u8).prop_map(|how| format!("\x1b[>4;{how}m")),
    ]
}

fn escapes() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "\x1b7",
        "\x1b8",
        "\x1bD",
        "\x1bE",
        "\x1bM",
        "\x1bH",
        "\x1b[g",
        "\x1b[3g",
        "\x1b(0",
        "\x1b(B",
        "\x1b)0",
        "\x0e",
        "\x0f",
        "\x1b=",
        "\x1b>",
        "\x1b]2;a title\x07",
        "\x1b]8;;http://x.test/\x1b\\",
        "\x1b]8;;\x1b\\",
        "\x1b#8",
        "\x1b[?2026h",
        "\x1b[?2026l",
        "\x1bPq#0\x1b\\",
        "\x1b[?5W",
        "x\x1b[3b",
        "\x1b[2J",
        "\x1bc",
    ])
    .prop_map(str::to_owned)
}

/// A word or a sequence of a program's output.
pub(crate) fn token() -> impl Strategy<Value = String> {
    prop_oneof![8 => text(), 4 => colors(), 6 => controls(), 2 => modes(), 3 => escapes()]
}

pub(crate) fn stream(length: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(token(), 0..length).prop_map(|tokens| tokens.concat())
}

/// A sequence that a terminal answers.
pub(crate) fn query() -> impl Strategy<Value = &'static str> {
    prop::sample::select(crate::output::query_filter::tests::QUERIES.to_vec())
}

/// Cut bytes at these places.
pub(crate) fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut at: Vec<_> = places
        .iter()
        .map(|place| place.index(bytes.len() + 1))
        .collect();
    at.sort_unstable();
    let mut chunks = Vec::new();
    let mut from = 0;
    for end in at.into_iter().chain([bytes.len()]) {
        chunks.push(&bytes[from..end]);
        from = end;
    }
    chunks
}

/// Properties of two screens that are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Likeness {
    /// Everything that later output could reveal.
    State,
    /// Everything that a person sees, and the modes that affect keys.
    Looks,
}

pub(crate) fn cell_state(out: &mut String, cell: &Cell) {
    if untouched(cell) {
        out.push('.');
        return;
    }
    let flags = cell
        .flags
        .difference(Flags::WRAPLINE | Flags::LEADING_WIDE_CHAR_SPACER);
    let marks = cell.zerowidth().unwrap_or_default();
    let link = cell.hyperlink().map(|link| link.uri().to_owned());
    let c = if cell.c == '\t' { ' ' } else { cell.c };
    let plain = Cell {
        c: 'x',
        flags: Flags::empty(),
        ..cell.clone()
    };
    if flags.is_empty() && marks.is_empty() && alike(&plain, &Cell::default()) {
        out.push(c);
        return;
    }
    let _ = write!(
        out,
        "<{c:?} {:?} {:?} {flags:?} {marks:?} {:?} {link:?}>",
        cell.fg,
        cell.bg,
        cell.underline_color(),
    );
}

/// Describe a screen for comparison.
pub(crate) fn state(screen: &Screen, likeness: Likeness) -> String {
    let emulator = screen.emulator();
    let grid = emulator.term.grid();
    let mut out = String::new();
    for line in (0..grid.screen_lines()).map(Line::from) {
        for cell in &grid[line][..] {
            cell_state(&mut out, cell);
        }
        out.push('\n');
    }
    let keys = (
        emulator.key_flags(),
        emulator.other_keys as u8,
        screen.title(),
    );
    let hidden = TermMode::URGENCY_HINTS;
    match likeness {
        Likeness::Looks => {
            let inner = TermMode::ALT_SCREEN
                | TermMode::LINE_WRAP
                | TermMode::INSERT
                | TermMode::ORIGIN
                | TermMode::LINE_FEED_NEW_LINE
                | TermMode::ALTERNATE_SCROLL;
            let mode = emulator.mode().difference(hidden | inner);
            let keys = (keys.0, keys.1);
            let _ = writeln!(
                out,
                "{mode:?} {keys:?} {:?} {:?}",
                screen.cursor(),
                emulator.extra
            );
        }
        Likeness::State => {
            let mode = emulator.mode().difference(hidden);
            let _ = writeln!(
                out,
                "{mode:?} {keys:?} {:?} {:?}",
                emulator.keys, emulator.extra
            );
            let _ = writeln!(
                out,
                "{:?} {:?} {:?}",
                emulator.region,
                emulator.tabs,
                emulator.term.cursor_style()
            );
            for cursor in [&grid.cursor, &grid.saved_cursor] {
                let _ = write!(out, "{:?} {} ", cursor.point, cursor.input_needs_wrap);
                cell_state(&mut out, &cursor.template);
                let _ = writeln!(out, " {:?}", cursor.charsets);
            }
            let shifted = matches!(emulator.charset, CharsetIndex::G1);
            let _ = writeln!(out, "{shifted} {}", emulator.behind.is_some());
        }
    }
    out
}
