//! The journal's contents: facts, and the points in time that rules compare.
//!
//! Never reads or writes the journal: the store does.

pub mod fact;
pub mod moment;
