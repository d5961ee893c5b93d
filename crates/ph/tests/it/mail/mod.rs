//! The mail verbs, end to end: what each prints for people and for programs, and how it exits.

#[path = "../common/mod.rs"]
mod common;
mod finding;
mod inbox;
mod log;
mod portable;
mod sending;
mod shape;
