//! What may be fed to the parser of escape sequences, and in which pieces.
//!
//! The parser has two weak points that its callers must cover: a character cut in two by the end
//! of a read can cost it the next one, and a string that never ends is collected without end.
//! Nothing here interprets a sequence; what is not cut off passes unchanged and in order.

use memchr::{memchr, memchr3};

/// Titles, links and colours are far shorter; the rest of a longer string is not collected.
const LONGEST_STRING: usize = 64 * 1024;

/// How long the UTF-8 character is that this byte begins; 1 for what begins none.
fn char_len(lead: u8) -> usize {
    match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// A character that the end of a read has cut: its first bytes, kept for the next read.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    bytes: [u8; 4],
    len: usize,
}

impl Tail {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes from the beginning of `bytes` what belongs to the cut character. Gives the character
    /// once it is whole, or what there is of it once it can't become whole.
    pub(crate) fn complete(&mut self, bytes: &mut &[u8]) -> Option<([u8; 4], usize)> {
        while self.len > 0 {
            let (&next, rest) = bytes.split_first()?;
            if continues(next) {
                self.bytes[self.len] = next;
                self.len += 1;
                *bytes = rest;
            }
            if !continues(next) || self.len == char_len(self.bytes[0]) {
                return Some((self.bytes, std::mem::take(&mut self.len)));
            }
        }
        None
    }

    /// Keeps back a character that the end of `bytes` cuts, and gives what comes before it.
    pub(crate) fn hold<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let nearest = bytes.iter().rev().take(3).position(|&b| !continues(b));
        let Some(at) = nearest.map(|back| bytes.len() - 1 - back) else {
            return bytes;
        };
        let cut = &bytes[at..];
        if cut.len() >= char_len(cut[0]) {
            return bytes;
        }
        self.bytes[..cut.len()].copy_from_slice(cut);
        self.len = cut.len();
        &bytes[..at]
    }

    /// What is kept, given up as it is.
    pub(crate) fn take(&mut self) -> ([u8; 4], usize) {
        (self.bytes, std::mem::take(&mut self.len))
    }
}

/// Where the parser stands, as far as endless strings are concerned.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Elsewhere,
    Escape,
    /// In an operating system command, of which so many bytes have come.
    String(usize),
}

/// A note is a word or two; more of one is not kept.
const LONGEST_NOTE: usize = 512;

/// The operating system commands of one number: what the program last said in one.
#[derive(Debug)]
struct Notes {
    number: u16,
    /// Of the command that has not ended yet.
    begun: Vec<u8>,
    last: Option<String>,
}

impl Notes {
    fn add(&mut self, bytes: &[u8]) {
        let room = LONGEST_NOTE.saturating_sub(self.begun.len());
        self.begun.extend(&bytes[..bytes.len().min(room)]);
    }

    fn end(&mut self) {
        let command = String::from_utf8_lossy(&self.begun);
        let (number, said) = command.split_once(';').unwrap_or((&command, ""));
        if number.parse() == Ok(self.number) {
            self.last = Some(said.to_owned());
        }
        self.begun.clear();
    }
}

/// Cuts raw output into pieces that the parser can take.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    tail: Tail,
    place: Place,
    notes: Option<Notes>,
}

impl Intake {
    /// Keeps what is said from now on in the commands of this number.
    pub(crate) fn listen(&mut self, number: u16) {
        self.notes = Some(Notes {
            number,
            begun: Vec::new(),
            last: None,
        });
    }

    pub(crate) fn note(&self) -> Option<&str> {
        self.notes.as_ref()?.last.as_deref()
    }

    /// Hands on all that the parser should see of `bytes`.
    pub(crate) fn admit(&mut self, mut bytes: &[u8], mut each: impl FnMut(&[u8])) {
        if let Some((char, len)) = self.tail.complete(&mut bytes) {
            self.bounded(&char[..len], &mut each);
        }
        let whole = self.tail.hold(bytes);
        self.bounded(whole, &mut each);
    }

    /// Whether the end of what came so far cuts a character.
    pub(crate) fn cut(&self) -> bool {
        !self.tail.is_empty()
    }

    fn bounded(&mut self, bytes: &[u8], each: &mut impl FnMut(&[u8])) {
        let mut from = 0;
        let mut at = 0;
        while at < bytes.len() {
            let Place::String(had) = self.place else {
                at += self.seek_string(&bytes[at..]);
                continue;
            };
            let end = string_end(&bytes[at..]).unwrap_or(bytes.len() - at);
            let room = LONGEST_STRING.saturating_sub(had);
            if let Some(notes) = &mut self.notes {
                notes.add(&bytes[at..at + end]);
                if at + end < bytes.len() {
                    notes.end();
                }
            }
            if end > room {
                if from < at + room {
                    each(&bytes[from..at + room]);
                }
                from = at + end;
            }
            at += end;
            self.place = match bytes.get(at) {
                None => Place::String(had + end),
                Some(0x1b) => Place::Escape,
                Some(_) => Place::Elsewhere,
            };
            at = (at + 1).min(bytes.len());
        }
        if from < bytes.len() {
            each(&bytes[from..]);
        }
    }

    /// Skips to where a command begins, or to the end. Its bracket is looked for, not its ESC:
    /// that stands before everything that a full-screen program writes.
    fn seek_string(&mut self, bytes: &[u8]) -> usize {
        let found = memchr(b']', bytes);
        let before = &bytes[..found.unwrap_or(bytes.len())];
        // The parser acts on some bytes after an ESC, or ignores them, and waits on.
        let waits = |&byte: &u8| byte != 0x1b && !matches!(byte, 0x18 | 0x1a | 0x20..=0x7e);
        let escaped = match before.iter().rev().find(|byte| !waits(byte)) {
            Some(&byte) => byte == 0x1b,
            None => self.place == Place::Escape,
        };
        self.place = match (escaped, found) {
            (true, Some(_)) => Place::String(0),
            (true, None) => Place::Escape,
            (false, _) => Place::Elsewhere,
        };
        found.map_or(bytes.len(), |at| at + 1)
    }
}

/// Where an operating system command ends, for the parser.
pub(crate) fn string_end(bytes: &[u8]) -> Option<usize> {
    let end = memchr3(0x07, 0x1b, 0x18, bytes);
    memchr(0x1a, &bytes[..end.unwrap_or(bytes.len())]).or(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(chunks: &[&[u8]]) -> Vec<Vec<u8>> {
        let mut intake = Intake::default();
        let mut pieces = Vec::new();
        for chunk in chunks {
            intake.admit(chunk, |piece| pieces.push(piece.to_vec()));
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
            let mut intake = Intake::default();
            intake.listen(7501);
            for chunk in chunks {
                intake.admit(chunk.as_bytes(), |_| {});
            }
            assert_eq!(intake.note(), want, "{chunks:?}");
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
        let long = vec![b'x'; LONGEST_STRING];
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
