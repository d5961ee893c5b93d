//! Operations: everything that this crate writes to a journal, except imports.
//!
//! An operation decides by the core's rules on views at head, and appends what was decided, in one
//! transaction. It never writes a fact that the core has not decided.

mod ask;
mod delivery;
mod loops;
mod order;
mod post;
mod run;
mod work;

pub use ask::{CloseAsk, MarkSeen, OpenAsk};
pub use delivery::{
    Expire, Expired, Inject, Injection, MarkUncertain, OpenOffers, RecordDelivery, RecordedDelivery,
};
pub use loops::{ApplyLoopOrder, LoopChange};
pub use order::{ApplyOrder, OrderEffect, Ordered};
pub use post::{Post, Posted};
pub use run::{EndRun, RecordConversation, StartRun};
pub use work::{AddNote, AddTask, MoveTask, RecordCompletion, TaskChange};

use crate::error::Result;
use crate::files::{Prewrite, StoredBodies};
use crate::home::Home;
use crate::journal::transaction::Transaction;
use posthaste_core::{LoopRefusal, MessageId, Refusal, TaskId, WorkRefusal};
use std::fmt;

/// A change of a journal, made in one transaction: all of it, or nothing.
pub trait Operation: fmt::Debug + Send + 'static {
    /// Result of an operation that was not denied.
    type Output: fmt::Debug + Send + 'static;

    /// Decide, and append what was decided.
    fn run(&self, tx: &mut Transaction<'_>) -> rusqlite::Result<Decided<Self::Output>>;

    /// Return whether the commit must survive a power cut before it is acknowledged.
    fn durability(&self) -> Durability {
        Durability::Synced
    }

    /// Return the message files that can be written while the disk is waited for.
    fn prewrite(&self, _home: &Home) -> Prewrite {
        Prewrite::default()
    }

    /// Write and sync the bodies that the facts will refer to, before the transaction.
    fn store_bodies(&mut self, _home: &Home) -> Result<StoredBodies> {
        Ok(StoredBodies::default())
    }

    /// Bring the message files in line with what was committed. This cannot fail, because the
    /// commit cannot be undone.
    fn settle_files(
        &self,
        _home: &Home,
        _bodies: &StoredBodies,
        _prewrite: &Prewrite,
        _decided: &mut Decided<Self::Output>,
    ) {
    }
}

/// Whether a commit must survive a power cut before it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Durability {
    Unsynced,
    Synced,
}

/// Result of an operation, or why nothing was changed.
pub type Decided<T> = std::result::Result<T, Denied>;

/// Why an operation was denied. It has changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Denied {
    #[error("{refusal}")]
    Refused {
        id: Option<MessageId>,
        refusal: Refusal,
    },
    #[error("no message {0}")]
    NotFound(MessageId),
    #[error("no task {0}")]
    NoTask(TaskId),
    #[error("{0}")]
    Work(WorkRefusal),
    #[error("{0}")]
    Loop(LoopRefusal),
}
