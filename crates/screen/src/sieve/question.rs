//! Which sequences a terminal answers. It looks at whole sequences only, and keeps nothing.

use super::ESC;

/// How long the control sequence is at the beginning of `bytes`, if it is whole, has nothing but
/// numbers in it, and is no question. Nearly all are of this kind, and need no closer look.
pub(super) fn plain_order(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(b"\x1b[")?;
    let end = rest.iter().position(|byte| !(b'0'..=b';').contains(byte))?;
    let is_plain =
        matches!(rest[end], 0x40..=0x7e) && !matches!(rest[end], b'c' | b'n' | b't' | b'x');
    is_plain.then_some(end + 3)
}

/// Whether a terminal answers this sequence.
pub(super) fn asks(sequence: &[u8]) -> bool {
    // Control characters and stray bytes before the kind are possible, and then it is looked for.
    let kind = sequence
        .iter()
        .skip(1)
        .position(|byte| (0x20..0x7f).contains(byte));
    let Some(kind) = kind.map(|at| at + 1) else {
        return false;
    };
    let rest = &sequence[kind + 1..];
    match sequence[kind] {
        b'[' => control_asks(rest),
        b']' => command_asks(rest),
        b'P' => request(rest),
        b'_' => graphics_asks(rest),
        b'Z' => true,
        _ => false,
    }
}

fn control_asks(rest: &[u8]) -> bool {
    let Some((&last, before)) = rest.split_last() else {
        return false;
    };
    // Almost all sequences are known by their last byte to be none.
    if !matches!(
        last,
        b'c' | b'n' | b'p' | b'q' | b't' | b'u' | b'm' | b'x' | b'S' | b'w' | b'y' | b'|' | b'R'
    ) {
        return false;
    }
    let mut sign = 0;
    let mut middle = 0;
    let mut first: usize = 0;
    let mut firsts = true;
    for &byte in before {
        match byte {
            b'<'..=b'?' => sign = byte,
            0x20..=0x2f => middle = byte,
            b'0'..=b'9' if firsts => {
                first = first
                    .saturating_mul(10)
                    .saturating_add(usize::from(byte - b'0'));
            }
            b';' | b':' => firsts = false,
            _ => {}
        }
    }
    match (sign, middle, last) {
        // Who are you, how are you, where is the cursor.
        (0 | b'>' | b'=', 0, b'c') | (0 | b'?', 0, b'n') => true,
        // Is this mode on; which keys are reported; which version are you.
        (0 | b'?', b'$', b'p') | (b'?', 0, b'u' | b'm') | (b'>', 0, b'q') => true,
        // How large, where, and what is your title.
        (0, 0, b't') => matches!(first, 11 | 13..=16 | 18..=21),
        // Older and rarer ones: parameters, graphics, tabs, checksums, locator, colours.
        (0, 0, b'x') | (b'?', 0, b'S') | (0, b'$', b'w' | b'u') | (0, b'*', b'y') => true,
        (0, b'\'', b'|') | (0, b'&', b'u') | (0, b'#', b'R' | b'|') => true,
        _ => false,
    }
}

fn command_asks(rest: &[u8]) -> bool {
    let number = rest.split(|&byte| byte == b';').next().unwrap_or_default();
    let mut values = rest
        .split(|&byte| matches!(byte, b';' | 0x07 | ESC | 0x18 | 0x1a))
        .skip(1);
    match number {
        b"4" | b"5" | b"10" | b"11" | b"12" | b"13" | b"14" | b"15" | b"16" | b"17" | b"18"
        | b"19" | b"52" => values.any(|value| value == b"?"),
        b"21" => values.any(|value| value.ends_with(b"=?")),
        b"22" | b"50" => values.any(|value| value.starts_with(b"?")),
        // Notices and the clipboard, as kitty has them.
        b"99" => is_said(values.next(), b"p=?"),
        b"5522" => is_said(values.next(), b"type=read"),
        b"1337" => values
            .next()
            .is_some_and(|value| value.starts_with(b"Report")),
        _ => false,
    }
}

/// Whether one of the words between colons is this.
fn is_said(words: Option<&[u8]>, wanted: &[u8]) -> bool {
    let mut words = words.unwrap_or_default().split(|&byte| byte == b':');
    words.any(|word| word == wanted)
}

/// Whether pictures could be drawn, asked as kitty has it: APC G, then keys, then data.
fn graphics_asks(rest: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(b"G") else {
        return false;
    };
    let end = |byte: &u8| matches!(*byte, b';' | ESC | 0x18 | 0x1a);
    let keys = rest.split(end).next().unwrap_or_default();
    keys.split(|&byte| byte == b',').any(|key| key == b"a=q")
}

/// Requests for settings and for what the terminal can do: DCS $ q, DCS + q, DCS + Q.
fn request(rest: &[u8]) -> bool {
    let start = rest
        .iter()
        .position(|byte| !matches!(byte, b'0'..=b'9' | b';'))
        .unwrap_or(rest.len());
    matches!(rest[start..], [b'$', b'q', ..] | [b'+', b'q' | b'Q', ..])
}
