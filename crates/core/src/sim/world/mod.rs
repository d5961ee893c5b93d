//! The simulated surroundings of a session: the program, its terminal, API, hooks and transcripts, the
//! journal, and the senders.

pub(crate) mod api;
pub(crate) mod hook_calls;
pub(crate) mod hook_mail;
pub(crate) mod journal;
pub(crate) mod manifest;
pub(crate) mod program;
pub(crate) mod senders;
pub(crate) mod terminal;
pub(crate) mod transcript;
