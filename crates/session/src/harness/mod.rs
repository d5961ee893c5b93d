//! Finds the manifests of harnesses, and tries a manifest on a program.
//!
//! The contents of a manifest, and the recognition of screens by it, are in the core.

pub mod catalogue;
pub mod installed;
#[cfg(test)]
mod tests;
pub mod trial;

pub use catalogue::{Catalogue, GENERIC_HARNESS, StatusRows};

use posthaste_core::harness::Manifest;
use posthaste_core::text;
use posthaste_store::report::Report;

/// Add a hint on how to install a program that was not found.
pub(crate) fn install_hint(report: Report, harness: &Manifest, program: &str) -> Report {
    match harness.install_of(program) {
        Some(how) => report.hint(format!("to install it: {}", text::one_line(how, 200))),
        None => report.hint("is it installed, and on PATH? a path needs a '/'"),
    }
}
