//! Harnesses with the real binary: a scripted agent in a real terminal, and a manifest in the
//! user's own directory.

#![cfg(target_os = "linux")] // Reads processes from /proc.

mod activity;
mod answers;
mod drafts;
mod files;
mod hooks;
mod http_api;
mod log;
mod matching;
mod nudges;
mod programs;
mod questions;
mod resumes;
mod starts;
