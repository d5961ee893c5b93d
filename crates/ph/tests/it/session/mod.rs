//! Live sessions: how they are started, watched, crowded, killed and ended, and how mail reaches
//! the programs in them.

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
