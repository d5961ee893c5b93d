//! Pipes of a script: bounded, non-blocking reads of its output, and non-blocking writes of its
//! input.

use rustix::io::Errno;
use std::io::{ErrorKind, PipeReader, PipeWriter, Write};
use std::os::fd::OwnedFd;

/// Number of bytes per read, and number of reads before other pipes have their turn.
const READ_BYTES: usize = 64 << 10;
const MAX_READS_PER_TURN: usize = 64;

/// One output of the script, and the bytes that were read.
pub(super) struct OutputPipe {
    /// `None` after the end of the output.
    pub(super) fd: Option<OwnedFd>,
    pub(super) bytes: Vec<u8>,
    max_bytes: usize,
    keeps: KeptEnd,
}

/// The end of an output over the limit that is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum KeptEnd {
    Beginning,
    End,
}

impl OutputPipe {
    pub(super) fn new(from: Option<OwnedFd>, max_bytes: usize, keeps: KeptEnd) -> Self {
        Self {
            fd: from,
            bytes: Vec::new(),
            max_bytes,
            keeps,
        }
    }

    /// Read what is available. Bytes over the limit are dropped, so that the script never blocks.
    pub(super) fn read(&mut self) -> Result<(), Errno> {
        let mut buffer = [0; READ_BYTES];
        for _ in 0..MAX_READS_PER_TURN {
            let Some(fd) = &self.fd else { break };
            match rustix::io::read(fd, &mut buffer) {
                Ok(0) => self.fd = None,
                Ok(count) => self.keep(&buffer[..count]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let room = self.max_bytes.saturating_sub(self.bytes.len());
        match self.keeps {
            KeptEnd::Beginning => self
                .bytes
                .extend_from_slice(&bytes[..bytes.len().min(room)]),
            KeptEnd::End => {
                self.bytes.extend_from_slice(bytes);
                let over = self.bytes.len().saturating_sub(self.max_bytes);
                self.bytes.drain(..over);
            }
        }
    }
}

/// The script's standard input.
#[derive(Debug)]
pub(super) struct InputPipe<'a> {
    /// `None` once all bytes are written, or if the script has closed its input.
    pub(super) to: Option<PipeWriter>,
    unsent: &'a [u8],
}

impl<'a> InputPipe<'a> {
    /// Create the pipe. Return also its read end, or `None` for empty input. The pipe is filled
    /// before the script starts, so a script that ignores a short input has always received it.
    pub(super) fn new(bytes: &'a [u8]) -> std::io::Result<(Self, Option<PipeReader>)> {
        let mut input = Self {
            to: None,
            unsent: bytes,
        };
        if bytes.is_empty() {
            return Ok((input, None));
        }
        let (reader, writer) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        input.to = Some(writer);
        input.write();
        Ok((input, Some(reader)))
    }

    /// Write as much as the pipe takes.
    pub(super) fn write(&mut self) {
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

    pub(super) fn is_all_sent(&self) -> bool {
        self.unsent.is_empty()
    }
}
