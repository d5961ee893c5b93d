//! Recordings of a session's terminal: asciicast v2 files.
//!
//! The recorder and the reader of the files. Nothing else in this crate touches files.

mod recorder;
mod replay;
#[cfg(test)]
mod tests;

pub use recorder::{Recorder, RecordingInfo};
pub use replay::{
    Replay, ReplayEvent, ReplayedChange, last_screen, open_recording, recording_files,
};
