//! The verbs of loops, and of what their agents keep: tasks and notes.

pub(crate) mod build;
pub(crate) mod checkpoint;
pub(crate) mod entries;
pub(crate) mod inject;
pub(crate) mod interactive;
pub(crate) mod note;
pub(crate) mod task;
pub(crate) mod worklist;
