//! What a program's output says, without how: a stream of its visible characters.
//!
//! Escape sequences, white space, the frames that are drawn around text, and the backslashes of
//! JSON are taken away, however often they are nested and wherever the stream is cut. So what was
//! printed, wrapped, framed or quoted reads the same. Holds a few bytes, whatever comes.

/// A string sequence longer than this is no longer believed to be one: its end may never come.
const LONGEST: usize = 4096;
const ESC: char = '\u{1b}';

#[derive(Debug, Default)]
pub(super) struct Plain {
    /// A character whose bytes have not all come.
    cut: Vec<u8>,
    outer: Strip,
    slash: Slash,
    /// For sequences that were quoted.
    inner: Strip,
}

impl Plain {
    /// Hands each visible character of `bytes` to `sink`.
    pub(super) fn feed(&mut self, bytes: &[u8], mut sink: impl FnMut(char)) {
        for byte in bytes {
            self.byte(*byte, &mut sink);
        }
    }

    fn byte(&mut self, byte: u8, sink: &mut impl FnMut(char)) {
        if byte.is_ascii() {
            self.cut.clear();
            return self.char(char::from(byte), sink);
        }
        self.cut.push(byte);
        match std::str::from_utf8(&self.cut) {
            Ok(whole) => {
                let c = whole.chars().next();
                self.cut.clear();
                if let Some(c) = c {
                    self.char(c, sink);
                }
            }
            // What can become no character any more is none; its last byte may begin another.
            Err(error) if error.error_len().is_some() => {
                self.cut.clear();
                if byte >= 0xc2 {
                    self.cut.push(byte);
                }
            }
            Err(_) => {}
        }
    }

    fn char(&mut self, c: char, sink: &mut impl FnMut(char)) {
        let Self {
            outer,
            slash,
            inner,
            ..
        } = self;
        if !outer.shows(c) {
            return;
        }
        slash.pass(c, &mut |c| {
            if inner.shows_quoted(c) && is_visible(c) {
                sink(c);
            }
        });
    }
}

/// Whether a character is part of what is said. Those beyond the first plane are left out: JSON
/// may write them as two.
fn is_visible(c: char) -> bool {
    let is_frame = matches!(c, '\u{2500}'..='\u{259f}' | '|');
    !c.is_whitespace() && !c.is_control() && !is_frame && c <= '\u{ffff}'
}

/// Where in an escape sequence the stream is.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Strip {
    #[default]
    Text,
    Escape,
    /// ESC [ until a final character.
    Control,
    /// ESC ], P, X, ^ or _ until BEL or ESC \; so many characters so far.
    String(usize),
    /// After an ESC within one.
    Ending(usize),
}

impl Strip {
    /// Whether the next character is text and no part of a sequence.
    fn shows(&mut self, c: char) -> bool {
        let (next, shows) = match (*self, c) {
            (Self::Text, ESC) => (Self::Escape, false),
            (Self::Text, _) => (Self::Text, true),
            (Self::Escape, '[') => (Self::Control, false),
            (Self::Escape, ']' | 'P' | 'X' | '^' | '_') => (Self::String(0), false),
            // Still in it: another begins, or it has intermediate characters.
            (Self::Escape, ESC | ' '..='/') => (Self::Escape, false),
            (Self::Escape, _) => (Self::Text, false),
            (Self::Control, ESC) => (Self::Escape, false),
            (Self::Control, '@'..='~') => (Self::Text, false),
            (Self::Control, '\0'..='\u{3f}') => (Self::Control, false),
            (Self::Control, _) => (Self::Text, true),
            (Self::String(_), '\u{7}' | '\u{18}' | '\u{1a}') => (Self::Text, false),
            (Self::String(length), ESC) => (Self::Ending(length), false),
            (Self::String(length), _) if length < LONGEST => (Self::String(length + 1), false),
            (Self::String(_), _) => (Self::Text, true),
            (Self::Ending(_), '\\') => (Self::Text, false),
            // No end of it, but another sequence.
            (Self::Ending(_), '[') => (Self::Control, false),
            (Self::Ending(_), ESC) => (Self::Escape, false),
            (Self::Ending(_), ']' | 'P' | 'X' | '^' | '_') => (Self::String(0), false),
            (Self::Ending(_), _) => (Self::Text, false),
        };
        *self = next;
        shows
    }

    /// The same for what was quoted, where a string's end cannot be told from a quoted
    /// character: of strings only the beginning is known.
    fn shows_quoted(&mut self, c: char) -> bool {
        let shows = self.shows(c);
        if matches!(self, Self::String(_)) {
            *self = Self::Text;
        }
        shows
    }
}

/// Takes backslashes away with what they stand for: any number of them before an `n` is a line
/// break that was quoted as often, and before `u003c` a `<`.
#[derive(Debug, Default)]
enum Slash {
    #[default]
    None,
    After,
    /// The hexadecimal digits after `\u`, as far as they have come.
    Code(String),
}

impl Slash {
    fn pass(&mut self, c: char, sink: &mut impl FnMut(char)) {
        match std::mem::take(self) {
            Self::None if c == '\\' => *self = Self::After,
            Self::None => sink(c),
            Self::After => match c {
                '\\' => *self = Self::After,
                'u' => *self = Self::Code(String::new()),
                'n' | 'r' | 't' | 'b' | 'f' => {}
                c => sink(c),
            },
            Self::Code(mut digits) if c.is_ascii_hexdigit() => {
                digits.push(c);
                if digits.len() < 4 {
                    *self = Self::Code(digits);
                } else if let Some(c) = code(&digits) {
                    sink(c);
                }
            }
            // It was a plain `u`.
            Self::Code(digits) => {
                sink('u');
                digits.chars().for_each(&mut *sink);
                self.pass(c, sink);
            }
        }
    }
}

/// The character with this code; half of one that needs two is none.
fn code(digits: &str) -> Option<char> {
    u32::from_str_radix(digits, 16)
        .ok()
        .and_then(char::from_u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(parts: &[&[u8]]) -> String {
        let mut plain = Plain::default();
        let mut said = String::new();
        for part in parts {
            plain.feed(part, |c| said.push(c));
        }
        said
    }

    #[test]
    fn only_what_is_said_is_left() {
        let check = |output: &str, want: &str| {
            assert_eq!(plain(&[output.as_bytes()]), want, "{output:?}");
            let bytes: Vec<_> = output.as_bytes().chunks(1).collect();
            assert_eq!(plain(&bytes), want, "{output:?}, byte by byte");
        };
        check("a b\r\n\tc\u{a0}d", "abcd");
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("\u{1b}]0;a title\u{7}x", "x");
        check(
            "\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\ n",
            "linkn",
        );
        check("\u{1b}(Bx\u{1b}7y\u{1b}Pq#0\u{1b}\\z", "xyz");
        check("\u{1b}]0;cut\u{1b}[1mbold", "bold");
        check("│ wrapped │\n│ text    │", "wrappedtext");
        check("| a | b |", "ab");
        check("äöü漢字", "äöü漢字");
        check("👩‍💻ok", "\u{200d}ok");
        check(r#"a\nb\\nc\\\\nd"#, "abcd");
        check(r#"say \"x\" \/ \\ y"#, "say\"x\"/y");
        check(r"\u003cp\u003E \\u003cq", "<p><q");
        check(r"\u00e4\ud83d\ude00", "ä");
        check(r"C:\users\u12z", "C:usersu12z");
        check(r"\u001b[31mred\u001b[0m", "red");
        check(r"\u001b]0;t", "0;t");
    }

    #[test]
    fn bytes_that_are_no_text_hide_nothing() {
        assert_eq!(plain(&[b"a\xff\xfe\xc3b\xc3\xc3\xa4\x80c"]), "abäc");
    }

    #[test]
    fn a_sequence_that_never_ends_is_given_up() {
        let mut plain = Plain::default();
        let mut said = String::new();
        plain.feed(b"\x1b]0;", |c| said.push(c));
        for _ in 0..1_000 {
            plain.feed(&[b'x'; 100], |c| said.push(c));
        }
        assert!(said.len() > 90_000, "{}", said.len());
    }

    #[test]
    fn one_quoted_in_json_reads_as_it_did() {
        let text = "Line one\n\tback\\slash \\n and \\\nnext, \"quoted\", ä 漢, C:\\new \u{1b}[1mx";
        let mut quoted = text.to_owned();
        for _ in 0..3 {
            let want = plain(&[text.as_bytes()]);
            quoted = serde_json::to_string(&quoted).unwrap();
            let got = plain(&[quoted.as_bytes()]);
            // Quotes come with it, and no word changes.
            let words = |s: &str| {
                s.chars()
                    .filter(|c| c.is_alphanumeric())
                    .collect::<String>()
            };
            assert_eq!(words(&got), words(&want), "{quoted}");
        }
    }
}
