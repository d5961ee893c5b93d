//! The verbs that change messages without writing one.

pub(crate) mod archive;
pub(crate) mod cancel;
pub(crate) mod delete;
pub(crate) mod mark;
