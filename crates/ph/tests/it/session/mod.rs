//! Live sessions: starting, attaching, crowds, crashes, stopping, and delivery to the programs in
//! them.

mod attach;
mod clients;
mod crash;
mod delivery;
mod guard;
mod hanging;
mod run;
mod stop;
mod storms;
mod terminal;
mod verbs;
