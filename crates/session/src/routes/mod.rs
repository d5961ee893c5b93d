//! Ways into the agent beside its terminal, and the proof that it was given its mail.

pub(crate) mod carrier;
pub(crate) mod door;
pub mod hook;
pub(crate) mod transcript;
