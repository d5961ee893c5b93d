//! The simulation: the engine under a model agent, a model person and a failing disk, driven by a
//! seed, with what must always hold checked after every step.
//!
//! A seed makes a [`script::Script`]; [`play`] plays it; [`oracle`] judges. A seed that fails is
//! printed with the shortest script that fails alike, and how to play it again. To add something
//! that can happen, add a line to the script and its arm in [`play`].

mod agent;
mod aims;
mod calls;
mod chance;
mod ending;
mod errands;
mod faults;
mod harness;
mod hooked;
mod journal;
mod law;
mod ledger;
mod nudges;
mod oracle;
mod outcome;
mod play;
mod reasons;
mod scene;
mod script;
mod sending;
mod session;
mod shrink;
mod terminal;
mod tests;
mod told;
mod trace;
mod typing;
mod watch;
