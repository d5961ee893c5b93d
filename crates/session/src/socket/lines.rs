//! Lines from a connection: of bounded length each, and of bounded size all together.

use crate::socket::Socket;
use posthaste_wire::rpc::MAX_LINE;
use std::cell::Cell;
use std::rc::Rc;

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
pub(crate) struct Lines<'a> {
    socket: &'a Socket,
    buffer: Vec<u8>,
    /// How much of the buffer has been given out.
    given: usize,
    /// Up to where it is known to hold no line end.
    scanned: usize,
    is_passing_over: bool,
    is_at_end: bool,
    room: Taken,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(socket: &'a Socket, room: Room) -> Self {
        Self {
            socket,
            buffer: Vec::new(),
            given: 0,
            scanned: 0,
            is_passing_over: false,
            is_at_end: false,
            room: Taken { room, bytes: 0 },
        }
    }

    pub(crate) async fn next(&mut self) -> Line {
        loop {
            if let Some(end) = memchr::memchr(b'\n', &self.buffer[self.scanned..]) {
                let end = self.scanned + end;
                let line = self.buffer[self.given..end].to_vec();
                (self.given, self.scanned) = (end + 1, end + 1);
                let is_too_long = line.len() > MAX_LINE;
                return if std::mem::take(&mut self.is_passing_over) || is_too_long {
                    Line::TooLong
                } else {
                    Line::Whole(line)
                };
            }
            self.forget_given();
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
            match self.socket.read_onto(&mut self.buffer).await {
                Ok(0) | Err(_) => self.is_at_end = true,
                Ok(_) => {}
            }
        }
    }

    fn forget_given(&mut self) {
        self.buffer.drain(..self.given);
        self.given = 0;
        // A long line leaves no more behind than a short one.
        if self.buffer.capacity() > 4 * PIECE && self.buffer.len() < PIECE {
            self.buffer.shrink_to(PIECE);
        }
    }

    /// What comes after the last line, which is no line.
    pub(crate) fn into_rest(mut self) -> Rest {
        self.forget_given();
        Rest {
            bytes: self.buffer,
            room: self.room,
        }
    }

    /// Notes how much room this connection takes; false where there is none left.
    fn account(&mut self) -> bool {
        self.room.take(self.buffer.len())
    }
}

/// What was read past the last line, and the room that it takes.
#[derive(Debug)]
pub(crate) struct Rest {
    pub(crate) bytes: Vec<u8>,
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
