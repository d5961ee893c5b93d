//! Splits a connection's input into lines. The length of a line is limited, and so is the memory
//! for unfinished lines of all connections together.

use crate::socket::Socket;
use posthaste_wire::rpc::MAX_LINE;
use std::cell::Cell;
use std::rc::Rc;

const READ_BYTES: usize = 16 * 1024;
/// Limit for the buffered input of all connections of a session.
const MAX_BUFFERED_BYTES: usize = 64 << 20;
/// A connection's buffer counts only as far as it is larger than this.
const UNCOUNTED_BYTES: usize = 4 * READ_BYTES;

/// The buffered input of all connections, in bytes.
pub(crate) type BufferedBytes = Rc<Cell<usize>>;

#[derive(Debug)]
pub(crate) enum InputLine {
    /// A line without its line feed. The last line may have had none.
    Whole(Vec<u8>),
    /// A line that was skipped.
    TooLong,
    /// All connections together have too much buffered input.
    NoRoom,
    End,
}

#[derive(Debug)]
pub(crate) struct LineReader<'a> {
    socket: &'a Socket,
    buffer: Vec<u8>,
    /// The end of the last line that was returned.
    consumed: usize,
    /// There is no line feed before this position, after `consumed`.
    scanned: usize,
    is_skipping: bool,
    is_at_end: bool,
    share: BufferShare,
}

impl<'a> LineReader<'a> {
    pub(crate) fn new(socket: &'a Socket, total: BufferedBytes) -> Self {
        Self {
            socket,
            buffer: Vec::new(),
            consumed: 0,
            scanned: 0,
            is_skipping: false,
            is_at_end: false,
            share: BufferShare { total, bytes: 0 },
        }
    }

    pub(crate) async fn next(&mut self) -> InputLine {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                let end = self.scanned + end;
                let line = self.buffer[self.consumed..end].to_vec();
                (self.consumed, self.scanned) = (end + 1, end + 1);
                let is_too_long = line.len() > MAX_LINE;
                return if std::mem::take(&mut self.is_skipping) || is_too_long {
                    InputLine::TooLong
                } else {
                    InputLine::Whole(line)
                };
            }
            self.drop_consumed();
            self.is_skipping |= self.buffer.len() > MAX_LINE;
            if self.is_skipping {
                self.buffer = Vec::new();
            }
            self.scanned = self.buffer.len();
            if !self.share.resize(self.buffer.len()) {
                return InputLine::NoRoom;
            }
            if self.is_at_end {
                let line = std::mem::take(&mut self.buffer);
                self.scanned = 0;
                return match line.is_empty() {
                    _ if std::mem::take(&mut self.is_skipping) => InputLine::TooLong,
                    true => InputLine::End,
                    false => InputLine::Whole(line),
                };
            }
            self.buffer.reserve(READ_BYTES);
            match self.socket.read_into(&mut self.buffer).await {
                Ok(0) | Err(_) => self.is_at_end = true,
                Ok(_) => {}
            }
        }
    }

    fn drop_consumed(&mut self) {
        self.buffer.drain(..self.consumed);
        self.consumed = 0;
        // A long line must not leave a large buffer behind.
        if self.buffer.capacity() > 4 * READ_BYTES && self.buffer.len() < READ_BYTES {
            self.buffer.shrink_to(READ_BYTES);
        }
    }

    /// Return the input after the last line, for a protocol without lines.
    pub(crate) fn into_rest(mut self) -> Rest {
        self.drop_consumed();
        Rest {
            bytes: self.buffer,
            share: self.share,
        }
    }
}

/// Input after the last line, and its share of the buffered bytes.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) bytes: Vec<u8>,
    pub(crate) share: BufferShare,
}

/// One connection's share of the buffered bytes, released on drop.
#[derive(Debug)]
pub(crate) struct BufferShare {
    total: BufferedBytes,
    bytes: usize,
}

impl BufferShare {
    /// Change the share to `bytes`, and return whether they fit into [`MAX_BUFFERED_BYTES`].
    pub(crate) fn resize(&mut self, bytes: usize) -> bool {
        let bytes = bytes.saturating_sub(UNCOUNTED_BYTES);
        let total = self.total.get() - self.bytes + bytes;
        let fits = bytes == 0 || total <= MAX_BUFFERED_BYTES;
        if fits {
            self.total.set(total);
            self.bytes = bytes;
        }
        fits
    }
}

impl Drop for BufferShare {
    fn drop(&mut self) {
        self.resize(0);
    }
}
