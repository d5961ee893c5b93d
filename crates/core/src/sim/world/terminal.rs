//! The simulated input side of a terminal: the keyboard queue, the keyboard lease, and the input
//! that the program has not read.

use crate::driver::KeyboardUser;
use std::collections::VecDeque;

/// Number of a written text in a whole run.
pub(crate) type TurnNo = usize;

/// A piece of input, as the program reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The first half of a turn's text.
    FirstHalf(TurnNo),
    SecondHalf(TurnNo),
    /// Enter after a turn's text, pressed by the session.
    Enter(TurnNo),
    /// The interrupt key.
    Interrupt,
    /// Keys of the session that clear the input box.
    ClearBox,
    /// A character that a person types.
    Key,
    /// Enter, pressed by a person.
    Submit,
    /// A person clears the line.
    Clear,
    /// A person takes the queued prompts back into the input box.
    TakeBack,
}

impl Piece {
    /// Whether a person has pressed the key.
    pub(crate) fn is_persons(self) -> bool {
        match self {
            Self::Key | Self::Submit | Self::Clear | Self::TakeBack => true,
            Self::FirstHalf(_)
            | Self::SecondHalf(_)
            | Self::Enter(_)
            | Self::Interrupt
            | Self::ClearBox => false,
        }
    }
}

/// A request in the keyboard queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyboardRequest {
    Piece(Piece),
    /// The session clears the input box, unless a person has pressed more than this many keys.
    ClearBox(u32),
    /// The session requests the keyboard for a turn or a nudge.
    Lease(KeyboardUser),
    /// This many keys have left no trace on the screen, so they are not a draft.
    Forget(u32),
}

/// Result of a keyboard request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyboardResult {
    Wrote(Piece),
    Granted(KeyboardUser),
    /// The keyboard is refused, because a person has typed a draft.
    HasDraft(KeyboardUser),
}

/// Maximum number of unread pieces in the terminal.
const MAX_UNREAD_PIECES: usize = 4;

#[derive(Debug, Default)]
pub(crate) struct Terminal {
    pub(crate) queue: VecDeque<KeyboardRequest>,
    unread: VecDeque<Piece>,
    pub(crate) is_leased: bool,
    pub(crate) has_draft: bool,
    /// Whether the driver was not yet told of `has_draft`.
    pub(crate) draft_changed: bool,
    /// Number of keys that a person has pressed so far.
    pub(crate) keys: u32,
    /// Whether the next write of a turn fails half-way.
    pub(crate) next_write_fails: bool,
}

impl Terminal {
    pub(crate) fn has_room(&self) -> bool {
        self.unread.len() < MAX_UNREAD_PIECES
    }

    pub(crate) fn is_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Whether the first keyboard request can be handled now.
    pub(crate) fn can_type(&self) -> bool {
        !self.is_leased
            && self.queue.front().is_some_and(|next| match next {
                KeyboardRequest::Piece(_) | KeyboardRequest::ClearBox(_) => self.has_room(),
                KeyboardRequest::Lease(_) | KeyboardRequest::Forget(_) => true,
            })
    }

    /// Handle the first keyboard request.
    pub(crate) fn type_next(&mut self) -> Option<KeyboardResult> {
        match self.queue.pop_front()? {
            KeyboardRequest::Lease(user) if self.has_draft => Some(KeyboardResult::HasDraft(user)),
            KeyboardRequest::Lease(user) => {
                self.is_leased = true;
                Some(KeyboardResult::Granted(user))
            }
            KeyboardRequest::Forget(keys) => {
                self.draft_changed |= self.has_draft && keys == self.keys;
                self.has_draft &= keys != self.keys;
                None
            }
            KeyboardRequest::ClearBox(keys) => (keys == self.keys).then(|| {
                self.write(Piece::ClearBox);
                KeyboardResult::Wrote(Piece::ClearBox)
            }),
            KeyboardRequest::Piece(piece) => {
                let had_draft = self.has_draft;
                match piece {
                    Piece::Key | Piece::TakeBack => self.has_draft = true,
                    Piece::Submit | Piece::Clear => self.has_draft = false,
                    Piece::FirstHalf(_)
                    | Piece::SecondHalf(_)
                    | Piece::Enter(_)
                    | Piece::Interrupt
                    | Piece::ClearBox => {}
                }
                if piece.is_persons() {
                    self.keys += 1;
                    self.draft_changed |= had_draft || self.has_draft;
                }
                self.write(piece);
                Some(KeyboardResult::Wrote(piece))
            }
        }
    }

    pub(crate) fn write(&mut self, piece: Piece) {
        self.unread.push_back(piece);
    }

    pub(crate) fn read(&mut self) -> Option<Piece> {
        self.unread.pop_front()
    }
}
