//! `ph build` on the real binary: loops of small scripts as agents, in real terminals.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod control;
mod five;
mod killed;
mod long;
mod mail;
mod stage;
