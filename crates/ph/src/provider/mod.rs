//! Mail providers: scripts that keep the mail behind us, and us as such a script for others.
//!
//! `call` runs a script once (`stream` reads it, `stop` ends it), `script` knows what its
//! operations mean, and `trouble` what went wrong. `intake` makes its mail facts of ours; `answer`
//! is the other side of the same protocol, `asking` keeps a home from asking itself, and `suite`
//! tells authors whether their script keeps to it. A script is one executable; no shell is
//! involved, and nothing that it says is ever run, looked up as a path, or shown unfiltered.

pub(crate) mod answer;
pub(crate) mod asking;
pub(crate) mod call;
pub(crate) mod intake;
pub(crate) mod script;
pub(crate) mod stop;
mod stream;
pub(crate) mod suite;
pub(crate) mod trouble;
