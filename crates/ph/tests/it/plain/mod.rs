//! The plain dialect of a live session's socket: every request and reply, attached terminals, and
//! when and how messages reach the program.

mod attached;
mod delivery;
mod requests;
