//! What is known of an agent, on the real binary: a scripted agent in a real terminal, and a
//! manifest in the user's own directory.

#![cfg(target_os = "linux")] // It looks for processes in /proc.

mod answers;
mod door;
mod drafts;
mod files;
mod hooks;
mod log;
mod matching;
mod nudges;
mod programs;
mod questions;
mod resumes;
mod signs;
mod starts;
