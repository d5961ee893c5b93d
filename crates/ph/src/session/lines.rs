//! Lines from a connection: of bounded length each, and of bounded size all together.

use posthaste_wire::rpc::MAX_LINE;
use std::cell::Cell;
use std::rc::Rc;
use tokio::io::AsyncReadExt;
use tokio::net::unix::OwnedReadHalf;

/// How much is read at once.
const PIECE: usize = 16 * 1024;
/// How much of unfinished lines a session keeps over all its connections.
const ROOM: usize = 64 << 20;

/// What of that is taken.
pub(crate) type Room = Rc<Cell<usize>>;

#[derive(Debug)]
pub(crate) enum Line {
    /// Without its end. The last may have none.
    Whole(Vec<u8>),
    /// It was passed over.
    TooLong,
    /// Others have taken all the room.
    NoRoom,
    End,
}

#[derive(Debug)]
pub(crate) struct Lines {
    read: OwnedReadHalf,
    buffer: Vec<u8>,
    /// How much of the buffer is known to hold no line end.
    scanned: usize,
    is_passing_over: bool,
    is_at_end: bool,
    room: Taken,
}

impl Lines {
    pub(crate) fn new(read: OwnedReadHalf, room: Room) -> Self {
        Self {
            read,
            buffer: Vec::new(),
            scanned: 0,
            is_passing_over: false,
            is_at_end: false,
            room: Taken { room, bytes: 0 },
        }
    }

    pub(crate) async fn next(&mut self) -> Line {
        loop {
            let end = memchr::memchr(b'\n', &self.buffer[self.scanned..]);
            if let Some(end) = end {
                let rest = self.buffer.split_off(self.scanned + end + 1);
                let mut line = std::mem::replace(&mut self.buffer, rest);
                line.pop();
                self.scanned = 0;
                self.account();
                return if std::mem::take(&mut self.is_passing_over) || line.len() > MAX_LINE {
                    Line::TooLong
                } else {
                    Line::Whole(line)
                };
            }
            self.is_passing_over |= self.buffer.len() > MAX_LINE;
            if self.is_passing_over {
                self.buffer = Vec::new();
            }
            self.scanned = self.buffer.len();
            if !self.account() {
                return Line::NoRoom;
            }
            if self.is_at_end {
                let line = std::mem::take(&mut self.buffer);
                self.scanned = 0;
                return match line.is_empty() {
                    _ if std::mem::take(&mut self.is_passing_over) => Line::TooLong,
                    true => Line::End,
                    false => Line::Whole(line),
                };
            }
            self.buffer.reserve(PIECE);
            match self.read.read_buf(&mut self.buffer).await {
                Ok(0) | Err(_) => self.is_at_end = true,
                Ok(_) => {}
            }
        }
    }

    /// What comes after the last line, which is no line.
    pub(crate) fn into_rest(self) -> Rest {
        Rest {
            bytes: self.buffer,
            read: self.read,
            room: self.room,
        }
    }

    /// Notes how much room this connection takes; false where there is none left.
    fn account(&mut self) -> bool {
        self.room.take(self.buffer.len())
    }
}

/// What was read past the last line, where more comes from, and the room that it takes.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) bytes: Vec<u8>,
    pub(crate) read: OwnedReadHalf,
    pub(crate) room: Taken,
}

/// One connection's share of the room, given back when it goes.
#[derive(Debug)]
pub(crate) struct Taken {
    room: Room,
    bytes: usize,
}

impl Taken {
    /// Now so many; false where there is no room for them.
    pub(crate) fn take(&mut self, bytes: usize) -> bool {
        // What every connection has anyway does not count.
        let bytes = bytes.saturating_sub(4 * PIECE);
        let all = self.room.get() - self.bytes + bytes;
        let fits = bytes == 0 || all <= ROOM;
        if fits {
            self.room.set(all);
            self.bytes = bytes;
        }
        fits
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.take(0);
    }
}
