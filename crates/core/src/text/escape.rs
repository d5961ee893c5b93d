//! Scanner for the escape sequences in a terminal's output.
//!
//! Tells for each byte or character whether it is text or which part of a sequence it is. Never
//! interprets a sequence and keeps none of its bytes: the caller decides what to keep or drop.
//!
//! `vte`, which the terminal model uses, dispatches parsed parameters instead: it reports neither the
//! bytes of a sequence nor where one is unfinished, and our filters have to pass bytes on unchanged.

use memchr::memchr;

const BEL: char = '\x07';
const CAN: char = '\x18';
const SUB: char = '\x1a';
const ESC: char = '\x1b';

/// Kind of an escape sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// ESC, intermediate bytes and a final byte; also a sequence whose kind is not known yet.
    Escape,
    /// Control sequence: `ESC [`.
    Control,
    /// Operating system command: `ESC ]`. BEL ends it, too.
    Command,
    /// Device control string: `ESC P`.
    Device,
    /// Start of string, privacy message or application program command: `ESC X`, `^` or `_`.
    OtherString,
}

impl Kind {
    /// Return whether the sequence contains a string that needs a terminator.
    pub fn is_string(self) -> bool {
        match self {
            Self::Escape | Self::Control => false,
            Self::Command | Self::Device | Self::OtherString => true,
        }
    }
}

/// Role of a byte or character in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Text or a control character outside of sequences.
    Text,
    /// An ESC that begins a sequence. It ends the unfinished sequence of this kind, if any. The
    /// terminator of a string, `ESC \`, is a sequence of its own.
    Begin(Option<Kind>),
    /// The character after the ESC that tells the kind of the sequence.
    Introducer(Kind),
    /// A parameter, an intermediate byte or a part of a string.
    Body(Kind),
    /// A control or undefined character within a sequence that is not a string. Terminals execute
    /// or ignore it.
    Embedded(Kind),
    /// The last character of a sequence.
    End(Kind),
    /// CAN or SUB, which cancels the sequence.
    Cancel(Kind),
}

/// State machine that finds the escape sequences in one output.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Scanner {
    open: Option<Kind>,
    has_intermediate: bool,
}

impl Scanner {
    /// Return the kind of the sequence that is unfinished, if any.
    pub fn open(&self) -> Option<Kind> {
        self.open
    }

    /// Abandon an unfinished sequence: continue as in text.
    pub fn reset(&mut self) {
        *self = Self::default();
    }

    /// Classify the next character, or the next byte of an output that may not be UTF-8.
    pub fn step(&mut self, next: impl Into<char>) -> Part {
        let c = next.into();
        let Some(kind) = self.open else {
            return if c == ESC { self.begin() } else { Part::Text };
        };
        match (kind, c) {
            (_, ESC) => self.begin(),
            (_, CAN | SUB) => self.close(Part::Cancel(kind)),
            (Kind::Command, BEL) => self.close(Part::End(kind)),
            (Kind::Command | Kind::Device | Kind::OtherString, _) => Part::Body(kind),
            (Kind::Escape, '[' | ']' | 'P' | 'X' | '^' | '_') if !self.has_intermediate => {
                let kind = match c {
                    '[' => Kind::Control,
                    ']' => Kind::Command,
                    'P' => Kind::Device,
                    _ => Kind::OtherString,
                };
                self.open = Some(kind);
                Part::Introducer(kind)
            }
            (Kind::Escape, ' '..='/') => {
                self.has_intermediate = true;
                Part::Body(kind)
            }
            (Kind::Control, ' '..='?') => Part::Body(kind),
            (Kind::Escape, '0'..='~') | (Kind::Control, '@'..='~') => self.close(Part::End(kind)),
            (Kind::Escape | Kind::Control, _) => Part::Embedded(kind),
        }
    }

    /// Take from the beginning of `bytes` a run of bytes that have the same role.
    pub fn next_run<'a>(&mut self, bytes: &mut &'a [u8]) -> Option<(Part, &'a [u8])> {
        let (&first, rest) = bytes.split_first()?;
        let part = self.step(first);
        let more = match part {
            Part::Text => memchr(ESC as u8, rest).unwrap_or(rest.len()),
            Part::Body(kind @ (Kind::Command | Kind::Device | Kind::OtherString)) => {
                let ends = |byte: &u8| match char::from(*byte) {
                    ESC | CAN | SUB => true,
                    c => c == BEL && kind == Kind::Command,
                };
                rest.iter().position(ends).unwrap_or(rest.len())
            }
            Part::Body(Kind::Control) => {
                let ends = |byte: &u8| !(b' '..=b'?').contains(byte);
                rest.iter().position(ends).unwrap_or(rest.len())
            }
            Part::Body(Kind::Escape)
            | Part::Begin(_)
            | Part::Introducer(_)
            | Part::Embedded(_)
            | Part::End(_)
            | Part::Cancel(_) => 0,
        };
        let (run, rest) = bytes.split_at(1 + more);
        *bytes = rest;
        Some((part, run))
    }

    fn begin(&mut self) -> Part {
        self.has_intermediate = false;
        Part::Begin(self.open.replace(Kind::Escape))
    }

    fn close(&mut self, part: Part) -> Part {
        self.reset();
        part
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parts(output: &str) -> Vec<(Part, String)> {
        let (mut scanner, mut rest) = (Scanner::default(), output.as_bytes());
        std::iter::from_fn(|| {
            let (part, run) = scanner.next_run(&mut rest)?;
            Some((part, String::from_utf8_lossy(run).into_owned()))
        })
        .collect()
    }

    #[test]
    fn sequences_are_told_from_text() {
        use Kind::{Command, Control, Device, Escape, OtherString};
        use Part::{Begin, Body, Cancel, Embedded, End, Introducer, Text};
        let check = |output: &str, want: &[(Part, &str)]| {
            let found = parts(output);
            let found: Vec<_> = found.iter().map(|(part, run)| (*part, &**run)).collect();
            assert_eq!(found, want, "{output:?}");
        };
        check("a\r\nü", &[(Text, "a\r\nü")]);
        let new = (Begin(None), "\x1b");
        check("x\x1b7", &[(Text, "x"), new, (End(Escape), "7")]);
        check(
            "\x1b(Bx",
            &[new, (Body(Escape), "("), (End(Escape), "B"), (Text, "x")],
        );
        // After an intermediate byte, a bracket is a final byte.
        check(
            "\x1b([x",
            &[new, (Body(Escape), "("), (End(Escape), "["), (Text, "x")],
        );
        check(
            "\x1b[1;31mx",
            &[
                new,
                (Introducer(Control), "["),
                (Body(Control), "1;31"),
                (End(Control), "m"),
                (Text, "x"),
            ],
        );
        check(
            "\x1b[1\n\x7fm",
            &[
                new,
                (Introducer(Control), "["),
                (Body(Control), "1"),
                (Embedded(Control), "\n"),
                (Embedded(Control), "\x7f"),
                (End(Control), "m"),
            ],
        );
        check(
            "\x1b]0;a\x07b",
            &[
                new,
                (Introducer(Command), "]"),
                (Body(Command), "0;a"),
                (End(Command), "\x07"),
                (Text, "b"),
            ],
        );
        check(
            "\x1b]0;a\x1b\\b",
            &[
                new,
                (Introducer(Command), "]"),
                (Body(Command), "0;a"),
                (Begin(Some(Command)), "\x1b"),
                (End(Escape), "\\"),
                (Text, "b"),
            ],
        );
        // Only a command ends at BEL.
        check(
            "\x1bPa\x07\x18b",
            &[
                new,
                (Introducer(Device), "P"),
                (Body(Device), "a\x07"),
                (Cancel(Device), "\x18"),
                (Text, "b"),
            ],
        );
        check(
            "\x1b_x",
            &[
                new,
                (Introducer(OtherString), "_"),
                (Body(OtherString), "x"),
            ],
        );
        check(
            "\x1b[3\x1bc",
            &[
                new,
                (Introducer(Control), "["),
                (Body(Control), "3"),
                (Begin(Some(Control)), "\x1b"),
                (End(Escape), "c"),
            ],
        );
    }

    proptest! {
        #[test]
        fn runs_agree_with_single_bytes(
            bytes in prop::collection::vec(prop_oneof![
                prop::sample::select(b"\x1b\x1b[]P_\\(m;1\x07\x18\n".to_vec()),
                any::<u8>(),
            ], 0..60),
        ) {
            let (mut single, mut runs) = (Scanner::default(), Scanner::default());
            let mut rest = bytes.as_slice();
            while let Some((part, run)) = runs.next_run(&mut rest) {
                for byte in run {
                    prop_assert_eq!(single.step(*byte), part);
                }
                prop_assert_eq!(single, runs);
            }
        }
    }
}
