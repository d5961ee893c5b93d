//! Recordings of a session's terminal: asciicast v2 files.
//!
//! The recorder and the reader of the files. Nothing else in this crate touches files.

mod recorder;
mod replay;
#[cfg(test)]
mod tests;

pub use recorder::{About, Recorder};
pub use replay::{Event, Replay, What, last_screen, read, segments};
