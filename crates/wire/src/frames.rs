//! Frames of an attached terminal, in both directions: `[u8 type][u32 BE length][payload]`.
//!
//! Frames of an unknown type are ignored. A length above [`MAX_PAYLOAD_BYTES`] is an error: the next
//! frame can no longer be found.

use serde::{Deserialize, Serialize};

pub const DATA: u8 = 0x00;
pub const CONTROL: u8 = 0x01;
pub const HEADER_BYTES: usize = 5;
pub const MAX_PAYLOAD_BYTES: usize = 10 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Frame {
    /// Keys for the program, or its output.
    Data(Vec<u8>),
    Control(Vec<u8>),
    /// Frame of an unknown type.
    Unknown(u8),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("frame of {0} bytes exceeds the limit of {MAX_PAYLOAD_BYTES}")]
pub struct TooLong(pub usize);

/// Return the header of a frame.
pub fn header(kind: u8, length: usize) -> [u8; HEADER_BYTES] {
    let length = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    [kind, length[0], length[1], length[2], length[3]]
}

pub fn encode(kind: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(HEADER_BYTES + payload.len());
    frame.extend(header(kind, payload.len()));
    frame.extend(payload);
    frame
}

/// Splits a stream of bytes into frames.
#[derive(Debug, Default)]
pub struct Decoder {
    buffer: Vec<u8>,
    /// Length of the part of the buffer that was already returned.
    taken: usize,
}

impl Decoder {
    pub fn feed(&mut self, bytes: &[u8]) {
        if self.taken > 0 {
            self.buffer.drain(..self.taken);
            self.taken = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// Return the number of buffered bytes.
    pub fn kept(&self) -> usize {
        self.buffer.len()
    }

    /// Return the next complete frame.
    pub fn next_frame(&mut self) -> Result<Option<Frame>, TooLong> {
        let rest = &self.buffer[self.taken..];
        let [kind, a, b, c, d, payload @ ..] = rest else {
            return Ok(None);
        };
        let length = u32::from_be_bytes([*a, *b, *c, *d]) as usize;
        if length > MAX_PAYLOAD_BYTES {
            return Err(TooLong(length));
        }
        let Some(payload) = payload.get(..length) else {
            return Ok(None);
        };
        let frame = match *kind {
            DATA => Frame::Data(payload.to_vec()),
            CONTROL => Frame::Control(payload.to_vec()),
            other => Frame::Unknown(other),
        };
        self.taken += HEADER_BYTES + length;
        Ok(Some(frame))
    }
}

/// Control messages of an attached client. Unknown types are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum FromClient {
    Resize {
        cols: u16,
        rows: u16,
    },
    /// Take the keyboard exclusively and pause deliveries.
    Take,
    Release,
    /// Redraw the whole screen.
    Redraw,
}

/// Control messages of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToClient {
    /// Switch to another agent. The original sends it; Posthaste never does, but clients accept it.
    Switch { name: String },
    /// The program has ended. The session closes the connection.
    Ended { how: String },
    /// Holder of the keyboard, if it is taken.
    Keyboard { taken: bool, yours: bool },
    /// Notice for the person.
    Notice { text: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_out_as_they_went_in_however_they_are_cut() {
        let whole = [
            encode(DATA, b"hello"),
            encode(CONTROL, br#"{"type":"take"}"#),
            encode(7, b"??"),
            encode(DATA, b""),
        ]
        .concat();
        for step in 1..whole.len() {
            let mut decoder = Decoder::default();
            let mut got = Vec::new();
            for part in whole.chunks(step) {
                decoder.feed(part);
                while let Some(frame) = decoder.next_frame().unwrap() {
                    got.push(frame);
                }
            }
            assert_eq!(
                got,
                [
                    Frame::Data(b"hello".to_vec()),
                    Frame::Control(br#"{"type":"take"}"#.to_vec()),
                    Frame::Unknown(7),
                    Frame::Data(vec![]),
                ],
                "in parts of {step}"
            );
        }
    }

    #[test]
    fn a_false_length_is_an_error_before_anything_is_kept() {
        let mut decoder = Decoder::default();
        decoder.feed(&[DATA, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(decoder.next_frame(), Err(TooLong(u32::MAX as usize)));
    }

    #[test]
    fn a_resize_reads_as_the_original_writes_it() {
        let said = br#"{"type":"resize","cols":120,"rows":40}"#;
        assert_eq!(
            serde_json::from_slice::<FromClient>(said).unwrap(),
            FromClient::Resize {
                cols: 120,
                rows: 40
            }
        );
    }
}
