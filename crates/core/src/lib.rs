//! Rules of Posthaste without I/O: mail, receipts, delivery, sessions, tasks and loops.
//!
//! Has no clock, files, tasks or randomness: times and ids are arguments, so every run can be
//! replayed and simulated.
//!
//! `decide` reads the state and returns events or a refusal. The journal commits the events as
//! facts. `apply` folds a fact into the state and cannot fail.

#[cfg(test)]
mod sim;

pub mod ask;
pub mod board;
pub mod delivery;
pub mod driver;
pub mod harness;
pub mod journal;
pub mod loop_;
pub mod mail;
pub mod receipt;
pub mod session;
pub mod tasks;
pub mod text;
pub mod turn;

pub use journal::{fact, moment};
pub use mail::{goal, id, message, name, pending_replies, post, priority, promotion, storm};
pub use receipt::{offer, why};
pub use session::activity;
pub use text::{inject, prompt};

pub use jiff::Timestamp;

pub use activity::{Activity, Judgement};
pub use ask::{AskAnswer, AskKind, AskState, Meaning};
pub use fact::{Event, Fact, Odd, Progress, Record};
pub use id::{AskId, IdPrefix, MessageId, NoteId, PrefixError, PromptId, TaskId};
pub use loop_::{LoopFact, LoopOrder, LoopRefusal, LoopState, Loops};
pub use mail::{Mail, MessageState};
pub use message::{Body, Envelope, Evidence, Message};
pub use moment::Moment;
pub use name::{AgentName, NameError};
pub use post::{Draft, Posting};
pub use priority::Priority;
pub use receipt::{End, MessageStatus, Order, Proven, Receipt, ReceiptState, Refusal, Step};
pub use session::{Conversation, Ended, Ending, Run, Sessions, Started};
pub use storm::Limits;
pub use tasks::{Note, NoteType, Task, TaskStatus, Work, WorkRefusal};
