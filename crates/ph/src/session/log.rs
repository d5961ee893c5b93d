//! What a session has to say to nobody in particular: lines in its log file, which is its
//! standard error.

use posthaste_core::text;
use std::io::Write;

pub(crate) fn line(text: impl std::fmt::Display) {
    let text = text::one_line(&text.to_string(), 2_000);
    let _ = writeln!(std::io::stderr(), "{} {text}", crate::times::now());
}
