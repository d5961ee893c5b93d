//! Sessions from outside: a connection to one, and the list of them all.

pub mod client;
pub mod sessions;
