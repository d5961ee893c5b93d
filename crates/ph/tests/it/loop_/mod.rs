//! `ph build` with the real binary: loops whose agents are small scripts in real terminals.

mod bad_input;
mod control;
mod iterations;
mod killed;
mod mail;
mod prompt_size;
mod stage;
