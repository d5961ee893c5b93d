//! The verbs that read the journal's facts, export them and import them.

pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod log;
