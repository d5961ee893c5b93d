//! `ph mcp`: the tools over the real binary's standard streams, line by line, and by a client that
//! is not ours.

#[path = "../common/mod.rs"]
mod common;

mod client;
mod config;
mod ends;
mod independent;
mod mail;
mod odd;
mod waits;
mod work;

/// No test: the program that others run in a terminal.
#[test]
#[ignore = "others run it, in a terminal"]
fn a_program_that_others_run() {
    posthaste_lab::tty::run();
}
