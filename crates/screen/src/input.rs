//! Splits the input of a terminal into keys, pastes and reports.
//!
//! Keeps no bytes between reads: a sequence that a read has cut is reported as such.

const ESC: u8 = 0x1b;
const PASTE_BEGINS: &[u8] = b"\x1b[200~";
const PASTE_ENDS: &[u8] = b"\x1b[201~";
/// Caps Lock and Num Lock, which do not make another key.
const LOCK_MODIFIERS: u32 = 64 | 128;
/// Value of a key event's type when the key is released.
const RELEASE_EVENT: u32 = 3;

/// One key, or other input from a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Token {
    /// A byte outside of sequences.
    Byte(u8),
    /// A key in the encoding of kitty or xterm, with the bits of its modifiers except locks.
    Key { code: u32, modifiers: u32 },
    /// The Escape key: an ESC at the end of a read.
    Escape,
    /// A released key.
    Release,
    /// A modifier alone, which some terminals report on request.
    Modifier,
    /// The beginning of a bracketed paste.
    PasteBegins,
    /// A reply of the terminal, or a report of the mouse or the focus.
    Report,
    /// A key that sends another sequence: an arrow, a function key, or Alt with a key.
    Other,
    /// The beginning of a key's sequence.
    CutKey,
    /// The beginning of a report.
    CutReport,
}

impl Token {
    pub const SHIFT: u32 = 1;
    pub const CTRL: u32 = 4;
}

/// Return the first token of `bytes`, which are not empty, and the token's length.
pub fn first_token(bytes: &[u8]) -> (Token, usize) {
    match bytes {
        [ESC] => (Token::Escape, 1),
        [ESC, b'[', parameters @ ..] => {
            let (token, length) = control_sequence(parameters);
            (token, 2 + length)
        }
        [ESC, b'O'] => (Token::CutKey, 2),
        // A function key.
        [ESC, b'O', ..] => (Token::Other, 3),
        [ESC, b']' | b'P' | b'_' | b'^', string @ ..] => {
            let (token, length) = control_string(string);
            (token, 2 + length)
        }
        [ESC, rest @ ..] => {
            let is_continuation = |byte: &&u8| (0x80..0xc0).contains(*byte);
            let continuation = rest.iter().skip(1).take_while(is_continuation);
            (Token::Other, 2 + continuation.count())
        }
        bytes => (Token::Byte(bytes[0]), 1),
    }
}

/// Parse the bytes after `ESC [`.
fn control_sequence(bytes: &[u8]) -> (Token, usize) {
    let is_final = |byte: &u8| !(0x20..=0x3f).contains(byte);
    let Some(end) = bytes.iter().position(is_final) else {
        return (Token::CutKey, bytes.len());
    };
    let parameters = std::str::from_utf8(&bytes[..end]).unwrap_or_default();
    let token = match (bytes[end], parameters) {
        // In the oldest mouse encoding, three bytes follow the final byte.
        (b'M', "") if bytes.len() < 4 => return (Token::CutReport, bytes.len()),
        (b'M', "") => return (Token::Report, 4),
        (b'~', "200") => Token::PasteBegins,
        (b'~', _) => xterm_key(parameters),
        (b'u', _) => kitty_key(parameters),
        (b'M' | b'm' | b'I' | b'O' | b'R' | b'c' | b'n' | b'y' | b't', _) => Token::Report,
        _ => Token::Other,
    };
    (token, end + 1)
}

/// Parse the bytes after the introducer of a string, which ends with BEL or `ESC \`.
fn control_string(bytes: &[u8]) -> (Token, usize) {
    let end = (0..bytes.len()).find_map(|at| match bytes[at..] {
        [0x07, ..] => Some(at + 1),
        [ESC, b'\\', ..] => Some(at + 2),
        _ => None,
    });
    end.map_or((Token::CutReport, bytes.len()), |end| (Token::Report, end))
}

/// Parse `code[:shifted[:base]];modifiers[:event];text`.
fn kitty_key(parameters: &str) -> Token {
    if parameters.starts_with(['?', '<', '=', '>']) {
        return Token::Report;
    }
    let mut fields = parameters.split(';').map(|field| field.split(':'));
    let code = number(fields.next().and_then(|mut parts| parts.next()), 0);
    let mut modifiers = fields.next().into_iter().flatten();
    let (modifiers, event) = (number(modifiers.next(), 1), number(modifiers.next(), 1));
    match code {
        _ if event == RELEASE_EVENT => Token::Release,
        57_358..=57_360 | 57_441..=57_454 => Token::Modifier,
        _ => key(code, modifiers),
    }
}

/// Parse `27;modifiers;code`.
fn xterm_key(parameters: &str) -> Token {
    let fields: Vec<&str> = parameters.split(';').collect();
    match fields[..] {
        ["27", modifiers, code] => key(number(Some(code), 0), number(Some(modifiers), 1)),
        _ => Token::Other,
    }
}

fn key(code: u32, modifiers: u32) -> Token {
    let modifiers = modifiers.saturating_sub(1) & !LOCK_MODIFIERS;
    Token::Key { code, modifiers }
}

fn number(field: Option<&str>, default: u32) -> u32 {
    field
        .and_then(|field| field.parse().ok())
        .unwrap_or(default)
}

/// Tracks bracketed paste, also across reads.
#[derive(Debug, Default)]
pub struct PasteTracker {
    is_open: bool,
    /// Number of bytes of the next paste mark that have arrived.
    matched: usize,
}

impl PasteTracker {
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Process one byte. Return whether the byte is not part of a paste mark.
    pub fn feed(&mut self, byte: u8) -> bool {
        let mark = match self.is_open {
            true => PASTE_ENDS,
            false => PASTE_BEGINS,
        };
        if mark[self.matched] != byte {
            self.matched = usize::from(byte == ESC);
            return true;
        }
        self.matched += 1;
        if self.matched == mark.len() {
            self.is_open = !self.is_open;
            self.matched = 0;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_is_split_into_tokens() {
        let check = |input: &str, want: Token, length: usize| {
            assert_eq!(first_token(input.as_bytes()), (want, length), "{input:?}");
        };
        let key = |code, modifiers| Token::Key { code, modifiers };
        check("ab", Token::Byte(b'a'), 1);
        check("ü", Token::Byte(0xc3), 1);
        check("\x1b", Token::Escape, 1);
        check("\x1b\x1b[A", Token::Other, 2);
        check("\x1büx", Token::Other, 3);
        check("\x1bOAx", Token::Other, 3);
        check("\x1bO", Token::CutKey, 2);
        check("\x1b[Ax", Token::Other, 3);
        check("\x1b[1;5", Token::CutKey, 5);
        check("\x1b[1\rx", Token::Other, 4);
        check("\x1b[97;5ux", key(97, Token::CTRL), 7);
        check("\x1b[97:65;66:1;65u", key(97, Token::SHIFT), 16);
        check("\x1b[27;5;92~", key(92, Token::CTRL), 10);
        check("\x1b[97;1:3u", Token::Release, 9);
        check("\x1b[57442;5u", Token::Modifier, 10);
        check("\x1b[200~x", Token::PasteBegins, 6);
        check("\x1b[201~x", Token::Other, 6);
        check("\x1b[M !!x", Token::Report, 6);
        check("\x1b[M !", Token::CutReport, 5);
        check("\x1b[<0;3;4Mx", Token::Report, 9);
        check("\x1b[?1u", Token::Report, 5);
        check("\x1b]11;rgb:0/0/0\x1b\\x", Token::Report, 16);
        check("\x1b]11;\x07x", Token::Report, 6);
        check("\x1b]11;\x1b", Token::CutReport, 6);
    }
}
