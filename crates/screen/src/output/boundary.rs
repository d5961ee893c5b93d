//! Places in a terminal's output where other output can be inserted.

use super::split_char::SplitChar;
use posthaste_core::text::escape::{Part, Scanner};

/// Finds the places in one output that are neither inside an escape sequence nor inside a
/// character.
#[derive(Debug, Default)]
pub struct Boundary {
    scanner: Scanner,
    split_char: SplitChar,
}

impl Boundary {
    /// Return whether other output may follow here.
    pub fn is_here(&self) -> bool {
        self.scanner.open().is_none() && self.split_char.is_empty()
    }

    pub fn advance(&mut self, mut bytes: &[u8]) {
        let _ = self.split_char.complete(&mut bytes);
        while let Some((part, run)) = self.scanner.next_run(&mut bytes) {
            if part == Part::Text && bytes.is_empty() {
                let _ = self.split_char.hold(run);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], is_here: bool) {
        let mut whole = Boundary::default();
        whole.advance(bytes);
        assert_eq!(whole.is_here(), is_here, "{bytes:?}");
        let mut single = Boundary::default();
        for byte in bytes {
            single.advance(&[*byte]);
        }
        assert_eq!(single.is_here(), is_here, "{bytes:?} byte by byte");
    }

    #[test]
    fn a_boundary_is_between_characters_and_sequences() {
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
