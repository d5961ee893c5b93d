//! Bytes that wait to be written to somebody, in order: pieces of their own, and pieces that many
//! wait for and share.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::rc::Rc;

/// A piece that is smaller is copied: to keep it apart would cost more.
const WORTH_SHARING: usize = 4 << 10;
/// A piece that has grown so large gets no more: what is written of it stays until all of it is.
const WHOLE: usize = 64 << 10;
/// How many pieces are written at once.
const AT_ONCE: usize = 16;

#[derive(Debug, Default)]
pub(crate) struct Pieces {
    pieces: VecDeque<Piece>,
    /// How much of the first is written.
    begun: usize,
    /// How much is not.
    left: usize,
}

#[derive(Debug)]
enum Piece {
    Own(Vec<u8>),
    Shared(Rc<[u8]>),
}

impl Piece {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Own(bytes) => bytes,
            Self::Shared(bytes) => bytes,
        }
    }
}

impl Pieces {
    pub(crate) fn len(&self) -> usize {
        self.left
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.left == 0
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.left += bytes.len();
        match self.pieces.back_mut() {
            Some(Piece::Own(last)) if last.len() < WHOLE => last.extend_from_slice(bytes),
            _ if bytes.is_empty() => {}
            _ => self.pieces.push_back(Piece::Own(bytes.to_vec())),
        }
    }

    pub(crate) fn push_shared(&mut self, bytes: &Rc<[u8]>) {
        if bytes.len() < WORTH_SHARING {
            return self.push(bytes);
        }
        self.left += bytes.len();
        self.pieces.push_back(Piece::Shared(bytes.clone()));
    }

    /// Adds others behind these.
    pub(crate) fn append(&mut self, others: Self) {
        debug_assert_eq!(others.begun, 0, "nobody has written of them yet");
        self.left += others.left;
        self.pieces.extend(others.pieces);
    }

    /// What is to be written next.
    pub(crate) fn next(&self) -> Vec<IoSlice<'_>> {
        let mut begun = self.begun;
        let next = self.pieces.iter().take(AT_ONCE);
        next.map(|piece| IoSlice::new(&piece.bytes()[std::mem::take(&mut begun)..]))
            .collect()
    }

    /// Forgets what is written.
    pub(crate) fn written(&mut self, count: usize) {
        self.left -= count;
        self.begun += count;
        while let Some(first) = self.pieces.front()
            && first.bytes().len() <= self.begun
        {
            self.begun -= first.bytes().len();
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes all of it, so much at a time at most.
    fn drain(mut pieces: Pieces, at_once: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !pieces.is_empty() {
            let before = pieces.len();
            let next = pieces.next();
            let some = next.iter().flat_map(|s| s.iter().copied()).take(at_once);
            let before_it = out.len();
            out.extend(some);
            let count = out.len() - before_it;
            pieces.written(count);
            assert_eq!(pieces.len(), before - count);
        }
        assert!(pieces.next().is_empty(), "nothing is kept");
        out
    }

    #[test]
    fn everything_is_written_once_and_in_order() {
        let large: Rc<[u8]> = (0..WORTH_SHARING).map(|n| n as u8).collect();
        let small: Rc<[u8]> = Rc::from(&b"small"[..]);
        for at_once in [7, WORTH_SHARING - 1, WORTH_SHARING, usize::MAX] {
            let (mut pieces, mut want) = (Pieces::default(), Vec::new());
            for round in 0..AT_ONCE + 4 {
                let own = format!("own {round}");
                pieces.push(own.as_bytes());
                pieces.push(b"");
                pieces.push_shared(&small);
                pieces.push_shared(&large);
                want.extend([own.as_bytes(), &small, &large].concat());
            }
            let mut held = Pieces::default();
            held.push_shared(&large);
            held.push(b"the end");
            pieces.append(held);
            want.extend([&large[..], b"the end"].concat());
            assert_eq!(pieces.len(), want.len());
            assert!(drain(pieces, at_once) == want, "{at_once}");
        }
    }

    #[test]
    fn what_is_added_while_a_piece_is_half_written_follows_it() {
        let mut pieces = Pieces::default();
        pieces.push(b"one ");
        pieces.written(2);
        pieces.push(b"two");
        assert_eq!(drain(pieces, 1), b"e two");
    }

    #[test]
    fn what_is_written_does_not_stay() {
        let mut pieces = Pieces::default();
        // There is always something left.
        pieces.push(&[0; 100]);
        for _ in 0..100_000 {
            pieces.push(&[0; 100]);
            pieces.written(100);
        }
        let kept: usize = pieces.pieces.iter().map(|p| p.bytes().len()).sum();
        assert!(kept < 3 * WHOLE, "{kept}");
    }

    #[test]
    fn what_many_wait_for_is_there_once() {
        let large: Rc<[u8]> = Rc::from(vec![0; WORTH_SHARING]);
        let mut waiting: Vec<Pieces> = (0..100).map(|_| Pieces::default()).collect();
        for pieces in &mut waiting {
            pieces.push_shared(&large);
        }
        assert_eq!(Rc::strong_count(&large), 101);
        for pieces in waiting {
            drain(pieces, usize::MAX);
        }
        assert_eq!(Rc::strong_count(&large), 1);
    }
}
