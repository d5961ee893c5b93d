//! Tests that a redraw restores a screen, whatever the terminal showed before.

use super::*;
use crate::test_output::{Likeness, state, stream};
use crate::{Painter, Size};
use proptest::prelude::*;

const SIZE: Size = Size { cols: 12, rows: 6 };

fn fed(bytes: &[u8]) -> Screen {
    let mut screen = Screen::new(SIZE, 10);
    screen.feed(bytes);
    screen.stop_sync();
    screen
}

/// Return the screen of an attached terminal after a redraw, starting from the output `before`.
fn redrawn(screen: &Screen, before: &[u8]) -> Screen {
    let mut other = fed(before);
    other.feed(&redraw(screen));
    other
}

#[track_caller]
fn same(one: &Screen, other: &Screen) {
    assert_eq!(state(one, Likeness::State), state(other, Likeness::State));
}

/// Return whether output can bring the cursor to its position. A redraw cannot do more.
fn reachable(screen: &Screen) -> bool {
    let emulator = screen.emulator();
    let (row, _) = screen.cursor();
    !emulator.mode().contains(TermMode::ORIGIN) || emulator.region.contains(&row)
}

#[test]
fn a_redraw_restores_the_screen() {
    let check = |bytes: &str| {
        let screen = fed(bytes.as_bytes());
        same(&screen, &redrawn(&screen, b""));
    };
    check("");
    check("plain\r\n  text\r\n\r\n\r\nend");
    check("\x1b[1;31mred\x1b[44mbehind\x1b[m plain");
    check("日本語 e\u{301} 👩\u{200d}💻 wrapped 漢字漢字漢字");
    check("012345678901\x1b[7m");
    check("\x1b[5;1H0123456789日");
    check("\x1b[2;4r\x1b[?6h\x1b[2;3Hx");
    check("main\x1b[?1049h\x1b[2;2Halternate\x1b[31m");
    check("\x1b[?1;1002;1006;1004;2004h\x1b[?25l\x1b=\x1b[5 q\x1b[>1u\x1b[>5u\x1b[>4;2m");
    check("\x1b[3g\x1b[1;5H\x1bH\x1b[1;9H\x1bH\x1b(0lqk\x1b)0\x0e");
    check("\x1b]2;a title\x07\x1b]8;;http://x.test/\x1b\\link");
    check("\x1b[3;3H\x1b[32m\x1b7\x1b[m\x1b[1;1H\x1b[4h\x1b[20h\x1b[?7l");
    check("\x1b[41m\x1b[2J\x1b[1;1Hon red");
}

#[test]
fn wrapped_lines_stay_joined() {
    for text in [
        "one line that wraps twice",
        "abcdefghijk日本",
        "0123456789日x",
        "            b",
    ] {
        let screen = fed(text.as_bytes());
        let other = redrawn(&screen, b"");
        assert_eq!(other.recent(5), screen.recent(5));
        assert_eq!(other.recent(5).len(), 1, "{text}");
    }
}

#[test]
fn the_main_screen_is_restored() {
    let mut screen = fed(b"\x1b[32mmain\x1b[2;3Hscreen\x1b[>3u\x1b[?1049h\x1b[2Jother\x1b[>9u");
    let mut other = redrawn(&screen, b"");
    for one in [&mut screen, &mut other] {
        one.feed(b"\x1b[?1049l!");
    }
    same(&screen, &other);
    assert_eq!(screen.text(None)[1], "  screen!");
}

#[test]
fn the_hidden_main_screen_is_resized() {
    let mut screen = fed(b"main screen here\x1b[?1049h\x1b[Hother");
    let size = Size { cols: 8, rows: 5 };
    screen.resize(size);
    assert_eq!(screen.text(None)[0], "other");
    let mut other = Screen::new(size, 10);
    other.feed(&redraw(&screen));
    same(&screen, &other);
    other.feed(b"\x1b[?1049l");
    screen.feed(b"\x1b[?1049l");
    assert_eq!(screen.text(None)[..2], ["main scr", "een here"]);
    same(&screen, &other);
}

#[test]
fn leaving_moves_the_cursor_only_while_it_is_saved() {
    let place = |what: &[u8]| {
        leave_sequence()
            .windows(what.len())
            .position(|piece| piece == what)
    };
    let (save, restore) = (place(b"\x1b7").unwrap(), place(b"\x1b8").unwrap());
    for moves in [&b"\x1b[?6"[..], b"\x1b[r"] {
        let at = place(moves).unwrap();
        assert!(save < at && at < restore, "{}", moves.escape_ascii());
    }
}

#[test]
fn leaving_undoes_a_programs_changes() {
    for program in [
        "\x1b[?1;1002;1003;1006;1004;2004;5;9;1015h\x1b[?25;7l\x1b=\x1b[5 q\x1b[>4;2m\x1b[4;20h",
        "\x1b[>5u\x1b[>1u\x1b[31m\x1b(0\x1b)0\x0e\x1b[2;4r\x1b[?6h\x1b[?2026h",
        "\x1b[>1u\x1b[?1049h\x1b[>5u\x1b[31;4m\x1b]8;;http://x.test\x07",
    ] {
        let mut screen = fed(program.as_bytes());
        screen.feed(leave_sequence());
        screen.feed(b"\x1b7\x1b[H\x1b[J");
        let mut fresh = fed(b"\x1b7");
        for one in [&mut screen, &mut fresh] {
            one.feed(b"\x1b[1;1H\x1b7");
        }
        same(&screen, &fresh);
    }
}

#[test]
fn titles_and_links_contain_no_control_characters() {
    let screen = fed("\x1b]2;a\u{9b}31mb\x07\x1b]8;;http://x\u{9c}y\x07link".as_bytes());
    let drawn = String::from_utf8(redraw(&screen)).unwrap();
    assert!(!drawn.contains(['\u{9b}', '\u{9c}']), "{drawn:?}");
}

proptest! {
    #[test]
    fn raw_output_can_follow_a_redraw(
        a in stream(40), b in stream(20), before in stream(10),
    ) {
        let mut screen = fed(a.as_bytes());
        prop_assume!(reachable(&screen));
        // A title or a wheel mode that was never set is not reset.
        let before = before.replace("\x1b]2;a title\x07", "").replace("\x1b[?1007l", "");
        let mut other = redrawn(&screen, before.as_bytes());
        prop_assert_eq!(state(&screen, Likeness::State), state(&other, Likeness::State));
        for one in [&mut screen, &mut other] {
            one.feed(b.as_bytes());
            one.stop_sync();
        }
        prop_assert_eq!(state(&screen, Likeness::State), state(&other, Likeness::State));
    }

    #[test]
    fn a_painter_keeps_up(parts in prop::collection::vec(stream(15), 1..5)) {
        let mut screen = fed(b"");
        let mut other = fed(b"leftover\x1b[31m\x1b[2;3r");
        let mut painter = Painter::new(SIZE);
        for part in parts {
            screen.feed(part.as_bytes());
            screen.stop_sync();
            other.feed(&painter.paint(&screen));
            prop_assert_eq!(state(&screen, Likeness::Looks), state(&other, Likeness::Looks));
            prop_assert!(painter.paint(&screen).is_empty());
        }
    }
}
