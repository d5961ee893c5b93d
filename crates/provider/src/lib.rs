//! Mail providers: scripts that keep the mail instead of the journal.
//!
//! `call` runs a script once (`stream` reads its output, `stop` ends it), `script` defines the
//! operations, and `trouble` describes failures. `intake` turns its messages into facts, `asking`
//! keeps a home from calling itself, and `suite` tests whether a script follows the protocol. The
//! other side of the protocol, `ph provider`, is in `ph/cli/admin/provider/`. A script is one
//! executable: no shell is involved, and its output is never run, used as a path, or shown
//! unfiltered.

pub mod error;
pub mod import;
mod pipes;
pub mod process;
pub mod recursion_guard;
pub mod script;
mod signals;
pub mod suite;

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
