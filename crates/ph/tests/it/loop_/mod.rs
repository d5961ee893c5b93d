//! `ph build` with the real binary: loops whose agents are small scripts in real terminals.

mod bad_input;
mod control;
mod five;
mod killed;
mod long;
mod mail;
mod stage;
