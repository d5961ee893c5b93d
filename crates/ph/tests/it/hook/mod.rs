//! `ph hook`, the real binary: it tells its session, and whatever happens it costs its agent
//! nothing.

#![cfg(target_os = "linux")] // It looks for processes in /proc.

mod alone;
mod handing;
mod install;
mod killed;
mod plain;
mod shown;
