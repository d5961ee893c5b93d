//! Raw output as lines of plain text.
//!
//! For who wants to read along, not to look: escape sequences are gone, and a line comes when it
//! is finished, as it then stands. It keeps one line, of bounded length, and knows no screen.

use super::parser_input::ParserInput;
use alacritty_terminal::vte::{Params, Parser, Perform};

/// A longer line is given in pieces.
const LONGEST: usize = 64 * 1024;

/// Makes lines of one program's output.
pub struct Lines {
    parser: Parser,
    input: ParserInput,
    line: Line,
}

#[derive(Default)]
struct Line {
    chars: Vec<char>,
    /// Where the next character goes; beyond the end, blanks fill what lies between.
    cursor: usize,
    /// The length of the characters as text.
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
    /// Takes in raw output and gives the lines it finishes.
    pub fn feed(&mut self, bytes: &[u8], each: &mut impl FnMut(&str)) {
        let mut writer = Writer {
            line: &mut self.line,
            each,
        };
        let parser = &mut self.parser;
        self.input
            .admit(bytes, |piece| parser.advance(&mut writer, piece));
    }

    /// The output has ended: gives the line that was not finished.
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
        self.cursor = column.min(LONGEST / 4);
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
        // DEL is no character, though the parser takes it for one.
        if c == '\x7f' {
            return;
        }
        self.line.write(c);
        if self.line.bytes >= LONGEST {
            self.line.end(self.each);
        }
    }

    fn execute(&mut self, byte: u8) {
        match byte {
            // Line feed, vertical tab, form feed; and next line, which is beyond ASCII.
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
            // To another row: what stands in this one is as finished as it gets.
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
    fn lines_are_as_they_stand_when_finished() {
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
    fn a_long_line_comes_in_pieces() {
        let long = "é".repeat(LONGEST);
        let found = lines(&[long.as_bytes(), b"\n"]);
        let lens: Vec<_> = found.iter().map(String::len).collect();
        assert_eq!(lens, [LONGEST, LONGEST, 0]);
    }

    #[test]
    fn nothing_makes_a_line_larger_than_it_may_be() {
        let mut input = Vec::new();
        for _ in 0..100 {
            input.extend_from_slice(b"\x1b[65535Cx");
        }
        let longest = lines(&[&input]).iter().map(String::len).max();
        assert!(longest.is_some_and(|len| len <= LONGEST));
    }
}
