//! Terminals in tests: a real one with a program in it, and a program that a session runs.

pub mod pty;
pub mod tty;
