//! What a person has typed and not submitted.
//!
//! Looks at keys on their way to the program and changes none. Nobody can tell from keys alone
//! what stands in a program's line, so it errs on the side of a draft: a message that waits until
//! Enter is better than one that lands in a half-typed line.

/// What stands in the line that is being typed, as far as the keys tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Line {
    #[default]
    Empty,
    /// So many plain characters, and nothing else since the line was empty.
    Plain(usize),
    /// Something: it was edited, recalled, completed or pasted.
    Unknown,
}

#[derive(Debug, Default)]
pub(crate) struct Draft {
    line: Line,
    state: Reading,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Reading {
    #[default]
    Keys,
    Escape,
    /// `ESC [`, and its parameters so far.
    Control(Parameters),
    /// `ESC [ M`: three bytes of a mouse event follow.
    Mouse(u8),
    /// `ESC O`: one more byte.
    Single,
    /// An answer of the terminal: a string that ends with `ESC \` or a bell.
    Answer,
    AnswerEscape,
    /// Within a bracketed paste, line breaks submit nothing.
    Paste,
    PasteEscape,
    PasteControl(u32),
}

/// The first parameters of a control sequence. In the newer way of writing keys they are the key,
/// what is held with it, and whether it was pressed or let go: `ESC [ 13 ; 2 : 1 u`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Parameters {
    number: u32,
    held: u32,
    event: u32,
    /// How many `;` came, and how many `:` since.
    place: (u8, u8),
    /// Whether there is anything but one number.
    is_odd: bool,
}

impl Parameters {
    fn and(mut self, key: u8) -> Self {
        let (field, part) = self.place;
        match (key, self.place) {
            (b'0'..=b'9', (0, 0)) => self.number = digit(self.number, key),
            (b'0'..=b'9', (1, 0)) => self.held = digit(self.held, key),
            (b'0'..=b'9', (1, 1)) => self.event = digit(self.event, key),
            (b'0'..=b'9', _) => {}
            (b';', _) => self.place = (field.saturating_add(1), 0),
            (b':', _) => self.place = (field, part.saturating_add(1)),
            (_, _) => {}
        }
        self.is_odd |= !key.is_ascii_digit();
        self
    }

    /// Enter, with nothing held but the locks of a keyboard.
    fn is_enter(self) -> bool {
        const LOCKS: u32 = 64 | 128;
        let held = self.held.saturating_sub(1) & !LOCKS;
        matches!(self.number, ENTER | KEYPAD_ENTER) && held == 0
    }

    fn is_let_go(self) -> bool {
        self.event == 3
    }
}

/// What a line feed among the keys does, which keys alone do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFeed {
    /// The terminal gives the program whole lines, and this ends one.
    Submits,
    /// At the end of a text it is meant to, and is a line break before that.
    SubmitsAtTheEnd,
    /// It may be a line break within what is typed.
    Breaks,
}

const ENTER: u32 = 13;
const KEYPAD_ENTER: u32 = 57_414;
const PASTE_BEGINS: u32 = 200;
const PASTE_ENDS: u32 = 201;

impl Draft {
    pub(crate) fn is_open(&self) -> bool {
        self.line != Line::Empty
    }

    pub(crate) fn see(&mut self, keys: &[u8], line_feed: LineFeed) {
        for (index, key) in keys.iter().enumerate() {
            let submits = match line_feed {
                LineFeed::Submits => true,
                LineFeed::SubmitsAtTheEnd => index + 1 == keys.len(),
                LineFeed::Breaks => false,
            };
            match (self.state, key) {
                (Reading::Keys, b'\n') if submits => self.line = Line::Empty,
                (_, key) => self.see_one(*key),
            }
        }
        // A lone Escape is a key of its own, not the beginning of something. Some programs clear
        // their line by it, some do not.
        if self.state == Reading::Escape {
            self.state = Reading::Keys;
        }
    }

    fn see_one(&mut self, key: u8) {
        self.state = match (self.state, key) {
            (Reading::Keys, 0x1b) => Reading::Escape,
            (Reading::Keys, key) => {
                self.key(key);
                Reading::Keys
            }
            (Reading::Escape, b'[') => Reading::Control(Parameters::default()),
            (Reading::Escape, b'O') => Reading::Single,
            (Reading::Escape, b']' | b'P' | b'_' | b'^') => Reading::Answer,
            // Alt and a key, Alt and an arrow: editing.
            (Reading::Escape | Reading::Single, _) => {
                self.line = Line::Unknown;
                Reading::Keys
            }
            (Reading::Control(said), key) => self.control(said, key),
            (Reading::Mouse(1), _) => Reading::Keys,
            (Reading::Mouse(left), _) => Reading::Mouse(left - 1),
            (Reading::Answer, 0x07) | (Reading::AnswerEscape, b'\\') => Reading::Keys,
            (Reading::Answer, 0x1b) => Reading::AnswerEscape,
            (Reading::Answer | Reading::AnswerEscape, _) => Reading::Answer,
            (Reading::Paste, 0x1b) => Reading::PasteEscape,
            (Reading::PasteEscape, b'[') => Reading::PasteControl(0),
            (Reading::PasteControl(sum), b'0'..=b'9') => Reading::PasteControl(digit(sum, key)),
            (Reading::PasteControl(PASTE_ENDS), b'~') => Reading::Keys,
            (Reading::Paste | Reading::PasteEscape | Reading::PasteControl(_), _) => {
                self.line = Line::Unknown;
                Reading::Paste
            }
        };
    }

    fn control(&mut self, said: Parameters, key: u8) -> Reading {
        match key {
            0x20..=0x3f => Reading::Control(said.and(key)),
            b'~' if said.number == PASTE_BEGINS && !said.is_odd => Reading::Paste,
            b'M' if said.number == 0 && !said.is_odd => Reading::Mouse(3),
            // A key that is let go has done what it does.
            b'u' if said.is_let_go() => Reading::Keys,
            b'u' if said.is_enter() => {
                self.line = Line::Empty;
                Reading::Keys
            }
            // What a terminal says by itself: the mouse, the focus, where the cursor is, what it
            // is, which modes it has.
            b'M' | b'm' | b'I' | b'R' | b'c' | b'n' | b'y' | b't' => Reading::Keys,
            // The focus was lost; `ESC [ O` is no key.
            b'O' => Reading::Keys,
            // Arrows, Home, Delete, and keys in the newer ways of writing them.
            _ => {
                self.line = Line::Unknown;
                Reading::Keys
            }
        }
    }

    fn key(&mut self, key: u8) {
        self.line = match (key, self.line) {
            // Enter submits; an interrupt clears.
            (b'\r' | 0x03, _) => Line::Empty,
            (0x08 | 0x7f, Line::Plain(1) | Line::Empty) => Line::Empty,
            (0x08 | 0x7f, Line::Plain(count)) => Line::Plain(count - 1),
            // The rest of a character that was counted.
            (0x80..=0xbf, Line::Plain(count)) => Line::Plain(count),
            (0x20..=0x7e | 0xc0.., Line::Empty) => Line::Plain(1),
            (0x20..=0x7e | 0xc0.., Line::Plain(count)) => Line::Plain(count.saturating_add(1)),
            // Of a line of plain characters whose end is here, all of it is before the cursor.
            (0x15, Line::Plain(_)) => Line::Empty,
            // End of file, and keys that show, suspend or draw again leave the line as it is.
            (0x04 | 0x0c | 0x11 | 0x13 | 0x1a | 0x1c, line) => line,
            // Completion, recalling, yanking, a line break within: whatever stands there now.
            (_, _) => Line::Unknown,
        };
    }
}

fn digit(sum: u32, key: u8) -> u32 {
    sum.saturating_mul(10).saturating_add(u32::from(key - b'0'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_and_not_submitted_is_a_draft() {
        let check = |keys: &[&[u8]], want: bool| {
            let mut draft = Draft::default();
            for part in keys {
                draft.see(part, LineFeed::Breaks);
            }
            assert_eq!(draft.is_open(), want, "{keys:?}");
        };
        check(&[b"h"], true);
        check(&[b"hello\r"], false);
        check(&[b"hello", b"\r"], false);
        check(&[b"hello\rmore"], true);
        check(&[b"ab", b"\x7f\x7f"], false);
        check(&[b"ab", b"\x7f"], true);
        check(&["ü".as_bytes()], true);
        check(&["ü漢".as_bytes(), b"\x7f\x7f"], false);
        check(&[b"ab", b"\x15"], false);
        check(&[b"ab", b"\x03"], false);
        check(&[b"ab", b"\x04"], true);
        check(&[b"\x04"], false);
        // Editing and recalling: what stands there is not known until it is submitted.
        check(&[b"\x1b[A"], true);
        check(&[b"\x1bOA"], true);
        check(&[b"\x1b[A", b"\x7f\x7f\x7f"], true);
        check(&[b"\x1b[A", b"\r"], false);
        check(&[b"abc", b"\x1b[D\x1b[D\x1b[D", b"\x7f\x7f\x7f"], true);
        check(&[b"abc\x1b[D", b"\x15"], true);
        check(&[b"\t"], true);
        check(&[b"\x12"], true);
        check(&[b"\x19"], true);
        check(&[b"a\n"], true);
        check(&[b"\x1bb"], true);
        check(&[b"\x1b[97;5u"], true);
        check(&[b"\x1b", b"[A"], true);
        // What a terminal says by itself.
        check(&[b"\x1b[<0;10;20M", b"\x1b[<0;10;20m"], false);
        check(&[b"\x1b[M !!"], false);
        check(&[b"\x1b[I", b"\x1b[O"], false);
        check(&[b"\x1b]11;rgb:00/00/00\x1b\\"], false);
        check(&[b"\x1b[?62;c", b"\x1b[24;80R", b"\x1b[?2026;2$y"], false);
        check(&[b"\x1b[200~one\rtwo\x1b[201~"], true);
        check(&[b"\x1b[200~one\rtwo\x1b[201~", b"\r"], false);
        // Enter in the newer way: not with Shift, and not when it is let go.
        check(&[b"ab", b"\x1b[13u"], false);
        check(&[b"ab", b"\x1b[13;1u"], false);
        check(&[b"ab", b"\x1b[13;1:1u", b"\x1b[13;1:3u"], false);
        check(&[b"ab", b"\x1b[13;129u"], false);
        check(&[b"ab", b"\x1b[57414u"], false);
        check(&[b"ab", b"\x1b[13;2u"], true);
        check(&[b"\x1b[13;2u"], true);
        check(&[b"\x1b[13;5u"], true);
        check(&[b"ab", b"\x1b[13;1:3u"], true);
        check(&[b"\x1b[131u"], true);
    }

    #[test]
    fn a_line_feed_submits_where_it_is_known_to() {
        let check = |keys: &[&[u8]], want: [bool; 3]| {
            let modes = [
                LineFeed::Submits,
                LineFeed::SubmitsAtTheEnd,
                LineFeed::Breaks,
            ];
            let got = modes.map(|line_feed| {
                let mut draft = Draft::default();
                keys.iter().for_each(|part| draft.see(part, line_feed));
                draft.is_open()
            });
            assert_eq!(got, want, "{keys:?}");
        };
        check(&[b"ls -la\n"], [false, false, true]);
        check(&[b"ls -la", b"\n"], [false, false, true]);
        check(&[b"one\ntwo"], [true, true, true]);
        check(&[b"one\ntwo\n"], [false, false, true]);
        check(&[b"one\r\n"], [false, false, true]);
        check(&[b"\x1b\n"], [true, true, true]);
        check(&[b"\x1b[200~one\n"], [true, true, true]);
        check(&[b"\x1b[200~one\n\x1b[201~"], [true, true, true]);
        check(&[b"\x1b[200~one\x1b[201~\n"], [false, false, true]);
    }
}
