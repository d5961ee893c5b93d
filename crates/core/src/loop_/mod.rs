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
mod order;
pub mod policy;
pub mod prd;
pub mod progress;
pub mod prompt;
mod state;

pub use fact::{
    Asked, Began, CompletionProof, Injected, Interactive, IterationEnded, IterationFailure,
    IterationOutcome, IterationStarted, LoopEnded, LoopEnding, LoopFact, LoopRequest, Resumed,
    Settings, Waiting,
};
pub use order::{LoopOrder, LoopRefusal, MAX_PROMPT_BYTES, MAX_WAITING_PROMPTS, decide};
pub use policy::{NextStep, Policy};
pub use prompt::Bounds;
pub use state::{Iteration, LoopPhase, LoopState, Loops, PastIteration};

#[cfg(test)]
pub(crate) mod tests;
