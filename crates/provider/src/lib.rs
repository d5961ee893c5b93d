//! Mail provider scripts, which keep the mail instead of the journal: runs one, imports its mail,
//! and tests one.
//!
//! `process` runs a script once, `script` gives its operations types, `import` converts its
//! messages to drafts, `recursion_guard` keeps a home from calling itself, and `suite` tests a
//! script. The other side of the protocol, `ph provider`, is in `ph/cli/admin/provider/`. No shell
//! is involved, and the output of a script is never executed, used as a path, or shown unfiltered.

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

/// The settings of a script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptSettings {
    pub path: PathBuf,
    pub timeout: Duration,
    pub tick: Duration,
}
