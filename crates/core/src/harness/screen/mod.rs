//! Interpretation of an agent's screen: activity, dialogs and the input box.
//!
//! Screen contents are untrusted data. Never types and never guesses: a view that no pattern
//! matches is unknown.

mod dialog;
mod input_box;
mod reading;

pub use dialog::{DialogView, ShownOption};
pub use input_box::{
    Below, BoxState, ExcludedView, FooterRow, Held, InputBox, Mismatch, RowPattern, RowPosition,
};
pub use reading::{Claim, Glance, ProgramFacts, Says, Sighting};
