//! Loops: iterations of a headless agent over a spec or a prd, until the work is done.
//!
//! Owns a loop's facts ([`LoopFact`]), its state ([`LoopState`]), the orders for it ([`decide`]),
//! the step after an iteration ([`policy::next`]), and its texts: the prompt, the blocks of
//! progress.txt and the detection of the completion token. Never runs an agent, reads a file or a
//! clock.
//!
//! The runner commits `Begin`, asks [`policy::next`], builds the prompt from [`LoopState::prompts`]
//! and the files, commits `StartIteration`, runs the agent with a [`completion::Detector`] on its
//! output, commits `EndIteration` and asks again. A killed runner starts again with `Begin`: the
//! open iteration is recorded as failed, and its number is run again.

pub mod completion;
mod fact;
mod limits;
mod order;
mod plain;
pub mod policy;
pub mod prd;
pub mod progress;
pub mod prompt;
mod state;
pub mod template;

pub(crate) use fact::LoopKind;
pub use fact::{
    Asked, Began, Failure, Injected, Interactive, IterationEnded, IterationStarted, LoopEnded,
    LoopEnding, LoopFact, Outcome, Proof, Request, Resumed, Settings, Waiting,
};
pub use limits::Bounds;
pub use order::{LoopOrder, LoopRefusal, MAX_PROMPT_BYTES, MAX_WAITING_PROMPTS, decide};
pub use policy::{Next, Policy};
pub use state::{Iteration, LoopPhase, LoopState, Loops, Past};

#[cfg(test)]
pub(crate) mod tests;
