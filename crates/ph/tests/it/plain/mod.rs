//! The plain dialect of a live session's socket: every request and reply, attached terminals, and
//! when and how messages reach the program.

#[path = "../common/mod.rs"]
mod common;

mod attached;
mod delivery;
mod requests;

/// No test: the program that others run in a terminal.
#[test]
#[ignore = "others run it, in a terminal"]
fn a_program_that_others_run() {
    posthaste_lab::tty::run();
}
