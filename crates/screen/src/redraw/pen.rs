//! Writes cells as text with colours.
//!
//! Knows the terminal's current colours and sends only changes. Never moves the cursor.

use alacritty_terminal::term::cell::{Cell, Flags, Hyperlink};
use alacritty_terminal::vte::ansi::{Color, NamedColor, Rgb};
use std::io::Write;

/// Flags that affect the appearance of a cell; the others join cells.
const APPEARANCE_FLAGS: Flags = Flags::INVERSE
    .union(Flags::BOLD)
    .union(Flags::ITALIC)
    .union(Flags::DIM)
    .union(Flags::HIDDEN)
    .union(Flags::STRIKEOUT)
    .union(Flags::ALL_UNDERLINES);

const FOREGROUND: Color = Color::Named(NamedColor::Foreground);
const BACKGROUND: Color = Color::Named(NamedColor::Background);

/// Code that sets each flag. Underlines other than the plain one use the form with colons, which a
/// terminal ignores if it does not know it.
const STYLE_CODES: [(Flags, &str); 11] = [
    (Flags::BOLD, "1"),
    (Flags::DIM, "2"),
    (Flags::ITALIC, "3"),
    (Flags::UNDERLINE, "4"),
    (Flags::DOUBLE_UNDERLINE, "4:2"),
    (Flags::UNDERCURL, "4:3"),
    (Flags::DOTTED_UNDERLINE, "4:4"),
    (Flags::DASHED_UNDERLINE, "4:5"),
    (Flags::INVERSE, "7"),
    (Flags::HIDDEN, "8"),
    (Flags::STRIKEOUT, "9"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Style {
    fg: Color,
    bg: Color,
    shapes: Flags,
    underline: Option<Color>,
}

const PLAIN_STYLE: Style = Style {
    fg: FOREGROUND,
    bg: BACKGROUND,
    shapes: Flags::empty(),
    underline: None,
};

impl Style {
    fn of(cell: &Cell) -> Self {
        Self {
            fg: cell.fg,
            bg: cell.bg,
            shapes: cell.flags & APPEARANCE_FLAGS,
            underline: cell.underline_color(),
        }
    }
}

/// Whether links are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Links {
    Kept,
    Left,
}

/// Current colours and link of a terminal.
#[derive(Debug)]
pub(crate) struct Pen {
    style: Style,
    link: Option<Hyperlink>,
    links: Links,
}

impl Pen {
    /// Create a pen for a terminal with default colours.
    pub(crate) fn plain(links: Links) -> Self {
        Self {
            style: PLAIN_STYLE,
            link: None,
            links,
        }
    }

    /// Write a cell with its colours. A cell that a wide character covers writes nothing.
    pub(crate) fn put(&mut self, out: &mut Vec<u8>, cell: &Cell) {
        if cell.flags.contains(Flags::WIDE_CHAR_SPACER) {
            return;
        }
        self.wear(out, cell);
        character(out, cell);
    }

    /// Write a blank with the colours of a cell.
    pub(crate) fn blank(&mut self, out: &mut Vec<u8>, cell: &Cell) {
        self.wear(out, cell);
        out.push(b' ');
    }

    /// Switch to the colours of a cell.
    pub(crate) fn wear(&mut self, out: &mut Vec<u8>, cell: &Cell) {
        let style = Style::of(cell);
        if style != self.style {
            change(out, &self.style, &style);
            self.style = style;
        }
        if self.links == Links::Kept && (cell.extra.is_some() || self.link.is_some()) {
            let link = cell.hyperlink().filter(harmless);
            if link != self.link {
                open_link(out, link.as_ref());
                self.link = link;
            }
        }
    }

    /// Return to default colours.
    pub(crate) fn lift(&mut self, out: &mut Vec<u8>) {
        self.wear(out, &Cell::default());
    }
}

/// Return whether two cells have the same colours and link.
pub(crate) fn alike(one: &Cell, other: &Cell) -> bool {
    Style::of(one) == Style::of(other) && one.hyperlink() == other.hyperlink()
}

/// Return whether a cell equals one of a cleared screen.
pub(crate) fn untouched(cell: &Cell) -> bool {
    matches!(cell.c, ' ' | '\t')
        && cell.bg == BACKGROUND
        && cell.fg == FOREGROUND
        && !cell
            .flags
            .intersects(APPEARANCE_FLAGS.union(Flags::WIDE_CHAR_SPACER))
        && plain_extra(cell)
}

/// Return whether a cell has no marks, link or underline colour. It may have space allocated for
/// them.
fn plain_extra(cell: &Cell) -> bool {
    cell.extra.is_none()
        || (cell.zerowidth().is_none_or(<[char]>::is_empty)
            && cell.underline_color().is_none()
            && cell.hyperlink().is_none())
}

fn character(out: &mut Vec<u8>, cell: &Cell) {
    match cell.c {
        // The model marks the start of a tab; its cells are spaces.
        '\t' => out.push(b' '),
        c => utf8(out, c),
    }
    if cell.extra.is_some() {
        for &c in cell.zerowidth().into_iter().flatten() {
            utf8(out, c);
        }
    }
}

fn utf8(out: &mut Vec<u8>, c: char) {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => out.push(byte),
        Ok(_) | Err(_) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

/// Return whether a link, which comes from the program, cannot end the sequence that it is written
/// in.
fn harmless(link: &Hyperlink) -> bool {
    let plain = |text: &str| !text.chars().any(char::is_control);
    plain(link.uri()) && plain(link.id())
}

fn open_link(out: &mut Vec<u8>, link: Option<&Hyperlink>) {
    let _ = match link {
        Some(link) => write!(out, "\x1b]8;id={};{}\x1b\\", link.id(), link.uri()),
        None => write!(out, "\x1b]8;;\x1b\\"),
    };
}

/// Write the shortest change from one style to another: the added attributes, or all of them after
/// a reset.
fn change(out: &mut Vec<u8>, was: &Style, now: &Style) {
    out.extend_from_slice(b"\x1b[");
    if *now == PLAIN_STYLE {
        out.push(b'm');
        return;
    }
    let mut base = *was;
    if !now.shapes.contains(was.shapes) {
        base = PLAIN_STYLE;
        out.extend_from_slice(b"0;");
    }
    let added = now.shapes.difference(base.shapes);
    if !added.is_empty() {
        for (shape, code) in STYLE_CODES {
            if added.contains(shape) {
                out.extend_from_slice(code.as_bytes());
                out.push(b';');
            }
        }
    }
    if now.fg != base.fg {
        color(out, now.fg, 30);
    }
    if now.bg != base.bg {
        color(out, now.bg, 40);
    }
    if now.underline != base.underline {
        underline(out, now.underline);
    }
    if out.last() == Some(&b';') {
        out.pop();
    }
    out.push(b'm');
}

/// `base` is 30 for the foreground and 40 for the background.
fn color(out: &mut Vec<u8>, color: Color, base: usize) {
    let _ = match color {
        Color::Named(name) => match name as usize {
            n @ 0..8 => write!(out, "{};", base + n),
            n @ 8..16 => write!(out, "{};", base + 60 + n - 8),
            _ => write!(out, "{};", base + 9),
        },
        Color::Indexed(index) => write!(out, "{};5;{index};", base + 8),
        Color::Spec(Rgb { r, g, b }) => write!(out, "{};2;{r};{g};{b};", base + 8),
    };
}

fn underline(out: &mut Vec<u8>, color: Option<Color>) {
    let _ = match color {
        Some(Color::Indexed(index)) => write!(out, "58:5:{index};"),
        Some(Color::Spec(Rgb { r, g, b })) => write!(out, "58:2::{r}:{g}:{b};"),
        Some(Color::Named(_)) | None => write!(out, "59;"),
    };
}

#[cfg(test)]
mod tests {
    use crate::{Screen, Size};

    #[test]
    fn only_changes_are_sent() {
        let check = |bytes: &str, want: &str| {
            let mut screen = Screen::new(Size { cols: 20, rows: 1 }, 0);
            screen.feed(bytes.as_bytes());
            let line = screen.ansi(None).join("\n");
            assert_eq!(line.replace('\x1b', "^"), want, "{bytes:?}");
        };
        check("plain", "plain");
        check("\x1b[1mb\x1b[31mr\x1b[mp", "^[1mb^[31mr^[mp");
        check("\x1b[1;31mb\x1b[22mr", "^[1;31mb^[0;31mr^[m");
        check("\x1b[38;5;200;48;2;1;2;3mx", "^[38;5;200;48;2;1;2;3mx^[m");
        check("\x1b[91;102mx\x1b[39my", "^[91;102mx^[39my^[m");
        check(
            "\x1b[4:3;58:2::1:2:3mx\x1b[59my",
            "^[4:3;58:2::1:2:3mx^[59my^[m",
        );
        check("\x1b[21;4mx\x1b[9;7;8;2;3my", "^[4mx^[2;3;7;8;9my^[m");
        check("\x1b[44m  \x1b[m", "^[44m  ^[m");
    }
}
