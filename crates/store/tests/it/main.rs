//! The journal from outside, in temporary homes. All tests share this process.

#![allow(clippy::unwrap_used, reason = "these are tests, helpers included")]

mod files;
mod homes;
mod journal;
mod operations;
mod search;
mod transfer;
mod views;
