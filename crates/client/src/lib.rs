//! Library for commands and user interfaces: finds and calls sessions, changes mail, and resolves
//! aliases and groups.
//!
//! Prints nothing and starts nothing. Works without running sessions: the journal answers instead.

pub mod answer;
pub mod board;
pub mod mail;
pub mod roster;
pub mod session;
pub mod settings;
