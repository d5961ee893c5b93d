//! Raw output on its way to attached terminals, without the questions in it.
//!
//! The session's own model answers the program. A person's terminal that got to see the question
//! would answer a second time, into the program's input. All else passes byte for byte and in
//! order; what is handed on never ends within an escape sequence or a character, so that a redraw
//! may come between. In place of a question after an unfinished sequence stands a terminator, so
//! that nothing is joined to that sequence. It changes nothing but that, and interprets nothing.

mod question;

use super::intake::{Tail, string_end};
use memchr::{memchr2, memchr3};
use question::{asks, plain_order};

/// Longer sequences are no questions; they are let through without being looked at.
const LONGEST: usize = 4096;

const ENQ: u8 = 0x05;
const ESC: u8 = 0x1b;
/// Ends an unfinished sequence, and does nothing else.
const STRING_TERMINATOR: &[u8] = b"\x1b\\";

/// Where in a sequence the output stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Text,
    /// After ESC, maybe with intermediate bytes.
    Escape,
    /// A control sequence: ESC [.
    Control,
    /// An operating system command: ESC ]. It may end with BEL.
    Command,
    /// Any other string: ESC P, X, ^ or _.
    String,
    /// After an ESC within a string: what follows tells whether that was its end.
    Ending,
}

/// Takes the questions out of one program's output.
#[derive(Debug, Default)]
pub struct Sieve {
    place: Place,
    /// A sequence that the end of the last read has cut.
    held: Vec<u8>,
    /// A character that the end of the last read has cut.
    tail: Tail,
    /// Whether the sequence has turned out too long to be held.
    through: bool,
    /// Whether a question in the form of a single control character stands within the sequence.
    enquired: bool,
    /// Whether an unfinished sequence has been handed on directly before this sequence.
    follows_unfinished: bool,
}

/// One read on its way through.
struct Read<'a> {
    bytes: &'a [u8],
    /// The next byte to look at.
    at: usize,
    /// Up to here all is handed on or dropped.
    done: usize,
    /// Where the sequence began that is not over yet; 0 if in an earlier read.
    open: usize,
}

impl Sieve {
    /// Hands on to `out` what attached terminals should see of `bytes`.
    pub fn pass(&mut self, mut bytes: &[u8], out: &mut Vec<u8>) {
        if let Some((char, len)) = self.tail.complete(&mut bytes) {
            out.extend_from_slice(&char[..len]);
        }
        let mut read = Read {
            bytes,
            at: 0,
            done: 0,
            open: 0,
        };
        while read.at < bytes.len() {
            match self.place {
                Place::Text => self.text(&mut read, out),
                Place::Escape | Place::Control => self.sequence(&mut read, out),
                Place::Command | Place::String => self.string(&mut read, out),
                Place::Ending => self.ending(&mut read, out),
            }
        }
        self.pause(&read, out);
    }

    /// Whether nothing is held back, and something else may be put in between.
    pub fn at_rest(&self) -> bool {
        self.place == Place::Text && self.tail.is_empty()
    }

    /// The output has ended: hands on what is held back.
    pub fn finish(&mut self, out: &mut Vec<u8>) {
        let (char, len) = self.tail.take();
        out.extend_from_slice(&char[..len]);
        out.append(&mut self.held);
        *self = Self::default();
    }

    fn text(&mut self, read: &mut Read<'_>, out: &mut Vec<u8>) {
        let Some(found) = memchr2(ESC, ENQ, &read.bytes[read.at..]) else {
            read.at = read.bytes.len();
            return;
        };
        let at = read.at + found;
        read.at = at + 1;
        if let Some(length) = plain_order(&read.bytes[at..]) {
            read.at = at + length;
        } else if read.bytes[at] == ESC {
            self.begin(at, read);
        } else {
            out.extend_from_slice(&read.bytes[read.done..at]);
            read.done = read.at;
        }
    }

    fn begin(&mut self, at: usize, read: &mut Read<'_>) {
        self.place = Place::Escape;
        self.through = false;
        self.enquired = false;
        self.follows_unfinished = false;
        read.open = at;
    }

    /// The ESC at `at` ends a sequence that is not finished, and begins another.
    fn interrupt(&mut self, at: usize, read: &mut Read<'_>, out: &mut Vec<u8>) {
        let is_kept = self.close(read, at, out);
        self.begin(at, read);
        self.follows_unfinished = is_kept;
    }

    fn sequence(&mut self, read: &mut Read<'_>, out: &mut Vec<u8>) {
        let control = self.place == Place::Control;
        while let Some(&byte) = read.bytes.get(read.at) {
            read.at += 1;
            match byte {
                ESC => return self.interrupt(read.at - 1, read, out),
                0x18 | 0x1a => {
                    self.close(read, read.at, out);
                    return;
                }
                ENQ => self.enquired = true,
                b'[' if !control && self.bare(read) => return self.place = Place::Control,
                b']' if !control && self.bare(read) => return self.place = Place::Command,
                b'P' | b'X' | b'^' | b'_' if !control && self.bare(read) => {
                    return self.place = Place::String;
                }
                0x30..=0x7e if !control || byte >= 0x40 => {
                    self.close(read, read.at, out);
                    return;
                }
                // Parameters, and what terminals act on or ignore within a sequence.
                _ => {}
            }
        }
    }

    /// Whether the byte just read follows its ESC without intermediates between.
    fn bare(&self, read: &Read<'_>) -> bool {
        let before = &read.bytes[read.open..read.at - 1];
        let intermediate = |byte: &u8| (0x20..0x30).contains(byte);
        !self.held.iter().chain(before).any(intermediate)
    }

    fn string(&mut self, read: &mut Read<'_>, out: &mut Vec<u8>) {
        let rest = &read.bytes[read.at..];
        let end = match self.place {
            Place::Command => string_end(rest),
            _ => memchr3(ESC, 0x18, 0x1a, rest),
        };
        let Some(end) = end else {
            read.at = read.bytes.len();
            return;
        };
        read.at += end + 1;
        if read.bytes[read.at - 1] == ESC {
            self.place = Place::Ending;
        } else {
            self.close(read, read.at, out);
        }
    }

    fn ending(&mut self, read: &mut Read<'_>, out: &mut Vec<u8>) {
        // Whether the ESC came with this read.
        let here = read.at > 0;
        if read.bytes[read.at] == b'\\' {
            read.at += 1;
            self.close(read, read.at, out);
        } else if here {
            // Not its end, but the beginning of something else, which ends it too.
            self.interrupt(read.at - 1, read, out);
        } else {
            self.held.pop();
            self.interrupt(0, read, out);
            self.held.push(ESC);
        }
    }

    /// Lets a sequence go that has become too long by `end`.
    fn measure(&mut self, read: &Read<'_>, end: usize, out: &mut Vec<u8>) {
        if !self.through && self.held.len() + end - read.open > LONGEST {
            out.append(&mut self.held);
            self.through = true;
        }
    }

    /// The sequence is over at `end`: hands it on unless it is a question. Returns whether it is
    /// handed on.
    ///
    /// If the terminal still waits for the end of the sequence before a question, it would join
    /// that sequence to the output after the question, maybe to a new question. The terminator in
    /// place of the question ends it, as the question's ESC would have done.
    fn close(&mut self, read: &mut Read<'_>, end: usize, out: &mut Vec<u8>) -> bool {
        self.measure(read, end, out);
        let place = std::mem::take(&mut self.place);
        if self.through {
            // At most an ESC that seemed to end it.
            out.append(&mut self.held);
            return true;
        }
        let here = &read.bytes[read.open..end];
        let whole = if self.held.is_empty() {
            here
        } else {
            self.held.extend_from_slice(here);
            &self.held
        };
        let asks = asks(whole);
        if asks || self.enquired {
            out.extend_from_slice(&read.bytes[read.done..read.open]);
            if asks && self.follows_unfinished {
                out.extend_from_slice(STRING_TERMINATOR);
            }
            let is_string = matches!(place, Place::Command | Place::String | Place::Ending);
            if asks {
                // What else a terminal would have done on the way is still done.
                let acts = |byte: &u8| !is_string && (0x08..=0x0f).contains(byte);
                out.extend(whole.iter().copied().filter(acts));
            } else {
                // In a string the character is text; before its kind it asks.
                let kind = whole.iter().position(|byte| (0x30..0x7f).contains(byte));
                let text = kind.filter(|_| is_string).unwrap_or(whole.len());
                out.extend(whole[..text].iter().copied().filter(|byte| *byte != ENQ));
                out.extend_from_slice(&whole[text..]);
            }
            self.held.clear();
            read.done = end;
        } else if !self.held.is_empty() {
            out.append(&mut self.held);
            read.done = end;
        }
        !asks
    }

    /// The read is over: hands on what can be, and holds the rest.
    fn pause(&mut self, read: &Read<'_>, out: &mut Vec<u8>) {
        let rest = &read.bytes[read.done..];
        match self.place {
            Place::Text => out.extend_from_slice(self.tail.hold(rest)),
            Place::Ending if self.through => {
                if let Some((&last, before)) = rest.split_last() {
                    out.extend_from_slice(before);
                    self.held.push(last);
                }
            }
            Place::Escape | Place::Control | Place::Command | Place::String | Place::Ending => {
                if self.place != Place::Ending {
                    self.measure(read, read.bytes.len(), out);
                }
                let open = if self.through {
                    read.bytes.len()
                } else {
                    read.open.max(read.done)
                };
                out.extend_from_slice(&read.bytes[read.done..open]);
                self.held.extend_from_slice(&read.bytes[open..]);
            }
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::streams::{cut, question, token};
    use proptest::prelude::*;

    /// What a terminal answers.
    pub(crate) const QUESTIONS: [&str; 50] = [
        "\x05",
        "\x1bZ",
        "\x1b[c",
        "\x1b[0c",
        "\x1b[>c",
        "\x1b[>0c",
        "\x1b[=c",
        "\x1b[5n",
        "\x1b[6n",
        "\x1b[?6n",
        "\x1b[?996n",
        "\x1b[20$p",
        "\x1b[?2026$p",
        "\x1b[>q",
        "\x1b[>0q",
        "\x1b[?u",
        "\x1b[?4m",
        "\x1b[11t",
        "\x1b[13t",
        "\x1b[13;2t",
        "\x1b[14t",
        "\x1b[14;2t",
        "\x1b[15t",
        "\x1b[16t",
        "\x1b[18t",
        "\x1b[19t",
        "\x1b[20t",
        "\x1b[21t",
        "\x1b[x",
        "\x1b[?1;1;0S",
        "\x1b[1$w",
        "\x1b[1;1;1;1;1;1*y",
        "\x1b]4;1;?\x07",
        "\x1b]4;1;?;2;?\x1b\\",
        "\x1b]5;0;?\x07",
        "\x1b]10;?\x07",
        "\x1b]11;?\x1b\\",
        "\x1b]19;?\x07",
        "\x1b]52;c;?\x07",
        "\x1b]52;;?\x1b\\",
        "\x1bP$qm\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1b]1337;ReportCellSize\x07",
        "\x1b]10;?;?\x07",
        "\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\",
        "\x1b_Ga=q\x1b\\",
        "\x1b]99;i=1:p=?;\x1b\\",
        "\x1b]99;p=?\x07",
        "\x1b]5522;type=read;Lg==\x1b\\",
        "\x1b]5522;id=1:type=read:loc=primary;Lg==\x07",
    ];

    /// What looks like a question and is none.
    const STATEMENTS: [&str; 37] = [
        "text",
        "\x1b[m",
        "\x1b[1;31m",
        "\x1b[>4;1m",
        "\x1b[=5u",
        "\x1b[>5u",
        "\x1b[<u",
        "\x1b[u",
        "\x1b[s",
        "\x1b[22t",
        "\x1b[23;0t",
        "\x1b[8;24;80t",
        "\x1b[1t",
        "\x1b[!p",
        "\x1b[61\"p",
        "\x1b[5 q",
        "\x1b[1\"q",
        "\x1b[?6c",
        "\x1b[>4n",
        "\x1b[?2026h",
        "\x1b[4S",
        "\x1b[1;5r",
        "\x1b]4;1;rgb:1/2/3\x07",
        "\x1b]11;#123456\x1b\\",
        "\x1b]0;what?\x07",
        "\x1b]2;?\x07",
        "\x1b]104;1\x07",
        "\x1b]52;c;Zm9v\x07",
        "\x1b]8;;http://x.test/?\x1b\\",
        "\x1bPq#0;2;0\x1b\\",
        "\x1b_Gi=1;x\x1b\\",
        "\x1b_Ga=T,f=24;a=q\x1b\\",
        "\x1b]99;i=1;p=?\x1b\\",
        "\x1b]5522;type=write;type=read\x1b\\",
        "\x1b(B",
        "\x1b#8",
        "\x1bc",
    ];

    fn passed(chunks: &[&[u8]]) -> Vec<u8> {
        let mut sieve = Sieve::default();
        let mut out = Vec::new();
        for chunk in chunks {
            sieve.pass(chunk, &mut out);
        }
        sieve.finish(&mut out);
        out
    }

    fn check(bytes: &[u8], want: &[u8]) {
        let shown = |bytes: &[u8]| bytes.escape_ascii().to_string();
        assert_eq!(shown(&passed(&[bytes])), shown(want));
        let singly: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(shown(&passed(&singly)), shown(want), "byte by byte");
    }

    #[test]
    fn questions_are_taken_out() {
        for question in QUESTIONS {
            check(question.as_bytes(), b"");
            check(
                format!("a{question}b\x1b[mc{question}").as_bytes(),
                b"ab\x1b[mc",
            );
        }
        check(b"\x1b[6\nn", b"\n");
        check(b"\x1b[3\x051m", b"\x1b[31m");
        check(b"\x1b\r[6n", b"\r");
        check(b"\x1b[6\xc3n", b"");
        check(b"\x1b]11;?\x1b[31mx", b"\x1b[31mx");
        check(b"\x1b]11;?\x1b]10;?\x07x", b"x");
        check(b"\x1bP$qm\x1b[6nx", b"x");
    }

    #[test]
    fn all_else_passes() {
        for statement in STATEMENTS {
            check(statement.as_bytes(), statement.as_bytes());
            let within = format!("a{statement}b");
            check(within.as_bytes(), within.as_bytes());
        }
        for raw in [
            b"\xff\xfe\x80 \xc3(".as_slice(),
            b"\x1b[31\x18m",
            b"\x1b\x1b\x1b[A",
            b"\x1b]0;open\x1a",
            b"\x1b[3",
            b"\x1b]0;x",
            b"\xf0\x9f",
        ] {
            check(raw, raw);
        }
        check("é漢😀".as_bytes(), "é漢😀".as_bytes());
    }

    #[test]
    fn no_question_is_joined_from_what_was_around_another() {
        check(b"\x1b[\x1b[6nc", b"\x1b[\x1b\\c");
        check(b"\x1b\x1b[6n[c", b"\x1b\x1b\\[c");
        check(b"\x1b[\x1b[6\nnc", b"\x1b[\x1b\\\nc");
        check(b"\x1b[\x1b[6n\x1b[5nc", b"\x1b[\x1b\\c");
        check(b"\x1b]11;\x1b]10;?\x07?\x07", b"\x1b]11;\x1b\\?\x07");
        check(b"\x1b[\x1b[3\x05\x1b[6n1c", b"\x1b[\x1b[3\x1b\\1c");
        check(b"\x1b\x05]0;x\x1b[6nc", b"\x1b]0;x\x1b\\c");
        // Nothing is open that the rest could be joined to.
        check(b"\x1b[\x18\x1b[6nc", b"\x1b[\x18c");
        check(b"\x1b[\x1b[m\x1b[6nc", b"\x1b[\x1b[mc");
        check(b"\x1b[\x1b[31\x1b[m\x1b[6nc", b"\x1b[\x1b[31\x1b[mc");
    }

    #[test]
    fn an_enquiry_before_a_string_is_taken_out() {
        check(b"\x1b\x05]0;x\x07", b"\x1b]0;x\x07");
        check(b"\x1b\x05P#0\x051\x1b\\", b"\x1bP#0\x051\x1b\\");
        check(b"\x1b\x05]1\x051;?\x07", b"\x1b]1\x051;?\x07");
    }

    #[test]
    fn what_is_too_long_is_no_question() {
        let long = format!("\x1b]52;c;{}\x1b\\after\x1b[6n", "x".repeat(3 * LONGEST));
        check(long.as_bytes(), &long.as_bytes()[..long.len() - 4]);
        let endless = format!("\x1b[{}c", "1;".repeat(LONGEST));
        check(endless.as_bytes(), endless.as_bytes());
        let cut_off = format!("\x1bP{}\x1b[6nafter", "x".repeat(3 * LONGEST));
        check(
            cut_off.as_bytes(),
            cut_off.replace("\x1b[6n", "\x1b\\").as_bytes(),
        );
        for extra in 0..3 {
            let edge = format!("\x1b]11;?;{}\x07", "x".repeat(LONGEST - 9 + extra));
            let kept = edge.len() > LONGEST;
            check(edge.as_bytes(), if kept { edge.as_bytes() } else { b"" });
        }
    }

    #[test]
    fn it_rests_between_sequences_alone() {
        let mut sieve = Sieve::default();
        let mut out = Vec::new();
        let mut check = |bytes: &[u8], rests: bool, want: &str| {
            sieve.pass(bytes, &mut out);
            assert_eq!(sieve.at_rest(), rests, "{bytes:?}");
            assert_eq!(String::from_utf8_lossy(&out), want);
        };
        check(b"a\x1b", false, "a");
        check(b"[3", false, "a");
        check(b"1m", true, "a\x1b[31m");
        check(b"b\xc3", false, "a\x1b[31mb");
        check(b"", false, "a\x1b[31mb");
        check(b"\xa9", true, "a\x1b[31mbé");
        check(b"\x1b]0;t\x1b", false, "a\x1b[31mbé");
        check(b"\\", true, "a\x1b[31mbé\x1b]0;t\x1b\\");
    }

    /// Pieces of sequences, which make questions in many ways.
    fn fragment() -> impl Strategy<Value = Vec<u8>> {
        const PIECES: [&[u8]; 24] = [
            b"\x1b", b"[", b"]", b"P", b"_", b"\\", b"c", b"n", b"6", b"1", b";", b"?", b"=", b"$",
            b"q", b"G", b"a", b"Z", b"(", b"\x05", b"\x07", b"\n", b"\x18", b"\xc3",
        ];
        prop_oneof![
            4 => prop::sample::select(&PIECES[..]).prop_map(<[u8]>::to_vec),
            1 => question().prop_map(|question| question.as_bytes().to_vec()),
        ]
    }

    proptest! {
        #[test]
        fn no_cut_makes_a_difference(
            parts in prop::collection::vec(prop_oneof![3 => token(), 1 => question().prop_map(str::to_owned)], 0..30),
            noise in prop::collection::vec(any::<u8>(), 0..20),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let bytes = [parts.concat().as_bytes(), &noise].concat();
            let once = passed(&[&bytes]);
            prop_assert_eq!(&passed(&cut(&bytes, &places)), &once);
            prop_assert_eq!(passed(&[&once]), once);
        }

        #[test]
        fn sieving_twice_equals_sieving_once(
            parts in prop::collection::vec(fragment(), 0..12),
        ) {
            let once = passed(&[&parts.concat()]);
            prop_assert_eq!(passed(&[&once]), once);
        }

        #[test]
        fn no_question_survives(
            parts in prop::collection::vec((token(), question()), 0..20),
            places in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        ) {
            let asked: String = parts.iter().flat_map(|(token, question)| [token.as_str(), question]).collect();
            let unasked: String = parts.iter().map(|(token, _)| token.as_str()).collect();
            let out = passed(&cut(asked.as_bytes(), &places));
            prop_assert_eq!(String::from_utf8(out).unwrap(), unasked.clone());
            prop_assert_eq!(passed(&[unasked.as_bytes()]), unasked.as_bytes());
        }
    }
}
