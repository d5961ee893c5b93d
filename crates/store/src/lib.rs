//! The journal: an append-only log of facts in SQLite, and the views derived from it.
//!
//! Owns every file under a home: the database, the locks, the bells, the message files, the search
//! index and the files of sessions. Applies the core's rules and never decides one itself; runs no
//! session, and knows nothing of terminals.

pub mod error;
pub mod files;
pub mod home;
mod journal;
pub mod live;
pub mod operation;
pub mod report;
pub mod search;
pub mod times;
pub mod transfer;
mod views;

pub use error::Error;
pub use files::Prewrite;
pub use home::{Home, data_file};
pub use journal::group::{Committed, Writer, WriterThread};
pub use journal::lock::InjectLock;
pub use journal::{Journal, Patience, bell, follow, group, health};
pub use operation::{Decided, Denied, Operation};
pub use views::counts::Count;
pub use views::inbox::Listing;
pub use views::pending::Pending;
