//! Sessions as other processes see them: a connection to one, and the list of all.

pub mod client;
pub mod sessions;
