//! What a program's output says, without how: its text without the sequences that only a terminal
//! understands. Knows nothing of what the text means.

/// A string sequence longer than this is no longer believed to be one: its end may never come.
const LONGEST: usize = 4096;
const ESC: char = '\u{1b}';

/// The text in an output, without escape sequences.
pub(super) fn plain(output: &str) -> String {
    let mut strip = Strip::default();
    output.chars().filter(|c| strip.shows(*c)).collect()
}

/// Whether a character is drawn around a text and is no part of it.
pub(super) fn is_frame(c: char) -> bool {
    let is_drawn = matches!(c, '\u{2500}'..='\u{259f}' | '|' | '•' | '●' | '⏺');
    c.is_whitespace() || c.is_control() || is_drawn
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_said_is_left() {
        let check = |output: &str, want: &str| assert_eq!(plain(output), want, "{output:?}");
        check("a b\r\n\tc", "a b\r\n\tc");
        check("\u{1b}[1;31mred\u{1b}[0m", "red");
        check("\u{1b}]0;a title\u{7}x", "x");
        check(
            "\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\ n",
            "link n",
        );
        check("\u{1b}(Bx\u{1b}7y\u{1b}Pq#0\u{1b}\\z", "xyz");
        check("\u{1b}]0;cut\u{1b}[1mbold", "bold");
        check("äöü漢字", "äöü漢字");
    }

    #[test]
    fn a_sequence_that_never_ends_is_given_up() {
        let said = plain(&format!("\u{1b}]0;{}", "x".repeat(100_000)));
        assert!(said.len() > 90_000, "{}", said.len());
    }

    #[test]
    fn a_frame_is_no_text() {
        assert!("│ ─|\t\u{7}●".chars().all(is_frame));
        assert!(!"a1<>-*\"".chars().any(is_frame));
    }
}
