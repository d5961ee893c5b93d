//! Where a stream of terminal output can be interrupted: not inside an escape sequence, and not
//! inside a character. Knows nothing of what the sequences mean.

const ESC: u8 = 0x1b;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    /// So many bytes of a character are to come.
    Character(u8),
    Escape,
    Csi,
    /// A title, a picture: text up to its end.
    Text,
    /// An escape in such a text: its end, if the next byte says so.
    TextEscape,
}

#[derive(Debug)]
pub(super) struct Boundary(State);

impl Boundary {
    pub(super) fn new() -> Self {
        Self(State::Ground)
    }

    /// Whether something of our own may stand here.
    pub(super) fn is_here(&self) -> bool {
        self.0 == State::Ground
    }

    pub(super) fn see(&mut self, bytes: &[u8]) {
        let mut rest = bytes;
        while let Some((&byte, tail)) = rest.split_first() {
            self.0 = next(self.0, byte);
            rest = tail;
            if self.0 == State::Ground {
                // Plain text is most of it. It is looked at only at its end, where it can be cut.
                let plain = memchr::memchr(ESC, rest).unwrap_or(rest.len());
                rest = &rest[plain.saturating_sub(3)..];
            }
        }
    }
}

fn next(state: State, byte: u8) -> State {
    match (state, byte) {
        (State::Text, ESC) => State::TextEscape,
        (State::Text, 0x07 | 0x18 | 0x1a) => State::Ground,
        (State::Text, _) => State::Text,
        (State::TextEscape, b'\\') => State::Ground,
        // Any other sequence ends the text, too.
        (State::TextEscape, _) => next(State::Escape, byte),
        (_, ESC) => State::Escape,
        (State::Escape | State::Csi, 0x18 | 0x1a) => State::Ground,
        (State::Escape, b'[') => State::Csi,
        (State::Escape, b']' | b'P' | b'X' | b'^' | b'_') => State::Text,
        (State::Escape, 0x00..=0x2f) => State::Escape,
        (State::Escape, _) => State::Ground,
        (State::Csi, 0x40..=0x7e) => State::Ground,
        (State::Csi, _) => State::Csi,
        (State::Character(more @ 2..), 0x80..=0xbf) => State::Character(more - 1),
        (State::Character(_), 0x80..=0xbf) => State::Ground,
        (State::Ground | State::Character(_), 0xc2..=0xdf) => State::Character(1),
        (State::Ground | State::Character(_), 0xe0..=0xef) => State::Character(2),
        (State::Ground | State::Character(_), 0xf0..=0xf4) => State::Character(3),
        (State::Ground | State::Character(_), _) => State::Ground,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], is_here: bool) {
        let mut whole = Boundary::new();
        whole.see(bytes);
        assert_eq!(whole.is_here(), is_here, "{bytes:?}");
        let mut single = Boundary::new();
        for byte in bytes {
            single.see(&[*byte]);
        }
        assert_eq!(single.is_here(), is_here, "{bytes:?} byte by byte");
    }

    #[test]
    fn only_between_characters_and_sequences() {
        for whole in [
            "plain",
            "漢字 ü 👩",
            "a\x1b[31mb",
            "\x1b[?1049h",
            "\x1b]0;title\x07",
            "\x1b]0;title\x1b\\",
            "\x1bP+q\x1b\\text",
            "\x1b7",
            "\x1b(B",
            "\x1b]0;cut\x1b[m",
            "\x1b[3\x18",
            "\r\n\x07",
        ] {
            check(whole.as_bytes(), true);
            let more = format!("{whole}{}", "x".repeat(100));
            check(more.as_bytes(), true);
        }
        for cut in [
            b"\x1b".as_slice(),
            b"text\x1b[3",
            b"\x1b[?10",
            b"\x1b]0;title",
            b"\x1b]0;title\x1b",
            b"\x1bPdata",
            b"\x1b(",
            "a漢".as_bytes().split_last().unwrap().1,
            b"\xf0\x9f",
            b"\xf0\x9f\x91",
        ] {
            check(cut, false);
            let after = ["x".repeat(100).as_bytes(), cut].concat();
            check(&after, false);
        }
    }
}
