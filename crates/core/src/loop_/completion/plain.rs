//! Text of a program's output, without the escape sequences that only a terminal understands.
//!
//! Never interprets the text.

use crate::text::escape::{Part, Scanner};

/// Maximum length of a string sequence in characters. The terminator of a longer one may be missing,
/// so its rest is text.
const STRING_CHARS: usize = 4096;

/// Return the text of an output, without escape sequences.
pub(super) fn plain(output: &str) -> String {
    let mut scanner = Scanner::default();
    let mut string_chars = 0;
    let is_text = |c: &char| match scanner.step(*c) {
        Part::Text => true,
        Part::Body(kind) if kind.is_string() => {
            string_chars += 1;
            let is_endless = string_chars > STRING_CHARS;
            if is_endless {
                scanner.reset();
            }
            is_endless
        }
        // No sequence contains such a character: the one before it was cut off.
        Part::Embedded(_) if !c.is_ascii() => {
            scanner.reset();
            true
        }
        Part::Begin(_) => {
            string_chars = 0;
            false
        }
        Part::Introducer(_)
        | Part::Body(_)
        | Part::Embedded(_)
        | Part::End(_)
        | Part::Complete
        | Part::Cancel(_) => false,
    };
    output.chars().filter(is_text).collect()
}

/// Return whether a character is decoration around a text instead of a part of it.
pub(super) fn is_frame(c: char) -> bool {
    let is_drawn = matches!(c, '\u{2500}'..='\u{259f}' | '|' | '•' | '●' | '⏺');
    c.is_whitespace() || c.is_control() || is_drawn
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escape_sequences_are_removed() {
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
        check("\u{1b}[3äöü", "äöü");
        check("äöü漢字", "äöü漢字");
    }

    #[test]
    fn an_endless_string_becomes_text() {
        let text = plain(&format!("\u{1b}]0;{}", "x".repeat(100_000)));
        assert!(text.len() > 90_000, "{}", text.len());
    }

    #[test]
    fn decoration_is_distinguished_from_text() {
        assert!("│ ─|\t\u{7}●".chars().all(is_frame));
        assert!(!"a1<>-*\"".chars().any(is_frame));
    }
}
