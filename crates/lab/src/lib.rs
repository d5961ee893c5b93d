//! Test support: temporary homes, messages, checks of a journal, terminals, test programs, a mail
//! provider and the real agents.
//!
//! For tests only: errors panic. Never touches a person's own home.

pub mod agents;
pub mod bench;
pub mod fuzz;
mod journal;
pub mod model;
mod notes;
mod program;
mod provider;
mod terminal;

pub use journal::{
    TempHome, assert_intact, assert_views_agree, at, denied, draft, id, moments, name, order, post,
    records, started, stored, text_of,
};
pub use notes::{say, skip_or_fail};
pub use program::{ph, program};
pub use provider::{CallResult, MemoryProvider};
pub use terminal::{pty, tty};
