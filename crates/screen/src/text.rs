//! The screen as text.
//!
//! Reads the model and never changes it. Spaces at the end of a row are not text, even if the
//! program wrote them.

use crate::model::Screen;
use crate::redraw::pen::{Links, Pen, untouched};
use alacritty_terminal::grid::{Dimensions, Grid};
use alacritty_terminal::index::Line;
use alacritty_terminal::term::cell::{Cell, Flags};

/// Cells that are covered by a wide character.
const WIDE_CHAR_SPACERS: Flags = Flags::WIDE_CHAR_SPACER.union(Flags::LEADING_WIDE_CHAR_SPACER);

impl Screen {
    /// Return the rows of the screen, or the last `lines` rows of scrollback and screen.
    pub fn text(&self, lines: Option<usize>) -> Vec<String> {
        self.rows(lines).map(|row| text(row, inked(row))).collect()
    }

    /// Return at most `lines` rows from the bottom of the screen, without scrollback, and the index
    /// of the row with the cursor.
    pub fn foot(&self, lines: usize) -> (Vec<String>, Option<usize>) {
        let grid = self.emulator().term.grid();
        let cursor = grid.cursor.point.line.0;
        let last = last_row(grid, |row| inked(row) > 0).max(cursor);
        let back = i32::try_from(lines).unwrap_or(i32::MAX);
        let first = last.saturating_sub(back).saturating_add(1).max(0);
        let rows = (first..=last).map(|line| {
            let row = cells(grid, line);
            text(row, inked(row))
        });
        (rows.collect(), usize::try_from(cursor - first).ok())
    }

    /// Return the text before the cursor in its row.
    pub fn before_cursor(&self) -> String {
        let grid = self.emulator().term.grid();
        let at = grid.cursor.point;
        let row = cells(grid, at.line.0);
        text(row, at.column.0.min(row.len()))
    }

    /// Return the rows with colours. Each row begins and ends with default colours.
    pub fn ansi(&self, lines: Option<usize>) -> Vec<String> {
        self.rows(lines)
            .map(|row| {
                let mut line = Vec::new();
                let mut pen = Pen::plain(Links::Left);
                let end = row.iter().rposition(|cell| !untouched(cell));
                for cell in &row[..end.map_or(0, |last| last + 1)] {
                    pen.put(&mut line, cell);
                }
                pen.lift(&mut line);
                String::from_utf8(line).unwrap_or_default()
            })
            .collect()
    }

    /// Return the last `lines` lines without the terminal's wrapping. Blank lines at the end do not
    /// count.
    pub fn recent(&self, lines: usize) -> Vec<String> {
        let grid = self.emulator().term.grid();
        let top = grid.topmost_line().0;
        let mut end = last_row(grid, |row| inked(row) > 0);
        let mut found = Vec::new();
        while found.len() < lines && end >= top {
            let mut start = end;
            while start > top && wraps(cells(grid, start - 1)) {
                start -= 1;
            }
            let rows = (start..=end).map(|line| {
                let row = cells(grid, line);
                text(row, if line < end { row.len() } else { inked(row) })
            });
            let line: String = rows.collect();
            found.push(line.trim_end_matches(' ').to_owned());
            end = start - 1;
        }
        found.reverse();
        found
    }

    fn rows(&self, lines: Option<usize>) -> impl Iterator<Item = &[Cell]> {
        let grid = self.emulator().term.grid();
        let (first, last) = match lines {
            None => (0, grid.bottommost_line().0),
            Some(lines) => {
                let used = last_row(grid, |row| inked(row) > 0);
                let last = used.max(grid.cursor.point.line.0);
                let back = i32::try_from(lines).unwrap_or(i32::MAX);
                let first = last.saturating_sub(back).saturating_add(1);
                (first.max(grid.topmost_line().0), last)
            }
        };
        (first..=last).map(move |line| cells(grid, line))
    }
}

fn cells(grid: &Grid<Cell>, line: i32) -> &[Cell] {
    &grid[Line(line)][..]
}

/// Return the lowest row for which `is` holds, or the row above all rows.
fn last_row(grid: &Grid<Cell>, is: impl Fn(&[Cell]) -> bool) -> i32 {
    let (top, bottom) = (grid.topmost_line().0, grid.bottommost_line().0);
    (top..=bottom)
        .rev()
        .find(|&line| is(cells(grid, line)))
        .unwrap_or(top - 1)
}

/// Return the number of cells up to the last one with text.
fn inked(row: &[Cell]) -> usize {
    let marked = |cell: &Cell| cell.zerowidth().is_some_and(|marks| !marks.is_empty());
    row.iter()
        .rposition(|cell| !matches!(cell.c, ' ' | '\t') || marked(cell))
        .map_or(0, |last| last + 1)
}

fn wraps(row: &[Cell]) -> bool {
    row.last()
        .is_some_and(|cell| cell.flags.contains(Flags::WRAPLINE))
}

/// Return the text of the first `used` cells of a row.
fn text(row: &[Cell], used: usize) -> String {
    let mut text = String::new();
    for cell in &row[..used] {
        if cell.flags.intersects(WIDE_CHAR_SPACERS) {
            continue;
        }
        text.push(if cell.c == '\t' { ' ' } else { cell.c });
        text.extend(cell.zerowidth().into_iter().flatten());
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Size;

    const SIZE: Size = Size { cols: 10, rows: 4 };

    fn fed(bytes: &str) -> Screen {
        let mut screen = Screen::new(SIZE, 20);
        screen.feed(bytes.as_bytes());
        screen
    }

    #[test]
    fn the_foot_is_the_bottom_of_the_screen() {
        let check = |bytes: &str, lines: usize, want: &[&str], cursor: Option<usize>| {
            let (foot, at) = fed(bytes).foot(lines);
            assert_eq!(foot, want, "{bytes:?}");
            assert_eq!(at, cursor, "{bytes:?}");
        };
        check("", 3, &[""], Some(0));
        check("a\r\nb", 3, &["a", "b"], Some(1));
        check("a\r\nb\r\nc\r\nd", 2, &["c", "d"], Some(1));
        check("a\r\nb\r\nc\x1b[1;1H", 2, &["b", "c"], None);
        check("a\r\nb\r\nc\x1b[2;1H", 2, &["b", "c"], Some(0));
        // The screen has four rows; the others have scrolled away.
        check(
            "1\r\n2\r\n3\r\n4\r\n5\r\n6",
            9,
            &["3", "4", "5", "6"],
            Some(3),
        );
    }

    #[test]
    fn rows_become_text() {
        let check = |bytes: &str, lines: Option<usize>, want: &[&str]| {
            assert_eq!(fed(bytes).text(lines), want, "{bytes:?} {lines:?}");
        };
        check("", None, &["", "", "", ""]);
        check("", Some(3), &[""]);
        check("one  \r\n\ttab", None, &["one", "        ta", "b", ""]);
        check("日本 e\u{301}\r\n", Some(9), &["日本 e\u{301}", ""]);
        check("123456789日本", None, &["123456789", "日本", "", ""]);
        check("1\r\n2\r\n3\r\n4\r\n5\r\n6", Some(3), &["4", "5", "6"]);
        check(
            "1\r\n2\r\n3\r\n4\r\n5\r\n6",
            Some(99),
            &["1", "2", "3", "4", "5", "6"],
        );
        check("1\r\n2\r\n3\r\n4\r\n5\r\n6", Some(0), &[]);
        check("1\r\n2\x1b[1;1H", Some(1), &["2"]);
        check("1\r\n2\x1b[4;1H", Some(1), &[""]);
        check("a wrapped line", None, &["a wrapped", "line", "", ""]);
    }

    #[test]
    fn rows_keep_their_colours() {
        let check = |bytes: &str, want: &[&str]| {
            let shown: Vec<_> = fed(bytes)
                .ansi(Some(9))
                .iter()
                .map(|l| l.replace('\x1b', "^"))
                .collect();
            assert_eq!(shown, want, "{bytes:?}");
        };
        check("\x1b[31mred\r\nalso", &["^[31mred^[m", "^[31malso^[m"]);
        check("a\x1b[42m  \x1b[m  ", &["a^[42m  ^[m"]);
        check("\x1b]8;;http://x.test\x07link\x1b]8;;\x07", &["link"]);
    }

    #[test]
    fn recent_lines_are_unwrapped() {
        let check = |bytes: &str, lines: usize, want: &[&str]| {
            assert_eq!(fed(bytes).recent(lines), want, "{bytes:?}");
        };
        check("", 3, &[]);
        check("one\r\n\r\ntwo\r\n\r\n", 9, &["one", "", "two"]);
        check("one\r\n\r\ntwo\r\n\r\n", 1, &["two"]);
        check(
            "a line that the terminal wraps\r\nb",
            2,
            &["a line that the terminal wraps", "b"],
        );
        check("123456789日本日本日本", 1, &["123456789日本日本日本"]);
        check(
            &"0123456789".repeat(9),
            1,
            &["0123456789".repeat(9).as_str()],
        );
        check("one\r\ntwo", 0, &[]);
    }
}
