//! Bytes that bring a terminal into the state of a screen.
//!
//! Raw output follows a redraw on an attached terminal, so a redraw restores the modes, colours,
//! scroll region and cursor as well as the picture. Only reads the model; never repeats a program's
//! bytes unchecked.

mod painter;
pub(crate) mod pen;
#[cfg(test)]
mod tests;

pub use painter::Painter;

use crate::emulator::Emulator;
use crate::model::Screen;
use alacritty_terminal::Term;
use alacritty_terminal::grid::{Cursor, Dimensions, Grid};
use alacritty_terminal::index::{Column, Line};
use alacritty_terminal::term::TermMode;
use alacritty_terminal::term::cell::{Cell, Flags};
use alacritty_terminal::vte::ansi::{CharsetIndex, CursorShape, KeyboardModes, StandardCharset};
use pen::{Links, Pen, alike, untouched};
use std::io::Write;

pub(crate) const BEGIN_UPDATE: &[u8] = b"\x1b[?2026h";
pub(crate) const END_UPDATE: &[u8] = b"\x1b[?2026l";

/// Bring the terminal from any state to a known one: a soft reset, then each setting, because
/// terminals differ in what a soft reset covers. Moves the cursor.
pub(crate) const RESET_MODES: &[u8] = b"\x1b[!p\
    \x1b[?1;5;6;9;25;69;1000;1002;1003;1004;1005;1006;1015;2004l\x1b[?7h\x1b[4;20l\x1b>\
    \x1b[<99u\x1b[=0u\x1b[>4;0m\x1b[?5W\x1b[r";

/// Plain writing from the top left of an empty screen. Does not "erase all", which clears the
/// scrollback in some terminals.
pub(crate) const CLEAR_SCREEN: &[u8] =
    b"\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b]8;;\x1b\\\x1b[m\x1b[H\x1b[J";

const SHOW_MAIN: &[u8] = b"\x1b[?1049l";
pub(crate) const SHOW_ALTERNATE: &[u8] = b"\x1b[?1049h";

/// Undo a program's changes to a person's own terminal, except the title, which its owner restores.
/// The cursor stays, or returns to its position before the alternate screen: sequences that move it
/// are between saving and restoring. A restored origin mode is harmless because the margins are
/// reset by then.
const LEAVE_SEQUENCE: &[u8] = b"\x1b[?2026l\x1b[<99u\x1b[=0u\x1b7\x1b[?6;69l\x1b[r\x1b8\x1b[?1049l\
    \x1b[<99u\x1b[=0u\x1b[>4;0m\x1b[?1;5;9;1000;1002;1003;1004;1005;1006;1015;2004l\x1b[?7;25h\
    \x1b[4;20l\x1b>\x1b(B\x1b)B\x1b*B\x1b+B\x0f\x1b]8;;\x1b\\\x1b[0 q\x1b[m";

/// Modes that are off until a program sets them.
const OFF_BY_DEFAULT_MODES: [(TermMode, usize); 9] = [
    (TermMode::APP_CURSOR, 1),
    (TermMode::MOUSE_REPORT_CLICK, 1000),
    (TermMode::MOUSE_DRAG, 1002),
    (TermMode::MOUSE_MOTION, 1003),
    (TermMode::FOCUS_IN_OUT, 1004),
    (TermMode::UTF8_MOUSE, 1005),
    (TermMode::SGR_MOUSE, 1006),
    (TermMode::BRACKETED_PASTE, 2004),
    (TermMode::SHOW_CURSOR, 25),
];

/// Return the bytes that give a terminal back to its person.
pub fn leave_sequence() -> &'static [u8] {
    LEAVE_SEQUENCE
}

/// Make a terminal of the same size show this screen, ready for the raw output that follows. Does
/// not include an update that is held back: see [`Screen::stop_sync`].
pub fn redraw(screen: &Screen) -> Vec<u8> {
    let emulator = screen.emulator();
    let mut out = Vec::with_capacity(4096);
    out.extend_from_slice(BEGIN_UPDATE);
    out.extend_from_slice(SHOW_MAIN);
    out.extend_from_slice(RESET_MODES);
    out.extend_from_slice(CLEAR_SCREEN);
    if let Some(behind) = &emulator.behind {
        out.extend_from_slice(behind);
        out.extend_from_slice(SHOW_ALTERNATE);
        out.extend_from_slice(CLEAR_SCREEN);
    }
    canvas(&mut out, emulator.term.grid());
    title(&mut out, screen);
    modes(&mut out, emulator);
    keys(&mut out, &emulator.keys, emulator.key_flags());
    tabs(&mut out, emulator);
    finish(&mut out, emulator);
    out.extend_from_slice(END_UPDATE);
    out
}

/// Draw the main screen, which shows again when the alternate screen ends.
pub(crate) fn hidden_main<T>(term: &Term<T>, stack: &[KeyboardModes]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2048);
    canvas(&mut out, term.grid());
    keys(&mut out, stack, stack.last().copied().unwrap_or_default());
    place(&mut out, term.grid(), &term.grid().cursor, 0);
    out
}

/// Draw all rows on an empty screen, from the top left.
fn canvas(out: &mut Vec<u8>, grid: &Grid<Cell>) {
    let mut pen = Pen::plain(Links::Kept);
    let mut down = 0;
    let mut wrapped = false;
    let rows = grid.screen_lines();
    for line in 0..rows {
        let row = &grid[Line::from(line)][..];
        let next = (line + 1 < rows).then(|| &grid[Line::from(line + 1)][..]);
        let wraps = wraps_into(row, next);
        // A terminal joins two rows to one line only if the first is written to its end and the
        // second from its beginning.
        let end = match wraps {
            Some(end) => end,
            None => used(row).max(usize::from(wrapped)),
        };
        if end > 0 && !wrapped {
            if down > 0 {
                out.push(b'\r');
                out.extend(std::iter::repeat_n(b'\n', down));
            }
            down = 0;
        }
        let solid = if wraps.is_some() {
            end
        } else {
            usize::from(wrapped)
        };
        self::row(out, &mut pen, &row[..end], solid);
        wrapped = wraps.is_some();
        if !wrapped {
            down += 1;
        }
    }
    pen.lift(out);
}

/// Return the length to which a row has to be written so that the next one continues its line, if
/// it does.
fn wraps_into(row: &[Cell], next: Option<&[Cell]>) -> Option<usize> {
    let last = row
        .last()
        .filter(|last| last.flags.contains(Flags::WRAPLINE))?;
    let next = next?.first()?;
    let pushed = last.flags.contains(Flags::LEADING_WIDE_CHAR_SPACER)
        && next.flags.contains(Flags::WIDE_CHAR)
        && alike(last, next);
    // Writing a wide character that does not fit leaves this cell empty again.
    Some(row.len() - usize::from(pushed))
}

/// Return the number of cells up to the last one that differs from an empty one.
pub(crate) fn used(row: &[Cell]) -> usize {
    row.iter()
        .rposition(|cell| !untouched(cell))
        .map_or(0, |last| last + 1)
}

/// Draw cells from the cursor on. Long gaps after the first `solid` cells are skipped.
fn row(out: &mut Vec<u8>, pen: &mut Pen, cells: &[Cell], solid: usize) {
    let mut at = 0;
    while at < cells.len() {
        let gap = if at < solid {
            0
        } else {
            cells[at..]
                .iter()
                .take_while(|cell| untouched(cell))
                .count()
        };
        if gap > 4 {
            let _ = write!(out, "\x1b[{gap}C");
            at += gap;
        } else {
            pen.put(out, &cells[at]);
            at += 1;
        }
    }
}

fn title(out: &mut Vec<u8>, screen: &Screen) {
    if let Some(title) = screen.title() {
        let title: String = title.chars().filter(|c| !c.is_control()).collect();
        let _ = write!(out, "\x1b]2;{title}\x1b\\");
    }
}

/// Set the modes that affect keys, mouse and cursor, starting from [`RESET_MODES`].
pub(crate) fn modes(out: &mut Vec<u8>, emulator: &Emulator) {
    let mode = emulator.mode();
    let extra = emulator.extra;
    let extras = [
        (extra.reverse_screen, 5),
        (extra.press_mouse, 9),
        (extra.decimal_mouse, 1015),
    ];
    let known = OFF_BY_DEFAULT_MODES
        .iter()
        .map(|&(flag, code)| (mode.contains(flag), code));
    let set = known.chain(extras).filter(|&(on, _)| on);
    let codes: Vec<_> = set.map(|(_, code)| code.to_string()).collect();
    if !codes.is_empty() {
        let _ = write!(out, "\x1b[?{}h", codes.join(";"));
    }
    if !mode.contains(TermMode::ALTERNATE_SCROLL) {
        out.extend_from_slice(b"\x1b[?1007l");
    }
    if mode.contains(TermMode::APP_KEYPAD) {
        out.extend_from_slice(b"\x1b=");
    }
    let other_keys = emulator.other_keys as usize;
    let _ = write!(
        out,
        "\x1b[>4;{other_keys}m\x1b[{} q",
        cursor_style(emulator)
    );
}

fn cursor_style(emulator: &Emulator) -> usize {
    if !emulator.styled {
        return 0;
    }
    let style = emulator.term.cursor_style();
    let steady = match style.shape {
        CursorShape::Block | CursorShape::HollowBlock | CursorShape::Hidden => 2,
        CursorShape::Underline => 4,
        CursorShape::Beam => 6,
    };
    steady - usize::from(style.blinking)
}

/// Set the stack of keyboard modes, starting from an empty one.
pub(crate) fn keys(out: &mut Vec<u8>, stack: &[KeyboardModes], flags: KeyboardModes) {
    for entry in stack {
        let _ = write!(out, "\x1b[>{}u", entry.bits());
    }
    if stack.last().copied().unwrap_or_default() != flags {
        let _ = write!(out, "\x1b[={}u", flags.bits());
    }
}

fn tabs(out: &mut Vec<u8>, emulator: &Emulator) {
    let Some(tabs) = &emulator.tabs else { return };
    out.extend_from_slice(b"\x1b[3g");
    for (column, _) in tabs.iter().enumerate().filter(|&(_, &stop)| stop) {
        let _ = write!(out, "\x1b[{}G\x1bH", column + 1);
    }
}

/// Set the region and both cursors. This comes last, because region and origin move the cursor.
fn finish(out: &mut Vec<u8>, emulator: &Emulator) {
    let mode = emulator.mode();
    let grid = emulator.term.grid();
    let region = &emulator.region;
    if *region != (0..grid.screen_lines()) {
        let _ = write!(out, "\x1b[{};{}r", region.start + 1, region.end);
    }
    let mut pen = place(out, grid, &grid.saved_cursor, 0);
    out.extend_from_slice(b"\x1b7\x1b(B\x1b)B\x1b*B\x1b+B");
    pen.lift(out);
    for (on, sequence) in [
        (mode.contains(TermMode::INSERT), b"\x1b[4h".as_slice()),
        (mode.contains(TermMode::LINE_FEED_NEW_LINE), b"\x1b[20h"),
        (!mode.contains(TermMode::LINE_WRAP), b"\x1b[?7l"),
        (mode.contains(TermMode::ORIGIN), b"\x1b[?6h"),
    ] {
        if on {
            out.extend_from_slice(sequence);
        }
    }
    let top = if mode.contains(TermMode::ORIGIN) {
        region.start
    } else {
        0
    };
    place(out, grid, &grid.cursor, top);
    if emulator.charset == CharsetIndex::G1 {
        out.push(0x0e);
    }
}

/// Set the cursor with its colours and character sets, starting from default ones. Rows are counted
/// from `top`.
fn place(out: &mut Vec<u8>, grid: &Grid<Cell>, cursor: &Cursor<Cell>, top: usize) -> Pen {
    let line = cursor.point.line.min(grid.bottommost_line()).max(Line(0));
    let last = grid.last_column();
    let mut column = cursor.point.column.min(last);
    let row = &grid[line];
    let pending = cursor.input_needs_wrap && column == last;
    if pending && row[column].flags.contains(Flags::WIDE_CHAR_SPACER) {
        column = Column(column.saturating_sub(1));
    }
    goto(out, (line.0 as usize).saturating_sub(top), column.0);
    let mut pen = Pen::plain(Links::Kept);
    if pending {
        // Only writing the last cell again makes the next character wrap.
        pen.put(out, &row[column]);
    }
    pen.wear(out, &cursor.template);
    let sets = [
        (CharsetIndex::G0, b'('),
        (CharsetIndex::G1, b')'),
        (CharsetIndex::G2, b'*'),
        (CharsetIndex::G3, b'+'),
    ];
    for (index, sign) in sets {
        match cursor.charsets[index] {
            StandardCharset::Ascii => {}
            StandardCharset::SpecialCharacterAndLineDrawing => {
                out.extend_from_slice(&[0x1b, sign, b'0']);
            }
        }
    }
    pen
}

pub(crate) fn goto(out: &mut Vec<u8>, row: usize, column: usize) {
    let _ = write!(out, "\x1b[{};{}H", row + 1, column + 1);
}
