//! Splits typed bytes into keys for the program and commands after the prefix key.
//!
//! Never encodes a key again: the program gets the bytes that were read. Never holds bytes back
//! until the next read, so a sequence that is cut in two goes to the program.

const ESC: u8 = 0x1b;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";

/// A key pressed together with Ctrl.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// The character on the key.
    symbol: u8,
}

impl Key {
    pub(crate) const CTRL_BACKSLASH: Self = Self { symbol: b'\\' };

    /// The byte that this key sends in the classic encoding.
    fn byte(self) -> u8 {
        self.symbol & 0x1f
    }
}

impl std::fmt::Display for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Ctrl+{}", char::from(self.symbol.to_ascii_uppercase()))
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Typed {
    /// Bytes for the program, unchanged.
    Keys(Vec<u8>),
    Detach,
    /// Take the keyboard, or release it.
    Keyboard,
    Redraw,
}

#[derive(Debug)]
pub(super) struct Keys {
    prefix: Key,
    /// The prefix was typed, so the next key is a command.
    is_pending: bool,
    paste: Paste,
}

/// Tracks bracketed paste, inside which no byte is a command.
#[derive(Debug, Default)]
struct Paste {
    is_open: bool,
    /// How many bytes of the next paste mark have arrived.
    matched: usize,
}

impl Paste {
    fn see(&mut self, byte: u8) {
        let mark = if self.is_open {
            PASTE_ENDS
        } else {
            PASTE_BEGINS
        };
        if mark[self.matched] != byte {
            self.matched = usize::from(byte == ESC);
            return;
        }
        self.matched += 1;
        if self.matched == mark.len() {
            self.is_open = !self.is_open;
            self.matched = 0;
        }
    }
}

impl Keys {
    pub(super) fn new(prefix: Key) -> Self {
        Self {
            prefix,
            is_pending: false,
            paste: Paste::default(),
        }
    }

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
        if !self.paste.is_open
            && let Some(length) = self.prefix_at(rest)
        {
            self.is_pending = true;
            return length;
        }
        self.paste.see(rest[0]);
        keys.push(rest[0]);
        1
    }

    fn prefix_at(&self, rest: &[u8]) -> Option<usize> {
        if rest[0] == self.prefix.byte() {
            return Some(1);
        }
        if rest[0] != ESC {
            return None;
        }
        let (token, length) = token_at(rest);
        (token == Token::Control(self.prefix.symbol)).then_some(length)
    }

    /// Process the key after the prefix. Return the number of bytes used.
    fn command(&mut self, rest: &[u8], keys: &mut Vec<u8>, typed: &mut Vec<Typed>) -> usize {
        let (token, length) = token_at(rest);
        let done = match token {
            Token::Plain(b'd') => Some(Typed::Detach),
            Token::Plain(b't') => Some(Typed::Keyboard),
            Token::Plain(b'r') => Some(Typed::Redraw),
            Token::Escape => None,
            // The prefix typed twice goes to the program, in the encoding that the program asked for.
            Token::Plain(byte) if byte == self.prefix.byte() => {
                Some(Typed::Keys(rest[..length].to_vec()))
            }
            Token::Control(symbol) if symbol == self.prefix.symbol => {
                Some(Typed::Keys(rest[..length].to_vec()))
            }
            // A paste is never a command.
            Token::Paste => {
                self.is_pending = false;
                return self.key(rest, keys);
            }
            // Not a key: a mouse report, or a reply to the program.
            Token::Report => {
                keys.extend_from_slice(&rest[..length]);
                return length;
            }
            // The help, which lists the commands, stays on the screen.
            Token::Plain(_) | Token::Control(_) | Token::Release | Token::Unknown => {
                return length;
            }
        };
        self.is_pending = false;
        flush(keys, typed);
        typed.extend(done);
        length
    }
}

fn flush(keys: &mut Vec<u8>, typed: &mut Vec<Typed>) {
    if !keys.is_empty() {
        typed.push(Typed::Keys(std::mem::take(keys)));
    }
}

/// One key, or other input from a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token {
    /// A plain byte, or a key without modifiers in a newer encoding.
    Plain(u8),
    /// A key with Ctrl in a newer encoding.
    Control(u8),
    Escape,
    /// A released key, or a modifier alone, which some terminals report on request.
    Release,
    Paste,
    Report,
    Unknown,
}

/// The first token of `bytes` and its length, which is at least 1.
fn token_at(bytes: &[u8]) -> (Token, usize) {
    match bytes {
        [ESC] => (Token::Escape, 1),
        [ESC, b'[', ..] => csi_at(bytes),
        // A function key.
        [ESC, b'O', _, ..] => (Token::Unknown, 3),
        [ESC, b']' | b'P' | b'_' | b'^', ..] => (Token::Report, string_length(bytes)),
        [ESC, ..] => (Token::Unknown, 1 + character_length(&bytes[1..])),
        [byte, ..] if byte.is_ascii() => (Token::Plain(*byte), 1),
        _ => (Token::Unknown, character_length(bytes)),
    }
}

fn csi_at(bytes: &[u8]) -> (Token, usize) {
    if bytes.starts_with(PASTE_BEGINS) {
        return (Token::Paste, PASTE_BEGINS.len());
    }
    // In the oldest mouse encoding, three bytes follow the final byte.
    if bytes.starts_with(b"\x1b[M") {
        return (Token::Report, bytes.len().min(6));
    }
    let Some(end) = bytes[2..].iter().position(|b| (0x40..=0x7e).contains(b)) else {
        return (Token::Unknown, bytes.len());
    };
    let length = end + 3;
    let parameters = std::str::from_utf8(&bytes[2..2 + end]).unwrap_or_default();
    let token = match bytes[2 + end] {
        b'u' => kitty(parameters),
        b'~' => other_keys(parameters),
        b'A'..=b'H' | b'P' | b'Q' | b'S' | b'Z' => Token::Unknown,
        _ => Token::Report,
    };
    (token, length)
}

/// `code[:shifted[:base]];modifiers[:event];text`
fn kitty(parameters: &str) -> Token {
    if parameters.starts_with(['?', '<', '=', '>']) {
        return Token::Report;
    }
    let mut fields = parameters.split(';');
    let code: u32 = number(fields.next().and_then(|field| field.split(':').next()), 0);
    let mut how = fields.next().unwrap_or_default().split(':');
    let modifiers: u32 = number(how.next(), 1);
    let event: u32 = number(how.next(), 1);
    let is_modifier = (57441..=57454).contains(&code) || (57358..=57360).contains(&code);
    if event == 3 || is_modifier {
        return Token::Release;
    }
    pressed(code, modifiers)
}

/// `27;modifiers;code`, as xterm sends it.
fn other_keys(parameters: &str) -> Token {
    let fields: Vec<&str> = parameters.split(';').collect();
    match fields[..] {
        ["27", modifiers, code] => pressed(number(Some(code), 0), number(Some(modifiers), 1)),
        _ => Token::Unknown,
    }
}

fn pressed(code: u32, modifiers: u32) -> Token {
    /// Caps Lock and Num Lock make no other key of it.
    const LOCKS: u32 = 64 | 128;
    const CTRL: u32 = 4;
    const SHIFT: u32 = 1;
    let Ok(code) = u8::try_from(code) else {
        return Token::Unknown;
    };
    match modifiers.saturating_sub(1) & !LOCKS {
        0 if code == ESC => Token::Escape,
        0 | SHIFT => Token::Plain(code),
        CTRL => Token::Control(code),
        _ => Token::Unknown,
    }
}

fn number(field: Option<&str>, otherwise: u32) -> u32 {
    field
        .and_then(|field| field.parse().ok())
        .unwrap_or(otherwise)
}

/// How long a string sequence is: to its end, or all there is.
fn string_length(bytes: &[u8]) -> usize {
    let end = bytes.iter().enumerate().skip(2).find_map(|(at, byte)| {
        let is_st = *byte == ESC && bytes.get(at + 1) == Some(&b'\\');
        match byte {
            0x07 => Some(at + 1),
            _ if is_st => Some(at + 2),
            _ => None,
        }
    });
    end.unwrap_or(bytes.len())
}

fn character_length(bytes: &[u8]) -> usize {
    let more = bytes
        .iter()
        .skip(1)
        .take_while(|byte| (0x80..0xc0).contains(*byte))
        .count();
    1 + more
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(bytes: &[u8]) -> Typed {
        Typed::Keys(bytes.to_vec())
    }

    #[track_caller]
    fn check(reads: &[&[u8]], want: &[Typed], is_pending: bool) {
        let mut state = Keys::new(Key::CTRL_BACKSLASH);
        let got: Vec<Typed> = reads.iter().flat_map(|read| state.feed(read)).collect();
        assert_eq!(got, want, "{reads:?}");
        assert_eq!(state.is_pending(), is_pending, "{reads:?}");
    }

    #[test]
    fn what_is_typed_goes_on_as_it_came() {
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
    fn the_prefix_in_every_encoding() {
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
    fn commands() {
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
    fn what_is_no_command_leaves_the_prefix_waiting() {
        for unknown in ["?", "x", "ü", "\x1b[A", "\x1bOP", "\x1bx", "\x1b[97;5u"] {
            check(&[b"\x1c", unknown.as_bytes()], &[], true);
            check(
                &[b"\x1c", unknown.as_bytes(), b"d"],
                &[Typed::Detach],
                false,
            );
        }
        // Let go: of the prefix, of Ctrl.
        let let_go = b"\x1b[92;5u\x1b[92;5:3u\x1b[57442;5:3ud";
        check(&[let_go], &[Typed::Detach], false);
    }

    #[test]
    fn reports_pass_while_the_prefix_waits() {
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
    fn a_paste_holds_no_commands() {
        let paste = b"\x1b[200~a\x1cd\x1b[92;5u\x1b[201~";
        check(&[paste], &[keys(paste)], false);
        for cut in 1..paste.len() {
            let (first, second) = paste.split_at(cut);
            check(&[first, second], &[keys(first), keys(second)], false);
        }
        let after = [paste.as_slice(), b"\x1cd"].concat();
        check(&[&after], &[keys(paste), Typed::Detach], false);
        // Not even after the prefix.
        let meant = [b"\x1c".as_slice(), paste].concat();
        check(&[&meant], &[keys(paste)], false);
    }

    #[test]
    fn a_key_has_a_name() {
        assert_eq!(Key::CTRL_BACKSLASH.to_string(), "Ctrl+\\");
    }
}
