//! Keeps a terminal of another size up to date with a screen.
//!
//! Raw output is correct only on a terminal of the same size. Other terminals get the changed rows,
//! clipped to their size. Draws on the alternate screen, so that the person's own lines return
//! afterwards, and never sends a line break.

use super::pen::{Links, Pen};
use super::{
    BEGIN_UPDATE, CLEAR_SCREEN, END_UPDATE, RESET_MODES, SHOW_ALTERNATE, goto, keys, modes, used,
};
use crate::Size;
use crate::model::Screen;
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Flags};

/// Painter of one terminal.
#[derive(Debug)]
pub struct Painter {
    size: Size,
    /// Bytes last sent for each row of the terminal; empty before the first frame.
    rows: Vec<Vec<u8>>,
    modes: Vec<u8>,
    cursor: (usize, usize),
}

impl Painter {
    /// Create a painter for a terminal of this size in any state.
    pub fn new(size: Size) -> Self {
        Self {
            size: size.sane(),
            rows: Vec::new(),
            modes: Vec::new(),
            cursor: (0, 0),
        }
    }

    /// Set another size. The terminal is drawn anew.
    pub fn resize(&mut self, size: Size) {
        *self = Self::new(size);
    }

    /// Return the bytes that bring the terminal up to date; empty if it is.
    pub fn paint(&mut self, screen: &Screen) -> Vec<u8> {
        let mut out = Vec::new();
        if self.rows.is_empty() {
            // The alternate screen comes first, so that the terminal saves the person's cursor
            // position.
            out.extend_from_slice(SHOW_ALTERNATE);
            out.extend_from_slice(RESET_MODES);
            out.extend_from_slice(b"\x1b[?7l");
            out.extend_from_slice(CLEAR_SCREEN);
            self.rows = vec![Vec::new(); usize::from(self.size.rows)];
            self.modes.clear();
        }
        let top = self.paint_rows(screen, &mut out);
        self.paint_modes(screen, &mut out);
        let (row, column) = screen.cursor();
        let edge = usize::from(self.size.cols) - 1;
        let cursor = (row - top, column.min(edge));
        if !out.is_empty() || cursor != self.cursor {
            goto(&mut out, cursor.0, cursor.1);
            self.cursor = cursor;
            out.splice(..0, BEGIN_UPDATE.iter().copied());
            out.extend_from_slice(END_UPDATE);
        }
        out
    }

    /// Return the first row of the screen that is visible: a terminal that is too low shows the
    /// part with the cursor.
    fn paint_rows(&mut self, screen: &Screen, out: &mut Vec<u8>) -> usize {
        let grid = screen.emulator().term.grid();
        let (cursor, _) = screen.cursor();
        let height = usize::from(self.size.rows);
        let top = (cursor + 1).saturating_sub(height);
        let below = usize::from(screen.size().rows) - top;
        let mut fresh = Vec::new();
        for (at, painted) in self.rows.iter_mut().enumerate() {
            fresh.clear();
            if at < below {
                let row = &grid[Line::from(top + at)][..];
                clipped(&mut fresh, row, usize::from(self.size.cols));
            }
            if fresh != *painted {
                goto(out, at, 0);
                out.extend_from_slice(&fresh);
                std::mem::swap(painted, &mut fresh);
            }
        }
        top
    }

    fn paint_modes(&mut self, screen: &Screen, out: &mut Vec<u8>) {
        let emulator = screen.emulator();
        // Switch all modes off before setting the current ones.
        let mut now =
            b"\x1b[?1;5;9;25;1000;1002;1003;1004;1005;1006;1015;2004l\x1b>\x1b[<99u\x1b[=0u"
                .to_vec();
        modes(&mut now, emulator);
        keys(&mut now, &[], emulator.key_flags());
        if now != self.modes {
            out.extend_from_slice(&now);
            self.modes = now;
        }
    }
}

/// Draw a row, clipped to a terminal of this width.
fn clipped(out: &mut Vec<u8>, row: &[Cell], width: usize) {
    let mut pen = Pen::plain(Links::Kept);
    let end = used(row);
    for (column, cell) in row.iter().enumerate().take(end.min(width)) {
        if cell.flags.contains(Flags::WIDE_CHAR) && column + 1 == width {
            pen.blank(out, cell);
        } else {
            pen.put(out, cell);
        }
    }
    pen.lift(out);
    if end < width {
        out.extend_from_slice(b"\x1b[K");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(from: Size, to: Size, bytes: &str) -> Screen {
        let mut screen = Screen::new(from, 0);
        screen.feed(bytes.as_bytes());
        let mut terminal = Screen::new(to, 0);
        terminal.feed(b"what was there before\r\n\x1b[41mand this");
        terminal.feed(&Painter::new(to).paint(&screen));
        terminal
    }

    #[test]
    fn a_terminal_shows_the_part_that_fits() {
        let from = Size { cols: 10, rows: 4 };
        let text = "one\r\n1234567日x\r\nthree\r\nfour";
        let check = |cols, rows, want: &[&str], cursor| {
            let terminal = painted(from, Size { cols, rows }, text);
            assert_eq!(terminal.text(None), want, "{cols}x{rows}");
            assert_eq!(terminal.cursor(), cursor, "{cols}x{rows}");
        };
        let all = ["one", "1234567日x", "three", "four", "", ""];
        check(20, 6, &all, (3, 4));
        check(10, 4, &all[..4], (3, 4));
        check(8, 4, &["one", "1234567", "three", "four"], (3, 4));
        check(3, 2, &["thr", "fou"], (1, 2));
    }

    #[test]
    fn only_changed_rows_are_sent() {
        let size = Size { cols: 20, rows: 5 };
        let mut screen = Screen::new(Size { cols: 10, rows: 4 }, 0);
        let mut painter = Painter::new(size);
        let mut check = |bytes: &[u8], want: &str| {
            screen.feed(bytes);
            let sent = String::from_utf8(painter.paint(&screen)).unwrap();
            let sent = sent.replace("\x1b[?2026h", "").replace("\x1b[?2026l", "");
            if !want.is_empty() || !sent.contains("1049") {
                assert_eq!(sent.replace('\x1b', "^"), want, "{bytes:?}");
            }
        };
        check(b"one\r\ntwo", "");
        check(b"", "");
        check(b"!", "^[2;1Htwo!^[K^[2;5H");
        check(b"\x1b[1;1H", "^[1;1H");
        check(b"\x1b[31mO", "^[1;1H^[31mO^[mne^[K^[1;2H");
    }

    #[test]
    fn the_persons_own_lines_return() {
        let size = Size { cols: 20, rows: 4 };
        let mut terminal = Screen::new(size, 10);
        terminal.feed(b"$ ph attach scout\r\n");
        let mut screen = Screen::new(Size { cols: 10, rows: 3 }, 0);
        screen.feed(b"\x1b[?1002h\x1b[?2004hhello");
        terminal.feed(&Painter::new(size).paint(&screen));
        assert!(terminal.wants_mouse() && terminal.bracketed_paste());
        terminal.feed(crate::leave_sequence());
        assert!(!terminal.wants_mouse() && !terminal.bracketed_paste());
        assert_eq!(terminal.text(Some(9)), ["$ ph attach scout", ""]);
    }
}
