//! The pure core of Posthaste: what a message is, how far it is proven to have come, and the
//! rules by which one becomes the other.
//!
//! Owns every rule about mail. Has no clock, no files, no tasks and no randomness: time and ids
//! come in as arguments, so that all of it can be replayed and simulated.
//!
//! The shape is always the same: `decide` looks at the present state and answers with events or
//! a refusal, changing nothing; the journal commits the events as facts; `apply` folds a fact
//! into the state and cannot fail.

#[cfg(test)]
mod sim;

pub mod activity;
pub mod build;
pub mod delivery;
pub mod driver;
pub mod fact;
pub mod goal;
pub mod harness;
pub mod id;
pub mod inject;
pub mod mail;
pub mod message;
pub mod moment;
pub mod name;
pub mod offer;
pub mod owed;
pub mod post;
pub mod priority;
pub mod promotion;
pub mod prompt;
pub mod receipt;
pub mod session;
pub mod storm;
pub mod text;
pub mod turn;
pub mod why;
pub mod work;

pub use jiff::Timestamp;

pub use activity::{Activity, Judgement};
pub use build::{LoopFact, LoopOrder, LoopRefusal, LoopState, Loops};
pub use fact::{Event, Fact, Odd, Progress, Record};
pub use id::{IdPrefix, MessageId, NoteId, PrefixError, PromptId, TaskId};
pub use mail::{Letter, Mail};
pub use message::{Body, Envelope, Evidence, Message};
pub use moment::Moment;
pub use name::{AgentName, NameError};
pub use post::{Draft, Posting};
pub use priority::Priority;
pub use receipt::{End, Order, Proven, Receipt, ReceiptState, Refusal, Standing, Step};
pub use session::{Conversation, Ended, Ending, Run, Sessions, Started};
pub use storm::Limits;
pub use work::{Note, NoteType, Task, TaskStatus, Work, WorkRefusal};
