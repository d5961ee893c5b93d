//! Raw output as lines of plain text, without escape sequences.
//!
//! A line is passed on when it is finished. Keeps one line of bounded length, and no screen.

use super::parser_input::ParserInput;
use alacritty_terminal::vte::{Params, Parser, Perform};

/// Maximum length of a line. A longer line is split.
const MAX_LINE_BYTES: usize = 64 * 1024;

/// Converts one program's output to lines.
pub struct Lines {
    parser: Parser,
    input: ParserInput,
    line: Line,
}

#[derive(Default)]
struct Line {
    chars: Vec<char>,
    /// Column of the next character; a gap before it is filled with blanks.
    cursor: usize,
    /// Length of `chars` in UTF-8.
    bytes: usize,
    text: String,
}

impl std::fmt::Debug for Lines {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Lines").finish_non_exhaustive()
    }
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            parser: Parser::new(),
            input: ParserInput::default(),
            line: Line::default(),
        }
    }
}

impl Lines {
    /// Process raw output and call `each` for the lines that it finishes.
    pub fn feed(&mut self, bytes: &[u8], each: &mut impl FnMut(&str)) {
        let mut writer = Writer {
            line: &mut self.line,
            each,
        };
        let parser = &mut self.parser;
        self.input
            .admit(bytes, |piece| parser.advance(&mut writer, piece));
    }

    /// Pass on the unfinished line at the end of the output.
    pub fn finish(&mut self, each: &mut impl FnMut(&str)) {
        if self.input.ends_in_char() {
            self.line.write(char::REPLACEMENT_CHARACTER);
        }
        self.line.end_if_begun(each);
        *self = Self::default();
    }
}

impl Line {
    fn write(&mut self, c: char) {
        match self.chars.get_mut(self.cursor) {
            Some(old) => {
                self.bytes = self.bytes - old.len_utf8() + c.len_utf8();
                *old = c;
            }
            None => {
                self.bytes += self.cursor - self.chars.len() + c.len_utf8();
                self.chars.resize(self.cursor, ' ');
                self.chars.push(c);
            }
        }
        self.cursor += 1;
    }

    fn go(&mut self, column: usize) {
        self.cursor = column.min(MAX_LINE_BYTES / 4);
    }

    fn cut(&mut self, column: usize) {
        if column < self.chars.len() {
            let gone = self.chars.drain(column..);
            self.bytes -= gone.map(char::len_utf8).sum::<usize>();
        }
    }

    fn blank(&mut self, columns: std::ops::Range<usize>) {
        let end = columns.end.min(self.chars.len());
        for old in self.chars.iter_mut().take(end).skip(columns.start) {
            self.bytes = self.bytes - old.len_utf8() + 1;
            *old = ' ';
        }
    }

    fn end(&mut self, each: &mut impl FnMut(&str)) {
        self.text.clear();
        self.text.extend(&self.chars);
        each(&self.text);
        self.chars.clear();
        self.cursor = 0;
        self.bytes = 0;
    }

    fn end_if_begun(&mut self, each: &mut impl FnMut(&str)) {
        if !self.chars.is_empty() {
            self.end(each);
        }
        self.cursor = 0;
    }
}

struct Writer<'a, F> {
    line: &'a mut Line,
    each: &'a mut F,
}

impl<F: FnMut(&str)> Perform for Writer<'_, F> {
    fn print(&mut self, c: char) {
        // The parser prints DEL, which is not a character.
        if c == '\x7f' {
            return;
        }
        self.line.write(c);
        if self.line.bytes >= MAX_LINE_BYTES {
            self.line.end(self.each);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            // Line feed, vertical tab, form feed, and next line (C1).
            b'\n' | 0x0b | 0x0c | 0x85 => self.line.end(self.each),
            b'\r' => self.line.cursor = 0,
            0x08 => self.line.cursor = self.line.cursor.saturating_sub(1),
            b'\t' => self.line.write('\t'),
            _ => {}
        }
    }

    fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], _ignore: bool, action: char) {
        let first = params
            .iter()
            .next()
            .map_or(0, |param| usize::from(param[0]));
        let count = first.max(1);
        let cursor = self.line.cursor;
        match (action, intermediates) {
            ('C' | 'a', []) => self.line.go(cursor.saturating_add(count)),
            ('D', []) => self.line.go(cursor.saturating_sub(count)),
            ('G' | '`', []) => self.line.go(count - 1),
            ('K', []) => match first {
                0 => self.line.cut(cursor),
                1 => self.line.blank(0..cursor + 1),
                _ => self.line.cut(0),
            },
            ('X', []) => self.line.blank(cursor..cursor.saturating_add(count)),
            // The cursor moves to another row, so this line is finished.
            ('A' | 'B' | 'E' | 'F' | 'H' | 'd' | 'e' | 'f' | 'u', []) => {
                self.line.end_if_begun(self.each);
            }
            ('h' | 'l', [b'?']) if matches!(first, 47 | 1047 | 1049) => {
                self.line.end_if_begun(self.each);
            }
            _ => {}
        }
    }

    fn esc_dispatch(&mut self, intermediates: &[u8], _ignore: bool, byte: u8) {
        match (byte, intermediates) {
            (b'E', []) => self.line.end(self.each),
            (b'D' | b'M' | b'8' | b'c', []) => self.line.end_if_begun(self.each),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(chunks: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut found = Vec::new();
        let mut each = |line: &str| found.push(line.to_owned());
        for chunk in chunks {
            lines.feed(chunk, &mut each);
        }
        lines.finish(&mut each);
        found
    }

    #[test]
    fn lines_have_their_final_text() {
        let check = |bytes: &[u8], want: &[&str]| {
            assert_eq!(
                lines(&[bytes]),
                want,
                "{:?}",
                bytes.escape_ascii().to_string()
            );
            let singly: Vec<&[u8]> = bytes.chunks(1).collect();
            assert_eq!(
                lines(&singly),
                want,
                "{:?} singly",
                bytes.escape_ascii().to_string()
            );
        };
        check(b"one\r\ntwo\n\nthree", &["one", "two", "", "three"]);
        check(b"a\x0bb\x0cc\x1bEd", &["a", "b", "c", "d"]);
        check("a\u{85}b".as_bytes(), &["a", "b"]);
        check(b"", &[]);
        check(b"\x1b[1;31mred\x1b[m \x1b]0;title\x07text\n", &["red text"]);
        check(b"10%\r20%\rdone\n", &["done"]);
        check(b"100%\rok\n", &["ok0%"]);
        check(b"100%\r\x1b[Kok\n", &["ok"]);
        check(b"abc\x08\x08X\n", &["aXc"]);
        check("日本\x08é\n".as_bytes(), &["日é"]);
        check(b"a\tb\x00\x07\x7fc\n", &["a\tbc"]);
        check(b"bad \xff\xfe end\n", &["bad \u{fffd}\u{fffd} end"]);
        check(b"cut \xe6\x97", &["cut \u{fffd}"]);
        check(
            b"\x1b[1;1Hrow one\x1b[2;1H\x1b[3;1Hrow two\x1b[?1049l",
            &["row one", "row two"],
        );
        check(b"a\x1b[4Cb\x1b[2Dc\x1b[10Gd\n", &["a   cb   d"]);
        check(b"abcdef\x1b[3D\x1b[1Kx\x1b[2Ky\n", &["    y"]);
        check(b"abcdef\r\x1b[3X\n", &["   def"]);
        check(b"\x1bPdcs\x1b\\\x1b_apc\x1b\\\x1b^pm\x1b\\text", &["text"]);
    }

    #[test]
    fn a_long_line_is_split() {
        let long = "é".repeat(MAX_LINE_BYTES);
        let found = lines(&[long.as_bytes(), b"\n"]);
        let lens: Vec<_> = found.iter().map(String::len).collect();
        assert_eq!(lens, [MAX_LINE_BYTES, MAX_LINE_BYTES, 0]);
    }

    #[test]
    fn a_line_never_exceeds_its_limit() {
        let mut input = Vec::new();
        for _ in 0..100 {
            input.extend_from_slice(b"\x1b[65535Cx");
        }
        let longest = lines(&[&input]).iter().map(String::len).max();
        assert!(longest.is_some_and(|len| len <= MAX_LINE_BYTES));
    }
}
