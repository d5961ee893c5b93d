//! Tracks whether a person has typed text that is not submitted.
//!
//! Reads keys on their way to the program and changes none. Keys alone do not determine the
//! contents of a program's input line. In doubt there is a draft: a message that waits until Enter
//! is better than one that is typed into a half-written line.

use posthaste_screen::input::{PasteTracker, Token, first_token};

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
    paste: PasteTracker,
    /// The beginning of a sequence that the last read has cut.
    cut: Vec<u8>,
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

const ENTER_CODE: u32 = 13;
const KEYPAD_ENTER_CODE: u32 = 57_414;
/// Longer sequences are not keys.
const MAX_SEQUENCE_BYTES: usize = 256;

impl DraftTracker {
    pub(crate) fn is_open(&self) -> bool {
        self.line != Line::Empty
    }

    /// Process keys that are about to be typed.
    pub(crate) fn feed(&mut self, keys: &[u8], line_feed: LineFeed) {
        let input = [std::mem::take(&mut self.cut).as_slice(), keys].concat();
        let mut rest = input.as_slice();
        while !rest.is_empty() {
            rest = &rest[self.feed_first(rest, line_feed)..];
        }
    }

    /// Process the first token. Return the number of its bytes.
    fn feed_first(&mut self, input: &[u8], line_feed: LineFeed) -> usize {
        if self.paste.is_open() {
            if self.paste.feed(input[0]) {
                self.line = Line::Unknown;
            }
            return 1;
        }
        let submits = match line_feed {
            LineFeed::Submits => true,
            LineFeed::SubmitsAtEnd => input.len() == 1,
            LineFeed::Breaks => false,
        };
        let (token, length) = first_token(input);
        match token {
            Token::Byte(b'\n') if submits => self.line = Line::Empty,
            Token::Byte(byte) => self.key(byte),
            Token::Key {
                code: ENTER_CODE | KEYPAD_ENTER_CODE,
                modifiers: 0,
            } => self.line = Line::Empty,
            Token::PasteBegins => {
                for byte in &input[..length] {
                    self.paste.feed(*byte);
                }
            }
            // Some programs clear their line with Escape, others do not. Only pressing a key has
            // an effect.
            Token::Escape | Token::Release | Token::Report => {}
            // Arrows, Home, Delete, Alt with a key, and keys in other encodings.
            Token::Key { .. } | Token::Modifier | Token::Other => self.line = Line::Unknown,
            Token::CutKey if length > MAX_SEQUENCE_BYTES => self.line = Line::Unknown,
            Token::CutKey => self.cut = input.to_vec(),
            // A report has no effect, so its contents need not be kept.
            Token::CutReport => {
                let is_mouse = input[1] == b'[';
                let is_ending = !is_mouse && length > 2 && input.ends_with(b"\x1b");
                let kept = if is_mouse { length } else { 2 };
                self.cut = [&input[..kept], if is_ending { b"\x1b" } else { b"" }].concat();
            }
        }
        length
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
        // Sequences that arrive in pieces.
        check(&[b"\x1b[13;2", b":1u"], true);
        check(&[b"ab", b"\x1b[1", b"3u"], false);
        check(&[b"\x1b]11;rgb", b":00\x1b", b"\\"], false);
        check(&[b"\x1b]11;rgb", b":00\x1b", b"\\a"], true);
        check(&[b"\x1b[M", b" !", b"!"], false);
        check(&[b"\x1b[20", b"0~a\x1b[2", b"01~\r"], false);
        check(&[b"\x1b[200~\r", b"\r"], true);
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
