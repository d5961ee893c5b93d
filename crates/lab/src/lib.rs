//! Test support: temporary homes, messages, checks of a journal, terminals, test programs, a mail
//! provider and the real agents.
//!
//! For tests only: errors panic. Never touches a person's own home.

pub mod agents;
mod agree;
pub mod bench;
pub mod fuzz;
mod home;
pub mod model;
mod program;
mod provider;
pub mod pty;
mod samples;
mod skip;
pub mod tty;

pub use agree::{assert_intact, assert_views_agree, moments, records};
pub use home::TempHome;
pub use program::{ph, program};
pub use provider::{CallResult, MemoryProvider};
pub use samples::{at, denied, draft, id, name, order, post, started, stored, text_of};
pub use skip::skip_or_fail;
