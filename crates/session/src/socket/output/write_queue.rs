//! A queue of bytes that wait to be written to one connection. Large chunks are shared between the
//! queues of several connections.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;

/// Smaller chunks are copied, because sharing them would cost more.
const MIN_SHARED_BYTES: usize = 4 << 10;
/// Nothing is appended to a chunk of this size: a chunk is freed only once all of it is written.
const FULL_CHUNK_BYTES: usize = 64 << 10;
const MAX_CHUNKS_PER_WRITE: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct WriteQueue {
    chunks: VecDeque<Chunk>,
    /// How many bytes of the first chunk are written.
    written_of_first: usize,
    unwritten: usize,
}

#[derive(Debug)]
enum Chunk {
    Own(Vec<u8>),
    Shared(Rc<[u8]>),
}

impl Chunk {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl WriteQueue {
    /// Return the number of unwritten bytes.
    pub(crate) fn len(&self) -> usize {
        self.unwritten
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.unwritten == 0
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.unwritten += bytes.len();
        match self.chunks.back_mut() {
            Some(Chunk::Own(last)) if last.len() < FULL_CHUNK_BYTES => {
                last.extend_from_slice(bytes);
            }
            _ if bytes.is_empty() => {}
            _ => self.chunks.push_back(Chunk::Own(bytes.to_vec())),
        }
    }

    pub(crate) fn push_shared(&mut self, bytes: &Rc<[u8]>) {
        if bytes.len() < MIN_SHARED_BYTES {
            return self.push(bytes);
        }
        self.unwritten += bytes.len();
        self.chunks.push_back(Chunk::Shared(bytes.clone()));
    }

    /// Append a queue of which nothing is written yet.
    pub(crate) fn append(&mut self, other: Self) {
        debug_assert_eq!(other.written_of_first, 0, "nothing of it is written");
        self.unwritten += other.unwritten;
        self.chunks.extend(other.chunks);
    }

    /// Return the bytes to write next.
    pub(crate) fn next(&self) -> Vec<IoSlice<'_>> {
        let mut skipped = self.written_of_first;
        let next = self.chunks.iter().take(MAX_CHUNKS_PER_WRITE);
        next.map(|chunk| IoSlice::new(&chunk.bytes()[std::mem::take(&mut skipped)..]))
            .collect()
    }

    /// Remove `count` written bytes from the front.
    pub(crate) fn advance(&mut self, count: usize) {
        self.unwritten -= count;
        self.written_of_first += count;
        while let Some(first) = self.chunks.front()
            && first.bytes().len() <= self.written_of_first
        {
            self.written_of_first -= first.bytes().len();
            self.chunks.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Take everything out, at most `max_write` bytes at a time.
    fn drain(mut queue: WriteQueue, max_write: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !queue.is_empty() {
            let before = queue.len();
            let next = queue.next();
            let some = next.iter().flat_map(|s| s.iter().copied()).take(max_write);
            let length = out.len();
            out.extend(some);
            let count = out.len() - length;
            queue.advance(count);
            assert_eq!(queue.len(), before - count);
        }
        assert!(queue.next().is_empty(), "nothing is left");
        out
    }

    #[test]
    fn everything_is_written_once_and_in_order() {
        let large: Rc<[u8]> = (0..MIN_SHARED_BYTES).map(|n| n as u8).collect();
        let small: Rc<[u8]> = Rc::from(&b"small"[..]);
        for max_write in [7, MIN_SHARED_BYTES - 1, MIN_SHARED_BYTES, usize::MAX] {
            let (mut queue, mut want) = (WriteQueue::default(), Vec::new());
            for round in 0..MAX_CHUNKS_PER_WRITE + 4 {
                let own = format!("own {round}");
                queue.push(own.as_bytes());
                queue.push(b"");
                queue.push_shared(&small);
                queue.push_shared(&large);
                want.extend([own.as_bytes(), &small, &large].concat());
            }
            let mut held = WriteQueue::default();
            held.push_shared(&large);
            held.push(b"the end");
            queue.append(held);
            want.extend([&large[..], b"the end"].concat());
            assert_eq!(queue.len(), want.len());
            assert!(drain(queue, max_write) == want, "{max_write}");
        }
    }

    #[test]
    fn bytes_follow_a_partly_written_chunk() {
        let mut queue = WriteQueue::default();
        queue.push(b"one ");
        queue.advance(2);
        queue.push(b"two");
        assert_eq!(drain(queue, 1), b"e two");
    }

    #[test]
    fn written_bytes_are_freed_while_the_queue_is_never_empty() {
        let mut queue = WriteQueue::default();
        queue.push(&[0; 100]);
        for _ in 0..100_000 {
            queue.push(&[0; 100]);
            queue.advance(100);
        }
        let kept: usize = queue.chunks.iter().map(|chunk| chunk.bytes().len()).sum();
        assert!(kept < 3 * FULL_CHUNK_BYTES, "{kept}");
    }

    #[test]
    fn queues_share_a_large_chunk() {
        let large: Rc<[u8]> = Rc::from(vec![0; MIN_SHARED_BYTES]);
        let mut queues: Vec<WriteQueue> = (0..100).map(|_| WriteQueue::default()).collect();
        for queue in &mut queues {
            queue.push_shared(&large);
        }
        assert_eq!(Rc::strong_count(&large), 101);
        for queue in queues {
            drain(queue, usize::MAX);
        }
        assert_eq!(Rc::strong_count(&large), 1);
    }
}
