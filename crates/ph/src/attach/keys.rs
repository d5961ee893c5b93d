//! Splits typed bytes into keys for the program and commands after the prefix key.
//!
//! Never encodes a key again: the program gets the bytes that were read. Never holds bytes back
//! until the next read, so a sequence that is cut in two goes to the program.

use posthaste_screen::input::{PasteTracker, Token, first_token};

const ESCAPE_KEY: Token = Token::Key {
    code: 0x1b,
    modifiers: 0,
};

/// The name of the key that begins every command.
pub(super) const PREFIX: &str = "Ctrl+\\";
/// The prefix key in the classic encoding, and as a key with modifiers.
const PREFIX_BYTE: Token = Token::Byte(0x1c);
const PREFIX_KEY: Token = Token::Key {
    code: b'\\' as u32,
    modifiers: Token::CTRL,
};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// Bytes for the program, unchanged.
    Keys(Vec<u8>),
    Detach,
    /// Take the keyboard, or release it.
    Keyboard,
    Redraw,
}

#[derive(Debug, Default)]
pub(super) struct KeySplitter {
    /// The prefix was typed, so the next key is a command.
    is_pending: bool,
    /// Inside a paste, no byte is a command.
    paste: PasteTracker,
}

impl KeySplitter {
    pub(super) fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// Process the bytes of one read.
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<Typed> {
        let mut typed = Vec::new();
        let mut keys = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            let length = if self.is_pending {
                self.command(rest, &mut keys, &mut typed)
            } else {
                self.key(rest, &mut keys)
            };
            rest = &rest[length..];
        }
        flush(&mut keys, &mut typed);
        typed
    }

    /// Process one byte, or the prefix key. Return the number of bytes used.
    fn key(&mut self, rest: &[u8], keys: &mut Vec<u8>) -> usize {
        let (token, length) = first_token(rest);
        if !self.paste.is_open() && is_prefix(token) {
            self.is_pending = true;
            return length;
        }
        self.paste.feed(rest[0]);
        keys.push(rest[0]);
        1
    }

    /// Process the key after the prefix. Return the number of bytes used.
    fn command(&mut self, rest: &[u8], keys: &mut Vec<u8>, typed: &mut Vec<Typed>) -> usize {
        let (token, length) = first_token(rest);
        let command = match token {
            // The prefix typed twice goes to the program, in the encoding that the program
            // requested.
            token if is_prefix(token) => Some(Typed::Keys(rest[..length].to_vec())),
            Token::Escape | ESCAPE_KEY => None,
            // A paste is never a command.
            Token::PasteBegins => {
                self.is_pending = false;
                return self.key(rest, keys);
            }
            // Not a key: a mouse report, or a reply to the program.
            Token::Report | Token::CutReport => {
                keys.extend_from_slice(&rest[..length]);
                return length;
            }
            token => match command_of(token) {
                Some(command) => Some(command),
                // The help, which lists the commands, stays on the screen.
                None => return length,
            },
        };
        self.is_pending = false;
        flush(keys, typed);
        typed.extend(command);
        length
    }
}

fn is_prefix(token: Token) -> bool {
    token == PREFIX_BYTE || token == PREFIX_KEY
}

fn command_of(token: Token) -> Option<Typed> {
    let code = match token {
        Token::Byte(byte) => byte,
        Token::Key {
            code,
            modifiers: 0 | Token::SHIFT,
        } => u8::try_from(code).ok()?,
        Token::Key { .. }
        | Token::Escape
        | Token::Release
        | Token::Modifier
        | Token::PasteBegins
        | Token::Report
        | Token::Other
        | Token::CutKey
        | Token::CutReport => return None,
    };
    match code {
        b'd' => Some(Typed::Detach),
        b't' => Some(Typed::Keyboard),
        b'r' => Some(Typed::Redraw),
        _ => None,
    }
}

fn flush(keys: &mut Vec<u8>, typed: &mut Vec<Typed>) {
    if !keys.is_empty() {
        typed.push(Typed::Keys(std::mem::take(keys)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Typed {
        Typed::Keys(bytes.to_vec())
    }

    #[track_caller]
    fn check(reads: &[&[u8]], want: &[Typed], is_pending: bool) {
        let mut state = KeySplitter::default();
        let got: Vec<Typed> = reads.iter().flat_map(|read| state.feed(read)).collect();
        assert_eq!(got, want, "{reads:?}");
        assert_eq!(state.is_pending(), is_pending, "{reads:?}");
    }

    #[test]
    fn typed_bytes_go_to_the_program_unchanged() {
        let all: Vec<u8> = (0..=255).filter(|byte| *byte != 0x1c).collect();
        check(&[&all], &[keys(&all)], false);
        for typed in [
            "ü漢",
            "\x1b",
            "\x1b[A",
            "\x1b[<0;3;4M",
            "\x1b[99;5u",
            "\x1b[92u",
            "\x1b[92;5:3u",
            "\x1b[?1;2c",
        ] {
            check(&[typed.as_bytes()], &[keys(typed.as_bytes())], false);
        }
    }

    #[test]
    fn the_prefix_is_recognised_in_every_encoding() {
        for prefix in [
            "\x1c",
            "\x1b[92;5u",
            "\x1b[92;5:1u",
            "\x1b[92;5:2u",
            "\x1b[92:124;5u",
            "\x1b[92;133u",
            "\x1b[27;5;92~",
        ] {
            let typed = format!("a{prefix}");
            check(&[typed.as_bytes()], &[keys(b"a")], true);
            let twice = prefix.repeat(2);
            check(&[twice.as_bytes()], &[keys(prefix.as_bytes())], false);
            let detach = format!("{prefix}d");
            check(&[detach.as_bytes()], &[Typed::Detach], false);
        }
    }

    #[test]
    fn keys_after_the_prefix_are_commands() {
        check(
            &[b"a\x1cdb"],
            &[keys(b"a"), Typed::Detach, keys(b"b")],
            false,
        );
        check(&[b"\x1c", b"t"], &[Typed::Keyboard], false);
        check(&[b"\x1cr"], &[Typed::Redraw], false);
        check(&[b"\x1c\x1b", b"d"], &[keys(b"d")], false);
        check(&[b"\x1c\x1b[27ud"], &[keys(b"d")], false);
        check(&[b"\x1c\x1b[100ux"], &[Typed::Detach, keys(b"x")], false);
        check(&[b"\x1c\x1b[100;1:1u"], &[Typed::Detach], false);
    }

    #[test]
    fn unknown_keys_leave_the_prefix_pending() {
        for unknown in ["?", "x", "ü", "\x1b[A", "\x1bOP", "\x1bx", "\x1b[97;5u"] {
            check(&[b"\x1c", unknown.as_bytes()], &[], true);
            check(
                &[b"\x1c", unknown.as_bytes(), b"d"],
                &[Typed::Detach],
                false,
            );
        }
        // Released keys: the prefix, and Ctrl.
        let released = b"\x1b[92;5u\x1b[92;5:3u\x1b[57442;5:3ud";
        check(&[released], &[Typed::Detach], false);
    }

    #[test]
    fn reports_pass_while_the_prefix_is_pending() {
        for report in [
            "\x1b[<35;3;4M",
            "\x1b[I",
            "\x1b[?62;c",
            "\x1b[M !!",
            "\x1b]11;rgb:0/0/0\x1b\\",
            "\x1bP>|t\x1b\\",
        ] {
            let typed = format!("\x1c{report}");
            check(&[typed.as_bytes()], &[keys(report.as_bytes())], true);
        }
    }

    #[test]
    fn a_paste_contains_no_commands() {
        let paste = b"\x1b[200~a\x1cd\x1b[92;5u\x1b[201~";
        check(&[paste], &[keys(paste)], false);
        for cut in 1..paste.len() {
            let (first, second) = paste.split_at(cut);
            check(&[first, second], &[keys(first), keys(second)], false);
        }
        let after = [paste.as_slice(), b"\x1cd"].concat();
        check(&[&after], &[keys(paste), Typed::Detach], false);
        // A paste after the prefix is not a command either.
        let after_prefix = [b"\x1c".as_slice(), paste].concat();
        check(&[&after_prefix], &[keys(paste)], false);
    }
}
