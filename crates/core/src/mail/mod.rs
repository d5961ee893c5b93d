//! Messages and the rules for them that need no session.
//!
//! Owns names, ids, priorities, threads and reply tracking. Never delivers anything.

pub mod goal;
pub mod id;
pub mod message;
pub mod name;
pub mod pending_replies;
pub mod post;
pub mod priority;
pub mod promotion;
mod state;
pub mod storm;

#[cfg(test)]
pub(crate) use state::tests;
pub use state::{Mail, MessageState, gives};
