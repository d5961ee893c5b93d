//! Everything that needs the keyboard: turns, nudges, and the check for unread input before them.

pub(crate) mod input_check;
pub(crate) mod keyboard;
pub(crate) mod nudge;
