//! What every face of Posthaste uses: find and ask sessions, send and answer mail, and know the
//! names that the settings give to agents.
//!
//! Prints nothing and starts nothing. Works with nothing running: what no session answers, the
//! journal does.

pub mod mail;
pub mod roster;
pub mod session;
pub mod settings;
