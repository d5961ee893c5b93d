//! What a script writes, read within bounds: it never waits for us, and never fills our memory. And
//! what it is told, as fast as it takes it.

use rustix::fs::OFlags;
use rustix::io::Errno;
use std::io::{ErrorKind, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;

/// Read at a time, and how often before others have their turn.
const PIECE: usize = 64 << 10;
const PIECES: usize = 64;

/// One of its outputs, as far as it was read.
pub(super) struct Stream {
    /// None once nobody can write to it any more.
    pub(super) from: Option<OwnedFd>,
    pub(super) bytes: Vec<u8>,
    most: usize,
    keeps: Keeps,
}

/// Which part of too much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Keeps {
    Beginning,
    End,
}

impl Stream {
    pub(super) fn new(from: Option<OwnedFd>, most: usize, keeps: Keeps) -> Self {
        Self {
            from,
            bytes: Vec::new(),
            most,
            keeps,
        }
    }

    /// Reads what is there; what is too much is read and dropped, so that nobody has to wait.
    pub(super) fn read(&mut self) -> Result<(), Errno> {
        let mut piece = [0; PIECE];
        for _ in 0..PIECES {
            let Some(fd) = &self.from else { break };
            match rustix::io::read(fd, &mut piece) {
                Ok(0) => self.from = None,
                Ok(count) => self.keep(&piece[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn keep(&mut self, piece: &[u8]) {
        let room = self.most.saturating_sub(self.bytes.len());
        match self.keeps {
            Keeps::Beginning => self
                .bytes
                .extend_from_slice(&piece[..piece.len().min(room)]),
            Keeps::End => {
                self.bytes.extend_from_slice(piece);
                let over = self.bytes.len().saturating_sub(self.most);
                self.bytes.drain(..over);
            }
        }
    }
}

/// What a script is told on its standard input.
#[derive(Debug)]
pub(super) struct Input<'a> {
    /// Where it is written to, as long as there is more of it and somebody who reads.
    pub(super) to: Option<PipeWriter>,
    unsent: &'a [u8],
}

impl<'a> Input<'a> {
    /// And where the script reads it; none where there is nothing to be told. What fits is there
    /// before the script is: whether one that reads nothing could have is not left to chance.
    pub(super) fn new(bytes: &'a [u8]) -> std::io::Result<(Self, Option<PipeReader>)> {
        let mut input = Self {
            to: None,
            unsent: bytes,
        };
        if bytes.is_empty() {
            return Ok((input, None));
        }
        let (reader, writer) = std::io::pipe()?;
        let flags = rustix::fs::fcntl_getfl(&writer)?;
        rustix::fs::fcntl_setfl(&writer, flags | OFlags::NONBLOCK)?;
        input.to = Some(writer);
        input.give();
        Ok((input, Some(reader)))
    }

    /// Hands over as much as is taken. What its reader leaves stays unsent.
    pub(super) fn give(&mut self) {
        while let Some(to) = &mut self.to {
            if self.unsent.is_empty() {
                self.to = None;
                break;
            }
            match to.write(self.unsent) {
                Ok(count) => self.unsent = &self.unsent[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.to = None,
            }
        }
    }

    pub(super) fn is_told_all(&self) -> bool {
        self.unsent.is_empty()
    }
}
