//! Live sessions: starting, attaching, crowds, crashes, stopping, and delivery to the programs in
//! them.

mod attach;
mod crash;
mod crowd;
mod delivery;
mod guard;
mod run;
mod silent;
mod stop;
mod storms;
mod terminal;
mod verbs;
