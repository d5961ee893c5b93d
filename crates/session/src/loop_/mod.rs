//! A loop's runner: the program in a loop's session. It builds a prompt, records that an iteration
//! starts, runs the agent headless on a terminal within the session's, records how that ended, and
//! goes on as the core says.
//!
//! What must outlive it is in the journal: it keeps nothing of its own. It is asked for nothing
//! directly; the session records what is asked, and the journal's bell is heard. It types nothing
//! into its agent but the keys that a person types into the session.

mod agent;
mod files;
mod io;
mod iteration;
mod json_output;
mod plan;
mod prompt;
mod runner;
mod status;
mod terminal_output;
mod wakeups;

pub use plan::{Plan, check, plan};
pub use runner::main;
pub use status::stories;

/// The first argument that makes this program a loop's runner instead of a command.
pub const RUNNER: &str = "__loop";
