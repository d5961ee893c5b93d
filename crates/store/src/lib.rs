//! The journal: an append-only log of facts in SQLite, and the views derived from it.
//!
//! Owns every file under a home: the database, the writers' lock, the bells, the message files
//! and the search index. Knows the core's rules and never decides one itself; knows nothing of
//! sessions, sockets or terminals.
//!
//! Only [`Journal::commit`] and [`portable::import`] write facts, both under the writers' lock,
//! and views change in the same transaction.

pub mod error;
pub mod files;
pub mod health;
pub mod home;
mod journal;
mod operation;
pub mod search;
pub mod transfer;
mod views;

pub use error::{Error, Hint};
pub use files::prewrite::Ahead;
pub use home::Home;
pub use journal::group::{Unsettled, Writer, WriterThread};
pub use journal::lock::InjectLock;
pub use journal::{Journal, Patience, bell, follow, group};
pub use operation::{
    Answer, Cut, Denied, Done, Expired, Injection, Job, Moved, Ordered, Outcome, Posted,
};
pub use views::messages::{Count, Listing, Pending};
