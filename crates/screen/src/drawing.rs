//! Recorded output on its way to a person's own terminal: what draws, and nothing else.
//!
//! A recording is played when its program is long gone, and may be anybody's. It may fill the
//! screen; it may not set the clipboard or the title, ring, print, move the window, have the
//! terminal report keys, or ask it anything. So this names what passes, and all else is dropped,
//! whatever it may be. It knows no screen, and interprets no more than it must to tell them apart.

/// Longer sequences draw nothing that is worth it. Pictures are not held, and may be of any length.
const LONGEST: usize = 4096;

const ESC: char = '\x1b';
const CANCEL: [char; 2] = ['\x18', '\x1a'];

/// Modes that change what is seen: reverse, origin, wrap, the cursor, margins, the other screen,
/// updates in one piece.
const DRAWING_MODES: [&str; 13] = [
    "5", "6", "7", "12", "25", "45", "47", "69", "1047", "1048", "1049", "2026", "2027",
];

/// Where in a sequence the text stands.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Place {
    #[default]
    Text,
    /// After ESC, maybe with intermediates.
    Escape,
    /// After ESC [.
    Control,
    /// After ESC ], which BEL ends too.
    Command,
    /// After ESC P, until it is known what it is.
    Device,
    /// A picture, which is handed on as it comes.
    Picture,
    /// In a string that is dropped.
    Dropped,
}

/// Takes all that does not draw out of one recording.
#[derive(Debug, Default)]
pub struct Drawing {
    place: Place,
    /// What has come of a sequence, behind its ESC. What is cut off at the end is dropped.
    held: String,
    /// Whether a string was just left by an ESC, which its '\' may follow.
    is_left: bool,
}

impl Drawing {
    /// Hands on to `out` what a terminal may see of `text`.
    pub fn pass(&mut self, text: &str, out: &mut String) {
        for c in text.chars() {
            self.step(c, out);
        }
    }

    fn step(&mut self, c: char, out: &mut String) {
        let was_left = std::mem::take(&mut self.is_left);
        if c == ESC || CANCEL.contains(&c) {
            self.leave(out);
            if c == ESC {
                self.place = Place::Escape;
            }
            return;
        }
        match self.place {
            Place::Text if draws(c) => out.push(c),
            Place::Text => {}
            Place::Escape if was_left && c == '\\' => self.begin(Place::Text),
            Place::Escape => self.escape(c, out),
            Place::Control => self.control(c, out),
            Place::Command if c == '\x07' => {
                self.command(out);
                self.begin(Place::Text);
            }
            Place::Command => self.hold(c),
            Place::Device => self.device(c, out),
            Place::Picture if !c.is_control() => out.push(c),
            Place::Picture | Place::Dropped => {}
        }
    }

    fn begin(&mut self, place: Place) {
        self.place = place;
        self.held.clear();
    }

    /// Keeps one more character of a sequence, until it is too long to be handed on.
    fn hold(&mut self, c: char) {
        if !self.is_too_long() {
            self.held.push(c);
        }
    }

    fn is_too_long(&self) -> bool {
        self.held.len() > LONGEST
    }

    /// An ESC, or what cancels, ends whatever there was.
    fn leave(&mut self, out: &mut String) {
        match self.place {
            Place::Command => self.command(out),
            Place::Picture => out.push_str("\x1b\\"),
            Place::Text | Place::Escape | Place::Control | Place::Device | Place::Dropped => {}
        }
        self.is_left = matches!(
            self.place,
            Place::Command | Place::Picture | Place::Device | Place::Dropped
        );
        self.begin(Place::Text);
    }

    fn escape(&mut self, c: char, out: &mut String) {
        match (self.held.as_str(), c) {
            (_, '\0'..'\x20') => pass_within(c, out),
            ("", '[') => self.begin(Place::Control),
            ("", ']') => self.begin(Place::Command),
            ("", 'P') => self.begin(Place::Device),
            ("", 'X' | '^' | '_') => self.begin(Place::Dropped),
            (_, ' '..'0') => self.hold(c),
            (middle, _) => {
                if !self.is_too_long() && escape_draws(middle, c) {
                    out.push(ESC);
                    out.push_str(middle);
                    out.push(c);
                }
                self.begin(Place::Text);
            }
        }
    }

    fn control(&mut self, c: char, out: &mut String) {
        match c {
            '\0'..'\x20' => pass_within(c, out),
            ' '..'@' => self.hold(c),
            '@'..='~' => {
                let draws = control_draws(&self.held, c).filter(|_| !self.is_too_long());
                if let Some(parameters) = draws {
                    out.push_str("\x1b[");
                    out.push_str(&parameters);
                    out.push(c);
                }
                self.begin(Place::Text);
            }
            _ => {}
        }
    }

    /// Of commands, only where a link begins and ends.
    fn command(&self, out: &mut String) {
        if self.held.starts_with("8;")
            && !self.is_too_long()
            && !self.held.contains(char::is_control)
        {
            out.push_str("\x1b]");
            out.push_str(&self.held);
            out.push_str("\x1b\\");
        }
    }

    /// Of device control strings, only pictures: numbers, then 'q'.
    fn device(&mut self, c: char, out: &mut String) {
        match c {
            '0'..='9' | ';' => self.hold(c),
            'q' if !self.is_too_long() => {
                out.push_str("\x1bP");
                out.push_str(&self.held);
                out.push(c);
                self.begin(Place::Picture);
            }
            _ => self.begin(Place::Dropped),
        }
    }
}

/// Whether a character of plain text draws or moves the cursor. Those beyond DEL that some
/// terminals take for the beginning of a sequence do not.
fn draws(c: char) -> bool {
    matches!(c, '\x08'..='\x0f') || !c.is_control()
}

/// What terminals act on in the middle of a sequence.
fn pass_within(c: char, out: &mut String) {
    if draws(c) {
        out.push(c);
    }
}

fn escape_draws(middle: &str, last: char) -> bool {
    match middle {
        // The cursor saved, restored, moved; tabs; a reset; which character set is used.
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
        // Which sets there are; letters of double size.
        "(" | ")" | "*" | "+" | "-" | "." | "/" => matches!(last, '0'..='~'),
        "#" => matches!(last, '3'..='6' | '8'),
        _ => false,
    }
}

/// What of a control sequence's parameters draws, if anything.
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
    use crate::sieve::tests::QUESTIONS;
    use crate::streams::token;
    use proptest::prelude::*;

    fn passed(pieces: &[&str]) -> String {
        let (mut drawing, mut out) = (Drawing::default(), String::new());
        for piece in pieces {
            drawing.pass(piece, &mut out);
        }
        out
    }

    fn check(said: &str, want: &str) {
        let within = format!("a{said}b");
        assert_eq!(passed(&[&within]), format!("a{want}b"), "{said:?}");
        let singly: Vec<String> = within.chars().map(String::from).collect();
        let singly: Vec<&str> = singly.iter().map(String::as_str).collect();
        assert_eq!(passed(&singly), format!("a{want}b"), "{said:?}, one by one");
    }

    #[test]
    fn what_draws_passes() {
        for said in [
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
            check(said, said);
        }
        check("\x1b]8;;x\x07y", "\x1b]8;;x\x1b\\y");
        check("\x1b[3\n1m", "\n\x1b[31m");
        check("\x1b[31\x18m", "m");
    }

    #[test]
    fn what_does_not_draw_is_dropped() {
        for said in [
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
            check(said, "");
        }
        for question in QUESTIONS {
            check(question, "");
        }
        check("\x1b[?1049;2004;25h", "\x1b[?1049;25h");
        // As one character, for terminals that take those; the rest is mere text then.
        check("\u{9d}52;c;Zm9v\u{9c}", "52;c;Zm9v");
        check("\u{9b}5i", "5i");
        check("\x1b(\u{9b}5i", "5i");
        check("\x1b]0;cut\x1b[31mred", "\x1b[31mred");
        check("\x1b[\u{9b}5i", "");
    }

    #[test]
    fn what_is_long_is_a_picture_or_nothing() {
        let long = "x".repeat(3 * LONGEST);
        check(&format!("\x1b]52;c;{long}\x07"), "");
        check(&format!("\x1b]8;;{long}\x1b\\"), "");
        check(&format!("\x1b[{}m", "1;".repeat(LONGEST)), "");
        let picture = format!("\x1bPq{long}\x1b\\");
        check(&picture, &picture);
    }

    #[test]
    fn what_is_cut_off_is_dropped() {
        for said in ["\x1b", "\x1b[3", "\x1b]52;c;Zm", "\x1bP1", "\x1b_G"] {
            assert_eq!(passed(&["a", said]), "a", "{said:?}");
        }
    }

    proptest! {
        /// What passes once passes again, so nothing is put together from what was around it.
        #[test]
        fn nothing_is_made_of_what_is_left(
            parts in prop::collection::vec(prop_oneof![token(), ".{0,8}", "[\\x00-\\x1f\\[\\]P_;?0-9a-z\u{80}-\u{9f}]{0,12}"], 0..30),
        ) {
            let once = passed(&[&parts.concat()]);
            prop_assert_eq!(passed(&[&once]), once.clone());
        }
    }
}
