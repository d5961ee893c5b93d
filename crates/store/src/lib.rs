//! The journal: an append-only log of facts in SQLite, and the views derived from it.
//!
//! Owns every file under a home: the database, the writers' lock, the bells, the message files
//! and the search index. Knows the core's rules and never decides one itself; knows nothing of
//! sessions, sockets or terminals.
//!
//! Only [`Journal::commit`] and [`portable::import`] write facts, both under the writers' lock,
//! and views change in the same transaction.

mod ahead;
pub mod bell;
pub mod data_file;
mod delivery;
pub mod error;
pub mod files;
pub mod follow;
pub mod group;
pub mod home;
mod host;
mod inode;
pub mod inspect;
mod job;
mod journal;
pub mod live;
mod lock;
mod loops;
mod marks;
mod mount;
pub mod portable;
mod query;
mod replies;
pub mod report;
mod schema;
pub mod search;
mod sessions;
mod threads;
pub mod times;
mod views;
mod wal;
mod work;
mod worklist;

pub use ahead::Ahead;
pub use error::{Error, Hint};
pub use group::{Unsettled, Writer, WriterThread};
pub use home::Home;
pub use job::{
    Answer, Cut, Denied, Done, Expired, Injection, Job, Moved, Ordered, Outcome, Posted,
};
pub use journal::{Journal, Patience};
pub use lock::InjectLock;
pub use query::{Count, Listing, Pending};
