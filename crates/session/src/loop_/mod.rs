//! The loop runner: the program in a loop's session.
//!
//! For each iteration it builds a prompt, runs a headless agent on a nested terminal, and records
//! the outcome; `core::loop_` decides the next step. Keeps no state of its own: everything that
//! must survive is in the journal. Receives requests through the journal only, and types only the
//! keys of a person into the agent.

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

pub use plan::{BuildArguments, check_agent, loop_settings};
pub use runner::main;
pub use status::story_lines;

/// The first argument that makes this program a loop's runner instead of a command.
pub const RUNNER_ARGUMENT: &str = "__loop";
