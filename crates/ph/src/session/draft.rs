//! What a person has typed and not submitted.
//!
//! Looks at keys on their way to the program and changes none. It errs on the side of a draft:
//! a message that waits for a moment is better than one that lands in a half-typed line.

/// How much of a line is being typed, as far as the keys tell.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    typed: usize,
    state: Reading,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Reading {
    #[default]
    Keys,
    Escape,
    /// `ESC [`, and what its parameters add up to.
    Control(u32),
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

const PASTE_BEGINS: u32 = 200;
const PASTE_ENDS: u32 = 201;

impl Draft {
    pub(crate) fn is_open(&self) -> bool {
        self.typed > 0
    }

    pub(crate) fn see(&mut self, keys: &[u8]) {
        for key in keys {
            self.see_one(*key);
        }
        // A lone Escape is a key of its own, not the beginning of something.
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
            (Reading::Escape, b'[') => Reading::Control(0),
            (Reading::Escape, b'O') => Reading::Single,
            (Reading::Escape, b']' | b'P' | b'_' | b'^') => Reading::Answer,
            (Reading::Escape, _) | (Reading::Single, _) => Reading::Keys,
            (Reading::Control(sum), b'0'..=b'9') => Reading::Control(digit(sum, key)),
            (Reading::Control(PASTE_BEGINS), b'~') => Reading::Paste,
            (Reading::Control(_), 0x40..=0x7e) => Reading::Keys,
            (Reading::Control(_), _) => Reading::Control(u32::MAX),
            (Reading::Answer, 0x07) | (Reading::AnswerEscape, b'\\') => Reading::Keys,
            (Reading::Answer, 0x1b) => Reading::AnswerEscape,
            (Reading::Answer | Reading::AnswerEscape, _) => Reading::Answer,
            (Reading::Paste, 0x1b) => Reading::PasteEscape,
            (Reading::PasteEscape, b'[') => Reading::PasteControl(0),
            (Reading::PasteControl(sum), b'0'..=b'9') => Reading::PasteControl(digit(sum, key)),
            (Reading::PasteControl(PASTE_ENDS), b'~') => Reading::Keys,
            (Reading::Paste | Reading::PasteEscape | Reading::PasteControl(_), _) => {
                self.typed = self.typed.saturating_add(1);
                Reading::Paste
            }
        };
    }

    fn key(&mut self, key: u8) {
        match key {
            // Enter; interrupt, end of file and kill-line leave an empty line.
            b'\r' | b'\n' | 0x03 | 0x04 | 0x15 => self.typed = 0,
            0x08 | 0x7f => self.typed = self.typed.saturating_sub(1),
            0x20.. => self.typed = self.typed.saturating_add(1),
            _ => {}
        }
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
            keys.iter().for_each(|part| draft.see(part));
            assert_eq!(draft.is_open(), want, "{keys:?}");
        };
        check(&[b"h"], true);
        check(&[b"hello\r"], false);
        check(&[b"hello", b"\r"], false);
        check(&[b"hello\rmore"], true);
        check(&[b"ab", b"\x7f\x7f"], false);
        check(&[b"ab", b"\x7f"], true);
        check(&[b"ab", b"\x15"], false);
        check(&[b"ab", b"\x03"], false);
        check(&[b"\x1b[A", b"\x1b[B", b"\x1bOP"], false);
        check(&[b"\x1b", b"[A"], true);
        check(&[b"\x1b[<0;10;20M"], false);
        check(&[b"\x1b[I", b"\x1b[O"], false);
        check(&[b"\x1b]11;rgb:00/00/00\x1b\\"], false);
        check(&[b"\x1b[?62;c"], false);
        check(&[b"\x1b[200~one\rtwo\x1b[201~"], true);
        check(&[b"\x1b[200~one\rtwo\x1b[201~", b"\r"], false);
        check(&["ü".as_bytes()], true);
    }
}
