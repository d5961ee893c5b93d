//! Detects recursion: a provider script that calls `ph` for the home whose mail it keeps would
//! duplicate mail. Each call of a script lists the calling homes in `PH_MAIL_ASKING`.

use posthaste_store::Home;
use posthaste_store::report::{Report, Result};
use std::path::Path;

/// Environment variable with the hashes of the calling homes.
pub const CALLERS_VARIABLE: &str = "PH_MAIL_ASKING";

/// Return the value of [`CALLERS_VARIABLE`] for a call from `home`.
pub(crate) fn callers_with(home: &Home) -> String {
    let mut marks = calling_homes();
    let own = hash(home);
    if !marks.contains(&own) {
        marks.push(own);
    }
    marks.join(",")
}

/// Return an error if this process was started by a call from `home`.
pub fn refuse(home: &Home) -> Result<()> {
    if !calling_homes().contains(&hash(home)) {
        return Ok(());
    }
    Err(Report::refused(format!(
        "the script that keeps the mail of {} calls ph for the same home",
        home.path().display()
    ))
    .hint("store the script's mail outside of ph; 'ph config show' names the script"))
}

fn calling_homes() -> Vec<String> {
    let callers = std::env::var(CALLERS_VARIABLE).unwrap_or_default();
    let marks = callers.split(',').filter(|mark| !mark.is_empty());
    marks.map(str::to_owned).collect()
}

/// Hash the home's canonical path.
fn hash(home: &Home) -> String {
    let path = home.path();
    let canonical = path.canonicalize();
    let canonical: &Path = canonical.as_deref().unwrap_or(path);
    let hash = blake3::hash(canonical.as_os_str().as_encoded_bytes());
    hash.to_hex().as_str().chars().take(16).collect()
}
