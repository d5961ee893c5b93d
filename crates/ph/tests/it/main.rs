//! The real `ph` from outside: every test of it is in this one program, so that they are built once
//! and wait side by side.
//!
//! All tests share this process: none sets its environment, its working directory or its umask, and
//! none counts what others may have opened.

mod asks;
mod bad_input;
mod cli;
mod common;
mod harness;
mod hook;
mod loop_;
mod mail;
mod mcp;
mod plain;
mod provider;
mod regressions;
mod rpc;
mod session;

/// The program that tests run in a terminal; it asserts nothing.
#[test]
#[ignore = "others run it, in a terminal"]
fn terminal_program_for_other_tests() {
    posthaste_lab::tty::run();
}
