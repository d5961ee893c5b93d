//! Mail providers: scripts that keep the mail behind us, and us as such a script for others.
//!
//! `call` runs a script once (`stream` reads it, `stop` ends it), `script` knows what its
//! operations mean, and `trouble` what went wrong. `intake` makes its mail facts of ours; `answer`
//! is the other side of the same protocol, `asking` keeps a home from asking itself, and `suite`
//! tells authors whether their script keeps to it. A script is one executable; no shell is
//! involved, and nothing that it says is ever run, looked up as a path, or shown unfiltered.

pub mod asking;
pub mod call;
pub mod intake;
pub mod script;
mod stop;
mod stream;
pub mod suite;
pub mod trouble;

use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;

/// A script, and how it is called.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptSettings {
    pub path: PathBuf,
    pub timeout: Duration,
    pub tick: Duration,
}
