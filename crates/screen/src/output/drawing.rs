//! Filter for recorded output before it reaches a person's own terminal.
//!
//! A recording may come from anybody. It may draw on the screen, but never set the clipboard or the
//! title, ring, print, move the window, make the terminal report keys or query it. Passes only
//! known sequences and drops all others.

use posthaste_core::text::escape::{Kind, Part, Scanner};

/// Maximum length of a sequence that is held. Pictures are passed as they come, and may be longer.
const MAX_SEQUENCE_BYTES: usize = 4096;

const ESC: char = '\x1b';

/// Private modes that affect drawing: reverse video, origin, wrap, cursor, margins, alternate
/// screen, synchronized updates.
const DRAWING_MODES: [&str; 13] = [
    "5", "6", "7", "12", "25", "45", "47", "69", "1047", "1048", "1049", "2026", "2027",
];

/// Removes from one recording all output that does not draw.
#[derive(Debug, Default)]
pub struct Drawing {
    scanner: Scanner,
    /// Body of the unfinished sequence.
    held: String,
    /// Whether the unfinished sequence is a picture, which is passed as it comes.
    is_picture: bool,
}

impl Drawing {
    /// Append to `out` the part of `text` that a terminal may get.
    pub fn pass(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            self.step(c, out);
        }
    }

    fn step(&mut self, c: char, out: &mut String) {
        match self.scanner.step(c) {
            Part::Text if moves(c) || !c.is_control() => out.push(c),
            Part::Text => {}
            Part::Begin(interrupted) => {
                if let Some(kind) = interrupted {
                    self.interrupt(kind, out);
                }
                self.held.clear();
            }
            Part::Cancel(kind) => self.interrupt(kind, out),
            Part::Body(_) if self.is_picture => {
                if !c.is_control() {
                    out.push(c);
                }
            }
            Part::Body(Kind::Device) if c == 'q' && self.begins_picture() => {
                out.push_str("\x1bP");
                out.push_str(&self.held);
                out.push(c);
                self.is_picture = true;
            }
            Part::Body(_) => {
                if !self.is_too_long() {
                    self.held.push(c);
                }
            }
            Part::Embedded(_) if moves(c) => out.push(c),
            // No terminal takes such a character for a part of the sequence.
            Part::Embedded(Kind::Escape) if c >= '\x7f' => self.scanner.reset(),
            Part::Introducer(_) | Part::Embedded(_) | Part::Complete => {}
            Part::End(kind) => self.end(kind, c, out),
        }
    }

    fn is_too_long(&self) -> bool {
        self.held.len() > MAX_SEQUENCE_BYTES
    }

    /// Return whether a `q` at this point of a device control string begins a picture: it follows
    /// numbers.
    fn begins_picture(&self) -> bool {
        !self.is_too_long() && self.held.chars().all(|c| c.is_ascii_digit() || c == ';')
    }

    /// An ESC, or a character that cancels, ends the sequence.
    fn interrupt(&mut self, kind: Kind, out: &mut String) {
        if kind == Kind::Command {
            self.link(out);
        } else if std::mem::take(&mut self.is_picture) {
            out.push_str("\x1b\\");
        }
    }

    fn end(&self, kind: Kind, last: char, out: &mut String) {
        if self.is_too_long() {
            return;
        }
        match kind {
            Kind::Escape if escape_draws(&self.held, last) => {
                out.push(ESC);
                out.push_str(&self.held);
                out.push(last);
            }
            Kind::Control => {
                if let Some(parameters) = control_draws(&self.held, last) {
                    out.push_str("\x1b[");
                    out.push_str(&parameters);
                    out.push(last);
                }
            }
            Kind::Command => self.link(out),
            Kind::Escape | Kind::Device | Kind::OtherString => {}
        }
    }

    /// Pass a command if it begins or ends a link.
    fn link(&self, out: &mut String) {
        if self.held.starts_with("8;")
            && !self.is_too_long()
            && !self.held.contains(char::is_control)
        {
            out.push_str("\x1b]");
            out.push_str(&self.held);
            out.push_str("\x1b\\");
        }
    }
}

/// Return whether a control character moves the cursor or selects a character set. C1 controls,
/// which begin a sequence in some terminals, do not.
fn moves(c: char) -> bool {
    matches!(c, '\x08'..='\x0f')
}

fn escape_draws(middle: &str, last: char) -> bool {
    match middle {
        // Save, restore and move the cursor; tab stops; reset; select a character set.
        "" => matches!(
            last,
            '6' | '7'
                | '8'
                | '9'
                | 'D'
                | 'E'
                | 'H'
                | 'M'
                | 'N'
                | 'O'
                | 'c'
                | 'n'
                | 'o'
                | '|'
                | '}'
                | '~'
        ),
        // Designate character sets; double-size lines.
        "(" | ")" | "*" | "+" | "-" | "." | "/" => matches!(last, '0'..='~'),
        "#" => matches!(last, '3'..='6' | '8'),
        _ => false,
    }
}

/// Return the parameters of a control sequence that affect drawing, if any.
fn control_draws(held: &str, last: char) -> Option<String> {
    let is_plain = |c: char| c.is_ascii_digit() || matches!(c, ';' | ':');
    let numbers = held.trim_end_matches(|c| (' '..'0').contains(&c));
    let middle = &held[numbers.len()..];
    if let Some(modes) = numbers.strip_prefix('?') {
        return match (middle, last) {
            ("", 'h' | 'l') => {
                let drawing = modes.split(';').filter(|mode| DRAWING_MODES.contains(mode));
                let drawing: Vec<_> = drawing.collect();
                (!drawing.is_empty()).then(|| format!("?{}", drawing.join(";")))
            }
            ("", 'J' | 'K' | 'W') if modes.chars().all(is_plain) => Some(held.to_owned()),
            _ => None,
        };
    }
    let does = match middle {
        "" => matches!(
            last,
            '@' | 'A'..='M' | 'P' | 'S' | 'T' | 'W' | 'X' | 'Z' | '`' | 'a' | 'b' | 'd'..='h'
                | 'l' | 'm' | 'r' | 's' | 'u'
        ),
        " " => matches!(last, '@' | 'A' | 'q'),
        "!" => last == 'p',
        "\"" => last == 'q',
        "$" => matches!(last, 'r' | 't' | 'v' | 'x' | 'z' | '{'),
        "'" => matches!(last, '}' | '~'),
        _ => false,
    };
    (does && numbers.chars().all(is_plain)).then(|| held.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::query_filter::tests::QUERIES;
    use crate::test_output::token;
    use proptest::prelude::*;

    fn passed(pieces: &[&str]) -> String {
        let (mut drawing, mut out) = (Drawing::default(), String::new());
        for piece in pieces {
            drawing.pass(piece, &mut out);
        }
        out
    }

    fn check(output: &str, want: &str) {
        let within = format!("a{output}b");
        assert_eq!(passed(&[&within]), format!("a{want}b"), "{output:?}");
        let singly: Vec<String> = within.chars().map(String::from).collect();
        let singly: Vec<&str> = singly.iter().map(String::as_str).collect();
        assert_eq!(
            passed(&singly),
            format!("a{want}b"),
            "{output:?}, one by one"
        );
    }

    #[test]
    fn drawing_sequences_pass() {
        for output in [
            "é漢😀\r\n\t\x08\x0e\x0f",
            "\x1b[m",
            "\x1b[1;38:2::1:2:3m",
            "\x1b[2J\x1b[H\x1b[3;4H\x1b[K",
            "\x1b[?1049h\x1b[?25l\x1b[?2026h",
            "\x1b[?7;25h",
            "\x1b[5 q\x1b[!p",
            "\x1b[1;5r\x1b[4h\x1b[s\x1b[u",
            "\x1b[1;1;2;2$z",
            "\x1b(B\x1b)0\x1b#8\x1b7\x1b8\x1bM\x1bc",
            "\x1b]8;;http://x.test/\x1b\\link\x1b]8;;\x1b\\",
            "\x1bP0;1q#0;2;0;0;0~~\x1b\\",
        ] {
            check(output, output);
        }
        check("\x1b]8;;x\x07y", "\x1b]8;;x\x1b\\y");
        check("\x1b[3\n1m", "\n\x1b[31m");
        check("\x1b[31\x18m", "m");
    }

    #[test]
    fn other_sequences_are_dropped() {
        for output in [
            "\x07",
            "\x7f",
            "\x1b]52;c;Zm9v\x07",
            "\x1b]52;c;Zm9v\x1b\\",
            "\x1b]0;title\x07",
            "\x1b]2;title\x1b\\",
            "\x1b]99;;hello\x1b\\",
            "\x1b]9;hello\x07",
            "\x1b]777;notify;a;b\x07",
            "\x1b]5522;type=write;x\x1b\\",
            "\x1b]1337;File=name=eA==;inline=0:eA==\x07",
            "\x1b]11;#123456\x07",
            "\x1b[5i",
            "\x1b[?5i",
            "\x1b[4i",
            "\x1b[8;5;5t",
            "\x1b[2t",
            "\x1b[22;2t",
            "\x1b[?1000;1006h",
            "\x1b[?2004h",
            "\x1b[?1h",
            "\x1b=",
            "\x1b[>5u",
            "\x1b[=5u",
            "\x1b[>4;1m",
            "\x1b[3q",
            "\x1b%@",
            "\x1b F",
            "\x1b_Gf=24,t=f;L2V0Yw==\x1b\\",
            "\x1bXsos\x1b\\",
            "\x1b^pm\x1b\\",
            "\x1bP1000p\x1b\\",
            "\x1bPtmux;x\x1b\\",
            "\x1b\\",
        ] {
            check(output, "");
        }
        for query in QUERIES {
            check(query, "");
        }
        check("\x1b[?1049;2004;25h", "\x1b[?1049;25h");
        // Introducers as single C1 characters: without them, the rest is text.
        check("\u{9d}52;c;Zm9v\u{9c}", "52;c;Zm9v");
        check("\u{9b}5i", "5i");
        check("\x1b(\u{9b}5i", "5i");
        check("\x1b]0;cut\x1b[31mred", "\x1b[31mred");
        check("\x1b[\u{9b}5i", "");
    }

    #[test]
    fn only_pictures_may_be_long() {
        let long = "x".repeat(3 * MAX_SEQUENCE_BYTES);
        check(&format!("\x1b]52;c;{long}\x07"), "");
        check(&format!("\x1b]8;;{long}\x1b\\"), "");
        check(&format!("\x1b[{}m", "1;".repeat(MAX_SEQUENCE_BYTES)), "");
        let picture = format!("\x1bPq{long}\x1b\\");
        check(&picture, &picture);
    }

    #[test]
    fn an_unfinished_sequence_is_dropped() {
        for output in ["\x1b", "\x1b[3", "\x1b]52;c;Zm", "\x1bP1", "\x1b_G"] {
            assert_eq!(passed(&["a", output]), "a", "{output:?}");
        }
    }

    proptest! {
        /// A dropped sequence never joins its surroundings to a new sequence.
        #[test]
        fn filtering_twice_equals_filtering_once(
            parts in prop::collection::vec(prop_oneof![token(), ".{0,8}", "[\\x00-\\x1f\\[\\]P_;?0-9a-z\u{80}-\u{9f}]{0,12}"], 0..30),
        ) {
            let once = passed(&[&parts.concat()]);
            prop_assert_eq!(passed(&[&once]), once.clone());
        }
    }
}
