//! UTF-8 characters that the end of a read cuts in two.

/// Return the length of the UTF-8 character that begins with this byte; 1 if none begins with it.
fn char_len(lead: u8) -> usize {
    match lead {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        _ => 1,
    }
}

fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// First bytes of a character that the end of a read has cut, kept for the next read.
#[derive(Debug, Default)]
pub(crate) struct SplitChar {
    bytes: [u8; 4],
    len: usize,
}

impl SplitChar {
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Take the rest of the cut character from the beginning of `bytes`. Return the character once
    /// it is complete, or the bytes that are there once it is known to be invalid.
    pub(crate) fn complete(&mut self, bytes: &mut &[u8]) -> Option<([u8; 4], usize)> {
        while self.len > 0 {
            let (&next, rest) = bytes.split_first()?;
            if continues(next) {
                self.bytes[self.len] = next;
                self.len += 1;
                *bytes = rest;
            }
            if !continues(next) || self.len == char_len(self.bytes[0]) {
                return Some(self.take());
            }
        }
        None
    }

    /// Keep a character that the end of `bytes` cuts, and return the bytes before it.
    pub(crate) fn hold<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let nearest = bytes.iter().rev().take(3).position(|&b| !continues(b));
        let Some(at) = nearest.map(|back| bytes.len() - 1 - back) else {
            return bytes;
        };
        let cut = &bytes[at..];
        if cut.len() >= char_len(cut[0]) {
            return bytes;
        }
        self.bytes[..cut.len()].copy_from_slice(cut);
        self.len = cut.len();
        &bytes[..at]
    }

    /// Give up the kept bytes as they are.
    pub(crate) fn take(&mut self) -> ([u8; 4], usize) {
        (self.bytes, std::mem::take(&mut self.len))
    }
}
