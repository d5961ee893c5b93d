//! The JSON-RPC dialect of a live session's socket: every line as the original says it, none of
//! its faults, our own methods, and the clients that its documents show.

mod clients;
mod faults;
mod lines;
mod own;
mod state;
