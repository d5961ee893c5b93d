//! Prepares raw output for the parser of escape sequences.
//!
//! Covers two weak points of the parser: it can lose a character after one that the end of a read
//! cuts, and it collects endless strings without a bound. Never interprets a sequence; all other
//! bytes pass unchanged and in order.

use super::split_char::SplitChar;
use posthaste_core::text::escape::{Kind, Part, Scanner};

/// Limit for operating system commands: titles, links and colours are far shorter. The rest of a
/// longer one is dropped.
const MAX_STRING_BYTES: usize = 64 * 1024;
/// Limit for a note, which is a word or two. The rest of a longer one is dropped.
const NOTE_BYTES: usize = 512;

/// Latest operating system command with a given number.
#[derive(Debug)]
struct Notes {
    number: u16,
    /// Beginning of the unfinished command.
    unfinished: Vec<u8>,
    last: Option<String>,
}

impl Notes {
    fn add(&mut self, bytes: &[u8]) {
        let room = NOTE_BYTES.saturating_sub(self.unfinished.len());
        self.unfinished.extend(&bytes[..bytes.len().min(room)]);
    }

    fn end(&mut self) {
        let command = String::from_utf8_lossy(&self.unfinished);
        let (number, text) = command.split_once(';').unwrap_or((&command, ""));
        if number.parse() == Ok(self.number) {
            self.last = Some(text.to_owned());
        }
        self.unfinished.clear();
    }
}

/// Cuts raw output into pieces that the parser handles.
#[derive(Debug, Default)]
pub(crate) struct ParserInput {
    split_char: SplitChar,
    scanner: Scanner,
    command_bytes: usize,
    notes: Option<Notes>,
}

impl ParserInput {
    /// Keep the latest command with this number from now on.
    pub(crate) fn listen(&mut self, number: u16) {
        self.notes = Some(Notes {
            number,
            unfinished: Vec::new(),
            last: None,
        });
    }

    pub(crate) fn note(&self) -> Option<&str> {
        self.notes.as_ref()?.last.as_deref()
    }

    /// Call `each` with the pieces of `bytes` for the parser.
    pub(crate) fn admit(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        if let Some((char, len)) = self.split_char.complete(&mut bytes) {
            self.bounded(&char[..len], &mut each);
        }
        let whole = self.split_char.hold(bytes);
        self.bounded(whole, &mut each);
    }

    /// Return whether the output so far ends within a character.
    pub(crate) fn ends_in_char(&self) -> bool {
        !self.split_char.is_empty()
    }

    fn bounded(&mut self, bytes: &[u8], each: &mut impl FnMut(&[u8])) {
        let (mut from, mut at) = (0, 0);
        let mut rest = bytes;
        while let Some((part, run)) = self.scanner.next_run(&mut rest) {
            let end = at + run.len();
            match part {
                Part::Introducer(Kind::Command) => self.command_bytes = 0,
                Part::Body(Kind::Command) => {
                    if let Some(notes) = &mut self.notes {
                        notes.add(run);
                    }
                    let room = MAX_STRING_BYTES.saturating_sub(self.command_bytes);
                    if run.len() > room {
                        if from < at + room {
                            each(&bytes[from..at + room]);
                        }
                        from = end;
                    }
                    self.command_bytes += run.len();
                }
                Part::Begin(Some(Kind::Command))
                | Part::End(Kind::Command)
                | Part::Cancel(Kind::Command) => {
                    if let Some(notes) = &mut self.notes {
                        notes.end();
                    }
                }
                Part::Text
                | Part::Begin(_)
                | Part::Introducer(_)
                | Part::Body(_)
                | Part::Embedded(_)
                | Part::End(_)
                | Part::Complete
                | Part::Cancel(_) => {}
            }
            at = end;
        }
        if from < bytes.len() {
            each(&bytes[from..]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut input = ParserInput::default();
        let mut pieces = Vec::new();
        for chunk in chunks {
            input.admit(chunk, |piece| pieces.push(piece.to_vec()));
        }
        pieces
    }

    #[test]
    fn no_piece_cuts_a_character() {
        let check = |chunks: &[&[u8]], want: &[&[u8]]| {
            assert_eq!(admitted(chunks), want, "{chunks:?}");
        };
        check(&[b"plain"], &[b"plain"]);
        check(
            &[b"a\xc3", b"\xa9A\xc3\xa9"],
            &[b"a", "é".as_bytes(), "Aé".as_bytes()],
        );
        check(&[b"\xf0\x9f", b"\x98", b"\x80!"], &["😀".as_bytes(), b"!"]);
        check(&[b"\xf0\x9f", b"x"], &[b"\xf0\x9f", b"x"]);
        check(&[b"\x80\x80\x80"], &[b"\x80\x80\x80"]);
        check(&[b"\xff", b"\xe2\x1b[m"], &[b"\xff", b"\xe2\x1b[m"]);
    }

    #[test]
    fn the_last_note_of_a_number_is_kept() {
        let check = |chunks: &[&str], want: Option<&str>| {
            let mut input = ParserInput::default();
            input.listen(7501);
            for chunk in chunks {
                input.admit(chunk.as_bytes(), |_| {});
            }
            assert_eq!(input.note(), want, "{chunks:?}");
        };
        check(&["7501;state=idle\x07"], None);
        check(&["\x1b]7501;state=idle\x07"], Some("state=idle"));
        check(&["\x1b]75", "01;state=", "idle\x1b\\"], Some("state=idle"));
        check(&["\x1b]7501;state=idle"], None);
        check(&["\x1b]7501;a\x07\x1b]0;b\x07"], Some("a"));
        check(&["\x1b]7501;a\x07 \x1b]7501;b\x07"], Some("b"));
        check(&["\x1b]75010;a\x07\x1b]7501\x07"], Some(""));
        let long = "x".repeat(9_000);
        check(&["\x1b]7501;", &long, "\x07"], Some(&long[..507]));
    }

    #[test]
    fn an_endless_string_is_cut() {
        let long = vec![b'x'; MAX_STRING_BYTES];
        let check = |chunks: &[&[u8]], want: usize| {
            let len: usize = admitted(chunks).iter().map(Vec::len).sum();
            assert_eq!(len, want, "{}", chunks.len());
        };
        check(&[b"\x1b]", &long, b"\x07after"], 2 + long.len() + 6);
        check(
            &[b"\x1b]", &long, b"more", b"\x07after"],
            2 + long.len() + 6,
        );
        check(
            &[b"\x1b\x01]", &long, b"more\x1b\\after"],
            3 + long.len() + 7,
        );
        check(&[b"\x1b]2;t\x07", &long, b"more"], 6 + long.len() + 4);
        check(&[b"\x1b]2;t\x1b[m", &long, b"more"], 8 + long.len() + 4);
        check(&[b"\x1bPq", &long, b"more"], 3 + long.len() + 4);
        check(&[b"\x1b", b"\x01", b"]", &long, b"more"], 3 + long.len());
        check(&[b"\x1b[]", &long, b"]more"], 3 + long.len() + 5);
        check(&[b"\x1b]2;t\x1b", b"]", &long, b"more"], 7 + long.len());
    }
}
