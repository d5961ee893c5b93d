//! `ph hook`, the real binary: it tells its session, and whatever happens it costs its agent
//! nothing.

#![cfg(target_os = "linux")] // It looks for processes in /proc.

#[path = "../common/mod.rs"]
mod common;

mod alone;
mod handing;
mod install;
mod killed;
mod plain;
mod shown;
