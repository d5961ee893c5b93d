//! Bugs of the driver that tests plant; see `sim/planted.rs`.

use super::{Action, SessionDriver, Turn, pick};
use crate::id::MessageId;

impl SessionDriver {
    /// Type the text before the journal has recorded the offer.
    pub(super) fn type_unrecorded(&mut self, ids: &[MessageId]) {
        let letters = self.told(pick(&self.mail.pending, ids));
        let turn = Turn::Messages(letters);
        let mode = self.delivery.input();
        self.actions.ask(Action::Type { turn, mode });
    }
}
