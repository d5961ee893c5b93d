//! The program and its terminal: output and its viewers, typed input and its writers.

pub mod child;
pub(crate) mod draft;
pub(crate) mod keyboard;
pub(crate) mod output_activity;
pub(crate) mod program;
pub(crate) mod read_output;
pub(crate) mod screen_watch;
pub(crate) mod terminal;
pub(crate) mod viewer;
