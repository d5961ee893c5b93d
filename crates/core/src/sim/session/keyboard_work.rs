//! The actions at the terminal that are under way for one user of the keyboard.

use crate::driver::Input;
use crate::sim::session::ScreenLook;

/// Progress of a request for the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LeaseState {
    Requested,
    /// The result, not yet reported to the driver.
    Done(Input),
}

/// Progress of a look at the screen that the driver requested.
#[derive(Debug)]
pub(crate) enum LookState {
    Requested,
    /// The result, not yet reported to the driver.
    Done(ScreenLook),
}

/// Progress of a text that is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum TypingState {
    FirstHalf,
    SecondHalf,
    Enter,
    /// The result, not yet reported to the driver.
    Done(Input),
}

#[derive(Debug, Default)]
pub(crate) struct KeyboardWork {
    pub(crate) lease: Option<LeaseState>,
    pub(crate) typing: Option<TypingState>,
    pub(crate) look: Option<LookState>,
}

impl KeyboardWork {
    /// Whether the keyboard was leased or refused, and the driver was not told yet.
    pub(crate) fn is_lease_decided(&self) -> bool {
        matches!(self.lease, Some(LeaseState::Done(_)))
    }

    /// Whether the next part can be typed, or its result be reported.
    pub(crate) fn can_type(&self, has_room: bool) -> bool {
        let is_typed = matches!(self.typing, Some(TypingState::Done(_)));
        self.typing.is_some() && (has_room || is_typed)
    }

    /// Stop typing and looking, because the program has ended.
    pub(crate) fn stop(&mut self) {
        (self.typing, self.look) = (None, None);
    }
}
