//! The verbs that write mail, and the arguments that they share.

pub(crate) mod body;
pub(crate) mod message;
mod raw;
pub(crate) mod recipients;
pub(crate) mod reply;
pub(crate) mod send;
pub(crate) mod wait;
