//! The shapes that Posthaste shows the outside: what `--json` prints and the socket speaks.
//!
//! Owns every such shape once, and both dialects of the socket: [`rpc`] (JSON-RPC 2.0, with the
//! table of its methods in [`method`]) and [`plain`]; and the protocol of mail providers. Does no I/O, has no clock, looks up no time
//! zone, and decides nothing.

pub mod client;
pub mod event;
mod fields;
pub mod frames;
mod message;
pub mod method;
pub mod param;
pub mod plain;
pub mod provider;
pub mod rpc;
mod session;
#[cfg(test)]
mod tests;
pub mod time;
pub mod topic;
mod work;

pub use message::{Count, Detail, Message, Receipt, Why};
pub use session::{Activity, LoopStatus, MailTrouble, Mode, Run, Session, Status};
pub use work::{Note, Task};
