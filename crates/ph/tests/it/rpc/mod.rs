//! The JSON-RPC dialect of a live session's socket: every line as the original says it, none of
//! its faults, our own methods, and the clients that its documents show.

#[path = "../common/mod.rs"]
mod common;

mod clients;
mod faults;
mod lines;
mod own;
mod state;

/// No test: the program that others run in a terminal.
#[test]
#[ignore = "others run it, in a terminal"]
fn a_program_that_others_run() {
    posthaste_lab::tty::run();
}
