//! The journal from outside, in temporary homes. All tests share this process.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod delivery;
mod faults;
mod files;
mod group;
mod loops;
mod posting;
mod search;
mod tidy;
mod transfer;
mod versions;
mod views;
mod worklist;
