//! A loop: iterations of a headless agent over a spec or a prd, until its work is done.
//!
//! Owns the facts about a loop ([`LoopFact`]), what they add up to ([`LoopState`]), who may ask
//! what of it ([`decide`]), what comes after an iteration ([`policy::next`]), and every text of it:
//! the prompt, the blocks in progress.txt, and what counts as the agent's word that all is done.
//! Never runs an agent, reads a file or looks at a clock: the runner does.
//!
//! The runner's part, in order: commit `Begin`; ask [`policy::next`]; build the prompt from
//! [`LoopState::prompts`] and the files; commit `StartIteration`; run the agent with a
//! [`completion::Detector`] on its output; commit `EndIteration`; ask again. Killed at any point,
//! it begins again with `Begin`: what was cut off is recorded as a failure, and its number is run
//! again.

mod bounds;
pub mod completion;
mod fact;
mod order;
mod plain;
pub mod policy;
pub mod prd;
pub mod progress;
pub mod prompt;
mod state;
pub mod template;

pub use bounds::Bounds;
pub(crate) use fact::LoopKind;
pub use fact::{
    Asked, Began, Failure, Injected, Interactive, IterationEnded, IterationStarted, LoopEnded,
    LoopEnding, LoopFact, Outcome, Proof, Request, Resumed, Settings, Waiting,
};
pub use order::{LoopOrder, LoopRefusal, MOST_PROMPTS, PROMPT_LIMIT, decide};
pub use policy::{Next, Policy};
pub use state::{Iteration, LoopState, Loops, Past, Standing};

#[cfg(test)]
pub(crate) mod tests;
