//! Recognises queries: escape sequences that a terminal answers.
//!
//! Looks at complete sequences only, and keeps no state.

const ESC: u8 = 0x1b;

/// Return whether a terminal answers this sequence.
pub(super) fn is_query(sequence: &[u8]) -> bool {
    // Control characters and stray bytes may come before the introducer.
    let kind = sequence
        .iter()
        .skip(1)
        .position(|byte| (0x20..0x7f).contains(byte));
    let Some(kind) = kind.map(|at| at + 1) else {
        return false;
    };
    let rest = &sequence[kind + 1..];
    match sequence[kind] {
        b'[' => is_control_query(rest),
        b']' => is_command_query(rest),
        b'P' => is_settings_query(rest),
        b'_' => is_graphics_query(rest),
        b'Z' => true,
        _ => false,
    }
}

fn is_control_query(rest: &[u8]) -> bool {
    let Some((&last, before)) = rest.split_last() else {
        return false;
    };
    // The final byte rules out almost all sequences.
    if !matches!(
        last,
        b'c' | b'n' | b'p' | b'q' | b't' | b'u' | b'm' | b'x' | b'S' | b'w' | b'y' | b'|' | b'R'
    ) {
        return false;
    }
    let mut prefix = 0;
    let mut intermediate = 0;
    let mut first: usize = 0;
    let mut in_first = true;
    for &byte in before {
        match byte {
            b'<'..=b'?' => prefix = byte,
            0x20..=0x2f => intermediate = byte,
            b'0'..=b'9' if in_first => {
                first = first
                    .saturating_mul(10)
                    .saturating_add(usize::from(byte - b'0'));
            }
            b';' | b':' => in_first = false,
            _ => {}
        }
    }
    match (prefix, intermediate, last) {
        // Device attributes, device status, cursor position.
        (0 | b'>' | b'=', 0, b'c') | (0 | b'?', 0, b'n') => true,
        // Mode, keyboard protocol, name and version.
        (0 | b'?', b'$', b'p') | (b'?', 0, b'u' | b'm') | (b'>', 0, b'q') => true,
        // Window size, position and title.
        (0, 0, b't') => matches!(first, 11 | 13..=16 | 18..=21),
        // Terminal parameters, graphics attributes, tab stops, checksums, locator, colours.
        (0, 0, b'x') | (b'?', 0, b'S') | (0, b'$', b'w' | b'u') | (0, b'*', b'y') => true,
        (0, b'\'', b'|') | (0, b'&', b'u') | (0, b'#', b'R' | b'|') => true,
        _ => false,
    }
}

fn is_command_query(rest: &[u8]) -> bool {
    let number = rest.split(|&byte| byte == b';').next().unwrap_or_default();
    let mut values = rest
        .split(|&byte| matches!(byte, b';' | 0x07 | ESC | 0x18 | 0x1a))
        .skip(1);
    match number {
        b"4" | b"5" | b"10" | b"11" | b"12" | b"13" | b"14" | b"15" | b"16" | b"17" | b"18"
        | b"19" | b"52" => values.any(|value| value == b"?"),
        b"21" => values.any(|value| value.ends_with(b"=?")),
        b"22" | b"50" => values.any(|value| value.starts_with(b"?")),
        // Notifications and the clipboard in kitty's protocols.
        b"99" => has_word(values.next(), b"p=?"),
        b"5522" => has_word(values.next(), b"type=read"),
        b"1337" => values
            .next()
            .is_some_and(|value| value.starts_with(b"Report")),
        _ => false,
    }
}

/// Return whether one of the colon-separated words is `wanted`.
fn has_word(words: Option<&[u8]>, wanted: &[u8]) -> bool {
    let mut words = words.unwrap_or_default().split(|&byte| byte == b':');
    words.any(|word| word == wanted)
}

/// Return whether this asks for graphics support in kitty's protocol: APC G, keys, data.
fn is_graphics_query(rest: &[u8]) -> bool {
    let Some(rest) = rest.strip_prefix(b"G") else {
        return false;
    };
    let end = |byte: &u8| matches!(*byte, b';' | ESC | 0x18 | 0x1a);
    let keys = rest.split(end).next().unwrap_or_default();
    keys.split(|&byte| byte == b',').any(|key| key == b"a=q")
}

/// Return whether this requests settings or capabilities: DCS $ q, DCS + q, DCS + Q.
fn is_settings_query(rest: &[u8]) -> bool {
    let start = rest
        .iter()
        .position(|byte| !matches!(byte, b'0'..=b'9' | b';'))
        .unwrap_or(rest.len());
    matches!(rest[start..], [b'$', b'q', ..] | [b'+', b'q' | b'Q', ..])
}
