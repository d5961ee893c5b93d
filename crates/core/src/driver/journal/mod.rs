//! The driver's side of the journal: open commits, and the freshness of the mail as last read.

pub(crate) mod commits;
pub(crate) mod freshness;
