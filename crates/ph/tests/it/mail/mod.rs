//! The mail verbs, end to end: what each prints for people and for programs, and how it exits.

mod addresses;
mod finding;
mod identity;
mod inbox;
mod log;
mod portable;
mod prompt;
mod sending;
mod shape;
mod timing;
mod worklist;
