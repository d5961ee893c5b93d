//! The formats in which Posthaste talks to other programs: the output of `--json`, the socket of a
//! session and the protocol of mail providers.
//!
//! Defines each format once; tasks and notes in `--json` are the types of the core. The socket has
//! two dialects: [`rpc`] (JSON-RPC 2.0, whose methods are listed in [`method`]) and [`plain`]. Has
//! no I/O, clock or time zone database, and decides nothing.

pub mod ask;
mod fields;
pub mod frames;
mod message;
pub mod plain;
pub mod provider;
pub mod rpc;
mod session;
#[cfg(test)]
mod tests;
pub mod time;

pub use message::{Count, Detail, Message, Receipt, Why};
pub use rpc::{client, event, method, param, topic};
pub use session::{Activity, LoopStatus, MailTrouble, Mode, RunStatus, Session, Status};
