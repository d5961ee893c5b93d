//! Sessions from outside: a connection to one, and the list of them all.

pub(crate) mod client;
pub(crate) mod roll;
