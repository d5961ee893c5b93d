//! What a script writes, read within bounds: it never waits for us, and never fills our memory.

use rustix::io::Errno;
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
