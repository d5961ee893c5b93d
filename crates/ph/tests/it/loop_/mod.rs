//! `ph build` on the real binary: loops of small scripts as agents, in real terminals.

mod bad_input;
mod control;
mod five;
mod killed;
mod long;
mod mail;
mod stage;
