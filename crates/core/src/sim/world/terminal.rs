//! The simulated input of a terminal: what waits to be typed, who has the keyboard, and what the
//! program has not read yet.

use crate::driver::KeyboardUser;
use std::collections::VecDeque;

/// Which turn of a whole run a text belongs to.
pub(crate) type TurnNo = usize;

/// A piece of input, as the program reads it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece {
    /// The first half of a turn's text.
    FirstHalf(TurnNo),
    SecondHalf(TurnNo),
    /// Enter after a turn's text, by the session.
    Enter(TurnNo),
    /// The interrupt key.
    Interrupt,
    /// Keys of the session's that empty the input box.
    ClearBox,
    /// A character that a person types.
    Key,
    /// Enter, by a person.
    Submit,
    /// A person clears the line.
    Clear,
}

/// What waits for the keyboard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyboardRequest {
    Piece(Piece),
    /// The session wants the keyboard for a turn or a nudge.
    Lease(KeyboardUser),
    /// This many keys have left no trace, so they are no draft.
    Forget(u32),
}

/// What the keyboard has done just now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyboardResult {
    Wrote(Piece),
    Granted(KeyboardUser),
    /// A person has typed something and not submitted it.
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
    /// Whether the driver is still to be told of `has_draft`.
    pub(crate) draft_changed: bool,
    /// Number of a person's keys so far.
    pub(crate) keys: u32,
    /// Whether the next write of a turn breaks off.
    pub(crate) next_write_fails: bool,
}

impl Terminal {
    pub(crate) fn has_room(&self) -> bool {
        self.unread.len() < MAX_UNREAD_PIECES
    }

    pub(crate) fn is_unread(&self) -> bool {
        !self.unread.is_empty()
    }

    /// Whether the keyboard can do something now.
    pub(crate) fn can_type(&self) -> bool {
        !self.is_leased
            && self.queue.front().is_some_and(|next| match next {
                KeyboardRequest::Piece(_) => self.has_room(),
                KeyboardRequest::Lease(_) | KeyboardRequest::Forget(_) => true,
            })
    }

    /// Type the first piece that waits, or grant the keyboard.
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
            KeyboardRequest::Piece(piece) => {
                let had_draft = self.has_draft;
                match piece {
                    Piece::Key => self.has_draft = true,
                    Piece::Submit | Piece::Clear => self.has_draft = false,
                    Piece::FirstHalf(_)
                    | Piece::SecondHalf(_)
                    | Piece::Enter(_)
                    | Piece::Interrupt
                    | Piece::ClearBox => {}
                }
                if let Piece::Key | Piece::Submit | Piece::Clear = piece {
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
