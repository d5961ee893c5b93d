//! `ph mcp`: the tools over the real binary's standard streams, line by line, and by a client that
//! is not ours.

mod client;
mod config;
mod ends;
mod independent;
mod mail;
mod odd;
mod waits;
mod work;
