//! The shapes that Posthaste shows the outside: what `--json` prints and the socket speaks.
//!
//! Owns every such shape once. Does no I/O and decides nothing.

pub mod frames;
mod message;

pub use message::{Count, Detail, Message, Receipt, Why};
