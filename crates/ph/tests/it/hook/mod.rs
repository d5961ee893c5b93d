//! `ph hook` and `ph hooks`, the real binary: a hook reports to its session, prints mail for its
//! agent, and never fails or delays the agent.

#![cfg(target_os = "linux")] // The tests find processes in /proc.

mod alone;
mod handing;
mod install;
mod killed;
mod plain;
mod shown;
