//! Tracks whether a person has typed text that is not submitted.
//!
//! Reads keys on their way to the program and changes none. Keys alone do not determine the
//! contents of a program's input line. In doubt there is a draft: a message that waits until Enter
//! is better than one that is typed into a half-written line.

/// The contents of the input line, as far as keys determine them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Line {
    #[default]
    Empty,
    /// A number of plain characters, typed one after the other into an empty line.
    Plain(usize),
    /// Text that was edited, recalled, completed or pasted.
    Unknown,
}

#[derive(Debug, Default)]
pub(crate) struct DraftTracker {
    line: Line,
    state: ParserState,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum ParserState {
    #[default]
    Keys,
    Escape,
    /// After `ESC [`, with the parameters so far.
    Control(Parameters),
    /// After `ESC [ M`, with the number of bytes of the mouse event that follow.
    Mouse(u8),
    /// After `ESC O`, which one byte completes.
    Single,
    /// In a reply of the terminal: a string that ends with `ESC \` or BEL.
    Reply,
    ReplyEscape,
    /// In a bracketed paste, where line breaks submit nothing.
    Paste,
    PasteEscape,
    PasteControl(u32),
}

/// The first parameters of a control sequence. In the kitty keyboard protocol they are the key, its
/// modifiers, and whether it was pressed or released: `ESC [ 13 ; 2 : 1 u`.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Parameters {
    number: u32,
    modifiers: u32,
    event: u32,
    /// The number of `;` so far, and of `:` since the last one.
    position: (u8, u8),
    /// Whether the parameters are more than one number.
    is_compound: bool,
}

impl Parameters {
    fn and(mut self, key: u8) -> Self {
        let (field, part) = self.position;
        match (key, self.position) {
            (b'0'..=b'9', (0, 0)) => self.number = digit(self.number, key),
            (b'0'..=b'9', (1, 0)) => self.modifiers = digit(self.modifiers, key),
            (b'0'..=b'9', (1, 1)) => self.event = digit(self.event, key),
            (b'0'..=b'9', _) => {}
            (b';', _) => self.position = (field.saturating_add(1), 0),
            (b':', _) => self.position = (field, part.saturating_add(1)),
            (_, _) => {}
        }
        self.is_compound |= !key.is_ascii_digit();
        self
    }

    /// Whether this is Enter without modifiers. Caps Lock and Num Lock do not count.
    fn is_enter(self) -> bool {
        const LOCKS: u32 = 64 | 128;
        let modifiers = self.modifiers.saturating_sub(1) & !LOCKS;
        matches!(self.number, ENTER | KEYPAD_ENTER) && modifiers == 0
    }

    fn is_release(self) -> bool {
        self.event == 3
    }
}

/// The effect of a line feed, which depends on the program and its terminal mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineFeed {
    /// It submits: the terminal is in canonical mode and passes on whole lines.
    Submits,
    /// It submits at the end of a text; before that it is a line break.
    SubmitsAtEnd,
    /// It may be a line break in the input.
    Breaks,
}

const ENTER: u32 = 13;
const KEYPAD_ENTER: u32 = 57_414;
const PASTE_START: u32 = 200;
const PASTE_END: u32 = 201;

impl DraftTracker {
    pub(crate) fn is_open(&self) -> bool {
        self.line != Line::Empty
    }

    /// Process keys that are about to be typed.
    pub(crate) fn feed(&mut self, keys: &[u8], line_feed: LineFeed) {
        for (index, key) in keys.iter().enumerate() {
            let submits = match line_feed {
                LineFeed::Submits => true,
                LineFeed::SubmitsAtEnd => index + 1 == keys.len(),
                LineFeed::Breaks => false,
            };
            match (self.state, key) {
                (ParserState::Keys, b'\n') if submits => self.line = Line::Empty,
                (_, key) => self.feed_one(*key),
            }
        }
        // A lone Escape is a key, not the start of a sequence. Some programs clear their line with
        // it, others do not.
        if self.state == ParserState::Escape {
            self.state = ParserState::Keys;
        }
    }

    fn feed_one(&mut self, key: u8) {
        self.state = match (self.state, key) {
            (ParserState::Keys, 0x1b) => ParserState::Escape,
            (ParserState::Keys, key) => {
                self.key(key);
                ParserState::Keys
            }
            (ParserState::Escape, b'[') => ParserState::Control(Parameters::default()),
            (ParserState::Escape, b'O') => ParserState::Single,
            (ParserState::Escape, b']' | b'P' | b'_' | b'^') => ParserState::Reply,
            // Alt with a key or an arrow edits the line.
            (ParserState::Escape | ParserState::Single, _) => {
                self.line = Line::Unknown;
                ParserState::Keys
            }
            (ParserState::Control(parameters), key) => self.control(parameters, key),
            (ParserState::Mouse(1), _) => ParserState::Keys,
            (ParserState::Mouse(remaining), _) => ParserState::Mouse(remaining - 1),
            (ParserState::Reply, 0x07) | (ParserState::ReplyEscape, b'\\') => ParserState::Keys,
            (ParserState::Reply, 0x1b) => ParserState::ReplyEscape,
            (ParserState::Reply | ParserState::ReplyEscape, _) => ParserState::Reply,
            (ParserState::Paste, 0x1b) => ParserState::PasteEscape,
            (ParserState::PasteEscape, b'[') => ParserState::PasteControl(0),
            (ParserState::PasteControl(sum), b'0'..=b'9') => {
                ParserState::PasteControl(digit(sum, key))
            }
            (ParserState::PasteControl(PASTE_END), b'~') => ParserState::Keys,
            (ParserState::Paste | ParserState::PasteEscape | ParserState::PasteControl(_), _) => {
                self.line = Line::Unknown;
                ParserState::Paste
            }
        };
    }

    /// Process a byte of a control sequence.
    fn control(&mut self, parameters: Parameters, key: u8) -> ParserState {
        match key {
            0x20..=0x3f => ParserState::Control(parameters.and(key)),
            b'~' if parameters.number == PASTE_START && !parameters.is_compound => {
                ParserState::Paste
            }
            b'M' if parameters.number == 0 && !parameters.is_compound => ParserState::Mouse(3),
            // Only pressing a key has an effect.
            b'u' if parameters.is_release() => ParserState::Keys,
            b'u' if parameters.is_enter() => {
                self.line = Line::Empty;
                ParserState::Keys
            }
            // Reports of the terminal: mouse, focus, cursor position, device attributes, modes.
            b'M' | b'm' | b'I' | b'R' | b'c' | b'n' | b'y' | b't' => ParserState::Keys,
            // `ESC [ O` reports that the focus was lost.
            b'O' => ParserState::Keys,
            // Arrows, Home, Delete, and keys in other encodings.
            _ => {
                self.line = Line::Unknown;
                ParserState::Keys
            }
        }
    }

    /// Process a byte outside any sequence.
    fn key(&mut self, key: u8) {
        self.line = match (key, self.line) {
            // Enter submits; an interrupt clears.
            (b'\r' | 0x03, _) => Line::Empty,
            (0x08 | 0x7f, Line::Plain(1) | Line::Empty) => Line::Empty,
            (0x08 | 0x7f, Line::Plain(count)) => Line::Plain(count - 1),
            // A continuation byte of a character that is already counted.
            (0x80..=0xbf, Line::Plain(count)) => Line::Plain(count),
            (0x20..=0x7e | 0xc0.., Line::Empty) => Line::Plain(1),
            (0x20..=0x7e | 0xc0.., Line::Plain(count)) => Line::Plain(count.saturating_add(1)),
            // Ctrl+U deletes to the left of the cursor, which is at the end of a plain line.
            (0x15, Line::Plain(_)) => Line::Empty,
            // End of file, flow control, suspend and redraw do not change the line.
            (0x04 | 0x0c | 0x11 | 0x13 | 0x1a | 0x1c, line) => line,
            // Completion, history, yank or a line break: the new contents are unknown.
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
    fn unsubmitted_keys_are_a_draft() {
        let check = |keys: &[&[u8]], want: bool| {
            let mut draft = DraftTracker::default();
            for part in keys {
                draft.feed(part, LineFeed::Breaks);
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
        // After editing or recalling a line, its contents are unknown until it is submitted.
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
        // Reports of the terminal.
        check(&[b"\x1b[<0;10;20M", b"\x1b[<0;10;20m"], false);
        check(&[b"\x1b[M !!"], false);
        check(&[b"\x1b[I", b"\x1b[O"], false);
        check(&[b"\x1b]11;rgb:00/00/00\x1b\\"], false);
        check(&[b"\x1b[?62;c", b"\x1b[24;80R", b"\x1b[?2026;2$y"], false);
        check(&[b"\x1b[200~one\rtwo\x1b[201~"], true);
        check(&[b"\x1b[200~one\rtwo\x1b[201~", b"\r"], false);
        // Enter in the kitty keyboard protocol submits without Shift, when it is pressed.
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
    fn a_line_feed_submits_according_to_its_mode() {
        let check = |keys: &[&[u8]], want: [bool; 3]| {
            let modes = [LineFeed::Submits, LineFeed::SubmitsAtEnd, LineFeed::Breaks];
            let got = modes.map(|line_feed| {
                let mut draft = DraftTracker::default();
                keys.iter().for_each(|part| draft.feed(part, line_feed));
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
