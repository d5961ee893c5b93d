//! Which homes are asking a script for their mail just now. A script that asks the same home again
//! would have its mail multiply; so every call is told who asks, and who is asked looks.

use posthaste_store::Home;
use posthaste_store::report::{Report, Result};
use std::path::Path;

/// The variable that a script, and all that it starts, finds them in.
pub const ASKING: &str = "PH_MAIL_ASKING";

/// The homes that ask, this one among them.
pub(crate) fn with(home: &Home) -> String {
    let mut marks = above();
    let own = mark(home);
    if !marks.contains(&own) {
        marks.push(own);
    }
    marks.join(",")
}

/// Refuses where this home is what asks.
pub fn refuse(home: &Home) -> Result<()> {
    if !above().contains(&mark(home)) {
        return Ok(());
    }
    Err(Report::refused(format!(
        "the mail of {} is kept by a script that asks that very home for it",
        home.path().display()
    ))
    .hint("a script has to keep the mail elsewhere: 'ph config show' says which it is"))
}

fn above() -> Vec<String> {
    let said = std::env::var(ASKING).unwrap_or_default();
    let marks = said.split(',').filter(|mark| !mark.is_empty());
    marks.map(str::to_owned).collect()
}

/// A home by its true place, in few letters.
fn mark(home: &Home) -> String {
    let path = home.path();
    let place = path.canonicalize();
    let place: &Path = place.as_deref().unwrap_or(path);
    let hash = blake3::hash(place.as_os_str().as_encoded_bytes());
    hash.to_hex().as_str().chars().take(16).collect()
}
