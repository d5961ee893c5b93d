//! The verbs for setting ph up, looking into it, and connecting it with other programs.

pub(crate) mod config;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod harness;
pub(crate) mod hook;
pub(crate) mod hooks;
pub(crate) mod journal;
pub(crate) mod mcp;
pub(crate) mod provider;
pub(crate) mod trust;
